package world

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents/internal/codec"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
)

// worldVersion is the first element of a state. It grows with every change of the
// format, and of the rules if a restored state would develop differently.
const worldVersion = 1

// Errors of [RestoreWorld] and [view.RestoreObserver].
var (
	// ErrState says that bytes are not a state.
	ErrState = errors.New("agents: corrupt state")
	// ErrStateVersion says that a state was written under other rules, those of
	// the handlers included.
	ErrStateVersion = errors.New("agents: unknown state version")
)

// AppendState appends the whole state of w to dst: canonical bytes, equal for
// equal worlds. They are one msgpack array:
//
//	[version, handlers, seq, time, kind, metadata, entities, places, relations]
//
//	handlers   [[kind, version]…] in the order of kinds
//	entities   [[id, object]…] in the order of ids
//	places     [[id, x, y, z]…] in the order of ids
//	relations  [[from, [[to, type, strength]…]]…] in the order of from
func (w *World) AppendState(dst []byte) []byte {
	s := w.s
	dst = msgp.AppendArrayHeader(dst, 9)
	dst = msgp.AppendInt(dst, worldVersion)
	dst = msgp.AppendArrayHeader(dst, uint32(len(w.handlers)))
	for _, kind := range jsonvalue.SortedKeys(w.handlers) {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, kind)
		dst = msgp.AppendUint32(dst, w.handlers[kind].Version)
	}
	dst = msgp.AppendUint64(dst, s.seq)
	dst = msgp.AppendFloat64(dst, s.time)
	dst = msgp.AppendString(dst, s.kind)
	dst = append(dst, s.metadata...)
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.entities)))
	for id, object := range w.Entities() {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, id)
		dst = append(dst, object...)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.places.at)))
	for _, id := range jsonvalue.SortedKeys(s.places.at) {
		at := s.places.at[id]
		dst = msgp.AppendArrayHeader(dst, 4)
		dst = msgp.AppendString(dst, id)
		dst = msgp.AppendFloat64(dst, at.X)
		dst = msgp.AppendFloat64(dst, at.Y)
		dst = msgp.AppendFloat64(dst, at.Z)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.out)))
	for _, from := range jsonvalue.SortedKeys(s.out) {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, from)
		dst = msgp.AppendArrayHeader(dst, uint32(len(s.out[from])))
		for _, r := range s.out[from] {
			dst = msgp.AppendArrayHeader(dst, 3)
			dst = msgp.AppendString(dst, r.To)
			dst = msgp.AppendString(dst, r.Type)
			dst = msgp.AppendFloat64(dst, r.Strength)
		}
	}
	return dst
}

// RestoreWorld returns the world whose state [World.AppendState] wrote. It
// trusts nothing in b: it refuses bytes that no world could have written with
// [ErrState], and a state of other rules with [ErrStateVersion].
func RestoreWorld(b []byte, handlers ...Handler) (*World, error) {
	w, err := NewWorld(handlers...)
	if err != nil {
		return nil, err
	}
	if err := w.restore(b); errors.Is(err, ErrStateVersion) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if !bytes.Equal(w.AppendState(make([]byte, 0, len(b))), b) {
		return nil, fmt.Errorf("%w: not in canonical form", ErrState)
	}
	return w, nil
}

func (w *World) restore(b []byte) error {
	r := codec.NewStateReader(b)
	r.Begin(worldVersion, 9, ErrStateVersion)
	kinds := jsonvalue.SortedKeys(w.handlers)
	n := r.ArrayOf(MaxEntities)
	if r.Err == nil && n != len(kinds) {
		return fmt.Errorf("%w: of %d handlers, not %d", ErrStateVersion, n, len(kinds))
	}
	for _, kind := range kinds {
		r.Fields(2, "a part")
		was, version := r.Text(MaxID), r.Uint()
		if r.Err == nil && (was != kind || version != uint64(w.handlers[kind].Version)) {
			return fmt.Errorf("%w: handler of %q, version %d", ErrStateVersion, was, version)
		}
	}
	s := w.s
	s.seq = r.Uint()
	s.time = r.Finite()
	s.kind = r.Text(MaxID)
	if s.metadata = r.Object(); r.Err == nil {
		fixed := slices.ContainsFunc(jsonvalue.FieldsOf(s.metadata), func(m jsonvalue.NamedValue) bool {
			return m.Name == "last_effect_seq" || m.Name == "last_effect_time" || m.Name == "last_effect_kind"
		})
		if fixed || len(s.metadata) > MaxEntityBytes || jsonvalue.Height(s.metadata) > MaxEntityDepth {
			r.Fail("metadata that no world has")
		}
	}
	for range r.ArrayOf(MaxEntities) {
		r.Fields(2, "a part")
		id, object := r.ID(MaxID), r.Object()
		if r.Err == nil {
			r.Err = validObject(object)
		}
		if r.Err != nil {
			return r.Err
		}
		s.put(id, object)
	}
	for range r.ArrayOf(MaxEntities) {
		r.Fields(4, "a part")
		id := r.ID(MaxID)
		at := Position{r.Finite(), r.Finite(), r.Finite()}
		if r.Err == nil && !at.valid() {
			r.Fail("a position beyond %g", MaxCoordinate)
		}
		if r.Err != nil {
			return r.Err
		}
		s.place(id, Position{at.X + 0, at.Y + 0, at.Z + 0})
	}
	for range r.ArrayOf(MaxAllRelations) {
		r.Fields(2, "a part")
		from := r.ID(MaxID)
		list := make([]Relation, 0, r.ArrayOf(MaxRelations))
		for range cap(list) {
			r.Fields(3, "a part")
			relation := Relation{r.ID(MaxID), r.Text(MaxID), r.Finite()}
			if r.Err != nil {
				return r.Err
			}
			list = append(list, relation)
		}
		if r.Err == nil && (len(list) == 0 || s.relations+len(list) > MaxAllRelations) {
			r.Fail("a list of %d relations", len(list))
		}
		if r.Err == nil && repeats(list) {
			r.Fail("a relation twice")
		}
		if r.Err != nil {
			return r.Err
		}
		s.relate(from, list)
	}
	return r.End()
}

func repeats(list []Relation) bool {
	seen := make(map[Relation]struct{}, len(list))
	for _, r := range list {
		r.Strength = 0
		if _, twice := seen[r]; twice {
			return true
		}
		seen[r] = struct{}{}
	}
	return false
}

// Dump returns the whole state of a world as text, its indexes and revisions included.
// Tests compare it to prove that a world is as it was.
func Dump(r ReadOnly) string {
	s := r.s
	tree := map[string][2]float64{}
	s.places.tree.Scan(func(at, _ [2]float64, id string) bool {
		tree[id] = at
		return true
	})
	entities := map[string]string{}
	for id, e := range s.entities {
		entities[id] = fmt.Sprint(e.revision, e.object)
	}
	// fmt writes maps in the order of their keys.
	return fmt.Sprintf("entities %v\nplaces %v\ntree %d %v\nout %v\nin %v\nrelations %d\nteams %v\nunplaced %v\nhead %v\nmetadata %v",
		entities, s.places.at, s.places.tree.Len(), tree, s.out, s.in, s.relations, s.teams, s.unplaced, s.head, s.metadata)
}

package agents

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/statebytes"
	"github.com/sajou-dev/sajou-go/signal"
)

// The first elements of states. One changes with its format, and with every
// change of rules after which old bytes would go on differently.
const (
	worldVersion    = 1
	observerVersion = 2
)

// Errors of [RestoreWorld] and [RestoreObserver].
var (
	// ErrState says that bytes are no state.
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
	for _, kind := range sortedKeys(w.handlers) {
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
	for _, id := range sortedKeys(s.places.at) {
		at := s.places.at[id]
		dst = msgp.AppendArrayHeader(dst, 4)
		dst = msgp.AppendString(dst, id)
		dst = msgp.AppendFloat64(dst, at.X)
		dst = msgp.AppendFloat64(dst, at.Y)
		dst = msgp.AppendFloat64(dst, at.Z)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.out)))
	for _, from := range sortedKeys(s.out) {
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
// believes nothing of b: what no world could have written is refused with
// [ErrState], and what was written under other rules with [ErrStateVersion].
func RestoreWorld(b []byte, handlers ...Handler) (*World, error) {
	w, err := NewWorld(handlers...)
	if err != nil {
		return nil, err
	}
	if err := w.restore(b); err != nil {
		return nil, stateError(err)
	}
	if !bytes.Equal(w.AppendState(make([]byte, 0, len(b))), b) {
		return nil, fmt.Errorf("%w: not in canonical form", ErrState)
	}
	return w, nil
}

func stateError(err error) error {
	if errors.Is(err, ErrStateVersion) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrState, err)
}

func (w *World) restore(b []byte) error {
	r := stateReader{statebytes.Reader{Rest: b}}
	r.Begin(worldVersion, 9, ErrStateVersion)
	kinds := sortedKeys(w.handlers)
	n := r.array(MaxEntities)
	if r.Err == nil && n != len(kinds) {
		return fmt.Errorf("%w: of %d handlers, not %d", ErrStateVersion, n, len(kinds))
	}
	for _, kind := range kinds {
		r.Fields(2, "a part")
		was, version := r.text(MaxID), r.Uint()
		if r.Err == nil && (was != kind || version != uint64(w.handlers[kind].Version)) {
			return fmt.Errorf("%w: handler of %q, version %d", ErrStateVersion, was, version)
		}
	}
	s := w.s
	s.seq = r.Uint()
	s.time = r.float()
	s.kind = r.text(MaxID)
	if s.metadata = r.object(); r.Err == nil {
		fixed := slices.ContainsFunc(membersOf(s.metadata), func(m member) bool {
			return m.name == "last_effect_seq" || m.name == "last_effect_time" || m.name == "last_effect_kind"
		})
		if fixed || len(s.metadata) > MaxEntityBytes || height(s.metadata) > MaxEntityDepth {
			r.Fail("metadata that no world has")
		}
	}
	for range r.array(MaxEntities) {
		r.Fields(2, "a part")
		id, object := r.id(), r.object()
		if r.Err == nil {
			r.Err = validObject(object)
		}
		if r.Err != nil {
			return r.Err
		}
		s.put(id, object)
	}
	for range r.array(MaxEntities) {
		r.Fields(4, "a part")
		id := r.id()
		at := Point{r.float(), r.float(), r.float()}
		if r.Err == nil && !at.valid() {
			r.Fail("a position beyond %g", MaxCoordinate)
		}
		if r.Err != nil {
			return r.Err
		}
		s.place(id, Point{at.X + 0, at.Y + 0, at.Z + 0})
	}
	for range r.array(MaxAllRelations) {
		r.Fields(2, "a part")
		from := r.id()
		list := make([]Relation, 0, r.array(MaxRelations))
		for range cap(list) {
			r.Fields(3, "a part")
			relation := Relation{r.id(), r.text(MaxID), r.float()}
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

// AppendState appends the state of o to dst: canonical bytes, one msgpack array
//
//	[version, agent, seq, digest, [[id, last seen, object]…]]
//
// What is visible is not in it, but follows from the world; only what is
// remembered does not. Of an entity that is still as it is remembered, with all
// of its fields, the object is nil. The world is the one that was looked at last,
// and the state is to be taken together with its state.
func (o *Observer) AppendState(dst []byte, w Reader) []byte {
	dst = msgp.AppendArrayHeader(dst, 5)
	dst = msgp.AppendInt(dst, observerVersion)
	dst = msgp.AppendString(dst, o.agent)
	dst = msgp.AppendUint64(dst, o.seq)
	dst = msgp.AppendString(dst, o.digest)
	dst = msgp.AppendArrayHeader(dst, uint32(len(o.memory)))
	for _, s := range o.seen {
		if !s.gone {
			continue
		}
		dst = msgp.AppendArrayHeader(dst, 3)
		dst = msgp.AppendString(dst, s.id)
		dst = msgp.AppendUint64(dst, o.memory[s.id])
		if e, ok := w.s.entities[s.id]; ok && bytes.Equal(w.s.whole(s.id, e).object, s.object) {
			dst = msgp.AppendNil(dst)
		} else {
			dst = append(dst, s.value()...)
		}
	}
	return dst
}

// RestoreObserver returns the observer whose state [Observer.AppendState]
// wrote, over the world as it was then, and through the same lens. Bytes that no
// such observer could have written are refused with [ErrState]; so is a state whose
// view the world and the lens do not give.
func RestoreObserver(b []byte, w Reader, lens *Lens) (*Observer, error) {
	o := &Observer{lens: lens, memory: Memory{}}
	if err := o.restore(b, w); err != nil {
		return nil, stateError(err)
	}
	if !bytes.Equal(o.AppendState(make([]byte, 0, len(b)), w), b) {
		return nil, fmt.Errorf("%w: not in canonical form, or of another view", ErrState)
	}
	return o, nil
}

func (o *Observer) restore(b []byte, w Reader) error {
	r := stateReader{statebytes.Reader{Rest: b}}
	r.Begin(observerVersion, 5, ErrStateVersion)
	o.agent = r.text(MaxID)
	o.seq = r.Uint()
	digest := r.text(64)
	for range r.array(o.lens.config.Remember) {
		r.Fields(3, "a part")
		id, seq := r.id(), r.Uint()
		var s *sight
		if e, ok := w.s.entities[id]; ok && r.None() {
			s = w.s.whole(id, e).remembered(seq)
		} else {
			object := r.object()
			if last, ok := object.Get(lastSeen); r.Err == nil && (!ok || !bytes.Equal(last, integerValue(seq))) {
				r.Fail("a memory of another time")
			}
			members := membersOf(object)
			if r.Err == nil && !slices.IsSortedFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) }) {
				r.Fail("a memory whose members are out of order")
			}
			s = newSight(id, members.value(), 0).remembered(seq)
		}
		if r.Err == nil && len(o.seen) > 0 && o.seen[len(o.seen)-1].id >= id {
			r.Fail("memories out of order")
		}
		if r.Err != nil {
			return r.Err
		}
		o.seen = append(o.seen, s)
		o.memory[id] = seq
	}
	if err := r.End(); err != nil {
		return err
	}
	// An observer that has been shown nothing has the digest of nothing.
	if o.digest = o.sum(); o.digest == digest && o.seq == 0 && len(o.seen) == 0 {
		return nil
	}
	o.rebuild(newEye(w, o.agent), o.seq)
	return nil
}

// stateReader reads a state.
type stateReader struct {
	statebytes.Reader
}

// array reads the head of an array of at most so many elements.
func (r *stateReader) array(most int) int {
	n := r.Array()
	if n > most {
		r.Fail("an array of %d, more than %d", n, most)
		return 0
	}
	return n
}

// float reads a finite number.
func (r *stateReader) float() float64 {
	f := r.Float()
	if !finite(f) {
		r.Fail("no finite number")
		return 0
	}
	return f
}

func (r *stateReader) text(most int) string {
	v := r.Value()
	s, ok := v.Text()
	if r.Err == nil && (!ok || len(s) > most) {
		r.Fail("want a string of at most %d bytes", most)
		return ""
	}
	return strings.Clone(s)
}

func (r *stateReader) id() string {
	id := r.text(MaxID)
	if r.Err == nil {
		if err := validID(id); err != nil {
			r.Fail("%w", err)
		}
	}
	return id
}

// object reads an object into bytes of its own.
func (r *stateReader) object() signal.Value {
	v := r.Value()
	if r.Err == nil && v.Kind() != signal.KindObject {
		r.Fail("%v, want an object", v.Kind())
	}
	return slices.Clone(v)
}

package agents

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// The first elements of states. One changes with its format, and with every
// change of rules after which old bytes would go on differently.
const (
	worldVersion    = 1
	observerVersion = 1
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
	for _, kind := range slices.Sorted(maps.Keys(w.handlers)) {
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
	for _, id := range slices.Sorted(maps.Keys(s.places.at)) {
		at := s.places.at[id]
		dst = msgp.AppendArrayHeader(dst, 4)
		dst = msgp.AppendString(dst, id)
		dst = msgp.AppendFloat64(dst, at.X)
		dst = msgp.AppendFloat64(dst, at.Y)
		dst = msgp.AppendFloat64(dst, at.Z)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.out)))
	for _, from := range slices.Sorted(maps.Keys(s.out)) {
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
	r := stateReader{rest: b}
	r.begin(worldVersion, 9)
	kinds := slices.Sorted(maps.Keys(w.handlers))
	n := r.array(MaxEntities)
	if r.err == nil && n != len(kinds) {
		return fmt.Errorf("%w: of %d handlers, not %d", ErrStateVersion, n, len(kinds))
	}
	for _, kind := range kinds {
		r.fields(2)
		was, version := r.text(MaxID), r.uint()
		if r.err == nil && (was != kind || version != uint64(w.handlers[kind].Version)) {
			return fmt.Errorf("%w: handler of %q, version %d", ErrStateVersion, was, version)
		}
	}
	s := w.s
	s.seq = r.uint()
	s.time = r.float()
	s.kind = r.text(MaxID)
	if s.metadata = r.object(); r.err == nil {
		fixed := slices.ContainsFunc(membersOf(s.metadata), func(m member) bool {
			return m.name == "last_effect_seq" || m.name == "last_effect_time" || m.name == "last_effect_kind"
		})
		if fixed || len(s.metadata) > MaxEntityBytes || height(s.metadata) > MaxEntityDepth {
			r.fail("metadata that no world has")
		}
	}
	for range r.array(MaxEntities) {
		r.fields(2)
		id, object := r.id(), r.object()
		if r.err == nil {
			r.err = validObject(object)
		}
		if r.err != nil {
			return r.err
		}
		s.put(id, object)
	}
	for range r.array(MaxEntities) {
		r.fields(4)
		id := r.id()
		at := Point{r.float(), r.float(), r.float()}
		if r.err == nil && !at.valid() {
			r.fail("a position beyond %g", MaxCoordinate)
		}
		if r.err != nil {
			return r.err
		}
		s.place(id, Point{at.X + 0, at.Y + 0, at.Z + 0})
	}
	for range r.array(MaxAllRelations) {
		r.fields(2)
		from := r.id()
		list := make([]Relation, 0, r.array(MaxRelations))
		for range cap(list) {
			r.fields(3)
			relation := Relation{r.id(), r.text(MaxID), r.float()}
			if r.err != nil {
				return r.err
			}
			list = append(list, relation)
		}
		if r.err == nil && (len(list) == 0 || s.relations+len(list) > MaxAllRelations) {
			r.fail("a list of %d relations", len(list))
		}
		if r.err == nil && repeats(list) {
			r.fail("a relation twice")
		}
		if r.err != nil {
			return r.err
		}
		s.relate(from, list)
	}
	return r.end()
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
// remembered does not. It is to be taken together with the state of that world.
func (o *Observer) AppendState(dst []byte) []byte {
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
		dst = append(dst, s.object...)
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
	if !bytes.Equal(o.AppendState(make([]byte, 0, len(b))), b) {
		return nil, fmt.Errorf("%w: not in canonical form, or of another view", ErrState)
	}
	return o, nil
}

func (o *Observer) restore(b []byte, w Reader) error {
	r := stateReader{rest: b}
	r.begin(observerVersion, 5)
	o.agent = r.text(MaxID)
	o.seq = r.uint()
	digest := r.text(64)
	for range r.array(o.lens.config.Remember) {
		r.fields(3)
		id, seq := r.id(), r.uint()
		object := r.object()
		if r.err == nil && len(o.seen) > 0 && o.seen[len(o.seen)-1].id >= id {
			r.fail("memories out of order")
		}
		if last, ok := object.Get("last_seen_seq"); r.err == nil && (!ok || !bytes.Equal(last, integerValue(seq))) {
			r.fail("a memory of another time")
		}
		if r.err != nil {
			return r.err
		}
		s := newSight(id, object, 0)
		s.gone = true
		o.seen = append(o.seen, s)
		o.memory[id] = seq
	}
	if err := r.end(); err != nil {
		return err
	}
	// An observer that has been shown nothing has the digest of nothing.
	if o.digest = o.sum(); o.digest == digest && o.seq == 0 && len(o.seen) == 0 {
		return nil
	}
	o.rebuild(newEye(w, o.agent), o.seq)
	return nil
}

// stateReader reads a state from the front. After the first error every read
// returns zero.
type stateReader struct {
	rest []byte
	err  error
}

func (r *stateReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.rest = nil
	}
}

// begin reads the head and the version, which comes before any judgement:
// another one may have another number of elements.
func (r *stateReader) begin(version, elements int) {
	n, rest, err := msgp.ReadArrayHeaderBytes(r.rest)
	if err != nil {
		r.fail("%w", err)
		return
	}
	r.rest = rest
	if v := r.uint(); r.err == nil && v != uint64(version) {
		r.fail("%w %d, this program knows %d", ErrStateVersion, v, version)
	}
	if r.err == nil && int(n) != elements {
		r.fail("want an array of %d", elements)
	}
}

func (r *stateReader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("bytes after the end")
	}
	return r.err
}

// array reads the head of an array of at most most elements. Each takes at
// least one byte, so a count that the rest cannot hold is refused before
// anything is made for it.
func (r *stateReader) array(most int) int {
	if r.err != nil {
		return 0
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(r.rest)
	switch {
	case err != nil:
		r.fail("%w", err)
		return 0
	case uint64(n) > uint64(len(rest)) || uint64(n) > uint64(most):
		r.fail("an array of %d in %d bytes", n, len(rest))
		return 0
	}
	r.rest = rest
	return int(n)
}

func (r *stateReader) fields(n int) {
	if got := r.array(n); r.err == nil && got != n {
		r.fail("an array of %d, want %d", got, n)
	}
}

func (r *stateReader) uint() uint64 {
	if r.err != nil {
		return 0
	}
	i, rest, err := msgp.ReadUint64Bytes(r.rest)
	if err != nil {
		r.fail("%w", err)
		return 0
	}
	r.rest = rest
	return i
}

// float reads a finite number.
func (r *stateReader) float() float64 {
	if r.err != nil {
		return 0
	}
	f, rest, err := msgp.ReadFloat64Bytes(r.rest)
	switch {
	case err != nil:
		r.fail("%w", err)
		return 0
	case !finite(f):
		r.fail("no finite number")
		return 0
	}
	r.rest = rest
	return f
}

func (r *stateReader) text(most int) string {
	v := r.value()
	s, ok := v.Text()
	if r.err == nil && (!ok || len(s) > most) {
		r.fail("want a string of at most %d bytes", most)
		return ""
	}
	return strings.Clone(s)
}

func (r *stateReader) id() string {
	id := r.text(MaxID)
	if r.err == nil {
		if err := validID(id); err != nil {
			r.fail("%w", err)
		}
	}
	return id
}

// object reads an object into bytes of its own.
func (r *stateReader) object() signal.Value {
	v := r.value()
	if r.err == nil && v.Kind() != signal.KindObject {
		r.fail("%v, want an object", v.Kind())
	}
	return slices.Clone(v)
}

func (r *stateReader) value() signal.Value {
	if r.err != nil {
		return nil
	}
	v, rest, err := signal.CheckValue(r.rest)
	if err != nil {
		r.fail("%w", err)
		return nil
	}
	r.rest = rest
	return v
}

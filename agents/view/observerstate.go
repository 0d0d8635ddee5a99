package view

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents/internal/codec"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/world"
)

// observerVersion is the first element of an observer's state. It changes with the
// format, and with every change of rules under which an old state would produce
// other deltas.
const observerVersion = 3

// AppendState appends the state of o to dst: canonical bytes, one msgpack array
//
//	[version, agent, seq, number, digest, [[id, last seen, object]…]]
//
// The state does not hold the visible entities, which follow from the world, only
// the remembered ones. The object is nil for an entity that the world still has
// exactly as it is remembered, with all of its fields. w must be the world of the
// last update, and the state is restored together with the state of that world.
func (o *Observer) AppendState(dst []byte, w world.ReadOnly) []byte {
	dst = msgp.AppendArrayHeader(dst, 6)
	dst = msgp.AppendInt(dst, observerVersion)
	dst = msgp.AppendString(dst, o.agent)
	dst = msgp.AppendUint64(dst, o.seq)
	dst = msgp.AppendUint64(dst, o.number)
	dst = msgp.AppendString(dst, o.Digest())
	dst = msgp.AppendArrayHeader(dst, uint32(len(o.memory)))
	for _, s := range o.seen {
		if !s.gone {
			continue
		}
		dst = msgp.AppendArrayHeader(dst, 3)
		dst = msgp.AppendString(dst, s.id)
		dst = msgp.AppendUint64(dst, o.memory[s.id])
		if e, ok := w.Index().Entity(s.id); ok && bytes.Equal(renderFull(w.Index(), s.id, e).object, s.object) {
			dst = msgp.AppendNil(dst)
		} else {
			dst = append(dst, s.value()...)
		}
	}
	return dst
}

// RestoreObserver returns the observer whose state [Observer.AppendState] wrote.
// The world and the compiled policy must be those of that call. It refuses bytes
// that AppendState cannot have written, and a state whose digest differs from that
// of the view that the world and the policy give: both wrap [world.ErrState].
func RestoreObserver(b []byte, w world.ReadOnly, compiled *CompiledPolicy) (*Observer, error) {
	o := &Observer{compiled: compiled, memory: map[string]uint64{}}
	if err := o.restore(b, w); errors.Is(err, world.ErrStateVersion) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", world.ErrState, err)
	}
	if !bytes.Equal(o.AppendState(make([]byte, 0, len(b)), w), b) {
		return nil, fmt.Errorf("%w: not in canonical form, or of another view", world.ErrState)
	}
	return o, nil
}

func (o *Observer) restore(b []byte, w world.ReadOnly) error {
	r := codec.NewStateReader(b)
	r.Begin(observerVersion, 6, world.ErrStateVersion)
	o.agent = r.Text(world.MaxID)
	o.seq = r.Uint()
	o.number = r.Uint()
	digest := r.Text(64)
	for range r.ArrayOf(o.compiled.config.Remember) {
		r.Fields(3, "a part")
		id, seq := r.ID(world.MaxID), r.Uint()
		var s *renderedEntity
		if e, ok := w.Index().Entity(id); ok && r.None() {
			s = renderFull(w.Index(), id, e).remembered(seq)
		} else {
			object := r.Object()
			if last, ok := object.Get(lastSeen); r.Err == nil && (!ok || !bytes.Equal(last, jsonvalue.Uint(seq))) {
				r.Fail("a memory with another last_seen_seq")
			}
			members := jsonvalue.FieldsOf(object)
			if r.Err == nil && !slices.IsSortedFunc(members, func(a, b jsonvalue.NamedValue) int { return strings.Compare(a.Name, b.Name) }) {
				r.Fail("a memory whose members are out of order")
			}
			s = newRendered(id, members.Value(), 0).remembered(seq)
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
	// An observer without a first view has the digest of the empty view.
	if o.change(); o.Digest() == digest && o.seq == 0 && len(o.seen) == 0 {
		return nil
	}
	o.rebuild(newViewpoint(w, o.agent), o.seq)
	return nil
}

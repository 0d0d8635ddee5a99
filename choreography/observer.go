package choreography

import (
	"time"

	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
)

// ActObserver receives every beginning and end of an action, with or without a sink,
// in the one total order of commands. The scheduler resolves nothing for it except on
// request and sends it no updates: the progress of an animation follows from its
// start, length and curve.
//
// The observer is called before the sink, and must not call back into the scheduler.
type ActObserver interface {
	// Started reports the beginning of an animated action. One of length 0 is
	// Completed at the same instant.
	Started(a *Act)
	// Completed reports that an animated action ended by itself.
	Completed(a *Act)
	// Executed reports an instant action.
	Executed(a *Act)
	// Interrupted reports that another signal ended a performance, with all of its
	// running actions. The performance may not have begun any.
	Interrupted(at time.Duration, seq uint64, index uint32)
}

// BlockObserver is an optional interface of an [ActObserver], for the decisions of
// guards, which no act shows.
type BlockObserver interface {
	// Blocked reports that the guard of a choreography did not let a performance of
	// the signal seq begin, because the performance with the id holderSeq-holderIndex
	// holds one of its names or waits for one earlier. Refused says that the performance
	// is not made; otherwise it waits. It is called once for each such holder and name.
	Blocked(seq uint64, refused bool, holderSeq uint64, holderIndex uint32)
}

// Act is one action of a performance. It is valid only during the call that passes it.
type Act struct {
	At       time.Duration // the instant of the event
	Key      ActKey
	Action   string
	Duration time.Duration // 0 for an instant action, never negative
	Curve    curve.Curve

	p *performance
	n *definition.Node
}

// ActKey identifies a running action: no two that run at once have the same.
type ActKey struct {
	Seq   uint64 // with Index the performance's id
	Index uint32
	Node  int32 // the action's place in its definition
}

// Entity returns the resolved entity reference, "" if the step has none.
func (a *Act) Entity() string { return a.p.cue.resolver.Entity(a.n.Entity) }

// Definition returns the choreography that the performance of the act runs.
func (a *Act) Definition() *definition.Definition { return a.p.def }

// Param returns a resolved parameter; false if the step does not have it or its
// reference does not resolve. The value stays valid after the call.
func (a *Act) Param(name string) (signal.Value, bool) {
	for i := range a.n.Params {
		if a.n.Params[i].Name == name {
			return a.p.cue.resolver.Resolve(a.n.Params[i].Value)
		}
	}
	return nil, false
}

// UnresolvedReference is a reference in a step or a guard that leads to nothing in the
// payload of the signal. The parameter is left out then, an entity is "", and a guard
// lacks the name.
type UnresolvedReference struct {
	Slot       int32  // the place of the definition among those that are or were in force, from 0
	Definition string // its id, or else the signal type that starts it
	Action     string // of the step, or "guard"
	Member     string // "entity", or the name of the parameter
	Reference  string // as it was written
}

// AppendUnresolved appends the references of the step that do not resolve to dst, and
// those of the guard of its performance. It looks at the signal only, so that the result
// does not depend on the parameters that the caller has asked for.
func (a *Act) AppendUnresolved(dst []UnresolvedReference) []UnresolvedReference {
	// The handler of an interruption has no guard.
	guard := a.p.def.Guard()
	guarded := guard.Refers() && !a.p.handler
	if !a.n.Refers && !guarded {
		return dst
	}
	check := func(action, member string, v signal.Value) {
		path, ok := definition.Reference(v)
		if !ok {
			return
		}
		if _, found := a.p.cue.resolver.Lookup(path); found {
			return
		}
		name := a.p.def.Name()
		if name == "" {
			name = a.p.def.On()
		}
		dst = append(dst, UnresolvedReference{a.p.slot, name, action, member, definition.RefPrefix + path})
	}
	if guarded {
		for _, v := range guard.Names() {
			check(guardAction, "entity", v)
		}
	}
	check(a.n.Action, "entity", a.n.Entity)
	for i := range a.n.Params {
		check(a.n.Action, a.n.Params[i].Name, a.n.Params[i].Value)
	}
	return dst
}

// guardAction stands for the action in an [UnresolvedReference] of a guard.
const guardAction = "guard"

// lend fills the scheduler's only Act, so that an event allocates nothing.
func (s *Scheduler) lend(p *performance, node int32, n *definition.Node) *Act {
	s.act = Act{
		At: time.Duration(s.now), Key: ActKey{p.seq, p.index, node},
		Action: n.Action, Duration: time.Duration(n.Duration), Curve: n.Curve,
		p: p, n: n,
	}
	return &s.act
}

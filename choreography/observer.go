package choreography

import (
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// Observer is told of every boundary that the scheduler passes, sink or no
// sink, in the one total order of commands. Nothing is resolved for it that it
// does not ask for, and it is never told of updates: whoever wants to know how
// far an animation is computes it from its start, length and curve.
//
// It is told before the sink is, and must not call back into the scheduler.
type Observer interface {
	// Started tells that an animated action begins. One without length is
	// Completed at the same instant.
	Started(a *Act)
	// Completed tells that an animated action ended by itself.
	Completed(a *Act)
	// Executed tells of an instant action.
	Executed(a *Act)
	// Interrupted tells that a performance was ended from outside, with all
	// that it had under way. It may not have begun anything yet.
	Interrupted(at time.Duration, seq uint64, index uint32)
}

// World answers what conditions on the stage ask.
type World interface {
	// Property returns a property of an entity at the present instant, by the
	// names that views of the stage have; false when there is no such thing.
	// All that happened before in the total order of commands has been told
	// to the [Observer] by then, and nothing that comes after.
	Property(entity, property string, at time.Duration) (signal.Value, bool)
}

// Act is one action of a performance, lent to an [Observer] for a call.
type Act struct {
	At       time.Duration // the instant of what is told
	Key      ActKey
	Action   string
	Duration time.Duration // 0 for an instant action, never negative
	Curve    Curve

	p *performance
	n *node
}

// ActKey names an action under way: no two that run at once have the same.
type ActKey struct {
	Seq   uint64 // with Index the performance's id
	Index uint32
	Node  int32 // the action's place in its definition
}

// Performance returns the id of the act's performance, as commands have it.
func (a *Act) Performance() string { return a.p.ID() }

// Handler reports whether the act belongs to what an interrupted performance
// left to do.
func (a *Act) Handler() bool { return a.p.handler }

// Correlation returns the correlation id that the performance carries and can
// be interrupted by; false if there is none, as in a handler.
func (a *Act) Correlation() (id string, ok bool) {
	if a.p.chain == nil {
		return "", false
	}
	return a.p.cue.correlationID, true
}

// Entity returns the resolved entity reference, "" if there is none.
func (a *Act) Entity() string { return a.p.cue.resolver.entity(a.n.entity) }

// Param returns a resolved parameter; false when it is not written, or refers
// to what is missing. The value stays good after the call.
func (a *Act) Param(name string) (signal.Value, bool) {
	for i := range a.n.params {
		if a.n.params[i].name == name {
			return a.p.cue.resolver.Resolve(a.n.params[i].value)
		}
	}
	return nil, false
}

// Params goes over the parameters as they are written, resolved, without those
// that refer to what is missing. The values stay good after the call.
func (a *Act) Params() iter.Seq2[string, signal.Value] {
	p, n := a.p, a.n
	return func(yield func(string, signal.Value) bool) {
		for i := range n.params {
			if v, ok := p.cue.resolver.Resolve(n.params[i].value); ok && !yield(n.params[i].name, v) {
				return
			}
		}
	}
}

// lend fills the one Act there is.
func (s *Scheduler) lend(p *performance, node int32, n *node) *Act {
	s.act = Act{
		At: time.Duration(s.now), Key: ActKey{p.seq, p.index, node},
		Action: n.action, Duration: time.Duration(n.duration), Curve: n.curve,
		p: p, n: n,
	}
	return &s.act
}

package choreography

import (
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// Observer is told of every boundary that the scheduler passes, sink or no
// sink, in the one total order of commands. Nothing is resolved for it that it
// does not ask for, and it is never told of updates: whoever wants to know how
// far an animation is computes it from its start, length and curve.
type Observer interface {
	// Started tells that an animated action begins. One without length is
	// Completed at the same instant.
	Started(a *Act)
	// Completed tells that an animated action ended by itself.
	Completed(a *Act)
	// Executed tells of an instant action.
	Executed(a *Act)
	// Interrupted tells that a performance was ended from outside, with all
	// that it had under way.
	Interrupted(at time.Duration, seq uint64, index uint32)
}

// World answers what conditions on the stage ask.
type World interface {
	// Property returns a property of an entity at the present instant, by the
	// names that views of the stage have; false when there is no such thing.
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

// Entity returns the resolved entity reference, "" if there is none.
func (a *Act) Entity() string { return a.p.cue.resolver.entity(a.n.entity) }

// Param returns a resolved parameter; false when it is not written, or refers
// to what is missing.
func (a *Act) Param(name string) (signal.Value, bool) {
	for i := range a.n.params {
		if a.n.params[i].name == name {
			return a.p.cue.resolver.Resolve(a.n.params[i].value)
		}
	}
	return nil, false
}

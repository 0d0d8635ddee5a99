package choreography

import (
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/choreography/definition"
)

// Performance describes one active performance to people and expressions. It is a
// view: it is valid until the next call that changes the scheduler.
type Performance struct {
	Seq           uint64 // the signal that made it; with Index it is the id
	Index         uint32 // from 1
	On            string // the type its definition answers to
	Slot          int    // its definition's place in the registry, from 0; -1 if it was replaced
	Signal        uint64 // the signal its references are resolved against
	Handler       bool   // it runs the steps of an onInterrupt
	Correlated    bool   // it carries a correlation id and can be interrupted
	CorrelationID string
	Began         time.Duration // when its signal came
	Queued        bool          // it waits for its guard and has not begun

	p *performance
}

// ID returns "p-<seq>-<index>".
func (p Performance) ID() string { return p.p.ID() }

// Name returns the id of its definition, "" if that has none.
func (p Performance) Name() string { return p.p.def.Name() }

// Guard yields the names that the performance holds, or waits for if it is
// queued, in the order of its definition.
func (p Performance) Guard() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.p.claims {
			if !yield(p.p.claims[i].gate.name) {
				return
			}
		}
	}
}

// Animation is one running animation.
type Animation struct {
	Action   string
	Entity   string // resolved
	Easing   string // as written
	Start    time.Duration
	Duration time.Duration

	p *performance
	n *definition.Node
}

// Params returns the action's resolved parameters, in a new map.
func (a Animation) Params() map[string]any { return a.p.cue.resolver.Params(a.n.Params) }

// Progress returns how far the animation is at an instant, raw and eased. It
// is clamped to the animation's beginning and end.
func (a Animation) Progress(at time.Duration) (raw, eased float64) {
	raw = a.n.Progress(max(0, int64(at-a.Start)))
	return raw, a.n.Curve.At(raw)
}

// Pause is a cursor that lets time pass: a wait, or the delay of an action.
type Pause struct {
	Action string // "wait", or the action that is held back
	Delay  bool
	Since  time.Duration
	Until  time.Duration
}

// Performances yields the active performances in the order in which they were made.
// It allocates only for [Performance.ID] and the other values that are asked for.
func (s *Scheduler) Performances() iter.Seq[Performance] {
	return func(yield func(Performance) bool) {
		for p := s.first; p != nil; p = p.next {
			if !yield(s.view(p)) {
				return
			}
		}
	}
}

func (s *Scheduler) view(p *performance) Performance {
	v := Performance{
		Seq: p.seq, Index: p.index, On: p.def.On(), Slot: -1, Signal: p.cue.seq,
		Handler: p.handler, Began: time.Duration(p.began), Queued: p.waiting, p: p,
	}
	if s.registry.has(p.def, p.slot) {
		v.Slot = int(p.slot)
	}
	if p.chain != nil {
		v.Correlated, v.CorrelationID = true, p.cue.correlationID
	}
	return v
}

// Animations yields the running animations, depth first.
func (p Performance) Animations() iter.Seq[Animation] {
	return func(yield func(Animation) bool) {
		p.p.root.walk(p.p.def, func(c *cursor, n *definition.Node) bool {
			if c.phase != phaseRunning {
				return true
			}
			return yield(Animation{
				Action: n.Action, Entity: p.p.cue.resolver.Entity(n.Entity), Easing: n.Easing,
				Start: time.Duration(c.since), Duration: time.Duration(n.Duration),
				p: p.p, n: n,
			})
		})
	}
}

// Pauses yields the cursors that let time pass, depth first.
func (p Performance) Pauses() iter.Seq[Pause] {
	return func(yield func(Pause) bool) {
		p.p.root.walk(p.p.def, func(c *cursor, n *definition.Node) bool {
			if c.phase != phaseWaiting && c.phase != phaseDelayed {
				return true
			}
			return yield(Pause{
				Action: n.Action, Delay: c.phase == phaseDelayed,
				Since: time.Duration(c.since), Until: time.Duration(c.until),
			})
		})
	}
}

// walk visits the active cursors that are not groups, until visit returns false.
func (c *cursor) walk(d *definition.Definition, visit func(*cursor, *definition.Node) bool) bool {
	if c.node == c.end {
		return true
	}
	if c.phase != phaseGroup {
		return visit(c, &d.Nodes()[c.node])
	}
	for i := range c.kids {
		if !c.kids[i].walk(d, visit) {
			return false
		}
	}
	return true
}

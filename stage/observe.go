package stage

import (
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
)

// currentAct is the act whose start or execution the stage is performing.
type currentAct struct {
	*choreography.Act      // valid until the call of the observer returns
	instant           bool // it has no duration
	act               *act // nil until its first claim
}

// Started implements [choreography.ActObserver].
func (s *Stage) Started(a *choreography.Act) { s.do(a, false) }

// Executed implements [choreography.ActObserver].
func (s *Stage) Executed(a *choreography.Act) { s.do(a, true) }

// Completed implements [choreography.ActObserver].
func (s *Stage) Completed(a *choreography.Act) {
	s.now = max(s.now, a.At)
	act := s.acts[a.Key]
	if act == nil {
		return // its channels were taken over, or it never moved one
	}
	for c := act.first; c != nil; c = c.next {
		if c.beam != nil {
			s.dropBeam(c.beam)
			continue
		}
		c.settle(c.mask, a.At, true)
		if c.arrival != "" {
			c.entity.state = c.arrival
		}
	}
	s.dropAct(act)
}

// Interrupted implements [choreography.ActObserver].
func (s *Stage) Interrupted(at time.Duration, seq uint64, index uint32) {
	s.now = max(s.now, at)
	for act := s.newestActs[performanceKey{seq, index}]; act != nil; {
		next := act.previousOfPerformance
		act.leaveUndo(at)
		s.stop(act, at)
		act = next
	}
}

// ActedOn returns the ids of the entities that acts of a performance still move, those
// that [Stage.Interrupted] may change. An entity can be named twice.
func (s *Stage) ActedOn(seq uint64, index uint32) []string {
	var ids []string
	for act := s.newestActs[performanceKey{seq, index}]; act != nil; act = act.previousOfPerformance {
		for c := act.first; c != nil; c = c.next {
			ids = append(ids, c.entity.id)
		}
	}
	return ids
}

// stop ends an act early: every channel that it still moves keeps its value at the
// instant, and a beam its length.
func (s *Stage) stop(a *act, at time.Duration) {
	for c := a.first; c != nil; c = c.next {
		if c.beam != nil {
			c.beam.grown, c.beam.claim = c.beam.reach(at), nil
			continue
		}
		c.settle(c.mask, at, false)
	}
	s.dropAct(a)
}

// do performs an action at its start.
func (s *Stage) do(a *choreography.Act, instant bool) {
	s.now = max(s.now, a.At)
	// A field of the stage rather than a local variable: custom actions get a pointer to
	// it, so a local one would be allocated for each call.
	s.current = currentAct{Act: a, instant: instant}
	s.warnUnresolved()
	if custom := s.actions[a.Action]; custom != nil {
		s.perform(custom)
	} else {
		s.builtIn(a.Action)
	}
	s.current = currentAct{}
}

// performance returns the performance of the current act.
func (s *Stage) performance() performanceKey {
	return performanceKey{s.current.Key.Seq, s.current.Key.Index}
}

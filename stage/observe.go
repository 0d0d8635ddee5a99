package stage

import (
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
)

// deed is the act that is being carried out.
type deed struct {
	*choreography.Act      // lent
	instant           bool // it takes no time at all
	act               *act // made for the first claim
}

// Started implements [choreography.Observer].
func (s *Stage) Started(a *choreography.Act) { s.do(a, false) }

// Executed implements [choreography.Observer].
func (s *Stage) Executed(a *choreography.Act) { s.do(a, true) }

// Completed implements [choreography.Observer].
func (s *Stage) Completed(a *choreography.Act) {
	s.now = max(s.now, a.At)
	act := s.acts[a.Key]
	if act == nil {
		return // nothing of it is left, or it never moved anything
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

// Interrupted implements [choreography.Observer].
func (s *Stage) Interrupted(at time.Duration, seq uint64, index uint32) {
	s.now = max(s.now, at)
	for act := s.runs[run{seq, index}]; act != nil; {
		next := act.previousOfRun
		act.bequeath(at)
		s.stop(act, at)
		act = next
	}
}

// stop leaves everything that an act still moves as it is.
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

// do carries out an action at its start.
func (s *Stage) do(a *choreography.Act, instant bool) {
	s.now = max(s.now, a.At)
	// One for the whole stage: custom actions are handed it, so that one for
	// each call would be an allocation for each.
	s.deed = deed{Act: a, instant: instant}
	if custom := s.actions[a.Action]; custom != nil {
		s.perform(custom)
	} else {
		s.builtIn(a.Action)
	}
	s.deed = deed{}
}

// take takes channels of e away from whoever moves them, each with the value it
// has now. What it takes from another performance is a conflict. It returns
// until when that would have gone on.
func (s *Stage) take(e *entity, m mask) (contested time.Duration) {
	e.touched = true
	if m.has(chTint) {
		e.glow = glow{}
	}
	for ch := range channel(channels) {
		o := e.owner[ch]
		if o == nil || !m.has(ch) {
			continue
		}
		lost := o.mask & m
		o.settle(lost, s.now, false)
		if s.deed.Act != nil && o.act.run() != s.run() {
			s.conflict(e, lost, o.act.run())
			contested = max(contested, o.act.end())
		}
		if o.mask == 0 {
			s.dropClaim(o)
		}
	}
	return contested
}

// run returns the performance of the present deed.
func (s *Stage) run() run { return run{s.deed.Key.Seq, s.deed.Key.Index} }

// hold makes the present act move channels of e.
func (s *Stage) hold(e *entity, m mask, k kind) *claim {
	contested := s.take(e, m)
	c := s.claim(e)
	c.mask, c.kind, c.contested = m, k, contested
	for ch := range channel(channels) {
		if m.has(ch) {
			e.owner[ch] = c
		}
	}
	return c
}

// claim makes a claim of the present act without a channel.
func (s *Stage) claim(e *entity) *claim {
	if s.deed.act == nil {
		a := s.deed.Act
		s.deed.act = s.begin(a.Key, a.At, a.Duration, a.Curve)
	}
	return s.claimOf(s.deed.act, e)
}

func (s *Stage) claimOf(a *act, e *entity) *claim {
	var c *claim
	if n := len(s.spareClaims); n > 0 {
		c, s.spareClaims = s.spareClaims[n-1], s.spareClaims[:n-1]
	} else {
		c = new(claim)
	}
	c.act, c.entity = a, e
	c.prev = a.last
	if a.last != nil {
		a.last.next = c
	} else {
		a.first = c
	}
	a.last = c
	return c
}

// begin makes an act the newest.
func (s *Stage) begin(key choreography.ActKey, at, duration time.Duration, curve choreography.Curve) *act {
	if old := s.acts[key]; old != nil {
		s.stop(old, at) // of a state that the performances know nothing of
	}
	var a *act
	if n := len(s.spareActs); n > 0 {
		a, s.spareActs = s.spareActs[n-1], s.spareActs[:n-1]
	} else {
		a = new(act)
	}
	a.key, a.start, a.duration, a.curve = key, at, duration, curve
	s.acts[key] = a
	a.prev = s.lastAct
	if s.lastAct != nil {
		s.lastAct.next = a
	} else {
		s.firstAct = a
	}
	s.lastAct = a
	if newest := s.runs[a.run()]; newest != nil {
		newest.nextOfRun, a.previousOfRun = a, newest
	}
	s.runs[a.run()] = a
	return a
}

// maxSpare bounds how many acts and claims are kept for use again.
const maxSpare = 64

// dropClaim takes a claim that owns nothing out of its act, and the act with
// it if it was the last.
func (s *Stage) dropClaim(c *claim) {
	a := c.act
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		a.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		a.last = c.prev
	}
	s.spareClaim(c)
	// The act that is being carried out will have further claims.
	if a.first == nil && a != s.deed.act {
		s.dropAct(a)
	}
}

func (s *Stage) spareClaim(c *claim) {
	*c = claim{}
	if len(s.spareClaims) < maxSpare {
		s.spareClaims = append(s.spareClaims, c)
	}
}

// dropAct takes an act out of the stage, with its claims, which own nothing.
func (s *Stage) dropAct(a *act) {
	for c := a.first; c != nil; {
		next := c.next
		s.spareClaim(c)
		c = next
	}
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		s.firstAct = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		s.lastAct = a.prev
	}
	if a.previousOfRun != nil {
		a.previousOfRun.nextOfRun = a.nextOfRun
	}
	switch {
	case a.nextOfRun != nil:
		a.nextOfRun.previousOfRun = a.previousOfRun
	case a.previousOfRun != nil:
		s.runs[a.run()] = a.previousOfRun
	default:
		delete(s.runs, a.run())
	}
	delete(s.acts, a.key)
	*a = act{}
	if len(s.spareActs) < maxSpare {
		s.spareActs = append(s.spareActs, a)
	}
}

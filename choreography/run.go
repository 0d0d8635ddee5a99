package choreography

import (
	"math"
	"strconv"
	"time"
)

// cursor walks one block of a definition. A parallel group hangs a cursor for
// each of its children under the one that reached it.
type cursor struct {
	node, end int32 // node == end: done
	phase     phase
	since     int64 // when the phase began
	until     int64 // when it ends; of a group, when something happens next
	kids      []cursor

	// Of a running animation, filled when its first command needs them.
	resolved bool
	entity   string
	params   map[string]any
}

// phase says what a cursor is doing at its node. Its numbers are part of the
// state format.
type phase uint8

const (
	phaseFresh   phase = iota // not begun: only before the first Advance
	phaseDelayed              // held back by "delay"
	phaseRunning              // an animation
	phaseWaiting              // a wait
	phaseGroup                // a parallel group
)

// ID returns the performance's id.
func (p *performance) ID() string {
	if p.id == "" {
		p.id = performanceID(p.seq, p.index)
	}
	return p.id
}

func performanceID(seq uint64, index uint32) string {
	b := append(make([]byte, 0, 24), "p-"...)
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, uint64(index), 10)
	return string(b)
}

// run does everything that p has to do at the present instant and reports
// whether p ended. With updates it also sends those of running animations.
func (s *Scheduler) run(p *performance, updates bool) (done bool) {
	done = s.step(p, &p.root, updates)
	p.due = p.root.until
	return done
}

// step moves one cursor as far as the present instant allows. It recurses once
// for each nested parallel group and never per step.
func (s *Scheduler) step(p *performance, c *cursor, updates bool) (done bool) {
	for c.node < c.end {
		n := &p.def.nodes[c.node]
		switch c.phase {
		case phaseFresh:
			if n.kind == nodeBranch {
				if !n.when.matches(s.facts(p.cue.resolver)) {
					c.node += n.skip
				}
				c.node++
				break
			}
			if n.delay > 0 {
				s.enter(c, phaseDelayed, n.delay)
				break
			}
			s.begin(p, c, n)
		case phaseDelayed:
			if c.until > s.now {
				return false
			}
			s.begin(p, c, n)
		case phaseRunning:
			if c.until > s.now {
				if updates {
					s.update(p, c, n)
				}
				return false
			}
			s.complete(p, c, n)
			c.advance()
		case phaseWaiting:
			if c.until > s.now {
				return false
			}
			c.advance()
		case phaseGroup:
			if !s.group(p, c, updates) {
				return false
			}
			c.advance()
		}
	}
	return true
}

// begin starts the node itself, its delay being over.
func (s *Scheduler) begin(p *performance, c *cursor, n *node) {
	switch n.kind {
	case nodeInstant:
		if s.observer != nil {
			s.observer.Executed(s.lend(p, c.node, n))
		}
		if s.sink != nil {
			s.sink.OnActionExecute(ActionExecute{
				At: time.Duration(s.now), PerformanceID: p.ID(), Action: n.action,
				EntityRef: p.cue.resolver.entity(n.entity), Params: p.cue.resolver.params(n.params),
			})
		}
		c.advance()
	case nodeAnimated:
		s.enter(c, phaseRunning, n.duration)
		if s.observer != nil {
			s.observer.Started(s.lend(p, c.node, n))
		}
		if s.sink != nil {
			c.resolve(p, n)
			s.sink.OnActionStart(ActionStart{
				At: time.Duration(s.now), PerformanceID: p.ID(), Action: n.action,
				EntityRef: c.entity, Params: c.params, Duration: n.written, Easing: n.easing,
			})
		}
	case nodeWait:
		s.enter(c, phaseWaiting, n.duration)
	case nodeParallel:
		c.spread(n)
	case nodeBranch: // passed before its turn comes
	}
}

// enter begins a phase of a given length now.
func (s *Scheduler) enter(c *cursor, ph phase, length int64) {
	c.phase, c.since, c.until = ph, s.now, saturate(s.now, length)
}

// group steps the children of a parallel group and reports whether all ended.
func (s *Scheduler) group(p *performance, c *cursor, updates bool) (done bool) {
	done, c.until = true, math.MaxInt64
	for i := range c.kids {
		kid := &c.kids[i]
		if s.step(p, kid, updates) {
			continue
		}
		done = false
		c.until = min(c.until, kid.until)
	}
	return done
}

func (s *Scheduler) update(p *performance, c *cursor, n *node) {
	if s.sink == nil {
		return
	}
	c.resolve(p, n)
	elapsed := s.now - c.since
	s.sink.OnActionUpdate(ActionUpdate{
		At: time.Duration(s.now), PerformanceID: p.ID(), Action: n.action,
		EntityRef: c.entity, Params: c.params,
		Progress: n.curve.At(n.progress(elapsed)), Elapsed: time.Duration(elapsed),
	})
}

func (s *Scheduler) complete(p *performance, c *cursor, n *node) {
	if s.observer != nil {
		s.observer.Completed(s.lend(p, c.node, n))
	}
	if s.sink == nil {
		return
	}
	c.resolve(p, n)
	s.sink.OnActionComplete(ActionComplete{
		At: time.Duration(s.now), PerformanceID: p.ID(), Action: n.action,
		EntityRef: c.entity, Params: c.params,
	})
}

// progress is the share of an animation that has passed, in [0, 1]. A duration
// out of reach counts as written: where it is cut off is no place to arrive at.
func (n *node) progress(elapsed int64) float64 {
	switch {
	case elapsed >= n.duration:
		return 1
	case n.duration == math.MaxInt64:
		return float64(elapsed) / float64(n.written*1e6)
	default:
		return float64(elapsed) / float64(n.duration)
	}
}

// advance moves the cursor to its next node.
func (c *cursor) advance() {
	c.node++
	c.phase = phaseFresh
	c.resolved, c.entity, c.params = false, "", nil
}

// spread puts a cursor on each child of a parallel group. Memory of an earlier
// group is used again.
func (c *cursor) spread(n *node) {
	c.phase = phaseGroup
	if cap(c.kids) < len(n.children) {
		c.kids = make([]cursor, len(n.children))
	}
	c.kids = c.kids[:len(n.children)]
	for i, b := range n.children {
		c.kids[i] = cursor{node: b.first, end: b.end, kids: c.kids[i].kids}
	}
}

// resolve makes the entity and parameters that the commands of one animation
// share.
func (c *cursor) resolve(p *performance, n *node) {
	if c.resolved {
		return
	}
	c.entity, c.params, c.resolved = p.cue.resolver.entity(n.entity), p.cue.resolver.params(n.params), true
}

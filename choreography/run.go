package choreography

import (
	"math"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/choreography/definition"
)

// cursor walks one block of a definition. The cursor that reaches a parallel group
// has one child cursor for each child of the group.
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

// phase is the state of a cursor at its node. Its numbers are part of the
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

// run performs everything that p has to do at the present instant and reports
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
		n := &p.def.Nodes()[c.node]
		switch c.phase {
		case phaseFresh:
			if n.Kind == definition.NodeBranch {
				s.asking = p
				holds := n.When.Matches(s.facts(p.cue.resolver, &p.cue.matching))
				if s.asking = nil; !holds {
					c.node += n.Skip
				}
				c.node++
				break
			}
			if n.Delay > 0 {
				s.enter(c, phaseDelayed, n.Delay)
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
				if updates && s.sink != nil {
					c.sendUpdate(s.sink, s.now, p, n)
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

// begin starts the node itself, after its delay.
func (s *Scheduler) begin(p *performance, c *cursor, n *definition.Node) {
	switch n.Kind {
	case definition.NodeInstant:
		if s.observer != nil {
			s.observer.Executed(s.lend(p, c.node, n))
		}
		if s.sink != nil {
			s.sink.OnActionExecute(ActionExecute{
				At: time.Duration(s.now), PerformanceID: p.ID(), Action: n.Action,
				EntityRef: p.cue.resolver.Entity(n.Entity), Params: p.cue.resolver.Params(n.Params),
			})
		}
		c.advance()
	case definition.NodeAnimated:
		s.enter(c, phaseRunning, n.Duration)
		if s.observer != nil {
			s.observer.Started(s.lend(p, c.node, n))
		}
		if s.sink != nil {
			c.sendStart(s.sink, p, n)
		}
	case definition.NodeWait:
		s.enter(c, phaseWaiting, n.Duration)
	case definition.NodeParallel:
		c.spread(n)
	case definition.NodeBranch: // passed before its turn comes
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

// sendStart sends the beginning of the running animation at c.
func (c *cursor) sendStart(sink CommandSink, p *performance, n *definition.Node) {
	c.resolve(p, n)
	sink.OnActionStart(ActionStart{
		At: time.Duration(c.since), PerformanceID: p.ID(), Action: n.Action,
		EntityRef: c.entity, Params: c.params, Duration: n.Written, Easing: n.Easing,
	})
}

// sendUpdate sends the progress of the running animation at c.
func (c *cursor) sendUpdate(sink CommandSink, now int64, p *performance, n *definition.Node) {
	c.resolve(p, n)
	elapsed := now - c.since
	sink.OnActionUpdate(ActionUpdate{
		At: time.Duration(now), PerformanceID: p.ID(), Action: n.Action,
		EntityRef: c.entity, Params: c.params,
		Progress: n.Curve.At(n.Progress(elapsed)), Elapsed: time.Duration(elapsed),
	})
}

func (s *Scheduler) complete(p *performance, c *cursor, n *definition.Node) {
	if s.observer != nil {
		s.observer.Completed(s.lend(p, c.node, n))
	}
	if s.sink == nil {
		return
	}
	c.resolve(p, n)
	s.sink.OnActionComplete(ActionComplete{
		At: time.Duration(s.now), PerformanceID: p.ID(), Action: n.Action,
		EntityRef: c.entity, Params: c.params,
	})
}

// advance moves the cursor to its next node.
func (c *cursor) advance() {
	c.node++
	c.phase = phaseFresh
	c.resolved, c.entity, c.params = false, "", nil
}

// spread puts a cursor on each child of a parallel group. It reuses the memory of an
// earlier group.
func (c *cursor) spread(n *definition.Node) {
	c.phase = phaseGroup
	if cap(c.kids) < len(n.Children) {
		c.kids = make([]cursor, len(n.Children))
	}
	c.kids = c.kids[:len(n.Children)]
	for i, b := range n.Children {
		c.kids[i] = cursor{node: b.First, end: b.End, kids: c.kids[i].kids}
	}
}

// resolve computes the entity and the parameters that the commands of one animation
// share.
func (c *cursor) resolve(p *performance, n *definition.Node) {
	if c.resolved {
		return
	}
	c.entity, c.params, c.resolved = p.cue.resolver.Entity(n.Entity), p.cue.resolver.Params(n.Params), true
}

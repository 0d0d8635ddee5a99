package choreography

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography/definition"
)

// gate is the state of one guarded name: the performance that holds it, and those that
// wait for it in creation order. A name that is neither held nor waited for has none.
type gate struct {
	name        string
	holder      *performance
	first, last *claim
	waiting     int
}

// claim links a performance to a gate that it holds or waits at.
type claim struct {
	gate           *gate
	p              *performance
	previous, next *claim // in the gate's queue
}

// admission is the decision of a guard about a new performance.
type admission uint8

const (
	admittedAtOnce admission = iota
	admittedLater
	refused
)

// admit judges whether a performance with names may begin. With policyPreempt the
// caller must then stop the holders.
func (s *Scheduler) admit(names []string, p definition.GuardPolicy) admission {
	if p == definition.GuardPreempt {
		return admittedAtOnce
	}
	a := admittedAtOnce
	for _, name := range names {
		g := s.gates[name]
		switch {
		case g == nil || g.holder == nil && g.first == nil:
		case p == definition.GuardSkip || g.waiting >= definition.MaxWaiting:
			return refused
		default:
			a = admittedLater
		}
	}
	return a
}

// reportBlocked reports to the observer the performances that hold names, and those
// that wait for them, to a new performance of a signal.
func (s *Scheduler) reportBlocked(seq uint64, names []string, refused bool) {
	for _, name := range names {
		g := s.gates[name]
		if g == nil {
			continue
		}
		if p := g.holder; p != nil {
			s.blocked.Blocked(seq, refused, p.seq, p.index)
		}
		for c := g.first; c != nil; c = c.next {
			s.blocked.Blocked(seq, refused, c.p.seq, c.p.index)
		}
	}
}

// preempt stops the holders of names, in creation order. It returns how many
// performances the signal has made.
func (s *Scheduler) preempt(seq uint64, made uint32, names []string, by string) uint32 {
	holders := s.holders[:0]
	for _, name := range names {
		if g := s.gates[name]; g != nil && g.holder != nil && !slices.Contains(holders, g.holder) {
			holders = append(holders, g.holder)
		}
	}
	slices.SortFunc(holders, func(a, b *performance) int {
		if a.order < b.order {
			return -1
		}
		return 1
	})
	for _, p := range holders {
		made = s.stop(p, seq, made, by)
	}
	clear(holders)
	s.holders = holders[:0]
	return made
}

// claim makes p hold names, or wait for them.
func (s *Scheduler) claim(p *performance, names []string) {
	p.claims = slices.Grow(p.claims[:0], len(names))[:len(names)]
	for i, name := range names {
		g := s.gates[name]
		if g == nil {
			g = &gate{name: strings.Clone(name)}
			s.gates[g.name] = g
		}
		c := &p.claims[i]
		*c = claim{gate: g, p: p}
		if !p.waiting {
			g.holder = p
			continue
		}
		g.waiting++
		c.previous = g.last
		if g.last != nil {
			g.last.next = c
		} else {
			g.first = c
		}
		g.last = c
	}
}

// leave removes c from the queue of its gate.
func (c *claim) leave() {
	g := c.gate
	g.waiting--
	if c.previous != nil {
		c.previous.next = c.next
	} else {
		g.first = c.next
	}
	if c.next != nil {
		c.next.previous = c.previous
	} else {
		g.last = c.previous
	}
	c.previous, c.next = nil, nil
}

// release ends the claims of p. The caller settles later which performances may
// begin: a signal that stops one performance may start another in its place.
func (s *Scheduler) release(p *performance) {
	for i := range p.claims {
		c := &p.claims[i]
		if p.waiting {
			c.leave()
		} else {
			c.gate.holder = nil
		}
		s.freed = append(s.freed, c.gate)
	}
	clear(p.claims)
	p.claims, p.waiting = p.claims[:0], false
}

// settle begins the performances that waited only for the released names. Only the
// first of a queue can begin: of two that wait for one name the later one waits for
// the earlier. No two candidates therefore compete for a name, and the order of the
// names does not matter.
func (s *Scheduler) settle() {
	for _, g := range s.freed {
		switch {
		case g.holder != nil:
		case g.first == nil:
			delete(s.gates, g.name)
		case g.first.p.free():
			s.letBegin(g.first.p)
		}
	}
	clear(s.freed)
	s.freed = s.freed[:0]
}

// free reports whether no performance holds the names of p or waits earlier for them.
func (p *performance) free() bool {
	for i := range p.claims {
		if c := &p.claims[i]; c.gate.holder != nil || c.gate.first != c {
			return false
		}
	}
	return true
}

// letBegin makes p hold its names and begin now. It runs after everything else that
// is due at this instant, so that the order is the same whether performances are
// taken from the heap or one by one in creation order.
func (s *Scheduler) letBegin(p *performance) {
	for i := range p.claims {
		c := &p.claims[i]
		c.leave()
		c.gate.holder = p
	}
	p.waiting = false
	p.due, p.round = s.now, s.round+1
	s.due.push(p)
}

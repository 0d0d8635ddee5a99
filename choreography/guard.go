package choreography

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Limits of guards.
const (
	// MaxGuarded bounds the names of one guard.
	MaxGuarded = 16
	// MaxWaiting bounds how many performances wait for one name.
	MaxWaiting = 10_000
)

// guard is a compiled "guard". Without names there is none.
type guard struct {
	names  []signal.Value // strings, references not resolved
	policy policy
}

// policy says what becomes of a performance whose names are taken.
type policy uint8

const (
	policyQueue policy = iota
	policySkip
	policyPreempt
)

// policyNames has what is written for each policy.
var policyNames = [...]string{policyQueue: "queue", policySkip: "skip", policyPreempt: "preempt"}

// compileGuard reads a guard. What is no object, and names that are no strings,
// guard nothing; an unknown policy is "queue".
func compileGuard(v signal.Value) (guard, error) {
	var g guard
	if v.Kind() != signal.KindObject {
		return g, nil
	}
	switch entity, _ := v.Get("entity"); entity.Kind() {
	case signal.KindString:
		g.names = []signal.Value{entity}
	case signal.KindArray:
		for e := range entity.Elements() {
			if e.Kind() == signal.KindString {
				g.names = append(g.names, e)
			}
		}
	default:
	}
	if len(g.names) > MaxGuarded {
		return guard{}, fmt.Errorf("%w: a guard of more than %d names", ErrDefinition, MaxGuarded)
	}
	written, _ := v.Get("policy")
	name, _ := written.Text()
	g.policy = policy(max(0, slices.Index(policyNames[:], name)))
	return g, nil
}

// appendNames appends the names that g has for a signal, each once.
func (g *guard) appendNames(names []string, r Resolver) []string {
	for _, v := range g.names {
		if name := r.entity(v); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// gate is what a scheduler keeps of one guarded name: who holds it, and who
// waits for it, in creation order. There is none for a name that nobody has.
type gate struct {
	name        string
	holder      *performance
	first, last *claim
	waiting     int
}

// claim ties a performance to a gate that it holds, or waits at.
type claim struct {
	gate           *gate
	p              *performance
	previous, next *claim // in the gate's queue
}

// admission is what a guard makes of a new performance.
type admission uint8

const (
	admitted admission = iota
	admittedLater
	refused
)

// admit judges whether a performance with names may begin. With policyPreempt
// whoever holds them has to be stopped then.
func (s *Scheduler) admit(names []string, p policy) admission {
	if p == policyPreempt {
		return admitted
	}
	a := admitted
	for _, name := range names {
		g := s.gates[name]
		switch {
		case g == nil || g.holder == nil && g.first == nil:
		case p == policySkip || g.waiting >= MaxWaiting:
			return refused
		default:
			a = admittedLater
		}
	}
	return a
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

// claim has p hold names, or wait for them.
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

// leave takes c out of its gate's queue.
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

// release ends the claims of p. Who may begin for that is settled later: a
// signal that stops one performance may have another to take its place.
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

// settle lets those begin for whom the released names were the last they
// waited for. Only the first of a queue can be one: of two that wait for one
// name the later one waits for the earlier, so that no two are in question here
// and the order of the names is of no account.
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

// free reports whether nobody holds, or waits earlier for, what p waits for.
func (p *performance) free() bool {
	for i := range p.claims {
		if c := &p.claims[i]; c.gate.holder != nil || c.gate.first != c {
			return false
		}
	}
	return true
}

// letBegin has p hold what it waited for and begin now: after all that is due
// at this instant anyway, so that it is the same whether they are taken from
// the heap or one by one in creation order.
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

// guard judges a guard.
func (v *validator) guard(p *path, g signal.Value, refs references) {
	if g.Kind() != signal.KindObject {
		v.errorf(p, "guard must be an object with entity and policy, not %s", wording.Article(g.Kind()))
		return
	}
	if _, ok := g.Get("entity"); !ok {
		v.errorf(p, `"entity" is missing in guard: the name, or the names, to be alone with`)
	}
	for name, value := range g.Members() {
		at := p.at(name)
		switch name {
		case "entity":
			v.guarded(at, value, refs)
		case "policy":
			if text, ok := value.Text(); !ok || !slices.Contains(policyNames[:], text) {
				v.errorf(at, "policy must be one of %s", strings.Join(policyNames[:], ", "))
			}
		default:
			v.add(Error, at, true, "unknown field %s: a guard has entity and policy", wording.Quoted(name))
		}
	}
}

// guarded judges the names of a guard.
func (v *validator) guarded(p *path, entity signal.Value, refs references) {
	switch {
	case entity.Kind() == signal.KindNull:
		v.errorf(p, "entity must be a string or an array of strings, not null")
	case entity.Kind() != signal.KindArray:
		v.entity(p, "entity", entity, refs)
	case entity.Len() == 0:
		v.warnf(p, "a guard without names guards nothing")
	case entity.Len() > MaxGuarded:
		v.errorf(p, "a guard has at most %d names", MaxGuarded)
	default:
		i := 0
		for e := range entity.Elements() {
			if at := p.element(i); e.Kind() == signal.KindString {
				v.entity(at, "entity", e, refs)
			} else {
				v.errorf(at, "entity must be a string, not %s", wording.Article(e.Kind()))
			}
			i++
		}
	}
}

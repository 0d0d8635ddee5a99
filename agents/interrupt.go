package agents

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"time"
)

// behind reports whether a context is staler than the agent's threshold allows.
func behind(latest, context, threshold uint64) bool {
	return latest > context && latest-context > threshold
}

// generation is a token that goes on.
type generation struct {
	Token
	// clash is when the first news arrives that is on its way and conflicts with
	// it; never if none is, or if Conflict says so already.
	clash time.Duration
}

// never is a time that does not come. Session time begins at 0, so that 0 is a
// time like others.
const never time.Duration = -1

// after returns the time that is d after another, or the last there is.
func after(at, d time.Duration) time.Duration {
	if d > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + d
}

// clashed reports whether something that conflicts has reached the agent by now.
func (g *generation) clashed(now time.Duration) bool {
	return g.Conflict || g.clash != never && g.clash <= now
}

// fires returns when a generation is interrupted, if nothing happens but what
// is on its way: as soon as it is in vain, but not before the debounce after the
// last interruption is over. Such a one is put off, not forgotten.
func (a *agentState) fires(g *generation) (time.Duration, bool) {
	var at time.Duration // at once
	if !behind(a.latest, g.ContextSeq, a.settings.Staleness) {
		i := sort.Search(len(a.arrivals), func(i int) bool {
			return behind(a.arrivals[i].seq, g.ContextSeq, a.settings.Staleness)
		})
		if i == len(a.arrivals) {
			return 0, false
		}
		at = a.arrivals[i].at
	}
	if a.settings.Interrupt != InterruptAlways && !g.Conflict {
		if g.clash == never {
			return 0, false
		}
		at = max(at, g.clash)
	}
	if a.ever {
		at = max(at, after(a.interrupted, a.settings.Debounce))
	}
	return at, true
}

// next returns when time alone interrupts a generation of the agent.
func (a *agentState) next() (at time.Duration, ok bool) {
	for _, g := range a.tokens {
		if fires, will := a.fires(g); will && (!ok || fires < at) {
			at, ok = fires, true
		}
	}
	return at, ok
}

// settle lets happen to an agent what is due up to now, each thing at its time.
func (c *Core) settle(a *agentState, now time.Duration, out *Applied) {
	for {
		at, ok := a.next()
		// What was due before the state's time is due because of what happens now.
		at = max(at, c.now)
		if !ok || at > now {
			break
		}
		a.arrive(at)
		for _, id := range sortedKeys(a.tokens) {
			g := a.tokens[id]
			if !behind(a.latest, g.ContextSeq, a.settings.Staleness) || a.settings.Interrupt != InterruptAlways && !g.Conflict {
				continue
			}
			out.Cancellations = append(out.Cancellations, Cancellation{a.id, id, a.reason(g), at})
			delete(a.tokens, id)
			a.interrupted, a.ever = at, true
		}
	}
	c.schedule(a)
}

func (a *agentState) reason(g *generation) string {
	s := fmt.Sprintf("%s_seq_gap_%d_threshold_%d", ReasonStale, a.latest-g.ContextSeq, a.settings.Staleness)
	if a.settings.Interrupt == InterruptConflict {
		s = ReasonStale + "_conflict" + strings.TrimPrefix(s, ReasonStale)
	}
	return s
}

// Advance lets time pass, up to and including now. How it is cut makes no
// difference: what is due happens at its own time.
func (c *Core) Advance(now time.Duration) Applied {
	var out Applied
	for t := c.due.next(); t != nil && t.at <= now; t = c.due.next() {
		// One thing at a time, so that all agents' are told in the order of time.
		c.settle(c.agents[t.agent], t.at, &out)
	}
	c.now = max(c.now, now)
	return out
}

// Due reports whether time alone cancels something up to now. Only then need a
// log have an entry so that whoever folds it goes on to that time.
func (c *Core) Due(now time.Duration) bool {
	t := c.due.next()
	return t != nil && t.at <= now
}

// Next returns when time alone cancels something next, or a deadline comes: see
// [Core.Due] and [Core.Expire]. News that only arrives is no reason to come back.
func (c *Core) Next() (at time.Duration, ok bool) {
	for _, t := range []*timer{c.due.next(), c.ends.next()} {
		if t != nil && (!ok || t.at < at) {
			at, ok = t.at, true
		}
	}
	return at, ok
}

// schedule notes when something about an agent is due.
func (c *Core) schedule(a *agentState) {
	at, ok := a.next()
	c.due.set(&a.due, at, ok)
	at, ok = 0, false
	for _, g := range a.tokens {
		if g.Deadline > 0 && (!ok || g.Deadline < at) {
			at, ok = g.Deadline, true
		}
	}
	c.ends.set(&a.ends, at, ok)
}

// unschedule forgets an agent that is no longer there.
func (c *Core) unschedule(a *agentState) {
	c.due.set(&a.due, 0, false)
	c.ends.set(&a.ends, 0, false)
}

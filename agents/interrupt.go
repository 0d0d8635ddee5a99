package agents

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/internal/timers"
)

// generation is a running generation. The rules of its interruption are those of the
// multi-agent design, "Latency and Cancellation".
type generation struct {
	Token
	// conflictAt is when the first delta in flight that conflicts with it arrives; never
	// if there is none, or if Conflict is set already.
	conflictAt time.Duration
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

// conflicted reports whether a conflicting delta has reached the agent by now.
func (g *generation) conflicted(now time.Duration) bool {
	return g.Conflict || g.conflictAt != never && g.conflictAt <= now
}

// fires returns when a generation is interrupted if no further effect happens: as soon
// as it is stale, but not before the debounce since the agent's last interruption is
// over. The debounce delays an interruption and never drops it.
func (a *agentState) fires(g *generation) (time.Duration, bool) {
	var at time.Duration // at once
	if !a.sent.behind(a.latest, g.ContextSeq, a.settings.Staleness) {
		i := sort.Search(len(a.inFlight), func(i int) bool {
			return a.sent.behind(a.inFlight[i].seq, g.ContextSeq, a.settings.Staleness)
		})
		if i == len(a.inFlight) {
			return 0, false
		}
		at = a.inFlight[i].at
	}
	if a.settings.Interrupt != InterruptAlways && !g.Conflict {
		if g.conflictAt == never {
			return 0, false
		}
		at = max(at, g.conflictAt)
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

// settle interrupts the generations of an agent that are due up to now, each at its
// time, and sets the agent's timers.
func (c *Core) settle(a *agentState, now time.Duration, out *Applied) {
	for {
		at, ok := a.next()
		// An interruption that is due before the state's time is caused by the record
		// that is being applied, so it happens now.
		at = max(at, c.now)
		if !ok || at > now {
			break
		}
		a.arrive(at)
		for _, id := range jsonvalue.SortedKeys(a.tokens) {
			g := a.tokens[id]
			if !a.sent.behind(a.latest, g.ContextSeq, a.settings.Staleness) || a.settings.Interrupt != InterruptAlways && !g.Conflict {
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
	s := fmt.Sprintf(textStale, ReasonStale, a.sent.gap(a.latest, g.ContextSeq), a.settings.Staleness)
	if a.settings.Interrupt == InterruptConflict {
		s = ReasonStale + textConflict + strings.TrimPrefix(s, ReasonStale)
	}
	return s
}

// Advance lets time pass, up to and including now. Two steps have the effect of one:
// every interruption happens at its own time.
func (c *Core) Advance(now time.Duration) Applied {
	var out Applied
	for t := c.due.Next(); t != nil && t.At <= now; t = c.due.Next() {
		// One timer at a time, so that the cancellations of all agents are in the order
		// of time.
		c.settle(c.agents[t.Agent], t.At, &out)
	}
	c.now = max(c.now, now)
	return out
}

// Due reports whether time alone cancels a generation up to now. Only then must the log
// have an entry with that time, so that a replay cancels the generation too.
func (c *Core) Due(now time.Duration) bool {
	t := c.due.Next()
	return t != nil && t.At <= now
}

// Next returns the next time at which time alone cancels a generation or a deadline
// comes, see [Core.Due] and [Core.Expire]. The arrival of a delta alone is not a reason.
func (c *Core) Next() (at time.Duration, ok bool) {
	for _, t := range []*timers.Timer{c.due.Next(), c.ends.Next()} {
		if t != nil && (!ok || t.At < at) {
			at, ok = t.At, true
		}
	}
	return at, ok
}

// NextBoundary returns the next time at which the state changes without a record: a
// delta that conflicts with a generation arrives, or a generation is cancelled.
func (c *Core) NextBoundary() (at time.Duration, ok bool) {
	if t := c.due.Next(); t != nil {
		at, ok = t.At, true
	}
	for _, a := range c.agents {
		for _, g := range a.tokens {
			if t := g.conflictAt; t > c.now && !g.Conflict && (!ok || t < at) {
				at, ok = t, true
			}
		}
	}
	return at, ok
}

// schedule sets the timers of an agent.
func (c *Core) schedule(a *agentState) {
	at, ok := a.next()
	c.due.Set(&a.due, at, ok)
	at, ok = 0, false
	for _, g := range a.tokens {
		if g.Deadline > 0 && (!ok || g.Deadline < at) {
			at, ok = g.Deadline, true
		}
	}
	c.ends.Set(&a.ends, at, ok)
}

// unschedule removes the timers of an agent.
func (c *Core) unschedule(a *agentState) {
	c.due.Set(&a.due, 0, false)
	c.ends.Set(&a.ends, 0, false)
}

// drop ends a token without a cancellation.
func (c *Core) drop(a *agentState, reqID string) {
	if _, ok := a.tokens[reqID]; ok {
		delete(a.tokens, reqID)
		c.schedule(a)
	}
}

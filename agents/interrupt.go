package agents

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// seen returns the newest sequence number that has reached an agent by now.
func (a *agentState) seen(now time.Duration) uint64 {
	latest := a.latest
	for _, n := range a.arrivals {
		if n.at > now {
			break
		}
		latest = max(latest, n.seq)
	}
	return latest
}

// behind reports whether a context is staler than the agent's threshold allows.
func behind(latest, context, threshold uint64) bool {
	return latest > context && latest-context > threshold
}

// announce puts the news of an effect on its way.
func (c *Core) announce(a *agentState, e Effect, changes Changes, delta Delta, at time.Duration) {
	n := arrival{at: at, seq: delta.ViewSeq, own: e.SourceID == a.id, visible: len(delta.Patches) > 0}
	if a.settings.Interrupt == InterruptConflict && !n.own {
		n.classes = []string{clip(e.Kind)}
		n.classes = append(n.classes, conflictClasses(e.Payload)...)
		if n.writes = changes.Paths(); len(n.writes) > maxNamed {
			n.writes = []string{""} // everything
		}
	}
	if len(a.arrivals) >= MaxArrivals {
		last := &a.arrivals[len(a.arrivals)-1]
		n.own, n.visible = n.own && last.own, n.visible || last.visible
		n.classes = union(n.classes, last.classes)
		n.writes = []string{""}
		if len(n.classes) > maxNamed {
			n.classes = n.classes[:maxNamed]
		}
		*last = n
		return
	}
	a.arrivals = append(a.arrivals, n)
}

// conflictClasses reads a payload's conflict_class, one name or an array of them.
func conflictClasses(payload signal.Value) []string {
	v, _ := payload.Get("conflict_class")
	list := []signal.Value{v}
	if v.Kind() == signal.KindArray {
		list = slices.Collect(v.Elements())
	}
	var classes []string
	for _, e := range list {
		if class, ok := e.Text(); ok && len(class) <= 4*MaxID && len(classes) < maxNamed-1 {
			classes = append(classes, strings.Clone(class))
		}
	}
	return classes
}

// conflicts reports whether news conflicts with what a generation goes by.
func (n *arrival) conflicts(t *Token) bool {
	if n.own {
		return false
	}
	if len(t.Reads) == 0 && len(t.Classes) == 0 {
		return n.visible
	}
	for _, class := range t.Classes {
		if slices.Contains(n.classes, class) {
			return true
		}
	}
	for _, path := range t.Reads {
		for _, written := range n.writes {
			if below(path, written) || below(written, path) {
				return true
			}
		}
	}
	return false
}

// below reports whether a path is another one or lies below it.
func below(path, other string) bool {
	return strings.HasPrefix(path, other) && (len(path) == len(other) || path[len(other)] == '/')
}

// stale reports whether a generation is in vain.
func (a *agentState) stale(t *Token) bool {
	return behind(a.latest, t.ContextSeq, a.settings.Staleness) &&
		(a.settings.Interrupt == InterruptAlways || t.Conflict)
}

// settle lets happen to an agent what is due up to now, each thing at its time:
// news arrives, and what is in vain by it is interrupted. An interruption that comes
// too soon after the last one is put off until the debounce is over, not forgotten.
func (c *Core) settle(a *agentState, now time.Duration, out *Applied) {
	for {
		at, ok := a.next()
		// What was due before the state's time is due because of what happens now.
		at = max(at, c.now)
		if !ok || at > now {
			break
		}
		for len(a.arrivals) > 0 && a.arrivals[0].at <= at {
			n := &a.arrivals[0]
			a.latest = max(a.latest, n.seq)
			for _, t := range a.tokens {
				t.Conflict = t.Conflict || n.seq > t.ContextSeq && n.conflicts(t)
			}
			a.arrivals = append(a.arrivals[:0], a.arrivals[1:]...)
		}
		if a.ever && at < a.interrupted+a.settings.Debounce {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(a.tokens)) {
			t := a.tokens[id]
			if !a.stale(t) {
				continue
			}
			out.Cancellations = append(out.Cancellations, Cancellation{a.id, id, a.reason(t), at})
			delete(a.tokens, id)
			a.interrupted, a.ever = at, true
		}
	}
	c.schedule(a)
}

func (a *agentState) reason(t *Token) string {
	s := fmt.Sprintf("%s_seq_gap_%d_threshold_%d", ReasonStale, a.latest-t.ContextSeq, a.settings.Staleness)
	if a.settings.Interrupt == InterruptConflict {
		s = ReasonStale + "_conflict" + strings.TrimPrefix(s, ReasonStale)
	}
	return s
}

// next returns when time alone changes something about an agent.
func (a *agentState) next() (time.Duration, bool) {
	var at time.Duration
	ok := false
	if len(a.arrivals) > 0 {
		at, ok = a.arrivals[0].at, true
	}
	for _, t := range a.tokens {
		if !a.stale(t) {
			continue
		}
		fires := time.Duration(0) // at once
		if a.ever {
			fires = a.interrupted + a.settings.Debounce
		}
		if !ok || fires < at {
			at, ok = fires, true
		}
	}
	return at, ok
}

// Advance lets time pass, up to and including now. How it is cut makes no
// difference: what is due happens at its own time.
func (c *Core) Advance(now time.Duration) Applied {
	var out Applied
	for {
		a, at := c.first()
		if a == nil || at > now {
			break
		}
		// One thing at a time, so that all agents' are told in the order of time.
		c.settle(a, at, &out)
	}
	c.now = max(c.now, now)
	return out
}

// first returns the agent about which time changes something first. The list
// may say too early when, never too late.
func (c *Core) first() (*agentState, time.Duration) {
	for len(c.due) > 0 {
		d := c.due[0]
		a, ok := c.agents[d.agent]
		if ok {
			if at, ok := a.next(); ok && max(at, c.now) <= d.at {
				return a, d.at
			}
		}
		heap.Pop(&c.due)
		if ok && a.noted == d.at {
			a.noted = 0
			c.schedule(a)
		}
	}
	return nil, 0
}

// Next returns when something is due next: for Advance, or for [Core.Expire].
func (c *Core) Next() (time.Duration, bool) {
	for len(c.ends) > 0 && c.ending(c.ends[0]) == nil {
		heap.Pop(&c.ends)
	}
	a, at := c.first()
	switch {
	case a == nil && len(c.ends) == 0:
		return 0, false
	case a == nil:
		return c.ends[0].at, true
	case len(c.ends) == 0:
		return at, true
	default:
		return min(at, c.ends[0].at), true
	}
}

// schedule notes when an agent is due, unless it stands in the list already, at
// that time or before.
func (c *Core) schedule(a *agentState) {
	at, ok := a.next()
	if at = max(at, c.now); !ok || a.noted > 0 && a.noted <= at {
		return
	}
	a.noted = at
	c.due.push(dueAt{at: at, agent: a.id})
}

// end notes a deadline. Those that are no longer so are cleared away now and then.
func (c *Core) end(d dueAt) {
	if len(c.ends) >= c.endsMost {
		c.ends = slices.DeleteFunc(c.ends, func(d dueAt) bool { return c.ending(d) == nil })
		heap.Init(&c.ends)
		c.endsMost = 2*len(c.ends) + 64
	}
	c.ends.push(d)
}

// dueAt is something that is due.
type dueAt struct {
	at    time.Duration
	agent string
	reqID string
}

func (d dueAt) compare(o dueAt) int {
	return cmp.Or(cmp.Compare(d.at, o.at), strings.Compare(d.agent, o.agent), strings.Compare(d.reqID, o.reqID))
}

// dueHeap has the earliest first. It may hold the same twice.
type dueHeap []dueAt

func (h *dueHeap) push(d dueAt)      { heap.Push(h, d) }
func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(dueAt)) }
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

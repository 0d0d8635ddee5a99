package agents

import (
	"slices"
	"sort"
	"time"
)

// An agent's own numbers count its deliveries, from 0 for the first view: each delta
// that it is sent has the next one. They reveal nothing about effects that the agent is
// not sent, as the gaps between global_seqs would. The core and its records use
// global_seqs, as the multi-agent design does; package live shows agents their own
// numbers and translates both ways.
//
// For that the state holds the global_seqs of an agent's last deliveries, so a replay
// gives the same numbers.

// MaxSent is how many of an agent's last deliveries can be told apart. A
// staleness threshold of as many or more means any number.
const MaxSent = 256

// sent holds the view_seqs of an agent's last deliveries, the newest last; they
// never decrease.
type sent []uint64

func (s *sent) add(seq uint64) {
	if len(*s) >= MaxSent {
		*s = slices.Delete(*s, 0, len(*s)-MaxSent+1)
	}
	*s = append(*s, seq)
}

// upTo returns how many of the kept deliveries have at most this view_seq.
func (s sent) upTo(seq uint64) int {
	return sort.Search(len(s), func(i int) bool { return s[i] > seq })
}

// gap returns how many view_seqs the agent was sent up to latest that are newer
// than a context: MaxSent if the context is older than what is kept.
func (s sent) gap(latest, context uint64) uint64 {
	if latest <= context {
		return 0
	}
	if len(s) >= MaxSent && context < s[0] {
		return MaxSent
	}
	newer := s[s.upTo(context):max(s.upTo(latest), s.upTo(context))]
	gap := uint64(0)
	for i, seq := range newer {
		if i == 0 || seq != newer[i-1] { // a view by another policy has the view_seq of the one before it
			gap++
		}
	}
	return max(gap, 1)
}

// behind reports whether a context is staler than a threshold allows, for an agent that
// has been sent the deliveries up to latest. Effects that it was not sent do not count.
func (s sent) behind(latest, context, threshold uint64) bool {
	return latest > context && threshold < MaxSent && s.gap(latest, context) > threshold
}

// least returns the least context that is not behind latest.
func (s sent) least(latest, threshold uint64) uint64 {
	if threshold >= MaxSent {
		return 0
	}
	for i := s.upTo(latest) - 1; i >= 0; i-- {
		if threshold == 0 || len(s) >= MaxSent && i == 0 {
			return s[i]
		}
		if i > 0 && s[i-1] != s[i] {
			threshold--
		}
	}
	return 0
}

// first returns the number of the first delivery that is kept.
func (a *agentState) first() uint64 { return a.deliveries - uint64(len(a.sent)) }

// Number returns the agent's own number of a global_seq: that of the newest
// delivery up to it, deltas in flight included. It is 0 if the delivery is no longer
// kept, or if the agent is unknown.
func (c *Core) Number(agent string, seq uint64) uint64 {
	a, ok := c.agents[agent]
	if !ok {
		return 0
	}
	n := a.sent.upTo(seq)
	if n == 0 {
		return 0
	}
	return a.first() + uint64(n) - 1
}

// ViewSeqOf returns the view_seq of a delivery by the agent's own number, deltas in
// flight included; 0 if the delivery is no longer kept.
func (c *Core) ViewSeqOf(agent string, number uint64) uint64 {
	a, ok := c.agents[agent]
	if !ok || number < a.first() || number >= a.deliveries {
		return 0
	}
	return a.sent[number-a.first()]
}

// ContextSeq returns the view_seq of a context that an agent names by its own
// number, at a time. A number that has not reached the agent means the newest that
// has; one from before it was registered, 0 too, means the view that its
// registration began; one that is older than what is kept is older than all of that.
func (c *Core) ContextSeq(now time.Duration, agent string, number uint64) uint64 {
	a, ok := c.agents[agent]
	if !ok || len(a.sent) == 0 {
		return 0
	}
	latest := a.seen(max(now, c.now))
	first := a.first()
	switch {
	case number < first && len(a.sent) < MaxSent:
		return min(a.sent[0], latest)
	case number < first:
		return min(a.sent[0]-min(a.sent[0], 1), latest)
	case number >= a.deliveries:
		return latest
	default:
		return min(a.sent[number-first], latest)
	}
}

package agents

import (
	"sort"
	"time"

	"github.com/sajou-dev/sajou-go/agents/world"
)

// An agent's own numbers count its deliveries, from 0 for the first view: each delta
// that it is sent has the next one. They reveal nothing about effects that the agent is
// not sent, as the gaps between global_seqs would. The core and its records use
// global_seqs, as the multi-agent design does; package live shows agents their own
// numbers and translates both ways.
//
// For that the state holds the global_seqs of an agent's last deliveries, so a replay
// gives the same numbers. The delivery of an effect that only moves time, see
// passesTime, has a number of its own but the view_seq of the delivery before it, so
// that it makes no context stale.

// MaxSent is how many of an agent's last deliveries can be told apart; those of the
// passing of time do not count. A staleness threshold of as many or more means any
// number.
const MaxSent = 256

// sent holds an agent's last deliveries, the newest last. Neither view_seqs nor
// numbers decrease.
type sent []sentDelivery

// sentDelivery is one delivery, with those after it that only moved time: they have its
// view_seq, and the numbers up to that of the next element.
type sentDelivery struct {
	seq    uint64 // its view_seq
	number uint64 // the agent's own
}

func (s *sent) add(d sentDelivery) {
	if len(*s) >= MaxSent {
		*s = (*s)[len(*s)-MaxSent+1:] // append moves the rest once in a while
	}
	*s = append(*s, d)
}

// upTo returns how many of the kept deliveries have at most this view_seq.
func (s sent) upTo(seq uint64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].seq > seq })
}

// gap returns how many view_seqs the agent was sent up to latest that are newer
// than a context: MaxSent if the context is older than what is kept.
func (s sent) gap(latest, context uint64) uint64 {
	if latest <= context {
		return 0
	}
	if len(s) >= MaxSent && context < s[0].seq {
		return MaxSent
	}
	newer := s[s.upTo(context):max(s.upTo(latest), s.upTo(context))]
	gap := uint64(0)
	for i, d := range newer {
		if i == 0 || d.seq != newer[i-1].seq { // a view by another policy has the view_seq of the one before it
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
			return s[i].seq
		}
		if i > 0 && s[i-1].seq != s[i].seq {
			threshold--
		}
	}
	return 0
}

// end returns the number after the last one that element i stands for.
func (a *agentState) end(i int) uint64 {
	if i+1 < len(a.sent) {
		return a.sent[i+1].number
	}
	return a.deliveries
}

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
	return a.end(n-1) - 1
}

// viewSeqOf returns the view_seq of a delivery by the agent's own number; false if the
// delivery is not kept.
func (a *agentState) viewSeqOf(number uint64) (uint64, bool) {
	n := sort.Search(len(a.sent), func(i int) bool { return a.sent[i].number > number })
	if n == 0 || number >= a.deliveries {
		return 0, false
	}
	return a.sent[n-1].seq, true
}

// ViewSeqOf returns the view_seq of a delivery by the agent's own number, deltas in
// flight included; 0 if the delivery is no longer kept.
func (c *Core) ViewSeqOf(agent string, number uint64) uint64 {
	a, ok := c.agents[agent]
	if !ok {
		return 0
	}
	seq, _ := a.viewSeqOf(number)
	return seq
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
	if seq, kept := a.viewSeqOf(number); kept {
		return min(seq, latest)
	}
	oldest := a.sent[0].seq
	switch {
	case number >= a.deliveries:
		return latest
	case len(a.sent) < MaxSent:
		return min(oldest, latest)
	default:
		return min(oldest-min(oldest, 1), latest)
	}
}

// rulesPassingTime is the number of the rules from which on the passing of time makes no
// context stale: before, each tick made every context stale, and cancelled the generations of the
// agents that were sent it.
const rulesPassingTime = 2

// passesTime reports whether an effect moves time and nothing else, unless a handler
// gives it a meaning that an agent can see. An agent that observes such an effect is
// sent it, but it makes no context stale, by whatever policy, and interrupts nothing.
func (c *Core) passesTime(e world.Effect) bool {
	return e.Kind == KindTimeTick && e.ReqID == "" && c.rules >= rulesPassingTime
}

// SetRules has c fold by the rules of a number, which the first entry of a session
// records; see session.Rules. It must be called before the first record is applied, and
// again on a restored core, whose state does not hold the number. A new core has the
// present rules.
func (c *Core) SetRules(number int) { c.rules = number }

package agents

import (
	"maps"
	"slices"
	"time"
)

// AdmissionStatus holds everything about an agent that admission depends on at a time.
// It explains a refusal that left no record.
type AdmissionStatus struct {
	Registered bool
	Paused     bool // the world
	// ViewSeq is the newest that has reached the agent, LeastContext the least
	// context_seq that is not stale by that.
	ViewSeq, LeastContext uint64
	Interrupt             InterruptCause
	Permissions           []string // in order
	// Used in the last minute, and what is allowed; negative means any number.
	Intents, QuotaIntents int64
	Tokens, QuotaTokens   int64
	Cooldowns             []Cooldown // of the kinds that have to wait, in order
	Generations           []Token    // in the order of req_ids
}

// Cooldown is how long an intent of a kind has to wait.
type Cooldown struct {
	Kind string
	Wait time.Duration
}

// AdmissionStatus returns the status of an agent at a time that is not before that of
// the state.
func (c *Core) AdmissionStatus(now time.Duration, agent string) AdmissionStatus {
	s := AdmissionStatus{Paused: c.config.Paused}
	a, ok := c.agents[agent]
	if !ok {
		return s
	}
	now = max(now, c.now)
	s.Registered = true
	s.ViewSeq = a.seen(now)
	s.LeastContext = a.sent.least(s.ViewSeq, a.settings.Staleness)
	s.Interrupt = a.settings.Interrupt
	s.Permissions = slices.Sorted(maps.Keys(a.permissions))
	s.QuotaIntents, s.QuotaTokens = a.settings.QuotaIntents, a.settings.QuotaTokens
	for _, u := range a.quota.uses {
		if now-u.at < window {
			s.Intents += u.intents
			s.Tokens += u.tokens
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(a.quota.last)) {
		if wait := a.settings.Cooldowns[kind] - (now - a.quota.last[kind]); wait > 0 {
			s.Cooldowns = append(s.Cooldowns, Cooldown{kind, wait})
		}
	}
	s.Generations = c.Tokens(agent)
	return s
}

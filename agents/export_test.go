package agents

import (
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// Crosses reports whether a path is one of others, which are in order, or lies
// above or below one.
var Crosses = crosses

// Bounds of the state of one agent.
const (
	MaxInFlight = maxInFlight
	MaxTokens   = maxTokens
	MaxNamed    = maxNamed
	MaxProblems = maxProblems
)

// Formats of the reason of a stale context.
const (
	TextStale    = textStale
	TextConflict = textConflict
)

// Broadcast decides a lone draft.
func (c *Core) Broadcast(now time.Duration, draft EffectDraft) (Outcome, []signal.Record) {
	d := c.Decide(now, Quantum{}, []Submission{{Draft: &draft}})
	return d.Outcomes[0], d.Records
}

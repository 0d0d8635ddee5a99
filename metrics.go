package sajou

import (
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
)

// Metrics is told what happens among the agents of live worlds. It is for
// whoever watches an engine; nothing is decided by it and nothing of it is
// recorded, and a replay reports nothing.
//
// World is the session's name, agent the agent's id in it. A world is known from [Metrics.Opened] to [Metrics.Closed], an agent from
// [Metrics.Joined] to [Metrics.Left]. What is reported of one that is not known (a
// request of somebody who never registered, the end of something that outlived
// its agent) is true all the same, but its id is just what somebody sent: to keep
// something per such id is to let strangers fill the memory.
//
// The methods are called on the paths that they measure, from many goroutines at
// once and some of them under the world's lock. They must not wait, must not
// call the engine, and must not panic. Durations are of the wall's clock, not
// session time; those below zero do not occur.
//
// Methods may be added. An implementation that embeds [DiscardMetrics] goes on
// compiling when they are.
type Metrics interface {
	// Opened: a world is live from here on. What is said below of its agents and
	// of its number follows.
	Opened(world string)
	// Closed: a world is no longer live. All its agents are gone with it,
	// without a Left of their own.
	Closed(world string)

	// Joined: an agent was registered, or it was there when its world was opened.
	// It may be told again of the same agent, which changes nothing.
	Joined(world, agent string)
	// Left: an agent is gone, with all that waited for it.
	Left(world, agent string)

	// Reached: globalSeq is the number of the world's newest durable effect.
	// Several may have come since the last call.
	Reached(world string, globalSeq uint64)

	// Intent: a request was answered. The code is "" unless it was refused, now
	// or, of a duplicate, when it was asked first.
	Intent(world, agent string, status agents.Status, code agents.Code, took IntentTiming)
	// IntentsWaiting: n of the agent's requests wait now for their turn.
	IntentsWaiting(world, agent string, n int)

	// Delivered: an observation was handed over, this long after its effect
	// was decided. A delay that the agent's latency model asks for is not counted.
	Delivered(world, agent string, after time.Duration)
	// Undelivered: n observations were not handed over as they were.
	Undelivered(world, agent string, fate DeltaFate, n int)
	// ObservationsWaiting: n observations wait now to be taken by the agent.
	ObservationsWaiting(world, agent string, n int)

	// Cancelled: a generation is to stop.
	Cancelled(world, agent string, why CancelKind)
	// Halted: a generation has stopped, this long after it was cancelled.
	// After that nothing comes from its generator any more.
	Halted(world, agent string, after time.Duration)
	// Generated: a generation is over. Tokens are all that came, also those of one
	// that was cancelled or failed.
	Generated(world, agent string, end GenerationEnd, took time.Duration, tokens int64)
	// Breaker: the agent's circuit breaker went to another state. It is closed at
	// first, of which nothing is told.
	Breaker(world, agent string, to agents.BreakerState)
}

// IntentTiming says where the time of a request went. A stage that did not take
// place is 0: what is refused without a record is neither applied nor synced.
// The stages add up to at most the total.
type IntentTiming struct {
	Total  time.Duration // from the call until the outcome is durable
	Wait   time.Duration // for the turn: a batch before it, a quantum, the lock
	Decide time.Duration // staleness, quotas, validators, the making of records
	Apply  time.Duration // folding the records, and the views of all whom they concern
	Sync   time.Duration // until the records have reached stable storage
}

// DeltaFate is what became of an observation that was not handed over as it was.
type DeltaFate uint8

// The fates.
const (
	DeltaShed     DeltaFate = iota // dropped for a newer one
	DeltaDropped                   // not taken for want of room
	DeltaDeferred                  // not taken, and comes again
	DeltaReplaced                  // one whole view took its place
)

var deltaFates = [...]string{"shed", "dropped", "deferred", "replaced"}

func (f DeltaFate) String() string { return nameOf(deltaFates[:], f) }

// CancelKind is why a generation was cancelled, without the numbers that a
// reason may hold.
type CancelKind uint8

// The kinds.
const (
	CancelStale    CancelKind = iota // what it went by is outdated
	CancelUser                       // somebody asked for it
	CancelReplaced                   // another generation began under its req_id
	CancelDeadline                   // its time was over
	CancelLeft                       // its agent left
	CancelOther                      // a reason of the program's own
)

var cancelKinds = [...]string{"stale", "user", "replaced", "deadline", "left", "other"}

func (k CancelKind) String() string { return nameOf(cancelKinds[:], k) }

// CancelKindOf returns the kind of a cancellation's reason.
func CancelKindOf(reason string) CancelKind {
	switch reason {
	case agents.ReasonUser:
		return CancelUser
	case agents.ReasonReplaced:
		return CancelReplaced
	case agents.ReasonTimeout:
		return CancelDeadline
	case agents.ReasonLeft:
		return CancelLeft
	}
	if strings.HasPrefix(reason, agents.ReasonStale) {
		return CancelStale
	}
	return CancelOther
}

// GenerationEnd is how a generation came to its end.
type GenerationEnd uint8

// The ends.
const (
	GenerationDone      GenerationEnd = iota // it said all that it had to say
	GenerationCut                            // its token budget was used up
	GenerationCancelled                      // whatever the [CancelKind]
	GenerationFailed                         // the generator returned an error
)

var generationEnds = [...]string{"done", "cut", "cancelled", "failed"}

func (e GenerationEnd) String() string { return nameOf(generationEnds[:], e) }

func nameOf[T ~uint8](names []string, t T) string {
	if int(t) < len(names) {
		return names[t]
	}
	return "unknown"
}

// DiscardMetrics is the [Metrics] that keeps nothing. Embed it in one that
// wants to hear of some things only.
type DiscardMetrics struct{}

var _ Metrics = DiscardMetrics{}

// Opened does nothing.
func (DiscardMetrics) Opened(_ string) {}

// Closed does nothing.
func (DiscardMetrics) Closed(_ string) {}

// Joined does nothing.
func (DiscardMetrics) Joined(_, _ string) {}

// Left does nothing.
func (DiscardMetrics) Left(_, _ string) {}

// Reached does nothing.
func (DiscardMetrics) Reached(_ string, _ uint64) {}

// Intent does nothing.
func (DiscardMetrics) Intent(_, _ string, _ agents.Status, _ agents.Code, _ IntentTiming) {}

// IntentsWaiting does nothing.
func (DiscardMetrics) IntentsWaiting(_, _ string, _ int) {}

// Delivered does nothing.
func (DiscardMetrics) Delivered(_, _ string, _ time.Duration) {}

// Undelivered does nothing.
func (DiscardMetrics) Undelivered(_, _ string, _ DeltaFate, _ int) {}

// ObservationsWaiting does nothing.
func (DiscardMetrics) ObservationsWaiting(_, _ string, _ int) {}

// Cancelled does nothing.
func (DiscardMetrics) Cancelled(_, _ string, _ CancelKind) {}

// Halted does nothing.
func (DiscardMetrics) Halted(_, _ string, _ time.Duration) {}

// Generated does nothing.
func (DiscardMetrics) Generated(_, _ string, _ GenerationEnd, _ time.Duration, _ int64) {}

// Breaker does nothing.
func (DiscardMetrics) Breaker(_, _ string, _ agents.BreakerState) {}

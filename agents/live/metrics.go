package live

import (
	"log/slog"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
)

// Metrics receives measurements of live worlds. Nothing is decided by it and
// nothing of it is recorded; a replay reports nothing.
//
// World is the session's name, agent the agent's id in it. A world is known from
// [Metrics.Opened] to [Metrics.Closed], an agent from [Metrics.Joined] to
// [Metrics.Left]. A report about an unknown agent (a request of an id that was
// never registered, the end of a stream that outlived its agent) is correct, but
// any client can choose such an id: an implementation that keeps a value for each
// of them can be made to fill the memory.
//
// The methods are called on the paths that they measure, from many goroutines at
// once and some of them under the lock of the writer's fold. They must not wait,
// must not call the engine, and must not panic. Durations are of the wall clock,
// not session time, and never negative.
//
// Methods may be added. An implementation that embeds [DiscardMetrics] continues to
// compile.
type Metrics interface {
	// Opened: a world is live from here on. Reports about its agents and
	// its number follow.
	Opened(world string)
	// Closed: a world is no longer live. All its agents are gone with it,
	// without a Left of their own.
	Closed(world string)

	// Joined: an agent was registered, or it was there when its world was opened.
	// It may be called again for the same agent, which changes nothing.
	Joined(world, agent string)
	// Left: an agent has left; nothing waits for it any more.
	Left(world, agent string)

	// Reached: globalSeq is the number of the world's newest durable effect.
	// The number may have grown by more than one since the last call.
	Reached(world string, globalSeq uint64)

	// Intent: a request has its outcome. The code is "" unless it was refused, now
	// or, for a duplicate, when it was first decided.
	Intent(world, agent string, status agents.Status, code agents.Code, took IntentTiming)
	// IntentsWaiting: n of the agent's requests wait for a tick now.
	IntentsWaiting(world, agent string, n int)

	// Delivered: an observation was delivered, this long after its effect
	// was decided. A delay that the agent's latency model asks for is not counted.
	Delivered(world, agent string, after time.Duration)
	// Undelivered: n deltas were not delivered as such.
	Undelivered(world, agent string, reason DropReason, n int)
	// ObservationsWaiting: n observations wait for one reader of the agent now.
	ObservationsWaiting(world, agent string, n int)

	// Cancelled: a generation was cancelled.
	Cancelled(world, agent string, why CancelKind)
	// Halted: a generation has stopped, this long after it was cancelled.
	// It takes no further token from its generator.
	Halted(world, agent string, after time.Duration)
	// Generated: the stream of a generation has ended. tokens counts those of a stream
	// that was cancelled or failed, too.
	Generated(world, agent string, end StreamEnd, took time.Duration, tokens int64)
	// Breaker: the agent's circuit breaker changed its state. The initial state,
	// closed, is not reported.
	Breaker(world, agent string, to flow.BreakerState)
}

// IntentTiming splits the time of a request into stages. A stage that did not take
// place is 0: a refusal without a record is neither applied nor synced. The stages
// add up to at most the total.
type IntentTiming struct {
	Total  time.Duration // from the call until the outcome is durable
	Wait   time.Duration // for the turn: a batch before it, a quantum, the lock
	Decide time.Duration // staleness, quotas, validators, the making of records
	Apply  time.Duration // folding the records, and the views of all whom they concern
	Sync   time.Duration // until the records have reached stable storage
}

// DropReason says why a delta was not delivered as such.
type DropReason uint8

// The reasons.
const (
	DeltaShed     DropReason = iota // dropped in favour of a newer one
	DeltaDropped                    // the queue had no room
	DeltaDeferred                   // the queue had no room; a full view follows
	DeltaReplaced                   // a full view replaced it
)

var dropReasons = [...]string{"shed", "dropped", "deferred", "replaced"}

func (f DropReason) String() string { return nameOf(dropReasons[:], f) }

// CancelKind is the reason of a cancellation, without the numbers that its text may
// contain.
type CancelKind uint8

// The kinds.
const (
	CancelStale    CancelKind = iota // its context was out of date
	CancelUser                       // the program or a user cancelled it
	CancelReplaced                   // another generation began with the same req_id
	CancelDeadline                   // its deadline passed
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

// StreamEnd says how the stream of a generation ended.
type StreamEnd uint8

// The ends.
const (
	StreamDone      StreamEnd = iota // the generator returned
	StreamCut                        // its token budget was used up
	StreamCancelled                  // for any [CancelKind]
	StreamFailed                     // the generator returned an error
)

var streamEnds = [...]string{"done", "cut", "cancelled", "failed"}

func (e StreamEnd) String() string { return nameOf(streamEnds[:], e) }

func nameOf[T ~uint8](names []string, t T) string {
	if int(t) < len(names) {
		return names[t]
	}
	return "unknown"
}

// DiscardMetrics is the [Metrics] that discards everything. Embed it in an
// implementation of some of the methods.
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
func (DiscardMetrics) Undelivered(_, _ string, _ DropReason, _ int) {}

// ObservationsWaiting does nothing.
func (DiscardMetrics) ObservationsWaiting(_, _ string, _ int) {}

// Cancelled does nothing.
func (DiscardMetrics) Cancelled(_, _ string, _ CancelKind) {}

// Halted does nothing.
func (DiscardMetrics) Halted(_, _ string, _ time.Duration) {}

// Generated does nothing.
func (DiscardMetrics) Generated(_, _ string, _ StreamEnd, _ time.Duration, _ int64) {}

// Breaker does nothing.
func (DiscardMetrics) Breaker(_, _ string, _ flow.BreakerState) {}

// The names of log attributes about worlds and their agents, one spelling each.
const (
	worldIDKey   = "world_id"   // the session's name
	globalSeqKey = "global_seq" // number of an effect
	viewSeqKey   = "view_seq"   // number of the newest effect that an agent was shown
	agentIDKey   = "agent_id"
	reqIDKey     = "req_id"
	latencyKey   = "latency_ms" // milliseconds, with their fraction
)

// latency returns the attribute that says how long something took.
func latency(d time.Duration) slog.Attr {
	return slog.Float64(latencyKey, float64(d)/float64(time.Millisecond))
}

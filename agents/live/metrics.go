package live

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
)

// AgentMetrics receives measurements of live worlds, each concern through an interface
// of its own. A nil field is not reported to. Nothing is decided by a measurement and
// nothing of it is recorded; a replay reports nothing.
//
// World is the session's name, agent the agent's id in it. A world is known from
// [WorldMetrics.WorldOpened] to [WorldMetrics.WorldClosed], an agent from
// [WorldMetrics.AgentJoined] to [WorldMetrics.AgentLeft]. A report about an unknown
// agent (a request of an id that was never registered, the end of a stream that
// outlived its agent) is correct, but any client can choose such an id: an
// implementation that keeps a value for each of them can be made to fill the memory.
//
// The methods are called on the paths that they measure, from many goroutines at
// once and some of them under the lock of the writer's fold. They must not wait,
// must not call the engine, and must not panic. Durations are of the wall clock,
// not session time, and never negative. A context is that of the call that is reported
// on, for its values; it may have ended.
//
// No interface gets another method: a new measurement is a new interface and a new
// field, or a new field of a struct that is reported.
type AgentMetrics struct {
	Worlds       WorldMetrics
	Intents      IntentMetrics
	Observations ObservationMetrics
	Generations  GenerationMetrics
}

// WorldMetrics receives which worlds are live, which agents they have, and how far they
// are. See [AgentMetrics] for the rules of the calls.
type WorldMetrics interface {
	// WorldOpened: a world is live from here on. Reports about its agents and
	// its number follow. It is called once, by the goroutine that opens the world.
	WorldOpened(world string)
	// WorldClosed reports that a world has stopped. Its agents have stopped too; no
	// AgentLeft is reported for them.
	WorldClosed(world string)

	// AgentJoined: an agent was registered, or it was there when its world was opened.
	// It may be called again for the same agent, which changes nothing.
	AgentJoined(world, agent string)
	// AgentLeft: an agent has left; nothing waits for it any more.
	AgentLeft(world, agent string)

	// WorldReached: globalSeq is the number of the world's newest durable effect.
	// The number may have grown by more than one since the last call.
	WorldReached(world string, globalSeq uint64)
}

// IntentMetrics receives the outcomes of intents and how many wait. See [AgentMetrics]
// for the rules of the calls.
type IntentMetrics interface {
	// IntentDecided: a request has its outcome, which is durable. It is called by the
	// goroutine that waited for the outcome.
	IntentDecided(ctx context.Context, d DecidedIntent)
	// IntentsWaiting: n of the agent's requests wait for a tick now. It is called under
	// the lock of the writer's fold.
	IntentsWaiting(world, agent string, n int)
}

// ObservationMetrics receives the fates of observations and how many wait. See
// [AgentMetrics] for the rules of the calls.
type ObservationMetrics interface {
	// Delivered: an observation was delivered, this long after its effect
	// was decided. A delay that the agent's latency model asks for is not counted.
	// It is called by the goroutine that takes the observation.
	Delivered(world, agent string, after time.Duration)
	// Undelivered: n deltas were not delivered as such. It is called by the world's
	// dispatcher, under the lock of its subscribers.
	Undelivered(world, agent string, reason DropReason, n int)
	// ObservationsWaiting: n observations wait for one reader of the agent now.
	ObservationsWaiting(world, agent string, n int)
}

// GenerationMetrics receives the ends of generations. See [AgentMetrics] for the rules
// of the calls.
type GenerationMetrics interface {
	// Cancelled: a generation was cancelled. It is called by the world's dispatcher.
	Cancelled(world, agent string, why CancelKind)
	// Halted: a generation has stopped, this long after it was cancelled.
	// It takes no further token from its generator.
	Halted(world, agent string, after time.Duration)
	// StreamEnded: the stream of a generation has ended. It is called by the goroutine
	// that read the stream.
	StreamEnded(ctx context.Context, s EndedStream)
	// BreakerChanged: the agent's circuit breaker changed its state. The initial state,
	// closed, is not reported. It is called under the lock of the world's breakers.
	BreakerChanged(world, agent string, to flow.BreakerState)
}

// DecidedIntent is a request that has its outcome.
type DecidedIntent struct {
	World, Agent string
	ReqID        string // as the agent named the request
	Kind         string // of the intent
	Status       agents.Status
	Code         agents.Code // "" unless refused, now or, for a duplicate, when it was first decided
	GlobalSeq    uint64      // of the effect; 0 without one
	Took         IntentTiming
}

// EndedStream is the stream of a generation that has ended.
type EndedStream struct {
	World, Agent string
	ReqID        string // of the generation
	Generator    string // its name
	End          StreamEnd
	Took         time.Duration // from the call of the generator
	Tokens       int64         // that came, also of a stream that was cancelled or failed
}

// IntentTiming splits the time of a request into stages. A stage that did not take
// place is 0: a refusal without a record is neither applied nor synced. The stages
// add up to at most the total. Requests that are decided together, in a batch or a
// quantum, have the stages of the whole.
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

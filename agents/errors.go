package agents

import (
	"fmt"
	"strings"
	"time"
)

// Code names why something was refused or did not come about. Names and numbers
// are the published ones of the document.
type Code string

// The codes. Those that the core itself gives come first; the others are for
// whatever stands around it, so that all speak of one table.
const (
	StaleContext    Code = "STALE_CONTEXT"   // more was shown to the agent than it considered
	IntentConflict  Code = "INTENT_CONFLICT" // possible before, but not after what came first in its quantum
	InvalidIntent   Code = "INVALID_INTENT"  // malformed, so that it cannot even be refused under its req_id
	Invalid         Code = "INTENT_VALIDATION_FAILED"
	QuotaExceeded   Code = "QUOTA_EXCEEDED"  // of intents or tokens in a minute
	CooldownActive  Code = "COOLDOWN_ACTIVE" // too soon after the agent's last intent of this kind
	QueueFull       Code = "QUEUE_FULL"      // backpressure
	Timeout         Code = "TIMEOUT"         // the generation passed its deadline_ms
	Cancelled       Code = "GENERATION_CANCELLED"
	Forbidden       Code = "FORBIDDEN"        // the agent has no permission for it
	UnknownAgent    Code = "INVALID_AGENT_ID" // nobody of this id is registered
	WorldPaused     Code = "WORLD_PAUSED"
	BatchAborted    Code = "BATCH_ABORTED" // another intent of its atomic batch was refused
	VersionMismatch Code = "SCHEMA_VERSION_MISMATCH"

	BudgetExceeded    Code = "TOKEN_BUDGET_EXCEEDED"
	Unauthorized      Code = "UNAUTHORIZED"
	Quarantined       Code = "AGENT_QUARANTINED"
	BreakerOpen       Code = "CIRCUIT_BREAKER_OPEN"
	GenerationFailed  Code = "LLM_SERVICE_ERROR"
	GenerationTimeout Code = "LLM_TIMEOUT"
	LogCorruption     Code = "LOG_CORRUPTION_DETECTED"
)

// Recovery is what the one who was refused may do about it.
type Recovery string

// The ways to recover.
const (
	Retry          Recovery = "retry"
	RetryWithDelay Recovery = "retry_with_delay"
	Regenerate     Recovery = "regenerate"
	ModifyIntent   Recovery = "modify_intent"
	DeferIntent    Recovery = "defer"
	ShedOldest     Recovery = "shed_oldest"
	DropNewest     Recovery = "drop_newest"
	Abort          Recovery = "abort"
)

// Failure is one line of the table of codes.
type Failure struct {
	Number   int
	HTTP     int
	GRPC     string
	Recovery Recovery
	// Final says that the answer stands for ever: the same req_id gets it again.
	// Anything else may be asked again under the same req_id.
	Final bool
}

var failures = map[Code]Failure{
	StaleContext:      {1001, 409, "FAILED_PRECONDITION", Regenerate, false},
	IntentConflict:    {2001, 409, "FAILED_PRECONDITION", RetryWithDelay, false},
	InvalidIntent:     {2002, 400, "INVALID_ARGUMENT", ModifyIntent, false},
	Invalid:           {2003, 422, "FAILED_PRECONDITION", Abort, true},
	BatchAborted:      {2005, 409, "ABORTED", RetryWithDelay, false},
	QuotaExceeded:     {3001, 429, "RESOURCE_EXHAUSTED", DeferIntent, false},
	QueueFull:         {3002, 503, "RESOURCE_EXHAUSTED", DeferIntent, false},
	BudgetExceeded:    {3003, 429, "RESOURCE_EXHAUSTED", DeferIntent, false},
	CooldownActive:    {3005, 429, "RESOURCE_EXHAUSTED", RetryWithDelay, false},
	Timeout:           {4001, 408, "DEADLINE_EXCEEDED", Abort, true},
	Cancelled:         {4002, 499, "CANCELLED", Regenerate, true},
	Unauthorized:      {5001, 401, "UNAUTHENTICATED", Abort, false},
	Forbidden:         {5002, 403, "PERMISSION_DENIED", Abort, true},
	UnknownAgent:      {5003, 404, "NOT_FOUND", Abort, false},
	Quarantined:       {5005, 403, "PERMISSION_DENIED", Abort, false},
	GenerationFailed:  {6002, 502, "UNAVAILABLE", Retry, false},
	GenerationTimeout: {6005, 504, "DEADLINE_EXCEEDED", RetryWithDelay, false},
	BreakerOpen:       {7001, 503, "UNAVAILABLE", RetryWithDelay, false},
	LogCorruption:     {7003, 500, "DATA_LOSS", Abort, false},
	VersionMismatch:   {7004, 400, "INVALID_ARGUMENT", Abort, false},
	WorldPaused:       {7005, 503, "UNAVAILABLE", RetryWithDelay, false},
}

// Failure returns what the table says of a code; false if it is none.
func (c Code) Failure() (Failure, bool) {
	f, ok := failures[c]
	return f, ok
}

// Final reports whether a refusal with this code stands for ever.
func (c Code) Final() bool { return failures[c].Final }

// Error makes a code a sentinel: errors.Is(err, agents.StaleContext).
func (c Code) Error() string { return string(c) }

// Problem is one thing that a validator found.
type Problem struct {
	Path   string // JSON pointer into the intent
	Reason string
}

// Rejection is why an intent was refused. It wraps its Code.
type Rejection struct {
	Code     Code
	Recovery Recovery
	AgentID  string
	ReqID    string
	Reason   string
	// Problems are all that the validators found, not only the first.
	Problems []Problem
	// ExpectedSeq is the least context_seq that is not stale, ActualSeq the
	// intent's, of a stale one.
	ExpectedSeq, ActualSeq uint64
	// RetryAfter says when it might be accepted, if that is known.
	RetryAfter time.Duration
}

func (r *Rejection) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "agents: %q of %q: %s", r.ReqID, r.AgentID, r.Code)
	if r.Reason != "" {
		b.WriteString(": " + r.Reason)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "; %s: %s", p.Path, p.Reason)
	}
	return b.String()
}

func (r *Rejection) Unwrap() error { return r.Code }

func reject(in *Intent, code Code, format string, args ...any) *Rejection {
	return &Rejection{
		Code: code, Recovery: failures[code].Recovery, AgentID: in.AgentID, ReqID: in.ReqID,
		Reason: fmt.Sprintf(format, args...),
	}
}

// The document's way to try again.
const (
	MaxRetries = 3
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Delay returns how long to wait before the given attempt to try again,
// counting from 0: 100 ms, doubled each time, 5 s at most. It returns false if
// this recovery means not to, or if all attempts are used up.
func (r Recovery) Delay(attempt int) (time.Duration, bool) {
	if r != Retry && r != RetryWithDelay && r != Regenerate || attempt < 0 || attempt >= MaxRetries {
		return 0, false
	}
	return min(retryFirst<<attempt, retryMost), true
}

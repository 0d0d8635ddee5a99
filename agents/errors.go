package agents

import (
	"fmt"
	"strings"
	"time"
)

// Code is the reason of a refusal or failure. Names and numbers are those that the
// multi-agent design publishes in "Error Types and Recovery".
type Code string

// The codes. The core returns those of the first group, the live side and the facades
// those of the second. No package of this module returns those of the third: a server
// over this module answers with them, and they are here so that there is one table. The
// comment of each says what the module does in its place.
const (
	ErrStaleContext    Code = "STALE_CONTEXT"   // more was shown to the agent than it considered
	ErrIntentConflict  Code = "INTENT_CONFLICT" // possible before, but not after what came first in its quantum
	ErrInvalidIntent   Code = "INVALID_INTENT"  // malformed, so that it cannot even be refused under its req_id
	ErrInvalid         Code = "INTENT_VALIDATION_FAILED"
	ErrQuotaExceeded   Code = "QUOTA_EXCEEDED"  // of intents or tokens in a minute, or of agents: see [Rejection.Quota]
	ErrCooldownActive  Code = "COOLDOWN_ACTIVE" // too soon after the agent's last intent of this kind
	ErrQueueFull       Code = "QUEUE_FULL"      // backpressure
	ErrTimeout         Code = "TIMEOUT"         // the generation passed its deadline_ms
	ErrCancelled       Code = "GENERATION_CANCELLED"
	ErrForbidden       Code = "FORBIDDEN"        // the agent has no permission for it
	ErrUnknownAgent    Code = "INVALID_AGENT_ID" // no agent of this id is registered
	ErrWorldPaused     Code = "WORLD_PAUSED"
	ErrBatchAborted    Code = "BATCH_ABORTED" // another intent of its atomic batch was refused
	ErrVersionMismatch Code = "SCHEMA_VERSION_MISMATCH"

	ErrBreakerOpen       Code = "CIRCUIT_BREAKER_OPEN"
	ErrGenerationFailed  Code = "LLM_SERVICE_ERROR"
	ErrGenerationTimeout Code = "LLM_TIMEOUT"

	ErrBudgetExceeded Code = "TOKEN_BUDGET_EXCEEDED"   // a generation ends at its token_budget, and its answer so far counts
	ErrUnauthorized   Code = "UNAUTHORIZED"            // the program authenticates clients before it submits for them
	ErrQuarantined    Code = "AGENT_QUARANTINED"       // the program decides, and has the agent leave or lose its permissions
	ErrLogCorruption  Code = "LOG_CORRUPTION_DETECTED" // package eventlog returns errors of its own
)

// QuotaType is what a quota counts (the multi-agent design, QuotaExceededError).
type QuotaType string

// The quotas.
const (
	QuotaIntents QuotaType = "intents" // of an agent in a minute
	QuotaTokens  QuotaType = "tokens"  // of an agent in a minute
	QuotaAgents  QuotaType = "agents"  // that are registered in a world at a time: max_agents
)

// Recovery is what a client may do about a refusal.
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
	// Final says that the answer is final: the same req_id gets it again.
	// Anything else may be asked again under the same req_id.
	Final bool
}

var failures = map[Code]Failure{
	ErrStaleContext:      {1001, 409, "FAILED_PRECONDITION", Regenerate, false},
	ErrIntentConflict:    {2001, 409, "FAILED_PRECONDITION", RetryWithDelay, false},
	ErrInvalidIntent:     {2002, 400, "INVALID_ARGUMENT", ModifyIntent, false},
	ErrInvalid:           {2003, 422, "FAILED_PRECONDITION", Abort, true},
	ErrBatchAborted:      {2005, 409, "ABORTED", RetryWithDelay, false},
	ErrQuotaExceeded:     {3001, 429, "RESOURCE_EXHAUSTED", DeferIntent, false},
	ErrQueueFull:         {3002, 503, "RESOURCE_EXHAUSTED", DeferIntent, false},
	ErrBudgetExceeded:    {3003, 429, "RESOURCE_EXHAUSTED", DeferIntent, false},
	ErrCooldownActive:    {3005, 429, "RESOURCE_EXHAUSTED", RetryWithDelay, false},
	ErrTimeout:           {4001, 408, "DEADLINE_EXCEEDED", Abort, true},
	ErrCancelled:         {4002, 499, "CANCELLED", Regenerate, true},
	ErrUnauthorized:      {5001, 401, "UNAUTHENTICATED", Abort, false},
	ErrForbidden:         {5002, 403, "PERMISSION_DENIED", Abort, true},
	ErrUnknownAgent:      {5003, 404, "NOT_FOUND", Abort, false},
	ErrQuarantined:       {5005, 403, "PERMISSION_DENIED", Abort, false},
	ErrGenerationFailed:  {6002, 502, "UNAVAILABLE", Retry, false},
	ErrGenerationTimeout: {6005, 504, "DEADLINE_EXCEEDED", RetryWithDelay, false},
	ErrBreakerOpen:       {7001, 503, "UNAVAILABLE", RetryWithDelay, false},
	ErrLogCorruption:     {7003, 500, "DATA_LOSS", Abort, false},
	ErrVersionMismatch:   {7004, 400, "INVALID_ARGUMENT", Abort, false},
	ErrWorldPaused:       {7005, 503, "UNAVAILABLE", RetryWithDelay, false},
}

// Failure returns the line of the table for a code, false if there is none.
func (c Code) Failure() (Failure, bool) {
	f, ok := failures[c]
	return f, ok
}

// Final reports whether a refusal with this code is final.
func (c Code) Final() bool { return failures[c].Final }

// Error makes a code a sentinel: errors.Is(err, agents.ErrStaleContext).
func (c Code) Error() string { return string(c) }

// Problem is one finding of the validation.
type Problem struct {
	Path   string // JSON pointer into the intent
	Reason string
}

// Rejection is why an intent was refused. It wraps its Code. One with
// [ErrIntentConflict] does not name the effects that came first: the agent learns of
// those that it may see from its observations (ADR 17).
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
	// Quota is what a refusal with [ErrQuotaExceeded] was over, and Limit how many of
	// that are allowed.
	Quota QuotaType
	Limit int64
	// RetryAfter says when it might be accepted, if that is known. An intent that alone
	// exceeds a quota has none.
	RetryAfter time.Duration
}

func (r *Rejection) Error() string {
	var b strings.Builder
	b.WriteString("agents: ")
	switch {
	case r.ReqID != "" && r.AgentID != "":
		fmt.Fprintf(&b, "%q of %q: ", r.ReqID, r.AgentID)
	case r.ReqID != "" || r.AgentID != "":
		fmt.Fprintf(&b, "%q: ", r.ReqID+r.AgentID)
	}
	b.WriteString(string(r.Code))
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

// The retries of the multi-agent design, "Error Types and Recovery".
const (
	MaxRetries = 3
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Delay returns how long to wait before the given attempt to try again,
// counting from 0: 100 ms, doubled each time, 5 s at most. It returns false if
// the recovery is not a retry, or if all attempts are used up.
func (r Recovery) Delay(attempt int) (time.Duration, bool) {
	if r != Retry && r != RetryWithDelay && r != Regenerate || attempt < 0 || attempt >= MaxRetries {
		return 0, false
	}
	return min(retryFirst<<attempt, retryMost), true
}

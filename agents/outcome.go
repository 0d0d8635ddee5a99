package agents

import (
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/signal"
)

// Status is how a request ended.
type Status uint8

// The ways to end.
const (
	Rejected  Status = iota
	Accepted         // an effect came of it
	Duplicate        // it was answered before; the answer is the first one
)

var statusNames = [...]string{"rejected", "accepted", "duplicate"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// Outcome is the answer to a request.
type Outcome struct {
	Status Status
	// GlobalSeq and UUID name the effect; 0 and "" if there is none.
	GlobalSeq uint64
	UUID      string
	// Effect is there when it has just been accepted. That of a duplicate is in the log.
	Effect *Effect
	// Rejection says why there is no effect. A duplicate of a refused request has one too.
	Rejection *Rejection
}

// OK reports whether there is an effect.
func (o Outcome) OK() bool { return o.GlobalSeq != 0 }

// Err returns the rejection as an error, nil if there is an effect.
func (o Outcome) Err() error {
	if o.Rejection == nil {
		return nil
	}
	return o.Rejection
}

// answered is what is remembered of a request for ever.
type answered struct {
	seq    uint64 // of the effect; 0 if it was refused
	code   Code
	reason string
}

// maxReason bounds what is remembered of a reason, in bytes.
const maxReason = 256

func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	s = s[:maxReason]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// outcome answers a duplicate.
func (c *Core) outcome(in *Intent, a answered) Outcome {
	if a.seq != 0 {
		return Outcome{Status: Duplicate, GlobalSeq: a.seq, UUID: in.UUID(c.options.World)}
	}
	r := reject(in, a.code, "")
	r.Reason = a.reason
	return Outcome{Status: Duplicate, Rejection: r}
}

// Answered returns the outcome of a request that has a final one.
func (c *Core) Answered(agent, reqID string) (Outcome, bool) {
	a, ok := c.answers[agent][reqID]
	if !ok {
		return Outcome{}, false
	}
	return c.outcome(&Intent{AgentID: agent, ReqID: reqID}, a), true
}

func (c *Core) remember(agent, reqID string, a answered) {
	if c.answers[agent] == nil {
		c.answers[agent] = map[string]answered{}
	}
	c.answers[agent][reqID] = a
}

func refusal(r *Rejection, tokens int64) Record {
	reason := r.Reason
	for _, p := range r.Problems {
		if reason != "" {
			reason += "; "
		}
		reason += p.Path + ": " + p.Reason
	}
	return Record{WordOutcome, object{
		{"agent_id", textValue(r.AgentID)},
		{"req_id", textValue(r.ReqID)},
		{"code", textValue(string(r.Code))},
		{"reason", textValue(clip(strings.ToValidUTF8(reason, "\uFFFD")))},
		{"tokens", signedValue(tokens)},
	}.value()}
}

func (c *Core) applyOutcome(v signal.Value) error {
	agent, reqID, code := textOf(v, "agent_id"), textOf(v, "req_id"), Code(textOf(v, "code"))
	a, ok := c.agents[agent]
	if !ok || validKey(reqID, MaxReqID) != nil || !code.Final() {
		return ErrRecord
	}
	if _, ok := c.answers[agent][reqID]; ok {
		return ErrRecord
	}
	c.remember(agent, reqID, answered{code: code, reason: clip(textOf(v, "reason"))})
	if code != Timeout && code != Cancelled {
		a.quota.use(c.now, 1, min(max(integerOf(v, "tokens"), 0), MaxPayload), &a.settings)
	}
	c.drop(a, reqID)
	return nil
}

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

// Answer is what a request was answered for ever.
type Answer struct {
	GlobalSeq uint64 // of the effect; 0 if it was refused
	Code      Code   // of the final refusal; "" if there is an effect
	Reason    string // of the refusal, at most 256 bytes
}

// Answers remembers what was answered, for ever. It knows the answer of every
// record that was kept (see [Record.Answer]) before the next decision. Of two for
// one request the first counts.
type Answers interface {
	Answered(agentID, reqID string) (Answer, bool)
}

// remembered are the answers that a core remembers by itself.
type remembered map[[2]string]Answer

func (m remembered) Answered(agentID, reqID string) (Answer, bool) {
	a, ok := m[[2]string{agentID, reqID}]
	return a, ok
}

// Answer returns which request a record answers for ever, and how: that of an
// effect that comes from an intent, of a final refusal, or of a cancellation with
// [ReasonUser]. Whoever keeps the log finds the record under the request, and reads
// from it by this method what was answered. It returns false for any other record.
func (r Record) Answer() (agentID, reqID string, a Answer, ok bool) {
	v := r.Value
	agentID, reqID = textOf(v, "agent_id"), textOf(v, "req_id")
	switch r.Word {
	case WordEffect:
		agentID = textOf(v, "source_id")
		a.GlobalSeq = seqOf(v, "global_seq")
		ok = a.GlobalSeq > 0
	case WordOutcome:
		a.Code, a.Reason = Code(textOf(v, "code")), clip(textOf(v, "reason"))
		ok = a.Code.Final()
	case WordCancel:
		a.Code, a.Reason = Cancelled, clip(textOf(v, "reason"))
		ok = a.Reason == ReasonUser
	}
	if !ok || validKey(agentID, MaxID) != nil || validKey(reqID, MaxReqID) != nil {
		return "", "", Answer{}, false
	}
	return agentID, reqID, a, true
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
func (c *Core) outcome(in *Intent, a Answer) Outcome {
	if a.GlobalSeq != 0 {
		return Outcome{Status: Duplicate, GlobalSeq: a.GlobalSeq, UUID: in.UUID(c.name)}
	}
	r := reject(in, a.Code, "")
	r.Reason = a.Reason
	return Outcome{Status: Duplicate, Rejection: r}
}

// Answered returns the outcome of a request that has a final one.
func (c *Core) Answered(agent, reqID string) (Outcome, bool) {
	a, ok := c.recall(agent, reqID)
	if !ok {
		return Outcome{}, false
	}
	return c.outcome(&Intent{AgentID: agent, ReqID: reqID}, a), true
}

func (c *Core) recall(agent, reqID string) (Answer, bool) {
	if c.memory == nil {
		return Answer{}, false
	}
	return c.memory.Answered(agent, reqID)
}

// remember notes what a record answers, if nobody else does.
func (c *Core) remember(r Record) {
	own, ok := c.memory.(remembered)
	if !ok {
		return
	}
	if agent, reqID, a, ok := r.Answer(); ok {
		if _, twice := own.Answered(agent, reqID); !twice {
			own[[2]string{agent, reqID}] = a
		}
	}
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

func (c *Core) applyOutcome(v signal.Value, out *Applied) error {
	agent, reqID, code := textOf(v, "agent_id"), textOf(v, "req_id"), Code(textOf(v, "code"))
	a, ok := c.agents[agent]
	if !ok || validKey(reqID, MaxReqID) != nil || !code.Final() {
		return ErrRecord
	}
	if code != Timeout && code != Cancelled {
		a.quota.use(c.now, 1, min(max(integerOf(v, "tokens"), 0), MaxPayload), &a.settings)
	}
	if _, ok := a.tokens[reqID]; ok && code == Timeout {
		out.Cancellations = append(out.Cancellations, Cancellation{agent, reqID, ReasonTimeout, c.now})
	}
	c.drop(a, reqID)
	return nil
}

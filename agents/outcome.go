package agents

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/agents/internal/codec"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Status is how a request ended.
type Status uint8

// The ways to end.
const (
	Rejected  Status = iota
	Accepted         // it has an effect
	Duplicate        // it had a final outcome before, and gets it again
)

var statusNames = [...]string{"rejected", "accepted", "duplicate"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// Outcome is the result of a request.
type Outcome struct {
	Status Status
	// GlobalSeq and UUID name the effect; 0 and "" if there is none.
	GlobalSeq uint64
	UUID      string
	// Number is the agent's own number of the effect, see [Core.Number]; 0 if there
	// is none, or if the log is from before there were such numbers. The agent is sent
	// the effect by the delivery of this number, or, if others happen in one quantum
	// with it, by one soon after.
	Number uint64
	// Effect is set if the request has just been accepted; that of a duplicate is in the log.
	Effect *world.Effect
	// Rejection is set if there is no effect, of a duplicate too.
	Rejection *Rejection
}

// OK reports whether there is an effect.
func (o Outcome) OK() bool { return o.Status != Rejected && o.Rejection == nil }

// Err returns the rejection as an error, nil if there is an effect.
func (o Outcome) Err() error {
	if o.Rejection == nil {
		return nil
	}
	return o.Rejection
}

// FinalOutcome is the final answer to a request.
type FinalOutcome struct {
	GlobalSeq uint64 // of the effect; 0 if it was refused
	Number    uint64 // the agent's own, see [Outcome]
	Code      Code   // of the final refusal; "" if there is an effect
	// Reason and Problems are those of the refusal, as they were sent. Records of
	// rules 0 have the first 256 bytes of both in Reason.
	Reason   string
	Problems []Problem
}

// FinalOutcomes remembers final answers. It knows the answer of every
// record that was kept (see [FinalOutcomeOf]) before the next decision. Of two for
// one request the first counts.
type FinalOutcomes interface {
	Answered(agentID, reqID string) (FinalOutcome, bool)
}

// remembered holds the final outcomes of a core that is its own memory.
type remembered map[[2]string]FinalOutcome

func (m remembered) Answered(agentID, reqID string) (FinalOutcome, bool) {
	a, ok := m[[2]string{agentID, reqID}]
	return a, ok
}

// FinalOutcomeOf returns which request a record answers finally, and how: that of an
// effect that comes from an intent, of a final refusal, or of a cancellation with
// [ReasonUser]. A log that can find the record of a request needs no other memory of
// outcomes. It returns false for any other record.
func FinalOutcomeOf(r signal.Record) (agentID, reqID string, a FinalOutcome, ok bool) {
	v := r.Value
	agentID, reqID = jsonvalue.TextOf(v, "agent_id"), jsonvalue.TextOf(v, "req_id")
	switch r.Word {
	case WordEffect:
		agentID = jsonvalue.TextOf(v, "source_id")
		a.GlobalSeq, a.Number = jsonvalue.UintOf(v, "global_seq"), jsonvalue.UintOf(v, "number")
		ok = a.GlobalSeq > 0
	case WordOutcome:
		a.Code, a.Reason, a.Problems = Code(jsonvalue.TextOf(v, "code")), clipTo(jsonvalue.TextOf(v, "reason"), maxRefusal), problemsOf(v)
		ok = a.Code.Final()
	case WordCancel:
		a.Code, a.Reason = ErrCancelled, clip(jsonvalue.TextOf(v, "reason"))
		ok = a.Reason == ReasonUser
	}
	if !ok || codec.CheckKey(agentID, world.MaxID) != nil || codec.CheckKey(reqID, MaxReqID) != nil {
		return "", "", FinalOutcome{}, false
	}
	return agentID, reqID, a, true
}

// Bounds of the text of a refusal, in bytes. They hold before it is sent, so
// that what is sent and what is recorded are the same.
const (
	maxReason  = 256     // of the reason of a cancellation
	maxRefusal = 8 << 10 // of the reason and all problems of a refusal
)

func clip(s string) string { return clipTo(s, maxReason) }

// clipTo returns at most so many bytes of s, and no part of a character.
func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[:max(most, 0)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// bound makes a refusal one that can be recorded as it is: its texts are UTF-8
// and have [maxRefusal] bytes in all. Problems beyond that are left out.
func (r *Rejection) bound() {
	left := maxRefusal
	fit := func(s string) string {
		s = clipTo(strings.ToValidUTF8(s, "\uFFFD"), left)
		left -= len(s)
		return s
	}
	r.Reason = fit(r.Reason)
	problems := r.Problems
	r.Problems = nil
	for _, p := range problems[:min(len(problems), maxProblems)] {
		if left <= 0 {
			break
		}
		r.Problems = append(r.Problems, Problem{Path: fit(p.Path), Reason: fit(p.Reason)})
	}
}

// problemsOf reads the problems of a recorded refusal.
func problemsOf(v signal.Value) []Problem {
	list, _ := v.Get("problems")
	var problems []Problem
	left := maxRefusal
	for e := range list.Elements() {
		p := Problem{Path: clipTo(jsonvalue.TextOf(e, "path"), left)}
		left -= len(p.Path)
		p.Reason = clipTo(jsonvalue.TextOf(e, "reason"), left)
		left -= len(p.Reason)
		if problems = append(problems, p); len(problems) == maxProblems {
			break
		}
	}
	return problems
}

// outcome answers a duplicate.
func (c *Core) outcome(in *Intent, a FinalOutcome) Outcome {
	if a.GlobalSeq != 0 {
		return Outcome{Status: Duplicate, GlobalSeq: a.GlobalSeq, UUID: in.UUID(c.name), Number: a.Number}
	}
	r := reject(in, a.Code, "")
	r.Reason, r.Problems = a.Reason, slices.Clone(a.Problems)
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

func (c *Core) recall(agent, reqID string) (FinalOutcome, bool) {
	if c.memory == nil {
		return FinalOutcome{}, false
	}
	return c.memory.Answered(agent, reqID)
}

// remember keeps the final outcome in a record, if the core is its own memory.
func (c *Core) remember(r signal.Record) {
	own, ok := c.memory.(remembered)
	if !ok {
		return
	}
	if agent, reqID, a, ok := FinalOutcomeOf(r); ok {
		if _, twice := own.Answered(agent, reqID); !twice {
			own[[2]string{agent, reqID}] = a
		}
	}
}

// refusal returns the record of a final refusal, whole, as it is sent. It
// bounds r, which is what is sent.
func refusal(r *Rejection, tokens int64) signal.Record {
	r.bound()
	o := jsonvalue.Fields{
		{"agent_id", jsonvalue.Text(r.AgentID)},
		{"req_id", jsonvalue.Text(r.ReqID)},
		{"code", jsonvalue.Text(string(r.Code))},
		{"reason", jsonvalue.Text(r.Reason)},
		{"tokens", jsonvalue.Int(tokens)},
	}
	if len(r.Problems) > 0 {
		o = append(o, jsonvalue.NamedValue{"problems", problemsValue(r.Problems)})
	}
	return signal.Record{Word: WordOutcome, Value: o.Value()}
}

// unrecorded removes all words of the world, a validator or a handler from a conflict,
// which leaves no record.
func (r *Rejection) unrecorded() {
	if r.Code == ErrIntentConflict {
		for i := range r.Problems {
			r.Problems[i].Reason = ReasonConflict
		}
	}
	r.bound()
}

func (c *Core) applyOutcome(v signal.Value, out *Applied) error {
	agent, reqID, code := jsonvalue.TextOf(v, "agent_id"), jsonvalue.TextOf(v, "req_id"), Code(jsonvalue.TextOf(v, "code"))
	a, ok := c.agents[agent]
	if !ok || codec.CheckKey(reqID, MaxReqID) != nil || !code.Final() {
		return ErrRecord
	}
	if code != ErrTimeout && code != ErrCancelled {
		a.quota.use(c.now, 1, min(max(jsonvalue.IntOf(v, "tokens"), 0), world.MaxPayload), &a.settings)
	}
	if _, ok := a.tokens[reqID]; ok && code == ErrTimeout {
		out.Cancellations = append(out.Cancellations, Cancellation{agent, reqID, ReasonTimeout, c.now})
	}
	c.drop(a, reqID)
	return nil
}

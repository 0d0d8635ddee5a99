package agents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/internal/codec"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/internal/timers"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Token is the recorded permission for one generation. It holds the context that the
// generation is based on, and so determines when the generation is stale.
type Token struct {
	AgentID       string
	ReqID         string
	ContextSeq    uint64
	ContextDigest string // of the view at the issue
	// Reads and Classes say what conflicts with it, for agents that only conflicts
	// interrupt: effects that write one of the paths of the world's document, or
	// something below or above it, as [world.Changes.Paths] names them; and effects of
	// these kinds, or whose payload names one in its conflict_class. If it says neither, it
	// is based on everything that the agent sees.
	Reads, Classes []string
	Issued         time.Duration
	Deadline       time.Duration // session time; 0 for none
	Budget         int64         // of tokens; 0 for none
	// Conflict says that something that conflicts has reached the agent.
	Conflict bool
}

// maxTokens bounds the tokens of one agent at a time.
const maxTokens = 64

// TokenRequest asks for a token.
type TokenRequest struct {
	AgentID, ReqID string
	// ContextSeq is the view_seq that the generation is based on; Current means the
	// newest that has reached the agent.
	ContextSeq     uint64
	Current        bool
	Reads, Classes []string
	Deadline       time.Duration // from now; 0 means the agent's setting
	Budget         int64         // 0 means the agent's setting
	// ContextDigest is that of the view which the agent has been sent by now; empty
	// means that of the view with all deltas in flight.
	ContextDigest string
	// Prompted says that the engine hands the view to a prompt: the record says so,
	// and each attempt at the generation is recorded with what it was sent.
	Prompted bool
}

// Issue returns the token for a generation that begins, and its record. A token
// with the same req_id is replaced by it. The error is a [*Rejection].
func (c *Core) Issue(now time.Duration, r TokenRequest) (Token, []signal.Record, error) {
	in := Intent{AgentID: r.AgentID, ReqID: r.ReqID}
	if err := codec.CheckKey(r.ReqID, MaxReqID); err != nil {
		return Token{}, nil, reject(&in, ErrInvalidIntent, "req_id: %v", err)
	}
	a, ok := c.agents[r.AgentID]
	if !ok {
		return Token{}, nil, reject(&in, ErrUnknownAgent, "agent %q is not registered", r.AgentID)
	}
	if refusal := c.unbound(&in); refusal != nil {
		return Token{}, nil, refusal
	}
	if prior, ok := c.Answered(r.AgentID, r.ReqID); ok {
		return Token{}, nil, reject(&in, ErrInvalidIntent, "the request is answered: %v", prior.Status)
	}
	if _, ok := a.tokens[r.ReqID]; !ok && len(a.tokens) >= maxTokens {
		return Token{}, nil, reject(&in, ErrQueueFull, "more than %d generations at a time", maxTokens)
	}
	if len(r.Reads) > maxNamed || len(r.Classes) > maxNamed {
		return Token{}, nil, reject(&in, ErrInvalidIntent, "more than %d paths or classes", maxNamed)
	}
	for _, s := range slices.Concat(r.Reads, r.Classes) {
		if len(s) > 4*world.MaxID || !utf8.ValidString(s) {
			return Token{}, nil, reject(&in, ErrInvalidIntent, "a path or class: want at most %d bytes of UTF-8", 4*world.MaxID)
		}
	}
	t := Token{
		AgentID: r.AgentID, ReqID: r.ReqID, ContextSeq: r.ContextSeq, ContextDigest: a.observer.Digest(),
		Reads: r.Reads, Classes: r.Classes, Issued: max(now, c.now), Budget: r.Budget,
	}
	if r.ContextDigest != "" {
		t.ContextDigest = r.ContextDigest
	}
	if r.Current {
		t.ContextSeq = a.seen(now)
	}
	length := r.Deadline
	if length <= 0 {
		length = a.settings.Deadline
	}
	if length > 0 {
		t.Deadline = after(t.Issued, min(length, flow.MaxLatency))
	}
	if t.Budget <= 0 {
		t.Budget = a.settings.TokenBudget
	}
	v := t.Value()
	if r.Prompted {
		o := jsonvalue.FieldsOf(v)
		o.Set(MemberPrompted, msgp.AppendBool(nil, true))
		v = o.Value()
	}
	return t, []signal.Record{{Word: WordToken, Value: v}}, nil
}

// MemberPrompted is in the record of a token whose view the engine hands to a
// prompt. It is not part of the state.
const MemberPrompted = "prompted"

// Value returns the token as its record has it: times in nanoseconds.
func (t Token) Value() signal.Value {
	o := jsonvalue.Fields{
		{"agent_id", jsonvalue.Text(t.AgentID)},
		{"req_id", jsonvalue.Text(t.ReqID)},
		{"context_seq", jsonvalue.Uint(t.ContextSeq)},
		{"context_digest", jsonvalue.Text(t.ContextDigest)},
		{"deadline", jsonvalue.Int(int64(t.Deadline))},
		{"token_budget", jsonvalue.Int(t.Budget)},
	}
	if len(t.Reads) > 0 {
		o = append(o, jsonvalue.NamedValue{"reads", jsonvalue.Names(t.Reads)})
	}
	if len(t.Classes) > 0 {
		o = append(o, jsonvalue.NamedValue{"classes", jsonvalue.Names(t.Classes)})
	}
	return o.Value()
}

// ParseToken reads what [Token.Value] writes. What is absent is zero.
func ParseToken(v signal.Value) Token {
	return Token{
		AgentID: jsonvalue.TextOf(v, "agent_id"), ReqID: jsonvalue.TextOf(v, "req_id"),
		ContextSeq: jsonvalue.UintOf(v, "context_seq"), ContextDigest: jsonvalue.TextOf(v, "context_digest"),
		Reads: jsonvalue.NamesOf(v, "reads"), Classes: jsonvalue.NamesOf(v, "classes"),
		Deadline: time.Duration(max(jsonvalue.IntOf(v, "deadline"), 0)), Budget: max(jsonvalue.IntOf(v, "token_budget"), 0),
	}
}

func (c *Core) applyToken(v signal.Value, out *Applied) error {
	t := &generation{Token: ParseToken(v)}
	t.Issued = c.now
	a, ok := c.agents[t.AgentID]
	if !ok {
		return fmt.Errorf("a token for the unknown agent %q", t.AgentID)
	}
	if err := t.valid(); err != nil {
		return err
	}
	_, again := a.tokens[t.ReqID]
	switch {
	case again:
		out.Cancellations = append(out.Cancellations, Cancellation{a.id, t.ReqID, ReasonReplaced, c.now})
	case len(a.tokens) >= maxTokens:
		return fmt.Errorf("more than %d tokens", maxTokens)
	}
	a.arrive(c.now) // deltas that arrived before the token are part of its context
	t.conflictAt = a.conflictTime(&t.Token, c.now)
	a.tokens[t.ReqID] = t
	c.settle(a, c.now, out)
	return nil
}

func (t *Token) valid() error {
	if err := codec.CheckKey(t.ReqID, MaxReqID); err != nil {
		return err
	}
	if len(t.Reads) > maxNamed || len(t.Classes) > maxNamed || len(t.ContextDigest) > world.MaxID {
		return errors.New("a token beyond its bounds")
	}
	for _, s := range slices.Concat(t.Reads, t.Classes) {
		if len(s) > 4*world.MaxID {
			return errors.New("a path or class beyond its bounds")
		}
	}
	return nil
}

// Tokens returns the tokens of an agent's generations in the order of req_ids.
func (c *Core) Tokens(agent string) []Token {
	a, ok := c.agents[agent]
	if !ok {
		return nil
	}
	list := make([]Token, 0, len(a.tokens))
	for _, id := range jsonvalue.SortedKeys(a.tokens) {
		t := a.tokens[id].Token
		t.Conflict = a.tokens[id].conflicted(c.now)
		list = append(list, t)
	}
	return list
}

// Cancel returns the record of a cancellation. With [ReasonUser] it is the request's
// final outcome; with any other reason the request may be tried again. It returns
// false if there is no such generation.
func (c *Core) Cancel(agent, reqID, reason string) ([]signal.Record, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return nil, false
	}
	if _, ok := a.tokens[reqID]; !ok {
		return nil, false
	}
	if reason = strings.ToValidUTF8(reason, "\uFFFD"); reason == "" {
		reason = ReasonUser
	}
	return []signal.Record{{Word: WordCancel, Value: jsonvalue.Fields{
		{"agent_id", jsonvalue.Text(agent)},
		{"req_id", jsonvalue.Text(reqID)},
		{"reason", jsonvalue.Text(clip(reason))},
	}.Value()}}, true
}

// Withdraw returns the record of a request that was given up while it waited
// for its quantum: its final outcome is [ErrCancelled]. There is none if the agent is
// not registered, or the request has a final outcome.
func (c *Core) Withdraw(agent, reqID string) []signal.Record {
	if _, ok := c.agents[agent]; !ok {
		return nil
	}
	if _, answered := c.recall(agent, reqID); answered {
		return nil
	}
	return []signal.Record{refusal(reject(&Intent{AgentID: agent, ReqID: reqID}, ErrCancelled, ReasonUser), 0)}
}

func (c *Core) applyCancel(v signal.Value, out *Applied) error {
	agent, reqID, reason := jsonvalue.TextOf(v, "agent_id"), jsonvalue.TextOf(v, "req_id"), clip(jsonvalue.TextOf(v, "reason"))
	a, ok := c.agents[agent]
	if !ok {
		return ErrRecord
	}
	if _, ok := a.tokens[reqID]; !ok {
		return ErrRecord
	}
	c.drop(a, reqID)
	out.Cancellations = append(out.Cancellations, Cancellation{agent, reqID, reason, c.now})
	return nil
}

// Expire returns the records of the generations whose deadline has come: each request
// gets the final outcome [ErrTimeout], and applying it cancels the generation.
func (c *Core) Expire(now time.Duration) []signal.Record {
	var over []*generation
	c.ends.Until(now, func(t *timers.Timer) {
		for _, g := range c.agents[t.Agent].tokens {
			if g.Deadline > 0 && g.Deadline <= now {
				over = append(over, g)
			}
		}
	})
	slices.SortFunc(over, func(a, b *generation) int {
		return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), strings.Compare(a.AgentID, b.AgentID), strings.Compare(a.ReqID, b.ReqID))
	})
	var records []signal.Record
	for _, g := range over {
		in := Intent{AgentID: g.AgentID, ReqID: g.ReqID}
		records = append(records, refusal(reject(&in, ErrTimeout, ReasonTimeout), 0))
	}
	return records
}

// Generated returns the record of a generation's output, so that a replay needs no
// model. The output is an object; Generated sets agent_id and req_id in it.
func (c *Core) Generated(agent, reqID string, answer signal.Value) ([]signal.Record, error) {
	if answer == nil {
		answer = jsonvalue.Empty()
	}
	if err := soundPayload(answer); err != nil {
		return nil, fmt.Errorf("agents: a generation's answer: %w", err)
	}
	if err := errors.Join(codec.CheckKey(agent, world.MaxID), codec.CheckKey(reqID, MaxReqID)); err != nil {
		return nil, fmt.Errorf("agents: a generation's answer: %w", err)
	}
	o := jsonvalue.FieldsOf(answer)
	o.Set("agent_id", jsonvalue.Text(agent))
	o.Set("req_id", jsonvalue.Text(reqID))
	return []signal.Record{{Word: WordGenerated, Value: o.Value()}}, nil
}

// The members of a [WordGenerated] record that say what an attempt at a
// generation was sent.
const (
	MemberViewSeq      = "view_seq"      // of the view that the prompt was made of
	MemberViewDigest   = "view_digest"   // its context_digest
	MemberPromptDigest = "prompt_sha256" // see [PromptDigest]
	MemberPrompt       = "prompt"        // the prompt itself, if the engine records prompts
)

// PromptDigest returns the SHA-256 of a prompt in hexadecimal. The prompt is an
// array of its messages, each an object of role and content; the digest is that of
// its canonical JSON, as [jsondoc.AppendCanonical] writes it.
func PromptDigest(prompt signal.Value) string {
	sum := sha256.Sum256(jsondoc.AppendCanonical(nil, prompt))
	return hex.EncodeToString(sum[:])
}

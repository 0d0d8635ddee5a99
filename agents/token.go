package agents

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/signal"
)

// Token stands for a generation that is going on: it says what the generation
// goes by, and so when it is in vain.
type Token struct {
	AgentID       string
	ReqID         string
	ContextSeq    uint64
	ContextDigest string // of the view at the issue
	// Reads and Classes say what conflicts with it, for agents that only conflicts
	// interrupt: effects that write one of the paths of the world's document, or
	// something below or above it, as [Changes.Paths] names them; and effects of
	// these kinds, or whose payload names one in its conflict_class. If it says neither, it
	// goes by everything that the agent sees.
	Reads, Classes []string
	Issued         time.Duration
	Deadline       time.Duration // session time; 0 for none
	Budget         int64         // of tokens; 0 for none
	// Conflict says that something that conflicts has reached the agent.
	Conflict bool
}

// The reasons of cancellations. A stale one's begins with ReasonStale.
const (
	ReasonStale    = "stale_due_to"
	ReasonUser     = "user_requested"
	ReasonReplaced = "replaced_by_new_token"
	ReasonLeft     = "agent_left"
	ReasonTimeout  = "deadline_exceeded"
)

// Bounds of tokens.
const (
	MaxTokens = 64 // of one agent at a time
)

// TokenRequest asks for a token.
type TokenRequest struct {
	AgentID, ReqID string
	// ContextSeq is the view_seq that the generation goes by; Current means the
	// newest that has reached the agent.
	ContextSeq     uint64
	Current        bool
	Reads, Classes []string
	Deadline       time.Duration // from now; 0 means the agent's setting
	Budget         int64         // 0 means the agent's setting
}

// Issue returns the token for a generation that begins, and its record. A token
// with the same req_id is replaced by it. The error is a [*Rejection].
func (c *Core) Issue(now time.Duration, r TokenRequest) (Token, []Record, error) {
	in := Intent{AgentID: r.AgentID, ReqID: r.ReqID}
	if err := validKey(r.ReqID, MaxReqID); err != nil {
		return Token{}, nil, reject(&in, InvalidIntent, "req_id: %v", err)
	}
	a, ok := c.agents[r.AgentID]
	if !ok {
		return Token{}, nil, reject(&in, UnknownAgent, "nobody of this id is registered")
	}
	if refusal := c.unbound(&in); refusal != nil {
		return Token{}, nil, refusal
	}
	if prior, ok := c.Answered(r.AgentID, r.ReqID); ok {
		return Token{}, nil, reject(&in, InvalidIntent, "the request is answered: %v", prior.Status)
	}
	if _, ok := a.tokens[r.ReqID]; !ok && len(a.tokens) >= MaxTokens {
		return Token{}, nil, reject(&in, QueueFull, "more than %d generations at a time", MaxTokens)
	}
	if len(r.Reads) > maxNamed || len(r.Classes) > maxNamed {
		return Token{}, nil, reject(&in, InvalidIntent, "more than %d paths or classes", maxNamed)
	}
	for _, s := range slices.Concat(r.Reads, r.Classes) {
		if len(s) > 4*MaxID || !utf8.ValidString(s) {
			return Token{}, nil, reject(&in, InvalidIntent, "a path or class: want at most %d bytes of UTF-8", 4*MaxID)
		}
	}
	t := Token{
		AgentID: r.AgentID, ReqID: r.ReqID, ContextSeq: r.ContextSeq, ContextDigest: a.observer.Digest(),
		Reads: r.Reads, Classes: r.Classes, Issued: max(now, c.now), Budget: r.Budget,
	}
	if r.Current {
		t.ContextSeq = a.seen(now)
	}
	length := r.Deadline
	if length <= 0 {
		length = a.settings.Deadline
	}
	if length > 0 {
		t.Deadline = after(t.Issued, min(length, MaxLatency))
	}
	if t.Budget <= 0 {
		t.Budget = a.settings.TokenBudget
	}
	return t, []Record{{WordToken, t.Value()}}, nil
}

// Value returns the token as its record has it: times in nanoseconds.
func (t Token) Value() signal.Value {
	o := object{
		{"agent_id", textValue(t.AgentID)},
		{"req_id", textValue(t.ReqID)},
		{"context_seq", integerValue(t.ContextSeq)},
		{"context_digest", textValue(t.ContextDigest)},
		{"deadline", signedValue(int64(t.Deadline))},
		{"token_budget", signedValue(t.Budget)},
	}
	if len(t.Reads) > 0 {
		o = append(o, member{"reads", namesValue(t.Reads)})
	}
	if len(t.Classes) > 0 {
		o = append(o, member{"classes", namesValue(t.Classes)})
	}
	return o.value()
}

// tokenOf reads what Value writes.
func tokenOf(v signal.Value) Token {
	return Token{
		AgentID: textOf(v, "agent_id"), ReqID: textOf(v, "req_id"),
		ContextSeq: seqOf(v, "context_seq"), ContextDigest: textOf(v, "context_digest"),
		Reads: namesOf(v, "reads"), Classes: namesOf(v, "classes"),
		Deadline: time.Duration(max(integerOf(v, "deadline"), 0)), Budget: max(integerOf(v, "token_budget"), 0),
	}
}

func (c *Core) applyToken(v signal.Value, out *Applied) error {
	t := &generation{Token: tokenOf(v)}
	t.Issued = c.now
	a, ok := c.agents[t.AgentID]
	if !ok {
		return fmt.Errorf("a token for %q, who is nobody", t.AgentID)
	}
	if err := t.valid(); err != nil {
		return err
	}
	_, again := a.tokens[t.ReqID]
	switch {
	case again:
		out.Cancellations = append(out.Cancellations, Cancellation{a.id, t.ReqID, ReasonReplaced, c.now})
	case len(a.tokens) >= MaxTokens:
		return fmt.Errorf("more than %d tokens", MaxTokens)
	}
	a.arrive(c.now) // what has arrived is nothing that comes in between
	t.clash = a.clash(&t.Token, c.now)
	a.tokens[t.ReqID] = t
	c.settle(a, c.now, out)
	return nil
}

func (t *Token) valid() error {
	if err := validKey(t.ReqID, MaxReqID); err != nil {
		return err
	}
	if len(t.Reads) > maxNamed || len(t.Classes) > maxNamed || len(t.ContextDigest) > MaxID {
		return errors.New("a token beyond its bounds")
	}
	for _, s := range slices.Concat(t.Reads, t.Classes) {
		if len(s) > 4*MaxID {
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
	for _, id := range sortedKeys(a.tokens) {
		t := a.tokens[id].Token
		t.Conflict = a.tokens[id].clashed(c.now)
		list = append(list, t)
	}
	return list
}

// Cancel returns the record of a cancellation. With [ReasonUser] the request is
// answered by it for ever; with any other reason it may be asked anew. It returns
// false if no such generation is going on.
func (c *Core) Cancel(agent, reqID, reason string) ([]Record, bool) {
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
	return []Record{{WordCancel, object{
		{"agent_id", textValue(agent)},
		{"req_id", textValue(reqID)},
		{"reason", textValue(clip(reason))},
	}.value()}}, true
}

// Withdraw returns the record of a request that was given up while it waited
// for its quantum: it is answered by [Cancelled] for ever. There is none if the agent
// is not registered, or the request has been answered.
func (c *Core) Withdraw(agent, reqID string) []Record {
	if _, ok := c.agents[agent]; !ok {
		return nil
	}
	if _, answered := c.recall(agent, reqID); answered {
		return nil
	}
	return []Record{refusal(reject(&Intent{AgentID: agent, ReqID: reqID}, Cancelled, ReasonUser), 0)}
}

func (c *Core) applyCancel(v signal.Value, out *Applied) error {
	agent, reqID, reason := textOf(v, "agent_id"), textOf(v, "req_id"), clip(textOf(v, "reason"))
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

// Expire returns the records of the generations whose deadline has come: each
// is answered [Timeout], and cancelled when that is applied.
func (c *Core) Expire(now time.Duration) []Record {
	var over []*generation
	c.ends.until(now, func(t *timer) {
		for _, g := range c.agents[t.agent].tokens {
			if g.Deadline > 0 && g.Deadline <= now {
				over = append(over, g)
			}
		}
	})
	slices.SortFunc(over, func(a, b *generation) int {
		return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), strings.Compare(a.AgentID, b.AgentID), strings.Compare(a.ReqID, b.ReqID))
	})
	var records []Record
	for _, g := range over {
		in := Intent{AgentID: g.AgentID, ReqID: g.ReqID}
		records = append(records, refusal(reject(&in, Timeout, ReasonTimeout), 0))
	}
	return records
}

// Generated returns the record of what a generation answered, so that replay
// needs to ask no model. It is an object; agent_id and req_id are set in it.
func (c *Core) Generated(agent, reqID string, answer signal.Value) ([]Record, error) {
	if answer == nil {
		answer = emptyObject()
	}
	if err := soundPayload(answer); err != nil {
		return nil, fmt.Errorf("agents: a generation's answer: %w", err)
	}
	if err := errors.Join(validKey(agent, MaxID), validKey(reqID, MaxReqID)); err != nil {
		return nil, fmt.Errorf("agents: a generation's answer: %w", err)
	}
	o := membersOf(answer)
	o.set("agent_id", textValue(agent))
	o.set("req_id", textValue(reqID))
	return []Record{{WordGenerated, o.value()}}, nil
}

// drop ends a token without a word.
func (c *Core) drop(a *agentState, reqID string) {
	if _, ok := a.tokens[reqID]; ok {
		delete(a.tokens, reqID)
		c.schedule(a)
	}
}

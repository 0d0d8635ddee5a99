package agentwire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// generation is a generation whose model the client drives: a token of the world, and
// the text that the client has streamed.
type generation struct {
	agent *agentslive.Agent
	gen   *agentslive.Generation

	watched chan struct{} // closed when the client has been told that it must stop

	mu     sync.Mutex
	text   strings.Builder // guarded by mu
	tokens int64           // guarded by mu
	over   bool            // the client adds nothing more; guarded by mu
}

// The sizes of the record of an answer. AnswerMembers is an upper bound of its members
// beside the text.
const (
	answerMembers = 1024
	maxStopped    = 64  // req_ids of stopped generations that a connection remembers
	maxReason     = 256 // bytes of the reason of a failure
)

// generatorName is the generator that the record of an answer names: the client's model,
// which the server does not know.
const generatorName = "client"

// reasonAnswered says that a generation stopped because its request got its outcome by
// another message.
const reasonAnswered = "request_answered"

// begin begins a generation.
func (c *connection) begin(m *incoming, reply func(any)) {
	if q := c.room.suspect.refusal(c.place, m.ReqID, c.room.cfg.Now()); q != nil {
		reply(rejected(q))
		return
	}
	c.mu.Lock()
	old, count := c.generations[m.ReqID], len(c.generations)
	c.mu.Unlock()
	if old == nil && count >= c.room.cfg.MaxGenerations {
		reply(fault{Type: "error", Code: faultTooMany, ReqID: m.ReqID, Detail: "the connection has as many generations as it may have; end one first"})
		return
	}
	if o, ok, err := c.self.Driver().Answered(c.ctx, m.ReqID); err != nil {
		reply(unavailable(m.ReqID))
		return
	} else if ok {
		reply(outcome{Type: "outcome", ReqID: m.ReqID, Outcome: o})
		return
	}
	request := agents.TokenRequest{
		ReqID: m.ReqID, Current: m.ContextSeq == nil, Reads: m.Reads, Classes: m.Classes,
		Deadline: time.Duration(min(m.DeadlineMS, maxDeadlineMS) * float64(time.Millisecond)), Budget: m.TokenBudget,
	}
	if m.ContextSeq != nil {
		request.ContextSeq = *m.ContextSeq
	}
	gen, err := c.self.Begin(c.ctx, request)
	if q, refused := errors.AsType[*agents.Rejection](err); refused {
		if counts(q) {
			c.room.suspect.note(c.ctx, c.place, c.room.cfg.Now())
		}
		reply(rejected(q))
		return
	}
	if err != nil {
		reply(unavailable(m.ReqID))
		return
	}
	if old != nil { // it is replaced, and the client is sent a cancel before the new one begins
		select {
		case <-old.watched:
		case <-c.ctx.Done():
		}
	}
	g := &generation{agent: c.self, gen: gen, watched: make(chan struct{})}
	c.mu.Lock()
	c.generations[m.ReqID] = g
	c.stopped = slices.DeleteFunc(c.stopped, func(id string) bool { return id == m.ReqID })
	c.mu.Unlock()
	token := gen.Token()
	answer := begun{
		Type: "begun", ReqID: m.ReqID, ContextSeq: token.ContextSeq, ContextDigest: token.ContextDigest, TokenBudget: token.Budget,
	}
	if token.Deadline > 0 {
		answer.DeadlineMS = max(projection.Millis(token.Deadline-token.Issued), 0)
	}
	reply(answer) // before the goroutine that may say that it must stop
	if !c.spawn(func() { c.watch(g) }) {
		c.watch(g) // the connection has ended, so this ends the generation
	}
}

// maxDeadlineMS bounds the deadline of a generation: a day.
const maxDeadlineMS = 24 * 60 * 60 * 1000

// watch waits for the end of a generation, and tells the client to stop if the world
// ended it. It ends the generation if the connection ended.
func (c *connection) watch(g *generation) {
	<-g.gen.Context().Done()
	id := g.gen.Token().ReqID
	c.mu.Lock()
	if c.generations[id] == g {
		delete(c.generations, id)
	}
	if c.stopped = append(c.stopped, id); len(c.stopped) > maxStopped {
		c.stopped = c.stopped[1:]
	}
	c.mu.Unlock()
	if !g.close() {
		close(g.watched)
		return // the client ended it
	}
	driver := g.agent.Driver()
	cause, _ := driver.Interruption(g.gen)
	finish, reason := generate.FinishInterrupted, agentslive.ReasonGivenUp
	switch {
	case cause != nil:
		m := stop{Type: "stop", ReqID: id, Code: agents.ErrCancelled, Reason: cause.Reason}
		reason = cause.Reason
		if reason == agents.ReasonTimeout {
			m.Code, finish = agents.ErrTimeout, generate.FinishDeadline
		}
		c.send(m)
	case c.ctx.Err() == nil && errors.Is(context.Cause(g.gen.Context()), context.Canceled):
		c.send(stop{Type: "stop", ReqID: id, Code: agents.ErrCancelled, Reason: reasonAnswered})
		reason = reasonAnswered
	}
	close(g.watched)
	still, release := driver.Outlast(c.ctx)
	defer release()
	// The text so far is part of the history. If it cannot be recorded, nothing can.
	_, _ = driver.Keep(still, g.gen, g.record(finish, reason), false)
	if cause == nil {
		_ = g.gen.End(still, agentslive.ReasonGivenUp)
	}
}

// tokens adds text to a generation.
func (c *connection) tokens(m *incoming, reply func(any)) {
	g := c.running(m, reply)
	if g == nil {
		return
	}
	most := max(g.agent.Driver().MaxValue()-answerMembers, 0)
	g.mu.Lock()
	budget := g.gen.Token().Budget
	cut := len(m.Text) > most-g.text.Len()
	if cut {
		m.Text = clip(m.Text, most-g.text.Len())
	}
	g.text.WriteString(m.Text)
	g.tokens += m.Count
	spent := cut || budget > 0 && g.tokens >= budget
	g.mu.Unlock()
	if spent && g.answer(c.ctx, generate.FinishBudget) {
		reply(g.ended(generate.FinishBudget))
	}
}

// finish ends a generation.
func (c *connection) finish(m *incoming, reply func(any)) {
	g := c.running(m, reply)
	switch {
	case g == nil:
	case m.Failed == "":
		if g.answer(c.ctx, generate.FinishStop) {
			reply(g.ended(generate.FinishStop))
		}
	case g.close():
		if _, err := g.agent.Driver().Keep(c.ctx, g.gen, g.record(generate.FinishError, clip(m.Failed, maxReason)), false); err != nil {
			reply(unavailable(m.ReqID))
			return
		}
		g.end(c.ctx, agentslive.ReasonFailed)
		reply(g.ended(generate.FinishError))
	}
}

// running returns the generation of a message. If none runs it returns nil, and tells so
// unless the client could not know.
func (c *connection) running(m *incoming, reply func(any)) *generation {
	c.mu.Lock()
	g := c.generations[m.ReqID]
	stopped := slices.Contains(c.stopped, m.ReqID)
	c.mu.Unlock()
	if g == nil && !stopped {
		reply(fault{Type: "error", Code: faultNoGeneration, ReqID: m.ReqID, Detail: "/req_id: no generation of this name runs on this connection"})
	}
	return g
}

// close says that the client adds nothing more. It returns false if that was so before.
func (g *generation) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.over
	g.over = true
	return first
}

// answer records the answer of a generation and ends it. It returns false if the world
// ended it before; then the client is sent a cancel.
func (g *generation) answer(ctx context.Context, finish generate.Finish) bool {
	if !g.keep(ctx, finish) {
		return false
	}
	g.end(ctx, agentslive.ReasonCompleted)
	return true
}

// complete records the answer of a generation from which an intent is made. The intent's
// outcome ends it.
func (g *generation) complete(ctx context.Context) { g.keep(ctx, generate.FinishStop) }

// keep records the answer while the generation holds its token, and reports whether it
// does.
func (g *generation) keep(ctx context.Context, finish generate.Finish) bool {
	driver := g.agent.Driver()
	driver.Overdue(ctx, g.gen)
	if g.gen.Context().Err() != nil {
		return false
	}
	held, err := driver.Keep(ctx, g.gen, g.record(finish, ""), true)
	return err == nil && held && g.close()
}

// end ends the token of a generation.
func (g *generation) end(ctx context.Context, reason string) {
	still, release := g.agent.Driver().Outlast(ctx)
	defer release()
	_ = g.gen.End(still, reason) // fails only with the log, which ends every generation
}

func (g *generation) ended(finish generate.Finish) ended {
	g.mu.Lock()
	defer g.mu.Unlock()
	return ended{Type: "ended", ReqID: g.gen.Token().ReqID, Finish: string(finish), Tokens: g.tokens}
}

// record returns the record of the generation: that of a [generate.Attempt], without
// the view and the prompt, which only the client knows.
func (g *generation) record(finish generate.Finish, reason string) signal.Value {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, err := signal.Marshal(struct {
		Text      string `json:"text"`
		Finish    string `json:"finish"`
		Tokens    int64  `json:"tokens"`
		Attempt   int    `json:"attempt"`
		Generator string `json:"generator"`
		Reason    string `json:"reason,omitempty"`
	}{g.text.String(), string(finish), g.tokens, 1, generatorName, reason})
	if err != nil {
		panic("agentwire: " + err.Error()) // the texts come from JSON, so they are UTF-8
	}
	return v
}

// clip returns at most so many bytes of a text, and no part of a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:max(most, 0)], "")
}

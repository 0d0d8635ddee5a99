package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// The reasons with which a generation ends its own token. None is a final outcome of
// the request. A stale token has the reason of the refusal, which begins
// with [agents.ReasonStale]. They are part of the format of entries.
const (
	ReasonCompleted = "completed"         // the answer is recorded, and no intent was made from it
	ReasonGivenUp   = "given_up"          // the caller no longer waits, or the outcome was refused
	ReasonFailed    = "generation_failed" // the generator gave no answer
)

// InterruptedError is the cause of a generation's context when the world interrupts
// the generation; see [context.Cause].
type InterruptedError struct {
	agents.Cancellation
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("sajou: generation %q of %q: %s", e.ReqID, e.Agent, e.Reason)
}

// Unwrap returns [agents.ErrTimeout] if the deadline passed, or else
// [agents.ErrCancelled].
func (e *InterruptedError) Unwrap() error {
	if e.Reason == agents.ReasonTimeout {
		return agents.ErrTimeout
	}
	return agents.ErrCancelled
}

// Generation is an answer in the making, which the world knows as a [agents.Token].
// The world interrupts it when its context is out of date.
type Generation struct {
	world  *Agents
	token  agents.Token
	seq    eventlog.Seq // of the token's entry
	ctx    context.Context
	cancel context.CancelCauseFunc

	cancelled time.Time // time of the interruption; written before ctx is cancelled
}

// Begin begins a generation and records its token, with the context that it is
// based on. ctx is the parent of [Generation.Context]. An outcome of the same
// req_id, or [Generation.End], ends the generation.
func (g *Agent) Begin(ctx context.Context, r agents.TokenRequest) (*Generation, error) {
	r.Prompted = false // the program makes the prompt, if there is one
	return g.begin(ctx, r, func(t *turn, r *agents.TokenRequest) error {
		if t.core.Reached(r.AgentID, t.now) {
			return nil // nothing is in flight: the core has the digest
		}
		v, err := t.knownView(r.AgentID)
		r.ContextDigest = v.ContextDigest
		return err
	})
}

// begin is [Agent.Begin]. look runs in the turn that issues the token; it may
// refuse, and may set the context, in the core's numbers. It is called again if it
// returns errNotAtHand.
func (g *Agent) begin(ctx context.Context, r agents.TokenRequest, look func(*turn, *agents.TokenRequest) error) (*Generation, error) {
	for follow := false; ; follow = true {
		if err := g.world.recallView(ctx, g.id, follow); err != nil {
			return nil, err
		}
		gen, err := g.issue(ctx, r, look)
		if !errors.Is(err, errNotAtHand) {
			return gen, err
		}
	}
}

// issue records the token of a generation.
func (g *Agent) issue(ctx context.Context, r agents.TokenRequest, look func(*turn, *agents.TokenRequest) error) (*Generation, error) {
	r.AgentID = g.id
	gen := &Generation{world: g.world}
	gen.ctx, gen.cancel = context.WithCancelCause(ctx)
	err := g.world.do(ctx, func(t *turn) ([]signal.Record, error) {
		r.ContextSeq = t.core.ContextSeq(t.now, g.id, r.ContextSeq)
		if err := look(t, &r); err != nil {
			return nil, err
		}
		token, records, err := t.core.Issue(t.now, r)
		gen.token = token
		gen.token.ContextSeq = t.core.Number(g.id, token.ContextSeq) // the agent's own number
		return records, err
	}, func(t *turn) {
		gen.seq = t.right.Fold().Head().Seq
		g.world.running.add(gen)
	})
	if err != nil {
		gen.cancel(err)
		if gen.seq != 0 { // the token is recorded, but the caller gets no generation to end it
			still, over := g.world.outlast(ctx)
			defer over()
			_ = gen.End(still, ReasonGivenUp)
		}
		return nil, err
	}
	return gen, nil
}

// Token returns the generation's token: its context and its bounds.
func (g *Generation) Token() agents.Token { return g.token }

// Context is done when the generation must stop or its request has an outcome. If
// the world interrupted the generation, its cause is an [*InterruptedError].
func (g *Generation) Context() context.Context { return g.ctx }

// Answer records the answer of the generation, so that a replay needs no model. It
// is an object, to which agent_id and req_id are added.
func (g *Generation) Answer(ctx context.Context, answer signal.Value) error {
	return g.world.do(ctx, func(t *turn) ([]signal.Record, error) {
		return t.core.Generated(g.token.AgentID, g.token.ReqID, answer)
	}, nil)
}

// End ends the generation and records the reason. With [agents.ReasonUser] this is
// the final outcome of its request. It does nothing if the generation has ended.
func (g *Generation) End(ctx context.Context, reason string) error {
	return g.world.cancel(ctx, g.token.AgentID, g.token.ReqID, reason, g.seq)
}

// Cancel cancels the agent's request of a req_id: a generation, or an intent that
// waits for its tick. It reports whether there was one.
func (g *Agent) Cancel(ctx context.Context, reqID string) (found bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	w := g.world
	err = w.turn(ctx, func(t *turn) error {
		t.admit()
		waits, inLine := t.intake.Cancel(g.id, reqID)
		records, runs := t.core.Cancel(g.id, reqID, agents.ReasonUser)
		if inLine && !runs {
			records = t.core.Withdraw(g.id, reqID)
		}
		found = w.running.drop(g.id, reqID) || inLine || runs
		ticket, err := t.keep(records, false)
		if inLine {
			r := &agents.Rejection{
				Code: agents.ErrCancelled, Recovery: agents.Regenerate, AgentID: g.id, ReqID: reqID, Reason: agents.ReasonUser,
			}
			t.answer(waits.Ticket, agents.Outcome{Rejection: r}, ticket, err)
			t.count(waits.Intent)
		}
		return err
	})
	return found, err
}

func (a *Agents) cancel(ctx context.Context, id, reqID, reason string, seq eventlog.Seq) error {
	return a.do(ctx, func(t *turn) ([]signal.Record, error) {
		if !a.running.has(id, reqID, seq) {
			return nil, nil
		}
		records, _ := t.core.Cancel(id, reqID, reason)
		return records, nil
	}, nil)
}

// generations holds the running generations, and the requests that generate.Run
// works on.
type generations struct {
	mu      sync.Mutex
	runs    map[[2]string][]*Generation        // by agent and req_id, the newest last; guarded by mu
	pending map[[2]string][]*PendingGeneration // by agent and req_id; guarded by mu
	closed  error                              // if not nil, the error of all later generations; guarded by mu
}

func newGenerations() generations {
	return generations{runs: map[[2]string][]*Generation{}, pending: map[[2]string][]*PendingGeneration{}}
}

// PendingGeneration is a request that generate.Run works on, with or without a
// token: it lets [Agent.Cancel] reach a request that has no token at the moment.
type PendingGeneration struct {
	all     *generations
	key     [2]string // agent and req_id
	dropped bool      // guarded by all.mu
}

// Pend registers a request that is being worked on, until [PendingGeneration.Done].
func (d Driver) Pend(reqID string) *PendingGeneration {
	r := &d.agent.world.running
	p := &PendingGeneration{all: r, key: [2]string{d.agent.id, reqID}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[p.key] = append(r.pending[p.key], p)
	return p
}

// Done removes the request.
func (p *PendingGeneration) Done() {
	r := p.all
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[p.key] = slices.DeleteFunc(r.pending[p.key], func(other *PendingGeneration) bool { return other == p })
	if len(r.pending[p.key]) == 0 {
		delete(r.pending, p.key)
	}
}

// Dropped reports whether the request was cancelled by [Agent.Cancel].
func (p *PendingGeneration) Dropped() bool {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	return p.dropped
}

// drop marks the pending generations of a request as cancelled, and reports whether
// there are any.
func (r *generations) drop(id, reqID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.pending[[2]string{id, reqID}]
	for _, p := range list {
		p.dropped = true
	}
	return len(list) > 0
}

func (r *generations) add(g *Generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		g.cancel(r.closed)
		return
	}
	key := [2]string{g.token.AgentID, g.token.ReqID}
	r.runs[key] = append(r.runs[key], g)
}

// has reports whether the generation that began at seq runs and is the newest of
// its request.
func (r *generations) has(id, reqID string, seq eventlog.Seq) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.runs[[2]string{id, reqID}]
	return len(list) > 0 && list[len(list)-1].seq == seq
}

// end removes the generations of a request that began up to an entry, or all if
// last is 0.
func (r *generations) end(id, reqID string, last eventlog.Seq) []*Generation {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{id, reqID}
	var ended, kept []*Generation
	for _, g := range r.runs[key] {
		if last == 0 || g.seq <= last {
			ended = append(ended, g)
		} else {
			kept = append(kept, g)
		}
	}
	if r.runs[key] = kept; len(kept) == 0 {
		delete(r.runs, key)
	}
	return ended
}

// finish removes the generations of a request that has an outcome.
func (r *generations) finish(id, reqID string) {
	for _, g := range r.end(id, reqID, 0) {
		g.cancel(context.Canceled)
	}
}

// close cancels all generations, and all that begin later.
func (r *generations) close(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil {
		r.closed = err
	}
	for _, list := range r.runs {
		for _, g := range list {
			g.cancel(r.closed)
		}
	}
	clear(r.runs)
}

// interrupt cancels the generations of a request that began up to an entry. It is
// called by the dispatcher, once the cancellation is durable.
func (a *Agents) interrupt(last eventlog.Seq, c agents.Cancellation) {
	cfg := &a.cfg
	if c.Reason != ReasonCompleted && c.Reason != ReasonFailed { // the generation ended by itself
		if m := cfg.Metrics.Generations; m != nil {
			m.Cancelled(a.w.Name(), c.Agent, CancelKindOf(c.Reason))
		}
		cfg.Logger.LogAttrs(context.Background(), slog.LevelDebug, "generation cancelled", slog.String(worldIDKey, a.w.Name()),
			slog.String(agentIDKey, c.Agent), slog.String(reqIDKey, c.ReqID), slog.String("reason", c.Reason))
	}
	for _, g := range a.running.end(c.Agent, c.ReqID, last) {
		g.cancelled = cfg.Now()
		g.cancel(&InterruptedError{c})
	}
}

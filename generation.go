package sajou

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// Interrupted is why a generation was to stop; see [context.Cause].
type Interrupted struct {
	agents.Cancellation
}

func (e *Interrupted) Error() string {
	return fmt.Sprintf("sajou: generation %q of %q: %s", e.ReqID, e.Agent, e.Reason)
}

// Unwrap returns [agents.Timeout] if the deadline passed, or else
// [agents.Cancelled].
func (e *Interrupted) Unwrap() error {
	if e.Reason == agents.ReasonTimeout {
		return agents.Timeout
	}
	return agents.Cancelled
}

// Generation is an answer in the making: what the world knows as a
// [agents.Token]. It is interrupted when what it goes by is out of date.
type Generation struct {
	world  *Agents
	token  agents.Token
	seq    eventlog.Seq // of the token's entry
	ctx    context.Context
	cancel context.CancelCauseFunc

	cancelled time.Time // when it was interrupted; written before that is ctx's cause
}

// Begin begins a generation: its token, with the context that it goes by, is
// recorded. ctx is the parent of [Generation.Context]. What asks for an intent of
// the same req_id, or [Generation.End], ends it.
func (g *Agent) Begin(ctx context.Context, r agents.TokenRequest) (*Generation, error) {
	return g.begin(ctx, r, nil)
}

// begin is [Agent.Begin]; look, unless nil, sees the state that the token is
// issued at, and may refuse.
func (g *Agent) begin(ctx context.Context, r agents.TokenRequest, look func(*turn, *agents.TokenRequest) error) (*Generation, error) {
	r.AgentID = g.id
	gen := &Generation{world: g.world}
	gen.ctx, gen.cancel = context.WithCancelCause(ctx)
	err := g.world.do(ctx, func(t *turn) ([]agents.Record, error) {
		if look != nil {
			if err := look(t, &r); err != nil {
				return nil, err
			}
		}
		token, records, err := t.core.Issue(t.now, r)
		gen.token = token
		return records, err
	}, func(t *turn) {
		gen.seq = t.session.fold.Head().Seq
		g.world.running.add(gen)
	})
	if err != nil {
		gen.cancel(err)
		return nil, err
	}
	return gen, nil
}

// Token returns what the generation goes by, and its bounds.
func (g *Generation) Token() agents.Token { return g.token }

// Context is done when the generation is to stop, or its request has been
// answered. When it was interrupted the cause is an [*Interrupted].
func (g *Generation) Context() context.Context { return g.ctx }

// Answer records what the generation answered, so that a replay needs no
// model. It is an object, to which agent_id and req_id are added.
func (g *Generation) Answer(ctx context.Context, answer signal.Value) error {
	return g.world.do(ctx, func(t *turn) ([]agents.Record, error) {
		return t.core.Generated(g.token.AgentID, g.token.ReqID, answer)
	}, nil)
}

// End gives the generation up for a reason, which is recorded. With
// [agents.ReasonUser] its request is answered by that for ever. If it has ended
// already nothing happens.
func (g *Generation) End(ctx context.Context, reason string) error {
	return g.world.cancel(ctx, g.token.AgentID, g.token.ReqID, reason, g.seq)
}

// Cancel cancels what the agent has asked for under a req_id: a generation, or
// an intent that waits for its tick. It reports whether there was anything.
func (g *Agent) Cancel(ctx context.Context, reqID string) (found bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	w := g.world
	err = w.turn(func(t *turn) error {
		t.admit()
		waits, inLine := t.intake.Cancel(g.id, reqID)
		records, runs := t.core.Cancel(g.id, reqID, agents.ReasonUser)
		if inLine && !runs {
			records = t.core.Withdraw(g.id, reqID)
		}
		found = w.running.drop(g.id, reqID) || inLine || runs
		ticket, err := t.keep(records)
		if inLine {
			r := &agents.Rejection{
				Code: agents.Cancelled, Recovery: agents.Regenerate, AgentID: g.id, ReqID: reqID, Reason: agents.ReasonUser,
			}
			t.answer(waits.Ticket, agents.Outcome{Rejection: r}, ticket, err)
			t.count(waits.Intent)
		}
		return err
	})
	return found, err
}

func (a *Agents) cancel(ctx context.Context, id, reqID, reason string, seq eventlog.Seq) error {
	return a.do(ctx, func(t *turn) ([]agents.Record, error) {
		if !a.running.has(id, reqID, seq) {
			return nil, nil
		}
		records, _ := t.core.Cancel(id, reqID, reason)
		return records, nil
	}, nil)
}

// generations are those that run.
type generations struct {
	mu      sync.Mutex
	runs    map[[2]string][]*Generation // by agent and req_id, the newest last; guarded by mu
	drivers map[[2]string][]*driver     // likewise; guarded by mu
	streams streams
	closed  error // why none may run any more; guarded by mu
}

func newGenerations() generations {
	return generations{runs: map[[2]string][]*Generation{}, drivers: map[[2]string][]*driver{}, streams: newStreams()}
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

// has reports whether one runs and no other has taken its place.
func (r *generations) has(id, reqID string, seq eventlog.Seq) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.runs[[2]string{id, reqID}]
	return len(list) > 0 && list[len(list)-1].seq == seq
}

// end takes out those that began up to an entry, or all if it is 0.
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

// finish takes out those whose request has been answered.
func (r *generations) finish(id, reqID string) {
	for _, g := range r.end(id, reqID, 0) {
		g.cancel(context.Canceled)
	}
}

// close stops all of them, for good.
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

// interrupt stops the generations of a request that began up to an entry.
func (a *Agents) interrupt(last eventlog.Seq, c agents.Cancellation) {
	cfg := &a.session.engine.cfg
	if c.Reason != ReasonCompleted && c.Reason != ReasonFailed { // these have ended by themselves
		cfg.Metrics.Cancelled(a.session.Name(), c.Agent, CancelKindOf(c.Reason))
		cfg.Logger.LogAttrs(context.Background(), slog.LevelDebug, "generation cancelled", slog.String(WorldIDKey, a.session.Name()),
			slog.String(AgentIDKey, c.Agent), slog.String(ReqIDKey, c.ReqID), slog.String("reason", c.Reason))
	}
	for _, g := range a.running.end(c.Agent, c.ReqID, last) {
		g.cancelled = cfg.Now()
		g.cancel(&Interrupted{c})
	}
}

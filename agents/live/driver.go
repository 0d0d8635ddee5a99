package live

import (
	"context"
	"errors"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Driver is the seam between this package and package agents/generate: all that
// generate.Run needs to run a generator on behalf of an agent, and nothing that any
// other package needs. A program calls generate.Run instead.
//
// A Driver holds no state of its own. Its methods may be called from many goroutines.
type Driver struct{ agent *Agent }

// Driver returns the driver of the agent's generations.
func (g *Agent) Driver() Driver { return Driver{g} }

// Basis names the view that a prompt is made of, as the log numbers it.
type Basis struct {
	ViewSeq    uint64
	ViewDigest string
}

// Prompted is a generation together with the view that its prompt is made of.
type Prompted struct {
	Generation *Generation // nil if the request has an outcome
	View       view.View   // as the agent numbers it
	Basis      Basis
	Outcome    *agents.Outcome // of a request that was answered before; otherwise nil
}

// errAnswered says that a request has its answer and gets no token.
var errAnswered = errors.New("sajou: the request has its answer")

// Begin is [Agent.Begin] with the view that has been delivered to the agent by now.
// The view and the token are taken in one turn of the writer, so no entry comes
// between them.
func (d Driver) Begin(ctx context.Context, r agents.TokenRequest) (Prompted, error) {
	var p Prompted
	gen, err := d.agent.begin(ctx, r, func(t *turn, r *agents.TokenRequest) error {
		if o, ok := t.answered(r.AgentID, r.ReqID); ok {
			p.Outcome = &o
			return errAnswered
		}
		v, err := t.knownView(r.AgentID) // an unknown agent gets no token
		r.ContextSeq, r.ContextDigest, r.Prompted = v.ViewSeq, v.ContextDigest, true
		p.Basis = Basis{ViewSeq: v.ViewSeq, ViewDigest: v.ContextDigest}
		p.View = t.outwardView(v)
		return err
	})
	if p.Outcome != nil {
		return p, nil
	}
	p.Generation = gen
	return p, err
}

// Interruption returns why the world interrupted a generation, and the time of the
// wall clock at which it did. It returns nil if the world did not interrupt it: the
// context's parent may have ended, or may have been interrupted for another request.
func (d Driver) Interruption(g *Generation) (*InterruptedError, time.Time) {
	i, ok := errors.AsType[*InterruptedError](context.Cause(g.ctx))
	if !ok || i.Agent != g.token.AgentID || i.ReqID != g.token.ReqID {
		return nil, time.Time{}
	}
	return i, g.cancelled
}

// Overdue interrupts a generation whose deadline has passed. The deadline timer does
// the same, but it may fire late, and a generation must not answer in between.
func (d Driver) Overdue(ctx context.Context, g *Generation) {
	at := g.token.Deadline
	if g.ctx.Err() != nil || at <= 0 || g.world.clock.Now() < at {
		return
	}
	if err := g.world.turn(ctx, (*turn).due); err == nil {
		d.Settle(ctx, g)
	}
}

// Settle waits until an interruption that was decided has reached the generation's
// context. If the wait fails, Settle ends the context itself.
func (d Driver) Settle(ctx context.Context, g *Generation) {
	if err := g.world.settleStill(ctx); err != nil {
		g.cancel(err)
	}
}

// Keep records the answer of a generation, as [Generation.Answer] does. If final is
// set, the answer is recorded only while the generation holds its token; held reports
// whether it does.
func (d Driver) Keep(ctx context.Context, g *Generation, answer signal.Value, final bool) (held bool, err error) {
	err = g.world.do(ctx, func(t *turn) ([]signal.Record, error) {
		if held = t.holds(g); final && !held {
			return nil, nil
		}
		return t.core.Generated(g.token.AgentID, g.token.ReqID, answer)
	}, nil)
	return held, err
}

// holds reports whether a generation still holds its token.
func (t *turn) holds(g *Generation) bool {
	if !t.running.has(g.token.AgentID, g.token.ReqID, g.seq) {
		return false
	}
	for _, token := range t.core.Tokens(g.token.AgentID) {
		if token.ReqID == g.token.ReqID {
			return true
		}
	}
	return false
}

// Answered returns the final outcome of one of the agent's requests. It returns false
// if the request has none.
func (d Driver) Answered(ctx context.Context, reqID string) (o agents.Outcome, ok bool, err error) {
	err = d.agent.world.do(ctx, func(t *turn) ([]signal.Record, error) {
		o, ok = t.answered(d.agent.id, reqID)
		return nil, nil
	}, nil)
	return o, ok, err
}

// Config returns the configuration of the agents. The caller must not change it.
func (d Driver) Config() *Config { return &d.agent.world.cfg }

// World returns the name of the session, under which [AgentMetrics] counts.
func (d Driver) World() string { return d.agent.world.w.Name() }

// Now returns the session time.
func (d Driver) Now() time.Duration { return d.agent.world.Now() }

// MaxValue returns the size of the largest answer that an entry holds, in bytes.
func (d Driver) MaxValue() int {
	return min(d.agent.world.cfg.MaxEntry, world.MaxPayload) - maxRecordOverhead
}

// WaitDurable waits until everything that was decided so far is durable and delivered.
func (d Driver) WaitDurable(ctx context.Context) error { return d.agent.world.Settle(ctx) }

// Outlast returns a context that ends up to a second after ctx does, to record the end
// of a generation whose context has ended. The caller calls release when the record
// is kept.
func (d Driver) Outlast(ctx context.Context) (still context.Context, release func()) {
	return d.agent.world.outlast(ctx)
}

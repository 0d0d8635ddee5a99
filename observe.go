package sajou

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrLeft answers a reader of an agent that has left the world, or that was
// closed.
var ErrLeft = errors.New("sajou: the agent has left")

// Observation is what an agent is told at once: a patch against what it was
// told before.
type Observation struct {
	agents.Delta
	AgentID string
	At      time.Duration // session time at which it is told
	Number  uint64        // counts what the agent is told; also what a reader misses
}

// Agent is one reader of what an agent is told, and the agent's hand. Of one
// agent there may be many, and each is told everything. Its methods may be called
// from many goroutines, of which each observation goes to one.
type Agent struct {
	world *Agents
	id    string
	feed  *feed
}

// Register lets an agent take part, with a policy as [agents.CompileLens] reads
// it and the default permissions. One that is registered gets the new policy and
// a whole view by it.
func (a *Agents) Register(ctx context.Context, id string, policy signal.Value) (*Agent, error) {
	return a.RegisterAs(ctx, agents.Registration{AgentID: id, Policy: policy})
}

// RegisterAs is [Agents.Register] with permissions and a class.
func (a *Agents) RegisterAs(ctx context.Context, r agents.Registration) (*Agent, error) {
	var g *Agent
	err := a.do(ctx, func(t *turn) ([]agents.Record, error) {
		records, err := t.core.Register(r)
		if err == nil {
			// Before it is recorded, so that it is told of that.
			s, _ := t.core.Settings(r.AgentID)
			g = &Agent{a, r.AgentID, a.audience.join(r.AgentID, t.session.fold.Head().Seq, s)}
		}
		return records, err
	}, func(t *turn) { a.audience.limit(t.core, slices.Values([]string{r.AgentID})) })
	if err == nil {
		err = a.Settle(context.WithoutCancel(ctx)) // it has its view
	}
	if err != nil {
		if g != nil {
			g.Close()
		}
		return nil, err
	}
	return g, nil
}

// Agent returns a reader of an agent that is registered. It begins with the
// whole view that the agent has.
func (a *Agents) Agent(ctx context.Context, id string) (*Agent, error) {
	return a.reader(ctx, id, nil)
}

// Resume returns a reader that goes on behind what a client was told last: with
// what came since, if it is still at hand and has room, or else with a whole view. What
// it tells fits the client's view also if the agent was registered anew meanwhile; the
// view that a registration began may come twice.
func (a *Agents) Resume(ctx context.Context, id string, viewSeq uint64) (*Agent, error) {
	return a.reader(ctx, id, &viewSeq)
}

func (a *Agents) reader(ctx context.Context, id string, since *uint64) (*Agent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if since != nil {
		if err := a.Settle(ctx); err != nil {
			return nil, err // so that all that has been decided is at hand
		}
	}
	g := &Agent{world: a, id: id}
	err := a.turn(func(t *turn) error {
		s, ok := t.core.Settings(id)
		if !ok {
			return unknownAgent(id)
		}
		if since != nil {
			if g.feed = a.audience.resume(id, *since, s); g.feed != nil {
				return nil
			}
		}
		n := t.whole(id)
		g.feed = a.audience.join(id, n.seq, s)
		g.feed.replace(n)
		return nil
	})
	if err == nil {
		err = a.Settle(ctx) // the view is of the newest state
	}
	if err != nil {
		if g.feed != nil {
			g.Close()
		}
		return nil, err
	}
	return g, nil
}

// whole returns the whole view of an agent as it is.
func (t *turn) whole(id string) news {
	d, _ := t.core.Whole(id)
	return news{Delivery: d, seq: t.session.fold.Head().Seq}
}

// ID returns the agent's id.
func (g *Agent) ID() string { return g.id }

// Close ends this reader. The agent stays registered; see [Agent.Leave].
func (g *Agent) Close() { g.world.audience.part(g.feed) }

// Leave takes the agent out of the world: its generations are cancelled and its
// readers end. Its entity stays, and so do the answers that it was given.
func (g *Agent) Leave(ctx context.Context) error {
	err := g.world.do(ctx, func(t *turn) ([]agents.Record, error) { return t.core.Leave(g.id) }, nil)
	if err == nil {
		err = g.world.Settle(context.WithoutCancel(ctx)) // it is told of that
	}
	return err
}

// Submit is [Agents.Submit] of this agent.
func (g *Agent) Submit(ctx context.Context, in agents.Intent) (agents.Outcome, error) {
	in.AgentID = g.id
	return g.world.Submit(ctx, in)
}

// ViewSeq returns the view_seq of the last observation that was handed out.
func (g *Agent) ViewSeq() uint64 {
	f := g.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.viewSeq
}

// NextObservation returns what the agent is told next, once its time has come.
// Errors: those of ctx, [ErrLeft], [eventlog.ErrClosed], and [eventlog.ErrReadOnly] when
// it has been told everything and nothing more can be recorded.
//
// If the reader was too slow for its queue (max_queue_depth), what it gets next
// goes by the agent's backpressure_policy: with defer, what had room and then one
// whole view in the place of all that had not; with shed_oldest, one whole view in
// the place of all that waited; with drop_newest, what had room, and a whole view when
// something else happens. Whichever it is, what it has then is what it should have.
func (g *Agent) NextObservation(ctx context.Context) (Observation, error) {
	for {
		over := g.world.outbox.ended() // before it looks: what was told last comes first
		o, ok, next, err := g.poll(ctx)
		switch {
		case err != nil || ok:
			return o, err
		case over != nil && !next.timed:
			return Observation{}, over
		}
		if err := g.world.pause(ctx, next); err != nil {
			return Observation{}, err
		}
	}
}

// Poll is [Agent.NextObservation] for who does not wait: it returns false if the
// agent is told nothing now.
func (g *Agent) Poll(ctx context.Context) (o Observation, ok bool, err error) {
	o, ok, _, err = g.poll(ctx)
	return o, ok, err
}

// poll returns what is to be told now, or else what to wait for.
func (g *Agent) poll(ctx context.Context) (o Observation, ok bool, next nextUp, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return o, false, next, err
		}
		d, ok, next, err := g.feed.next(g.world.clock.now())
		if ok {
			o = Observation{d.Delta, g.id, d.At, d.Number}
			g.report(ctx, &o)
		}
		if ok || err != nil || !next.whole {
			return o, ok, next, err
		}
		if err := g.catchUp(ctx); err != nil {
			return o, false, next, err
		}
	}
}

// report tells metrics and log of what the agent is told.
func (g *Agent) report(ctx context.Context, o *Observation) {
	cfg, world := &g.world.session.engine.cfg, g.world.session.Name()
	after := max(g.world.clock.now()-o.At, 0)
	cfg.Metrics.Delivered(world, g.id, after)
	cfg.Metrics.ObservationsWaiting(world, g.id, g.feed.waits())
	if cfg.Logger.Enabled(ctx, slog.LevelDebug) {
		cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "observation", slog.String(WorldIDKey, world),
			slog.String(AgentIDKey, g.id), slog.Uint64(ViewSeqKey, o.ViewSeq), slog.Int("patches", len(o.Patches)), Latency(after))
	}
}

// catchUp gets a whole view for a reader that could not keep up.
func (g *Agent) catchUp(ctx context.Context) (err error) {
	defer func() { g.feed.release(err == nil) }()
	err = g.world.turn(func(t *turn) error {
		if _, ok := t.core.Settings(g.id); ok {
			g.feed.replace(t.whole(g.id))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.world.Settle(ctx) // if it has left meanwhile, it is told of that
}

// Observations iterates over what the agent is told, until ctx ends, which is
// no error, or something fails.
func (g *Agent) Observations(ctx context.Context) iter.Seq2[Observation, error] {
	return func(yield func(Observation, error) bool) {
		for {
			o, err := g.NextObservation(ctx)
			if err != nil && ctx.Err() != nil {
				return
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// NextAt returns when the next observation comes that is on its way: for
// sessions whose time does not run. A whole view in the place of what had no room
// is not on its way; [Agent.Poll] gets it.
func (g *Agent) NextAt() (at time.Duration, ok bool) { return g.feed.nextAt() }

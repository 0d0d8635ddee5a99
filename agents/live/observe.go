package live

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// Observation is one delta as it is delivered to an agent. Its ViewSeq is the
// agent's own: it counts the agent's deltas, from 0, and reveals nothing about
// effects that the agent is not sent.
type Observation struct {
	view.Delta
	AgentID string
	At      time.Duration // session time of the delivery
	Number  uint64        // counts the agent's deltas, those that a reader missed included
}

// Agent is one reader of an agent's observations, and submits on its behalf. An
// agent may have many readers; each gets all observations. The methods may be
// called from many goroutines; each observation goes to one of them.
type Agent struct {
	world   *Agents
	id      string
	queue   *observationQueue
	resumed bool
}

// Register registers an agent with a policy, as [view.CompilePolicy] reads it, and
// the default permissions. An agent that is registered already gets the new policy
// and a full view.
func (a *Agents) Register(ctx context.Context, id string, policy signal.Value) (*Agent, error) {
	return a.RegisterAs(ctx, agents.Registration{AgentID: id, Policy: policy})
}

// RegisterAs is [Agents.Register] with permissions and a class.
func (a *Agents) RegisterAs(ctx context.Context, r agents.Registration) (*Agent, error) {
	var g *Agent
	err := a.do(ctx, func(t *turn) ([]signal.Record, error) {
		records, err := t.core.Register(r)
		if err == nil {
			// Before the record is kept, so that the reader gets its delta.
			s, _ := t.core.Settings(r.AgentID)
			g = &Agent{world: a, id: r.AgentID, queue: a.subscribers.join(r.AgentID, t.right.Fold().Head().Seq, s)}
		}
		return records, err
	}, func(t *turn) { a.subscribers.limit(t.core, slices.Values([]string{r.AgentID})) })
	if err == nil {
		err = a.settleStill(ctx) // its first view is in the queue
	}
	if err != nil {
		if g != nil {
			g.Close()
		}
		return nil, err
	}
	return g, nil
}

// Agent returns a reader of a registered agent. It begins with the agent's full
// view.
func (a *Agents) Agent(ctx context.Context, id string) (*Agent, error) {
	return a.reader(ctx, id, nil)
}

// Resume returns a reader that continues after the observation with a ViewSeq, the
// last one that a client got: with the deltas since, if they are in memory and the
// queue has room, and otherwise with a full view; see [Agent.Resumed].
func (a *Agents) Resume(ctx context.Context, id string, viewSeq uint64) (*Agent, error) {
	return a.reader(ctx, id, &viewSeq)
}

func (a *Agents) reader(ctx context.Context, id string, since *uint64) (*Agent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if since != nil {
		if err := a.Settle(ctx); err != nil {
			return nil, err // so that the deltas of all decisions are in memory
		}
	}
	g := &Agent{world: a, id: id}
	err := a.turn(ctx, func(t *turn) error {
		s, ok := t.core.Settings(id)
		if !ok {
			return unknownAgent(id)
		}
		if since != nil {
			if g.queue = a.subscribers.resume(id, *since, s); g.queue != nil {
				g.resumed = true
				return nil
			}
		}
		n := t.whole(id)
		g.queue = a.subscribers.join(id, n.seq, s)
		g.queue.replace(n)
		return nil
	})
	if err == nil {
		err = a.Settle(ctx) // the view is of the newest state, which must be durable first
	}
	if err != nil {
		if g.queue != nil {
			g.Close()
		}
		return nil, err
	}
	return g, nil
}

// whole returns the present full view of an agent.
func (t *turn) whole(id string) delivery {
	d, _ := t.core.FullView(id)
	return delivery{outwardDelivery(d), t.right.Fold().Head().Seq}
}

// Resumed reports whether the reader continues after the observation that [Agents.Resume]
// named. Otherwise it began with a full view.
func (g *Agent) Resumed() bool { return g.resumed }

// ID returns the agent's id.
func (g *Agent) ID() string { return g.id }

// Close closes this reader. The agent stays registered; see [Agent.Leave].
func (g *Agent) Close() { g.world.subscribers.part(g.queue) }

// Leave removes the agent from the world: its generations are cancelled and its
// readers closed. Its entity and the outcomes of its requests stay.
func (g *Agent) Leave(ctx context.Context) error {
	err := g.world.do(ctx, func(t *turn) ([]signal.Record, error) { return t.core.Leave(g.id) }, nil)
	if err == nil {
		err = g.world.settleStill(ctx) // its readers are closed
	}
	return err
}

// Submit is [Agents.Submit] of this agent. The intent's ContextSeq is a ViewSeq of
// its observations.
func (g *Agent) Submit(ctx context.Context, in agents.Intent) (agents.Outcome, error) {
	in.AgentID = g.id
	return g.world.Submit(ctx, in)
}

// ViewSeq returns the ViewSeq of the last observation that was returned.
func (g *Agent) ViewSeq() uint64 {
	f := g.queue
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.viewSeq
}

// NextObservation returns the next observation, when it is due. Errors: those of
// ctx, [ErrLeft], [eventlog.ErrClosed], and [eventlog.ErrReadOnly] when all
// observations were returned and the log can no longer be written.
//
// If the reader was too slow for its queue (max_queue_depth), the agent's
// backpressure_policy decides what it gets next: with defer, the deltas that had
// room and then one full view instead of the others; with shed_oldest, one full
// view instead of all that waited; with drop_newest, the deltas that had room, and
// a full view after the next delta. In each case the reader ends up with the
// present view.
func (g *Agent) NextObservation(ctx context.Context) (Observation, error) {
	for {
		over := g.world.outbox.ended() // read before poll, so that the last deltas are returned first
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

// Poll is [Agent.NextObservation] without waiting: it returns false if no
// observation is due.
func (g *Agent) Poll(ctx context.Context) (o Observation, ok bool, err error) {
	o, ok, _, err = g.poll(ctx)
	return o, ok, err
}

// poll returns the observation that is due, or what to wait for.
func (g *Agent) poll(ctx context.Context) (o Observation, ok bool, next nextUp, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return o, false, next, err
		}
		d, ok, next, err := g.queue.next(g.world.clock.Now())
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

// report reports a delivered observation to the metrics and the log.
func (g *Agent) report(ctx context.Context, o *Observation) {
	cfg, world := &g.world.cfg, g.world.w.Name()
	after := max(g.world.clock.Now()-o.At, 0)
	if m := cfg.Metrics.Observations; m != nil {
		m.Delivered(world, g.id, after)
		m.ObservationsWaiting(world, g.id, g.queue.waits())
	}
	if cfg.Logger.Enabled(ctx, slog.LevelDebug) {
		cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "observation", slog.String(worldIDKey, world),
			slog.String(agentIDKey, g.id), slog.Uint64(viewSeqKey, o.ViewSeq), slog.Int("patches", len(o.Patches)), latency(after))
	}
}

// catchUp fetches a full view for a reader that was too slow. next has set held, so
// no other goroutine does the same.
func (g *Agent) catchUp(ctx context.Context) (err error) {
	defer func() { g.queue.release(err == nil) }()
	err = g.world.turn(ctx, func(t *turn) error {
		if _, ok := t.core.Settings(g.id); ok {
			g.queue.replace(t.whole(g.id))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.world.Settle(ctx) // if the agent has left meanwhile, this closes the reader
}

// Observations iterates over the observations. It ends without an error when ctx
// does, and after any other error.
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

// NextAt returns the time at which the next delta in flight is due, for sessions
// whose time does not run by itself. It does not count a full view for a slow
// reader, which [Agent.Poll] returns.
func (g *Agent) NextAt() (at time.Duration, ok bool) { return g.queue.nextAt() }

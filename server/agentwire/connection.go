package agentwire

import (
	"context"
	"errors"
	"log/slog"

	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/projection"
)

// connection is one connection of an agent.
type connection struct {
	link
	place
	world  *agentslive.Agents
	self   *agentslive.Agent // submits and begins; its queue is the first reader's
	resync chan struct{}     // holds one
	acks   window

	// These are guarded by link.mu.
	generations map[string]*generation // by req_id
	stopped     []string               // req_ids of the last generations that were stopped
	intents     int                    // that wait for their outcome
}

// connect begins a connection of an agent that the caller may act as. since is the
// view_seq of the last observation that the client has, nil if it has none.
func (r *AgentDoor) connect(ctx context.Context, p place, since *uint64, tr transport, unacknowledged int) (*connection, error) {
	ses, err := r.world(ctx, p.session)
	if err != nil {
		return nil, err
	}
	world := ses.Agents()
	var self *agentslive.Agent
	if since != nil {
		self, err = world.Resume(ctx, p.agent, *since)
	} else {
		self, err = world.Agent(ctx, p.agent)
	}
	if err != nil {
		return nil, absent(err)
	}
	c := &connection{
		place: p, world: world, self: self, resync: make(chan struct{}, 1), acks: newWindow(unacknowledged),
		generations: map[string]*generation{},
	}
	c.start(ctx, r, tr)
	return c, nil
}

// run serves the connection until it ends. since is that of connect. The end of stopping
// ends the connection.
func (c *connection) run(since *uint64, stopping <-chan struct{}) {
	defer c.self.Close()
	c.room.take(c)
	defer c.room.release(c)
	cfg := &c.room.cfg
	resumed := c.self.Resumed()
	c.send(welcome{
		Type: "welcome", Protocol: ProtocolVersion, Session: c.session, Agent: c.agent, Resumed: &resumed, Window: c.acks.size,
		HeartbeatMS: cfg.Heartbeat.Milliseconds(), MaxMessage: cfg.MaxMessage,
	})
	how := c.serve(agentSocket, func(m *incoming) { c.handle(m, c.send) },
		func() { c.room.suspect.note(c.ctx, c.place, cfg.Now()) }, func() { c.observe(since) }, stopping)
	cfg.Logger.LogAttrs(context.Background(), slog.LevelDebug, "an agent's connection has ended",
		slog.String("session", c.session), slog.String("agent", c.agent), slog.Int("code", how.code), slog.String("reason", how.reason))
}

// handle does what a message asks for. The answers go to reply, some of them later and
// from another goroutine.
func (c *connection) handle(m *incoming, reply func(any)) {
	switch m.Type {
	case "ack":
		if !c.acks.ack(*m.ViewSeq) {
			reply(fault{Type: "error", Code: faultViewSeq, Detail: "/view_seq: no observation of this number was sent on this connection"})
			c.room.suspect.note(c.ctx, c.place, c.room.cfg.Now())
		}
	case "resync":
		select {
		case c.resync <- struct{}{}:
		default: // one is due already
		}
	case "intent":
		c.intent(m, reply)
	case "begin":
		c.begin(m, reply)
	case "tokens":
		c.tokens(m, reply)
	case "end":
		c.finish(m, reply)
	case "cancel":
		reply(c.room.cancel(c.ctx, c.self, m.ReqID))
	}
}

// cancel cancels a request of an agent.
func (r *AgentDoor) cancel(ctx context.Context, self *agentslive.Agent, reqID string) any {
	found, err := self.Cancel(ctx, reqID)
	if err != nil {
		return unavailable(reqID)
	}
	return cancelled{Type: "cancelled", ReqID: reqID, Found: found}
}

// unavailable answers a request that was not decided, or whose decision is unknown.
func unavailable(reqID string) fault {
	return fault{
		Type: "error", Code: faultUnavailable, ReqID: reqID,
		Detail: "the request has no outcome: the store takes no entries, or the server stops; send it again with the same req_id",
	}
}

// intent submits an intent. It is queued behind all earlier ones before the next message
// is read; its outcome may come later.
func (c *connection) intent(m *incoming, reply func(any)) {
	in, err := m.intent(c.agent)
	if err != nil {
		reply(fault{Type: "error", Code: faultMessage, ReqID: m.ReqID, Detail: err.Error()})
		return
	}
	c.mu.Lock()
	full := c.intents >= c.room.cfg.MaxIntents
	if !full {
		c.intents++
	}
	g := c.generations[m.ReqID]
	c.mu.Unlock()
	if full {
		failure, _ := agents.ErrQueueFull.Failure()
		reply(rejected(&agents.Rejection{
			Code: agents.ErrQueueFull, Recovery: failure.Recovery, AgentID: c.agent, ReqID: m.ReqID,
			Reason: "too many intents of this connection wait for their outcome",
		}))
		return
	}
	over := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.intents--
	}
	if g != nil {
		g.complete(c.ctx)
	}
	wait, refused := c.room.submit(c.ctx, c.world, c.place, m.ReqID, agents.Submission{Intent: &in})
	if refused != nil {
		over()
		reply(refused)
		return
	}
	answer := func() {
		defer over()
		m := wait()
		if o, ok := m.(outcome); g != nil && (!ok || o.Outcome.Rejection != nil) {
			g.end(c.ctx, agentslive.ReasonGivenUp) // its answer is recorded, but no effect came of it
		}
		reply(m)
	}
	if !c.spawn(answer) {
		answer()
	}
}

// rejected returns the answer to a request that is refused.
func rejected(q *agents.Rejection) outcome {
	return outcome{Type: "outcome", ReqID: q.ReqID, Outcome: agents.Outcome{Rejection: q}}
}

// submit queues a submission, which is an intent of the agent of p, or a draft. It
// returns a function that waits for the answer, or the answer.
func (r *AgentDoor) submit(ctx context.Context, world *agentslive.Agents, p place, reqID string, s agents.Submission) (wait func() any, refused any) {
	if s.Intent != nil {
		if q := r.suspect.refusal(p, reqID, r.cfg.Now()); q != nil {
			return nil, rejected(q)
		}
		if latest, ok := world.LatestViewSeq(p.agent); ok && s.Intent.ContextSeq > latest {
			r.suspect.note(ctx, p, r.cfg.Now())
			failure, _ := agents.ErrInvalidIntent.Failure()
			return nil, rejected(&agents.Rejection{
				Code: agents.ErrInvalidIntent, Recovery: failure.Recovery, AgentID: p.agent, ReqID: reqID,
				Reason: "context_seq: no observation of this number was sent",
			})
		}
	}
	submitted, err := world.SubmitAsync(ctx, s)
	if err != nil {
		return nil, unavailable(reqID)
	}
	return func() any {
		o, err := submitted.Wait(ctx)
		rejection, refused := errors.AsType[*agents.Rejection](err)
		if err != nil && !refused {
			return unavailable(reqID)
		}
		if refused {
			o.Rejection = rejection
			if s.Intent != nil && o.Status != agents.Duplicate && counts(rejection) {
				r.suspect.note(ctx, p, r.cfg.Now())
			}
		}
		return outcome{Type: "outcome", ReqID: reqID, Outcome: o}
	}, nil
}

// observe sends observations until the connection ends. since is the view_seq of the
// observation that the client has, nil if it has none.
func (c *connection) observe(since *uint64) {
	reader := c.self
	defer func() { reader.Close() }()
	for {
		err := c.deliver(reader, since)
		if errors.Is(err, errResync) {
			reader.Close()
			since = nil
			reader, err = c.world.Agent(c.ctx, c.agent)
			if err != nil {
				reader = c.self
			}
		}
		switch {
		case c.ctx.Err() != nil:
			return
		case err != nil:
			c.end(endOf(err))
			return
		}
	}
}

// errResync says that the client wants its full view.
var errResync = errors.New("agentwire: resync")

// deliver sends the observations of one reader until the client wants its full view, or
// the reader or the connection ends.
func (c *connection) deliver(reader *agentslive.Agent, last *uint64) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.resync:
			cancel(errResync)
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel(nil)
		<-watched
	}()
	for {
		if err := c.acks.wait(ctx); err != nil {
			return context.Cause(ctx)
		}
		o, err := reader.NextObservation(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		frame := observationFrame(&o, last)
		last = &o.ViewSeq
		c.acks.sent(o.ViewSeq)
		select {
		case c.bulk <- frame:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// observationFrame encodes an observation. last is the view_seq of the one before it,
// nil if the client has none.
func observationFrame(o *agentslive.Observation, last *uint64) []byte {
	m := observation{
		Type: "observation", ViewSeq: o.ViewSeq, Patches: patchOf(o.Patches), ContextDigest: o.ContextDigest(),
		SchemaVersion: o.SchemaVersion, Full: o.IsFullView(), AtMS: projection.Millis(o.At),
	}
	if m.Full && last != nil && o.ViewSeq > *last {
		m.Missed = o.ViewSeq - *last - 1
	}
	return encode(m)
}

package sajou

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
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
			d, _ := t.core.Whole(r.AgentID)
			// Before it is recorded, so that it is told of that.
			g = &Agent{a, r.AgentID, a.audience.join(r.AgentID, d.Number)}
		}
		return records, err
	}, func(t *turn) { a.audience.limit(t.core) })
	if err != nil {
		if g != nil {
			g.Close()
		}
		return nil, err
	}
	a.session.engine.cfg.Metrics.Joined(a.session.Name(), r.AgentID)
	return g, nil
}

// Agent returns a reader of an agent that is registered. It begins with the
// whole view that the agent has.
func (a *Agents) Agent(ctx context.Context, id string) (*Agent, error) {
	return a.reader(ctx, id, nil)
}

// Resume returns a reader that goes on behind what a client was told last: with
// what came since, if it is still at hand, or else with a whole view.
func (a *Agents) Resume(ctx context.Context, id string, viewSeq uint64) (*Agent, error) {
	return a.reader(ctx, id, &viewSeq)
}

func (a *Agents) reader(ctx context.Context, id string, since *uint64) (*Agent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g := &Agent{world: a, id: id}
	if since != nil {
		if g.feed = a.audience.resume(id, *since); g.feed != nil {
			return g, nil
		}
	}
	err := a.turn(func(t *turn) error {
		d, ok := t.core.Whole(id)
		if !ok {
			return unknownAgent(id)
		}
		g.feed = a.audience.join(id, d.Number)
		g.feed.first = &d
		a.audience.limit(t.core)
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

// ID returns the agent's id.
func (g *Agent) ID() string { return g.id }

// Close ends this reader. The agent stays registered; see [Agent.Leave].
func (g *Agent) Close() { g.world.audience.part(g.feed) }

// Leave takes the agent out of the world: its generations are cancelled and its
// readers end. Its entity stays, and so do the answers that it was given.
func (g *Agent) Leave(ctx context.Context) error {
	return g.world.do(ctx, func(t *turn) ([]agents.Record, error) { return t.core.Leave(g.id) }, func(*turn) {
		g.world.audience.gone(g.id)
		t := g.world.session
		t.engine.cfg.Metrics.Left(t.Name(), g.id)
	})
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
// Errors: those of ctx, [ErrLeft], [eventlog.ErrClosed].
//
// If the reader was too slow for its queue (max_queue_depth), what it gets next
// goes by the agent's backpressure_policy: with defer, what had room and then one
// whole view in the place of all that had not; with shed_oldest, one whole view in
// the place of all that waited; with drop_newest, what had room, and a whole view when
// something else happens. Whichever it is, what it has then is what it should have.
func (g *Agent) NextObservation(ctx context.Context) (Observation, error) {
	for {
		o, next, err := g.poll(ctx)
		if err != nil || o != nil {
			return o.observation(g.id), err
		}
		if err := g.world.pause(ctx, next); err != nil {
			return Observation{}, err
		}
	}
}

// Poll is [Agent.NextObservation] for who does not wait: it returns false if the
// agent is told nothing now.
func (g *Agent) Poll(ctx context.Context) (o Observation, ok bool, err error) {
	d, _, err := g.poll(ctx)
	return d.observation(g.id), d != nil, err
}

// poll returns what is to be told now, or else what to wait for.
func (g *Agent) poll(ctx context.Context) (*delivery, nextUp, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, nextUp{}, err
		}
		d, next, err := g.feed.next(g.world.clock.now())
		switch {
		case err != nil:
			return nil, next, err
		case d != nil:
			g.report(ctx, d)
			return (*delivery)(d), next, nil
		case !next.whole:
			return nil, next, nil
		}
		if err := g.catchUp(ctx); err != nil {
			return nil, next, err
		}
	}
}

// delivery is a delivery that is told now; nil for none.
type delivery agents.Delivery

func (d *delivery) observation(agent string) Observation {
	if d == nil {
		return Observation{}
	}
	return Observation{d.Delta, agent, d.At, d.Number}
}

// report tells metrics and log of what the agent is told.
func (g *Agent) report(ctx context.Context, d *agents.Delivery) {
	cfg, world := &g.world.session.engine.cfg, g.world.session.Name()
	after := max(g.world.clock.now()-d.At, 0)
	cfg.Metrics.Delivered(world, g.id, after)
	cfg.Metrics.ObservationsWaiting(world, g.id, g.feed.waiting())
	if cfg.Logger.Enabled(ctx, slog.LevelDebug) {
		cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "observation", slog.String(WorldIDKey, world),
			slog.String(AgentIDKey, g.id), slog.Uint64(ViewSeqKey, d.Delta.ViewSeq), slog.Int("patches", len(d.Delta.Patches)), Latency(after))
	}
}

// pause returns when there may be something.
func (a *Agents) pause(ctx context.Context, next nextUp) error {
	var due chan struct{}
	if next.timed && a.clock.wall.Load() {
		due = make(chan struct{})
		d := min(max(next.at-a.clock.now(), 0), maxWake)
		stop := a.session.engine.cfg.AfterFunc(d, func() { close(due) })
		defer stop()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.session.engine.live.Done():
		return eventlog.ErrClosed
	case <-next.wake:
	case <-due:
	}
	return nil
}

// catchUp gets a whole view for a reader that could not keep up.
func (g *Agent) catchUp(ctx context.Context) error {
	err := g.world.turn(func(t *turn) error {
		d, ok := t.core.Whole(g.id)
		if !ok {
			return ErrLeft
		}
		g.feed.replace(&d)
		return nil
	})
	if err != nil {
		g.feed.release()
		return err
	}
	if err = g.world.Settle(ctx); err != nil {
		g.feed.replace(nil)
	}
	g.feed.release()
	return err
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
// sessions whose time does not run.
func (g *Agent) NextAt() (at time.Duration, ok bool) {
	f := g.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first != nil {
		return f.first.At, true
	}
	return f.queue.Next()
}

// feed is what waits for one reader.
type feed struct {
	agent string

	mu      sync.Mutex
	queue   agents.Queue[agents.Delivery] // guarded by mu
	first   *agents.Delivery              // a whole view, before everything in queue; guarded by mu
	passed  uint64                        // deliveries up to this number are told or in first; guarded by mu
	viewSeq uint64                        // of what was handed out last; guarded by mu
	behind  behind                        // guarded by mu
	held    bool                          // first is not durable yet; guarded by mu
	closed  bool                          // guarded by mu
	wake    chan struct{}                 // holds one; somebody should look again
}

// behind says what is with a reader for whose news there was no room.
type behind uint8

const (
	abreast behind = iota
	missing        // what comes is passed over until the reader has a whole view
	waiting        // it gets one when something else happens
	due            // it gets one now
)

// nextUp says what a reader for whom there is nothing yet has to wait for.
type nextUp struct {
	at    time.Duration
	timed bool // something is on its way, for that time
	whole bool // it is to get a whole view
	wake  <-chan struct{}
}

func (f *feed) next(now time.Duration) (*agents.Delivery, nextUp, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	up := nextUp{wake: f.wake}
	if f.closed {
		f.signal() // for whoever else waits
		return nil, up, ErrLeft
	}
	if f.held {
		return nil, up, nil
	}
	if d := f.first; d != nil {
		if d.At > now {
			up.at, up.timed = d.At, true
			return nil, up, nil
		}
		f.first = nil
		return f.handOut(*d), up, nil
	}
	for {
		d, ok := f.queue.Get(now)
		if !ok {
			break
		}
		if d.Number > f.passed {
			return f.handOut(d), up, nil
		}
	}
	if up.at, up.timed = f.queue.Next(); !up.timed && (f.behind == missing || f.behind == due) {
		f.held, up.whole = true, true
	}
	return nil, up, nil
}

// handOut notes what the reader has now. Called with mu held.
func (f *feed) handOut(d agents.Delivery) *agents.Delivery {
	f.passed, f.viewSeq = max(f.passed, d.Number), d.Delta.ViewSeq
	f.signal()
	return &d
}

// signal wakes one who waits. Called with mu held.
func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// put adds a delivery, or notes that there is no room. It returns what waits
// then, and how many are lost in what way.
func (f *feed) put(d agents.Delivery) (waits, lost int, fate DeltaFate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case d.Number <= f.passed:
		return f.queue.Len(), 0, 0
	case f.behind == waiting && f.queue.Len() == 0:
		f.behind = due
		f.signal()
		return 0, 1, DeltaReplaced
	case f.behind != abreast:
		return f.queue.Len(), 1, DeltaReplaced // it will be in the whole view
	}
	switch verdict, _, _ := f.queue.Put(d.At, d); verdict {
	case agents.Queued:
	case agents.Shed:
		lost, fate = f.queue.Len()+1, DeltaShed
		f.queue.Clear() // the rest is of no use without what is gone
		f.behind = missing
	case agents.Deferred:
		lost, fate = 1, DeltaDeferred
		f.behind = missing
	case agents.Dropped:
		lost, fate = 1, DeltaDropped
		f.behind = waiting
	}
	f.signal()
	return f.queue.Len(), lost, fate
}

// waiting returns how many deliveries wait.
func (f *feed) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue.Len()
}

// replace puts a whole view before everything, or takes it back. Until release
// it is held.
func (f *feed) replace(d *agents.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first, f.behind = d, missing
	if d != nil {
		f.passed, f.behind = d.Number, abreast
	}
}

func (f *feed) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = false
	f.signal()
}

func (f *feed) limit(depth int, pressure agents.Backpressure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue.Depth, f.queue.Pressure = depth, pressure
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.queue.Clear()
	f.first = nil
	f.signal()
}

// roll is who listens.
type roll struct {
	mu     sync.Mutex
	places map[string]*place // guarded by mu
}

// place is one agent's readers, and what they were told last.
type place struct {
	feeds  []*feed
	recent []agents.Delivery // handed out, the newest last
	bytes  int               // of recent, about
}

// What is kept of an agent for those who resume.
const (
	maxRecent      = 64
	maxRecentBytes = 64 << 10
)

func newRoll() roll { return roll{places: map[string]*place{}} }

func (r *roll) place(id string) *place {
	p, ok := r.places[id]
	if !ok {
		p = &place{}
		r.places[id] = p
	}
	return p
}

// join adds a reader that has been told everything up to a number.
func (r *roll) join(id string, passed uint64) *feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &feed{agent: id, passed: passed, wake: make(chan struct{}, 1)}
	p := r.place(id)
	p.feeds = append(p.feeds, f)
	return f
}

// resume adds a reader behind what has the view_seq, if that is at hand.
func (r *roll) resume(id string, viewSeq uint64) *feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.places[id]
	if !ok {
		return nil
	}
	for i := len(p.recent) - 1; i >= 0; i-- {
		if p.recent[i].Delta.ViewSeq != viewSeq {
			continue
		}
		f := &feed{agent: id, passed: p.recent[i].Number, viewSeq: viewSeq, wake: make(chan struct{}, 1)}
		if len(p.feeds) > 0 {
			f.queue.Depth, f.queue.Pressure = p.feeds[0].bounds()
		}
		for _, d := range p.recent[i+1:] {
			f.put(d)
		}
		p.feeds = append(p.feeds, f)
		return f
	}
	return nil
}

func (f *feed) bounds() (int, agents.Backpressure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue.Depth, f.queue.Pressure
}

// tell hands a delivery to the agent's readers.
func (r *roll) tell(world string, d agents.Delivery, metrics Metrics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.place(d.Agent)
	for _, f := range p.feeds {
		waits, lost, fate := f.put(d)
		if lost > 0 {
			metrics.Undelivered(world, d.Agent, fate, lost)
		}
		metrics.ObservationsWaiting(world, d.Agent, waits)
	}
	p.recent = append(p.recent, d)
	p.bytes += sizeOf(d.Delta)
	for len(p.recent) > 1 && (len(p.recent) > maxRecent || p.bytes > maxRecentBytes) {
		p.bytes -= sizeOf(p.recent[0].Delta)
		p.recent[0] = agents.Delivery{}
		p.recent = p.recent[1:]
	}
}

func sizeOf(d agents.Delta) int {
	n := 128
	for _, op := range d.Patches {
		n += len(op.Op) + len(op.Path) + len(op.Value) + 32
	}
	return n
}

// part ends one reader.
func (r *roll) part(f *feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.close()
	p, ok := r.places[f.agent]
	if !ok {
		return
	}
	for i := range p.feeds {
		if p.feeds[i] == f {
			p.feeds = append(p.feeds[:i:i], p.feeds[i+1:]...)
			break
		}
	}
}

// gone ends all readers of an agent.
func (r *roll) gone(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.places[id]; ok {
		for _, f := range p.feeds {
			f.close()
		}
		delete(r.places, id)
	}
}

// limit gives every reader the bounds that its agent's settings say.
func (r *roll) limit(core *agents.Core) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.places {
		s, ok := core.Settings(id)
		if !ok {
			continue
		}
		for _, f := range p.feeds {
			f.limit(s.QueueDepth, s.Pressure)
		}
	}
}

// wake has every reader look again what time it is.
func (r *roll) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.places {
		for _, f := range p.feeds {
			f.mu.Lock()
			f.signal()
			f.mu.Unlock()
		}
	}
}

// outbox holds what came of entries until they are durable.
type outbox struct {
	mu     sync.Mutex
	items  []told        // guarded by mu
	last   eventlog.Seq  // of the newest item ever put; guarded by mu
	told   eventlog.Seq  // everything up to it has been told; guarded by mu
	err    error         // nothing more will be; guarded by mu
	change chan struct{} // closed and made anew when one of these changes; guarded by mu
	filled chan struct{} // holds one
}

// told is what came of an entry.
type told struct {
	seq eventlog.Seq
	out agents.Applied
}

func newOutbox() outbox {
	return outbox{change: make(chan struct{}), filled: make(chan struct{}, 1)}
}

// put takes what came of an entry, see worldState.
func (b *outbox) put(e *eventlog.Entry, out agents.Applied) {
	if len(out.Deliveries) == 0 && len(out.Cancellations) == 0 {
		return
	}
	b.mu.Lock()
	b.items, b.last = append(b.items, told{e.Seq, out}), e.Seq
	b.mu.Unlock()
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

func (b *outbox) take() []told {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}

// note says how far it has been told, or why it will not be.
func (b *outbox) note(seq eventlog.Seq, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told, b.err = max(b.told, seq), err
	close(b.change)
	b.change = make(chan struct{})
}

// settled reports whether everything up to an item has been told; if not,
// change says when to ask again.
func (b *outbox) settled(seq eventlog.Seq) (ok bool, change <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told >= seq, b.change, b.err
}

func (b *outbox) newest() eventlog.Seq {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// dispatch tells what came of entries, in their order, once they are durable.
func (a *Agents) dispatch(ctx context.Context) {
	metrics := a.session.engine.cfg.Metrics
	for {
		select {
		case <-ctx.Done():
			a.outbox.note(0, eventlog.ErrClosed)
			return
		case <-a.outbox.filled:
		}
		for _, item := range a.outbox.take() {
			if err := a.session.log.WaitDurable(ctx, item.seq); err != nil {
				a.outbox.note(0, err) // what is not durable is never told
				return
			}
			for _, c := range item.out.Cancellations {
				a.interrupt(item.seq, c)
			}
			if e := item.out.Effect; e != nil {
				metrics.Reached(a.session.Name(), e.GlobalSeq)
			}
			for _, d := range item.out.Deliveries {
				a.audience.tell(a.session.Name(), d, metrics)
			}
			a.outbox.note(item.seq, nil)
		}
	}
}

// Settle waits until everything that has been decided is durable, and told to
// those whom it concerns.
func (a *Agents) Settle(ctx context.Context) error {
	s := a.session
	s.catchUp()
	s.mu.Lock()
	head, last := s.fold.Head().Seq, a.outbox.newest()
	s.mu.Unlock()
	if err := s.log.WaitDurable(ctx, head); err != nil {
		return err
	}
	for {
		ok, change, err := a.outbox.settled(last)
		if ok || err != nil {
			return err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Package live runs the agents of a session: it submits what they ask for to the
// deciding core of package agents, records the decisions, delivers observations, and
// interrupts and times out generations.
//
// # Order
//
// A decision runs in a turn of the session's writer, against the newest state, and
// its records are one batch or several. An entry has an effect outside only once it
// is durable: the writer's observer collects the outcome of each entry while the writer
// folds it, and one goroutine, the dispatcher, waits for the disk and then hands
// deliveries to subscribers and cancellations to generations, in the order of the log.
//
// # Locks
//
// The lock of the writer's fold guards the core and what stands beside it (queue,
// waiters, timer, known views); it is held in a turn and in Writer.Look. Outbox,
// subscribers, observation queues, submission queue, generations and breakers have a
// lock each. They are taken inside the writer's lock or without it, and never the
// other way round. The order among them is subscribers, then one observation queue,
// then its broadcast; the others do not nest. None is held while a goroutine waits.
//
// The language models behind generations are the business of package
// agents/generate. This package holds the tokens of what runs, which is why it knows
// that a generation was cancelled before its generator does.
//
// docs/glossary.md has the nouns of all packages.
package live

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Agents is the world that the agents of one session share, on a running log: it
// decides what they submit, records the decisions, and delivers observations to
// them. Its methods may be called from many goroutines.
//
// Decisions are made one after the other, in rounds of the log and against the
// newest state; no decision waits for the disk. Observations and cancellations are
// sent once they are durable. A slow agent does not delay the others.
//
// The rules of the agents (latencies, quotas, cooldowns, deadlines) use session
// time. In a session of [session.TimeWall] it runs with the wall clock, in others
// it passes by [Agents.Advance] or [Agents.Tick]. The time of each decision is the
// time of its entry, so a replay decides nothing and reads no clock.
type Agents struct {
	w     *writer.Writer
	clock *writer.SessionClock // the writer's
	cfg   Config               // immutable

	core    *agents.Core // of the writer's fold; guarded by its lock: used in turns and in Look
	answers keyedAnswers // used in turns only

	legacyMove atomic.Bool // a move by the deprecated member was logged

	drafts  session.Drafts     // used in turns only
	intake  agents.Intake      // guarded as core is
	waiting map[uint64]waiters // submissions in the intake, by ticket; guarded as core is
	timer   deadlineTimer      // guarded as core is
	known   knownViews         // guarded as core is

	inbox submissionQueue // submissions that no turn has taken yet

	outbox      outbox
	subscribers subscribers
	running     generations
	breakers    breakers
	moved       broadcast // sent when session time has run ahead of the wall clock
}

// Config holds what the agents of a session depend on. All fields but Migrate must
// be set.
type Config struct {
	Now       func() time.Time // the wall clock
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	Logger    *slog.Logger
	Metrics   AgentMetrics // any of its fields may be nil
	MaxEntry  int          // of the log, in bytes

	// Migrate converts an intent of another schema_version to the present one. Nil
	// leaves it as it is.
	Migrate func(agents.Intent) (agents.Intent, error)

	// RecordPrompts records the text of each prompt of a generation.
	RecordPrompts bool

	// DeliveredAt returns the view that had been delivered to an agent at an entry, from the
	// log.
	DeliveredAt func(ctx context.Context, agent string, seq eventlog.Seq) (*query.DeliveredView, error)
}

// New returns the agents of a session. It is called once for each writer whose
// projections have a world.
func New(w *writer.Writer, cfg Config) *Agents {
	a := &Agents{
		w: w, clock: w.Clock(), cfg: cfg, waiting: map[uint64]waiters{}, known: knownViews{},
		outbox: newOutbox(), subscribers: newSubscribers(), running: newGenerations(), breakers: newBreakers(),
	}
	a.answers.writer = w
	w.KeepCurrent() // a signal lets time pass, which may cancel generations; and the fold holds the core
	w.Look(func(f *projection.Fold) {
		a.core = session.WorldOf(f) // the caller has checked that there is a world
		a.core.Bind(w.Name(), &a.answers)
		a.core.Limit(max(cfg.MaxEntry-maxEffectOverhead, 1))
		session.ObserveWorld(f, a.onApplied)
	})
	metrics := cfg.Metrics.Worlds
	if metrics != nil {
		metrics.WorldOpened(w.Name())
	}
	closed := func() {
		if metrics != nil {
			metrics.WorldClosed(w.Name())
		}
	}
	dispatching := w.Go(func(ctx context.Context) {
		a.dispatch(ctx)
		<-ctx.Done() // the world stays open for readers when the log can no longer be written
		closed()
	})
	if !dispatching {
		a.stop(eventlog.ErrClosed)
		closed()
		return a
	}
	// Arms the deadline timer, also for what is due already.
	_ = a.turn(w.Context(), func(t *turn) error {
		if metrics == nil {
			return nil
		}
		for id := range t.core.Agents() {
			metrics.AgentJoined(w.Name(), id)
		}
		metrics.WorldReached(w.Name(), t.core.Seq())
		return nil
	})
	return a
}

// turn is the exclusive right to decide about the world, see
// [writer.Writer.Decide]. It is valid during the call of the function that got it.
type turn struct {
	*Agents
	right *writer.Turn
	now   time.Duration
	last  bool // what the turn kept is not folded, and the turn uses the state no more
}

func (a *Agents) turn(ctx context.Context, f func(*turn) error) error {
	return a.w.Decide(ctx, func(right *writer.Turn) error {
		t := &turn{Agents: a, right: right, now: right.Now()}
		a.answers.begin(right)
		defer t.end()
		return f(t)
	})
}

// end arms the deadline timer, when the state is that behind the turn.
func (t *turn) end() {
	if !t.last {
		t.arm()
		return
	}
	a := t.Agents
	t.right.Then(func() { a.w.Look(func(*projection.Fold) { a.arm() }) })
}

// keep records decided records, all or none, and folds them: at once, or with last set
// while the disk works, and then the turn must not use the state again. A record that is the
// final outcome of a request ends a batch, and the batch has the key of the
// request: this is how the log itself remembers outcomes. The log syncs the batches
// of a turn together.
func (t *turn) keep(records []signal.Record, last bool) (*eventlog.Ticket, error) {
	if err := t.answers.err; err != nil {
		return nil, err // the lookup failed, so nothing may be decided
	}
	if err := t.w.Err(); err != nil && len(records) > 0 {
		return nil, err
	}
	for _, r := range records { // all sizes are checked before the first batch is kept
		if size := len(r.Value) + maxRecordOverhead; size > t.cfg.MaxEntry {
			return nil, fmt.Errorf("%w: a record of the agents' world takes %d bytes, at most %d are allowed",
				eventlog.ErrTooLarge, size, t.cfg.MaxEntry)
		}
	}
	var ticket *eventlog.Ticket
	for len(records) > 0 {
		n, size, key := 0, 0, ""
		for n < len(records) && key == "" && (n == 0 || size+len(records[n].Value) <= maxBatchSize) && n < maxBatchRecords {
			size += len(records[n].Value)
			if agent, reqID, _, ok := agents.FinalOutcomeOf(records[n]); ok {
				key = intentKey(agent, reqID)
			}
			n++
		}
		var err error
		if ticket, err = t.batch(records[:n], key, last && n == len(records)); err != nil {
			return nil, err
		}
		records = records[n:]
	}
	return ticket, nil
}

// Bounds of batches.
const (
	// maxRecordOverhead is what an entry takes besides the value of its record:
	// its word, the request's key, and what the log adds.
	maxRecordOverhead = 1024
	// maxEffectOverhead is what an effect's entry takes besides the payload: ids
	// and versions of [world.MaxID] bytes too.
	maxEffectOverhead = maxRecordOverhead + 8*world.MaxID
	// Bounds of one batch, well within those of the log.
	maxBatchSize    = 1 << 20
	maxBatchRecords = 1 << 12
)

// batch records one batch. Without records it records a mark that time has passed.
func (t *turn) batch(records []signal.Record, key string, last bool) (*eventlog.Ticket, error) {
	c := &t.drafts
	c.Reset()
	if len(records) == 0 {
		c.Tick(t.now)
	}
	for _, r := range records {
		c.Record(eventlog.KindEffect, t.now, r.Word, r.Value)
	}
	ticket, err := t.right.Keep(writer.Proposal{Drafts: c.List(), Key: key, Fresh: t.answers.absent(key), Last: last})
	if err != nil {
		return nil, err
	}
	t.last = last
	for i := range records {
		if agent, reqID, answer, ok := agents.FinalOutcomeOf(records[i]); ok {
			t.answers.note(ticket.First()-1, agent, reqID, answer)
			if records[i].Word != agents.WordCancel && answer.Code != agents.ErrTimeout { // their generations are interrupted when the entry is durable
				t.running.finish(agent, reqID)
			}
		}
	}
	return ticket, nil
}

// Configure sets the configuration of the world, see [agents.ParseConfig].
func (a *Agents) Configure(ctx context.Context, config signal.Value) error {
	return a.do(ctx, func(t *turn) ([]signal.Record, error) { return t.core.Configure(config) }, func(t *turn) {
		a.subscribers.limit(t.core, t.core.Agents())
		t.drain() // submissions need no longer wait for ticks
	})
}

// Begin sets the initial state of the world, see [world.ParseWorld]. It is refused
// once there has been an effect or an agent, and if a relation has a member that the
// world does not keep, see [world.CheckRelations].
func (a *Agents) Begin(ctx context.Context, world signal.Value) error {
	return a.do(ctx, func(t *turn) ([]signal.Record, error) { return t.core.Begin(world) }, nil)
}

// do records the decision of decide and then calls after in the same turn.
func (a *Agents) do(ctx context.Context, decide func(*turn) ([]signal.Record, error), after func(*turn)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return a.turn(ctx, func(t *turn) error {
		records, err := decide(t)
		if err == nil {
			_, err = t.keep(records, false)
		}
		if err == nil && after != nil {
			after(t)
		}
		return err
	})
}

// stop ends the generations and readers, because the engine closes or the log can
// no longer be written.
func (a *Agents) stop(err error) {
	a.w.Look(func(*projection.Fold) { a.disarm() })
	a.outbox.end(err)
	a.running.close(err)
}

// View returns the newest view of an agent, deltas in flight included. Its ViewSeq
// is the agent's own, see [Observation].
func (a *Agents) View(ctx context.Context, id string) (view.View, error) {
	var v view.View
	var ok bool
	var head eventlog.Seq
	a.w.Look(func(f *projection.Fold) {
		v, ok = a.core.View(id)
		v.ViewSeq = a.core.Number(id, v.ViewSeq)
		head = f.Head().Seq
	})
	if !ok {
		return view.View{}, unknownAgent(id)
	}
	if err := a.w.WaitDurable(ctx, head); err != nil {
		return view.View{}, err
	}
	return v, nil
}

// LatestViewSeq returns the ViewSeq of the newest observation that was delivered to
// an agent by now, to which an intent's ContextSeq is compared. It returns false if
// no agent of this id is registered.
func (a *Agents) LatestViewSeq(id string) (seq uint64, ok bool) {
	a.w.Look(func(*projection.Fold) {
		now := a.clock.Now()
		if _, ok = a.core.Settings(id); ok {
			seq = a.core.Number(id, a.core.LatestViewSeq(now, id))
		}
	})
	return seq, ok
}

func unknownAgent(id string) error {
	return &agents.Rejection{Code: agents.ErrUnknownAgent, Recovery: agents.Abort, AgentID: id, Reason: fmt.Sprintf("agent %q is not registered", id)}
}

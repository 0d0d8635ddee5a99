package sajou

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// Agents is the world that the agents of one session share, live: it decides
// what they ask for, records what it decides, and tells each of them what it may
// know of that. Its methods may be called from many goroutines.
//
// Decisions are made one after the other, in rounds of the log, against the
// newest state; the disk is waited for outside. What is told, observations and
// cancellations, is told once it is durable. A slow agent delays nobody.
//
// Session time is what the agents' rules go by: latencies, quotas, cooldowns,
// deadlines. In a session of [TimeWall] it runs with the wall's clock, in others
// it passes by [Agents.Advance] or [Agents.Tick]. The time of each decision is
// the time of its entry, so a replay decides nothing and asks no clock.
type Agents struct {
	session *Session
	clock   *sessionClock // the session's

	world   *worldState      // of the session's fold; guarded by session.mu
	answers keyedAnswers     // likewise
	intake  agents.Intake    // likewise
	waiting map[uint64]asked // what waits in the intake, by ticket; likewise
	alarm   alarm            // likewise

	inbox inbox // what nobody has looked at yet

	outbox   outbox
	audience roll
	running  generations
}

// asked are the calls that wait for one answer: the first asked, the others
// asked the same.
type asked []*call

// call is a submission and who waits for its outcome.
type call struct {
	sub     agents.Submission
	began   time.Time
	outcome agents.Outcome
	ticket  *eventlog.Ticket // what records it; nil if nothing does
	took    IntentTiming     // but for the total, and the wait for the disk
	err     error
	done    chan struct{} // closed when all of that is known
}

func (c *call) resolve(o agents.Outcome, t *eventlog.Ticket, err error) {
	c.outcome, c.ticket, c.err = o, t, err
	close(c.done)
}

// inbox holds calls until somebody's turn comes.
type inbox struct {
	mu    sync.Mutex
	calls []*call // guarded by mu
}

func (b *inbox) put(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
}

func (b *inbox) take() []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

// withdraw takes out a call that nobody has looked at.
func (b *inbox) withdraw(c *call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.calls {
		if b.calls[i] == c {
			b.calls = append(b.calls[:i], b.calls[i+1:]...)
			return true
		}
	}
	return false
}

// Agents returns the session's world of agents.
func (s *Session) Agents() *Agents {
	s.agentsOnce.Do(func() { s.agents = newAgents(s) })
	return s.agents
}

func newAgents(s *Session) *Agents {
	a := &Agents{
		session: s, clock: &s.clock, waiting: map[uint64]asked{},
		outbox: newOutbox(), audience: newRoll(), running: newGenerations(),
	}
	s.mu.Lock()
	a.world, _ = s.fold.State(ProjectionWorld).(*worldState) // Begin has looked
	a.answers.log = s.log
	a.world.core.Bind(s.Name(), &a.answers)
	a.world.tell = a.outbox.put
	s.mu.Unlock()
	s.engine.employ(a)
	metrics := s.engine.cfg.Metrics
	metrics.Opened(s.Name())
	// The clock, and whatever is due already.
	_ = a.turn(func(t *turn) error {
		for id := range t.core.Agents() {
			metrics.Joined(s.Name(), id)
		}
		metrics.Reached(s.Name(), t.core.Seq())
		return nil
	})
	return a
}

// turn is the right to decide about the world, see [Session.decide].
type turn struct {
	*Agents
	round *eventlog.Round
	core  *agents.Core
	now   time.Duration
}

func (a *Agents) turn(f func(*turn) error) error {
	return a.session.decide(func(round *eventlog.Round) error {
		t := &turn{a, round, a.world.core, a.clock.now()}
		a.answers.begin(round)
		err := f(t)
		t.arm()
		return cmp.Or(err, a.answers.err)
	})
}

// keep records what was decided, all of it or nothing, and folds it. A record
// that answers a request ends a batch, which has the request's key: so the log itself
// is what remembers answers.
func (t *turn) keep(records []agents.Record) (*eventlog.Ticket, error) {
	s := t.session
	for _, r := range records { // all are looked at before the first is staged
		if size := len(r.Value) + maxRecordOverhead; size > s.engine.maxEntry() {
			return nil, fmt.Errorf("%w: a record of the agents' world takes %d bytes, at most %d are allowed",
				eventlog.ErrTooLarge, size, s.engine.maxEntry())
		}
	}
	var last *eventlog.Ticket
	for len(records) > 0 {
		n, key := len(records), ""
		for i := range records {
			if agent, reqID, _, ok := records[i].Answer(); ok {
				n, key = i+1, intentKey(agent, reqID)
				break
			}
		}
		ticket, err := t.batch(records[:n], key)
		if err != nil {
			return nil, err
		}
		last, records = ticket, records[n:]
	}
	return last, nil
}

// maxRecordOverhead is what an entry takes besides the value of its record: its
// word, the request's key, and what the log adds.
const maxRecordOverhead = 1024

// batch keeps records as one batch. Without any it keeps a mark that time has
// passed.
func (t *turn) batch(records []agents.Record, key string) (*eventlog.Ticket, error) {
	s := t.session
	p := s.openAt(t.now)
	if len(records) == 0 {
		s.scratch.data = appendTick(s.scratch.data)
		s.scratch.add(eventlog.KindSession, p.at)
	}
	if p.rules {
		if err := s.prompter(&p).effects(records); err != nil {
			return nil, err
		}
	} else {
		for _, r := range records {
			s.scratch.data = appendWord(s.scratch.data, r.Word, r.Value)
			s.scratch.add(eventlog.KindEffect, p.at)
		}
	}
	ticket, err := s.keep(t.round, p, key, t.answers.absent(key))
	if err != nil {
		return nil, err
	}
	for i := range records {
		if agent, reqID, answer, ok := records[i].Answer(); ok {
			t.answers.note(agent, reqID, answer)
			if records[i].Word != agents.WordCancel && answer.Code != agents.Timeout { // those are told
				t.running.finish(agent, reqID)
			}
		}
	}
	return ticket, nil
}

// alarm rings when time alone would change something.
type alarm struct {
	at   time.Duration
	set  bool
	stop func() bool
}

// arm sets the alarm for what is due next. Called in a turn.
func (t *turn) arm() {
	al := &t.alarm
	at, ok := t.core.Next()
	if al.set && ok && al.at == at {
		return
	}
	t.disarm()
	if ok && t.clock.wall.Load() && t.session.engine.live.Err() == nil {
		wait := min(max(at-t.clock.now(), 0), maxWake) // the wall's clock may be set meanwhile
		al.at, al.set = at, true
		al.stop = t.session.engine.cfg.AfterFunc(wait, t.ring)
	}
}

// disarm takes the alarm back. Called in a turn, or at the end.
func (a *Agents) disarm() {
	if a.alarm.set {
		a.alarm.stop()
	}
	a.alarm = alarm{}
}

func (a *Agents) ring() {
	err := a.turn(func(t *turn) error {
		t.alarm.set = false
		return t.due()
	})
	if err != nil && !errors.Is(err, eventlog.ErrClosed) {
		a.session.engine.cfg.Logger.Error("the agents' time stands still",
			slog.String(WorldIDKey, a.session.Name()), slog.Any("err", err))
	}
}

// due records what time alone has brought about: deadlines that have passed,
// each with the answer of its request, and for interruptions that were put off a
// mark that time has come so far, since they follow from that.
func (t *turn) due() error {
	if over := t.core.Expire(t.now); len(over) > 0 {
		if _, err := t.keep(over); err != nil {
			return err
		}
	}
	if !t.core.Due(t.now) {
		return nil
	}
	_, err := t.batch(nil, "")
	return err
}

// Advance lets session time pass up to an instant, in a session whose time does
// not run by itself. It returns once what has come of that is durable and told.
func (a *Agents) Advance(ctx context.Context, to time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.clock.wall.Load() {
		return fmt.Errorf("%w: the time of session %q runs by itself", ErrTime, a.session.Name())
	}
	a.clock.reach(to)
	if err := a.turn((*turn).due); err != nil {
		return err
	}
	if err := a.Settle(ctx); err != nil {
		return err
	}
	a.audience.wake()
	return nil
}

// Next returns when something happens next by itself: a deadline, or an
// interruption that was put off. It is for sessions whose time does not run.
func (a *Agents) Next() (at time.Duration, ok bool) {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.world.core.Next()
}

// Now returns the session time that it is for the agents.
func (a *Agents) Now() time.Duration { return a.clock.now() }

// Configure brings a configuration of the world into force, see
// [agents.ParseConfig].
func (a *Agents) Configure(ctx context.Context, config signal.Value) error {
	return a.do(ctx, func(t *turn) ([]agents.Record, error) { return t.core.Configure(config) }, func(t *turn) {
		a.audience.limit(t.core)
	})
}

// Begin gives the world its first state, see [agents.ParseWorld]. It is refused
// once there has been an effect or an agent.
func (a *Agents) Begin(ctx context.Context, world signal.Value) error {
	return a.do(ctx, func(t *turn) ([]agents.Record, error) { return t.core.Begin(world) }, nil)
}

// do records what is decided, and then runs after in the same turn.
func (a *Agents) do(ctx context.Context, decide func(*turn) ([]agents.Record, error), after func(*turn)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return a.turn(func(t *turn) error {
		records, err := decide(t)
		if err == nil {
			_, err = t.keep(records)
		}
		if err == nil && after != nil {
			after(t)
		}
		return err
	})
}

// close ends what runs for the agents; the log is closed after it.
func (a *Agents) close() {
	a.session.mu.Lock()
	a.disarm()
	a.session.mu.Unlock()
	a.running.close()
	a.session.engine.cfg.Metrics.Closed(a.session.Name())
}

// View returns what an agent has been shown up to now, news on its way included.
func (a *Agents) View(ctx context.Context, id string) (agents.View, error) {
	s := a.session
	s.catchUp()
	s.mu.Lock()
	v, ok := a.world.core.View(id)
	head := s.fold.Head().Seq
	s.mu.Unlock()
	if !ok {
		return agents.View{}, unknownAgent(id)
	}
	return v, s.log.WaitDurable(ctx, head)
}

func unknownAgent(id string) error {
	return &agents.Rejection{Code: agents.UnknownAgent, Recovery: agents.Abort, AgentID: id, Reason: "nobody of this id is registered"}
}

package sajou

import (
	"context"
	"fmt"
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
	moved    bell // session time has come further than the wall's clock says
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
	a.world.core.Limit(max(s.engine.maxEntry()-maxEffectOverhead, 1))
	a.world.tell = a.hear
	s.mu.Unlock()
	metrics := s.engine.cfg.Metrics
	metrics.Opened(s.Name())
	if !s.engine.employ(a) {
		a.stop(eventlog.ErrClosed)
		metrics.Closed(s.Name())
		return a
	}
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
		defer t.arm()
		return f(t)
	})
}

// keep records what was decided, all of it or nothing, and folds it. A record
// that answers a request ends a batch, which has the request's key: so the log itself
// is what remembers answers. The batches of a turn get to the disk together.
func (t *turn) keep(records []agents.Record) (*eventlog.Ticket, error) {
	s := t.session
	if err := t.answers.err; err != nil {
		return nil, err // who knows what would have been decided
	}
	if err := s.engine.log.Err(); err != nil && len(records) > 0 {
		return nil, err
	}
	for _, r := range records { // all are looked at before the first is staged
		if size := len(r.Value) + maxRecordOverhead; size > s.engine.maxEntry() {
			return nil, fmt.Errorf("%w: a record of the agents' world takes %d bytes, at most %d are allowed",
				eventlog.ErrTooLarge, size, s.engine.maxEntry())
		}
	}
	var last *eventlog.Ticket
	for len(records) > 0 {
		n, size, key := 0, 0, ""
		for n < len(records) && key == "" && (n == 0 || size+len(records[n].Value) <= maxBatchSize) && n < maxBatchRecords {
			size += len(records[n].Value)
			if agent, reqID, _, ok := records[n].Answer(); ok {
				key = intentKey(agent, reqID)
			}
			n++
		}
		ticket, err := t.batch(records[:n], key)
		if err != nil {
			return nil, err
		}
		last, records = ticket, records[n:]
	}
	return last, nil
}

// Bounds of what is kept.
const (
	// maxRecordOverhead is what an entry takes besides the value of its record:
	// its word, the request's key, and what the log adds.
	maxRecordOverhead = 1024
	// maxEffectOverhead is what an effect's entry takes besides the payload: ids
	// and versions of [agents.MaxID] bytes too.
	maxEffectOverhead = maxRecordOverhead + 8*agents.MaxID
	// A batch is well within what the log takes.
	maxBatchSize    = 1 << 20
	maxBatchRecords = 1 << 12
)

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

// Configure brings a configuration of the world into force, see
// [agents.ParseConfig].
func (a *Agents) Configure(ctx context.Context, config signal.Value) error {
	return a.do(ctx, func(t *turn) ([]agents.Record, error) { return t.core.Configure(config) }, func(t *turn) {
		a.audience.limit(t.core, t.core.Agents())
		t.drain() // if nobody waits for ticks any more
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

// stop ends what runs for the agents, since the engine closes or nothing can be
// recorded any more.
func (a *Agents) stop(err error) {
	a.session.mu.Lock()
	a.disarm()
	a.session.mu.Unlock()
	a.outbox.end(err)
	a.running.close(err)
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
	if err := s.log.WaitDurable(ctx, head); err != nil {
		return agents.View{}, err
	}
	return v, nil
}

// LatestViewSeq returns the number of the newest effect of which something has
// reached an agent by now: what an intent's context_seq is measured by. It returns
// false if nobody of this id is registered.
func (a *Agents) LatestViewSeq(id string) (seq uint64, ok bool) {
	s := a.session
	s.catchUp()
	now := a.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok = a.world.core.Settings(id); !ok {
		return 0, false
	}
	return a.world.core.LatestViewSeq(now, id), true
}

func unknownAgent(id string) error {
	return &agents.Rejection{Code: agents.UnknownAgent, Recovery: agents.Abort, AgentID: id, Reason: "nobody of this id is registered"}
}

package sajou

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Submit decides an intent and returns its outcome once that is durable. What
// is refused is an error too: an [*agents.Rejection], which says what the one who
// was refused may do about it. The outcome of an accepted or finally refused
// request is remembered for ever; the same req_id gets it again, as
// [agents.Duplicate]. Any other error leaves open what was decided: ask again
// with the same req_id.
//
// Where ticks have the authority ([agents.TimeSim]) it waits for the tick that
// closes its quantum. When ctx ends before, the intent is withdrawn.
func (a *Agents) Submit(ctx context.Context, in agents.Intent) (agents.Outcome, error) {
	return a.submit(ctx, agents.Submission{Intent: &in})
}

// Broadcast decides a draft: what somebody outside of the world says happens.
// Nobody is asked for leave, but what cannot be applied to the world is refused.
func (a *Agents) Broadcast(ctx context.Context, draft agents.Draft) (agents.Outcome, error) {
	return a.submit(ctx, agents.Submission{Draft: &draft})
}

func (a *Agents) submit(ctx context.Context, s agents.Submission) (agents.Outcome, error) {
	p, err := a.Ask(ctx, s)
	if err != nil {
		return agents.Outcome{}, err
	}
	return p.Wait(ctx)
}

// await waits for a call that somebody has looked at.
func (a *Agents) await(ctx context.Context, c *call) (agents.Outcome, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return a.withdraw(ctx, c)
	case <-a.session.engine.live.Done():
		return a.withdraw(ctx, c)
	}
	if c.err != nil {
		return agents.Outcome{}, c.err
	}
	if c.ticket != nil {
		if _, err := c.ticket.Wait(); err != nil {
			return agents.Outcome{}, err
		}
	}
	if c.outcome.Status == agents.Duplicate {
		// What it repeats may still be on its way to the disk.
		if err := a.Settle(ctx); err != nil {
			return agents.Outcome{}, err
		}
	}
	if in := c.sub.Intent; in != nil {
		took := c.took
		took.Total = max(a.session.engine.cfg.Now().Sub(c.began), 0)
		if c.ticket != nil {
			took.Sync = max(took.Total-took.Wait-took.Decide-took.Apply, 0)
		}
		a.report(ctx, in, c.outcome, took)
	}
	return c.outcome, c.outcome.Err()
}

// report tells metrics and log of an intent's outcome.
func (a *Agents) report(ctx context.Context, in *agents.Intent, o agents.Outcome, took IntentTiming) {
	cfg, world := &a.session.engine.cfg, a.session.Name()
	var code agents.Code
	if o.Rejection != nil {
		code = o.Rejection.Code
	}
	cfg.Metrics.Intent(world, in.AgentID, o.Status, code, took)
	if !cfg.Logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "intent", slog.String(WorldIDKey, world),
		slog.String(AgentIDKey, in.AgentID), slog.String(ReqIDKey, in.ReqID), slog.String("kind", in.Kind),
		slog.Uint64(GlobalSeqKey, o.GlobalSeq), slog.String("status", o.Status.String()), slog.String("code", string(code)),
		Latency(took.Total))
}

// withdraw takes back a call that waits for a tick.
func (a *Agents) withdraw(ctx context.Context, c *call) (agents.Outcome, error) {
	err := a.turn(func(t *turn) error {
		for ticket, calls := range t.waiting { // one of them has it
			for i := range calls {
				if calls[i] != c {
					continue
				}
				if calls = append(calls[:i:i], calls[i+1:]...); len(calls) == 0 {
					delete(t.waiting, ticket)
					t.intake.Withdraw(ticket)
				} else {
					t.waiting[ticket] = calls
				}
				c.resolve(agents.Outcome{}, nil, cmp.Or(ctx.Err(), eventlog.ErrClosed))
				return nil
			}
		}
		return nil
	})
	select {
	case <-c.done:
		if c.err == nil && c.ticket != nil {
			_, c.err = c.ticket.Wait() // it was decided after all
		}
		if err = c.err; err == nil {
			return c.outcome, c.outcome.Err()
		}
	default:
	}
	return agents.Outcome{}, cmp.Or(ctx.Err(), err, eventlog.ErrClosed)
}

// admit puts what has come in line, or answers it at once.
func (t *turn) admit() {
	began := t.session.engine.cfg.Now()
	for _, c := range t.inbox.take() {
		c.took.Wait = max(began.Sub(c.began), 0)
		o := t.intake.Offer(t.core, t.now, c.sub)
		if o.Shed != nil {
			t.answer(o.Shed.Ticket, agents.Outcome{Rejection: o.Refusal}, nil, nil)
		}
		if o.Ticket == 0 {
			c.resolve(o.Outcome, nil, nil)
			continue
		}
		t.waiting[o.Ticket] = append(t.waiting[o.Ticket], c)
		t.count(c.sub.Intent)
	}
}

// count tells how many of an agent's intents wait, where they wait for ticks.
func (t *turn) count(in *agents.Intent) {
	if in != nil && t.core.Config().Authority == agents.TimeSim {
		t.session.engine.cfg.Metrics.IntentsWaiting(t.session.Name(), in.AgentID, t.intake.Waiting(in.AgentID))
	}
}

// drain decides all that waits, each thing as a quantum of its own: the urgent
// first, and agents in turns.
func (t *turn) drain() {
	for t.intake.Len() > 0 {
		// Who waits is decided in portions, so that agents take turns.
		for _, next := range t.intake.Take(t.core, t.core.Config().MaxQuantum, math.Inf(1)) {
			began := t.session.engine.cfg.Now()
			d := t.core.Decide(t.now, agents.Quantum{}, []agents.Submission{next.Submission})
			decided := t.session.engine.cfg.Now()
			ticket, err := t.keep(d.Records)
			for _, c := range t.waiting[next.Ticket] {
				// What was decided before it in this turn it waited for, too.
				c.took.Wait = max(began.Sub(c.began), 0)
				c.took.Decide = max(decided.Sub(began), 0)
				c.took.Apply = max(t.session.engine.cfg.Now().Sub(decided), 0)
			}
			t.answer(next.Ticket, d.Outcomes[0], ticket, err)
		}
	}
}

// answer tells an outcome to all who asked for it: the first caused it, to the
// others it is a duplicate.
func (t *turn) answer(ticket uint64, o agents.Outcome, kept *eventlog.Ticket, err error) {
	calls := t.waiting[ticket]
	delete(t.waiting, ticket)
	for _, c := range calls {
		c.resolve(o, kept, err)
		if o.Status == agents.Accepted || o.Rejection != nil && o.Rejection.Code.Final() {
			o.Status, o.Effect = agents.Duplicate, nil
		}
	}
}

// SubmitBatch decides intents that are to be accepted all or none, in their
// order: if one is refused the others are too, with [agents.BatchAborted], and
// nothing is recorded. The error is the first rejection.
func (a *Agents) SubmitBatch(ctx context.Context, intents []agents.Intent) ([]agents.Outcome, error) {
	given := slices.Clone(intents)
	for i := range given {
		if err := a.migrate(&given[i]); err != nil {
			return nil, fmt.Errorf("intent %d of the batch: %w", i+1, err)
		}
	}
	began := a.session.engine.cfg.Now()
	outcomes, err := a.decide(ctx, func(t *turn) agents.Decision { return t.core.DecideBatch(t.now, given) })
	took := IntentTiming{Total: max(a.session.engine.cfg.Now().Sub(began), 0)}
	for i := range outcomes {
		a.report(ctx, &given[i], outcomes[i], took)
	}
	return outcomes, err
}

// Quantum decides submissions that happen at once: in the order of (sim_time,
// priority, source_id, uuid), however they are arranged. The quantum is closed by
// this call, and that is recorded. Each has an outcome of its own; the error is
// no rejection.
func (a *Agents) Quantum(ctx context.Context, subs ...agents.Submission) ([]agents.Outcome, error) {
	given := slices.Clone(subs)
	for i := range given {
		if given[i].Intent == nil {
			continue
		}
		in := *given[i].Intent
		if err := a.migrate(&in); err != nil {
			return nil, fmt.Errorf("submission %d of the quantum: %w", i+1, err)
		}
		given[i].Intent = &in
	}
	began := a.session.engine.cfg.Now()
	outcomes, err := a.decide(ctx, func(t *turn) agents.Decision {
		return t.core.Decide(t.now, agents.Quantum{By: agents.CloseFlush}, given)
	})
	took := IntentTiming{Total: max(a.session.engine.cfg.Now().Sub(began), 0)}
	for i := range outcomes {
		if in := given[i].Intent; in != nil {
			a.report(ctx, in, outcomes[i], took)
		}
	}
	return outcomes, notRejected(err)
}

func notRejected(err error) error {
	if _, ok := errors.AsType[*agents.Rejection](err); ok {
		return nil
	}
	return err
}

func (a *Agents) decide(ctx context.Context, f func(*turn) agents.Decision) (outcomes []agents.Outcome, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = a.turn(func(t *turn) error {
		d := f(t)
		if _, err := t.keep(d.Records); err != nil {
			return err
		}
		outcomes = d.Outcomes
		return nil
	})
	if err != nil {
		return nil, err
	}
	repeat := false
	for i := range outcomes {
		repeat = repeat || outcomes[i].Status == agents.Duplicate
		if err == nil {
			err = outcomes[i].Err()
		}
	}
	if repeat {
		if err := a.Settle(ctx); err != nil {
			return nil, err
		}
	}
	return outcomes, err
}

// Tick is a tick of whoever has the authority over time.
type Tick struct {
	SimTime     float64 // in seconds; it may not go back
	DeltaTime   float64 // in seconds
	FrameNumber uint64
	SourceID    string
}

// Tick closes the quantum of all that waits and is timed at most at the tick,
// and decides it. In a session of [TimeSim] session time is then that of the
// tick. It returns once everything is durable, with the number of what was decided.
func (a *Agents) Tick(ctx context.Context, tick Tick) (decided int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	at := tick.SimTime * float64(time.Second)
	if !(at >= 0 && at < math.MaxInt64) { // NaN too
		return 0, fmt.Errorf("%w: a tick of sim_time %v", ErrTime, tick.SimTime)
	}
	q := agents.Quantum{
		By: agents.CloseTick, SimTime: tick.SimTime, Timed: true,
		DeltaTime: tick.DeltaTime, FrameNumber: tick.FrameNumber, SourceID: tick.SourceID,
	}
	err = a.turn(func(t *turn) error {
		if t.session.authorityNow() == TimeSim {
			t.clock.reach(time.Duration(at))
			t.now = t.clock.now()
		}
		if err := t.due(); err != nil {
			return err
		}
		t.admit()
		taken := t.intake.Take(t.core, t.core.Config().MaxQuantum, tick.SimTime)
		d := t.core.Decide(t.now, q, agents.Submissions(taken))
		ticket, err := t.keep(d.Records)
		for i := range taken {
			t.answer(taken[i].Ticket, d.Outcomes[i], ticket, err)
			t.count(taken[i].Intent)
		}
		decided = len(taken)
		return err
	})
	if err == nil {
		err = a.Settle(ctx)
	}
	a.audience.wake()
	return decided, err
}

// authorityNow returns the session's time authority. Called in a round.
func (s *Session) authorityNow() TimeAuthority {
	if s.next.begun {
		return s.next.time.authority
	}
	return s.authority
}

// migrate brings an intent of another version to the one that is spoken here,
// if the program knows how.
func (a *Agents) migrate(in *agents.Intent) error {
	hook := a.session.engine.cfg.Migrate
	if hook == nil || in.SchemaVersion == "" || in.SchemaVersion == agents.SchemaVersion {
		return nil
	}
	migrated, err := hook(*in)
	if err != nil {
		return fmt.Errorf("sajou: intent %q of %q in version %q: %w", in.ReqID, in.AgentID, in.SchemaVersion, err)
	}
	// Who asks, and under which name, is not the hook's to change.
	migrated.AgentID, migrated.ReqID = in.AgentID, in.ReqID
	*in = migrated
	return nil
}

// Waiting returns how many submissions wait for a tick.
func (a *Agents) Waiting() int {
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	return a.intake.Len()
}

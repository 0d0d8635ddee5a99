package sajou

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
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
	SimTime     float64 // in seconds, in order: no effect is earlier than the one before it
	DeltaTime   float64 // in seconds
	FrameNumber uint64
	SourceID    string
}

// Tick closes the quantum of all that waits and is timed at most at the tick,
// and decides it: max_quantum things at most, the others wait for the next tick. In
// a session of [TimeSim] session time is then that of the tick. It returns once
// everything is durable, with the number of what was decided.
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
			t.reach(time.Duration(at))
		}
		if err := t.due(); err != nil {
			return err
		}
		t.admit()
		t.answers.err = nil
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
	a.moved.ring()
	return decided, err
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

package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

// Submit decides an intent and returns its outcome once it is durable. A refusal is
// an error too: an [*agents.Rejection], which says how the agent may recover. The
// final outcome of a request is remembered as long as the log is kept; the same
// req_id returns it again, as [agents.Duplicate]. The numbers of an outcome are the
// agent's own, see [Observation]: the GlobalSeq of an accepted intent is the
// ViewSeq of the observation that delivers the effect to its agent, see
// [agents.Outcome]. Any other error leaves open whether the intent was decided:
// submit it again with the same req_id.
//
// If ticks have the authority ([agents.TimeSim]), Submit waits for the tick that
// closes the quantum. If ctx ends before, the intent is withdrawn.
func (a *Agents) Submit(ctx context.Context, in agents.Intent) (agents.Outcome, error) {
	return a.submit(ctx, agents.Submission{Intent: &in})
}

// Broadcast decides a draft: an effect from outside of the world. It needs no
// permission, but a draft that cannot be applied to the world is refused.
//
// If ticks have the authority ([agents.TimeSim]), Broadcast waits for the tick that
// closes the quantum, as [Agents.Submit] does: without a tick it waits until ctx ends,
// returns the error of ctx, and the draft has no effect. [Agents.SubmitAsync] does not
// wait.
func (a *Agents) Broadcast(ctx context.Context, draft agents.EffectDraft) (agents.Outcome, error) {
	return a.submit(ctx, agents.Submission{Draft: &draft})
}

func (a *Agents) submit(ctx context.Context, s agents.Submission) (agents.Outcome, error) {
	p, err := a.SubmitAsync(ctx, s)
	if err != nil {
		return agents.Outcome{}, err
	}
	return p.Wait(ctx)
}

// report reports the outcome of an intent to the metrics and the log.
func (a *Agents) report(ctx context.Context, in *agents.Intent, o agents.Outcome, took IntentTiming) {
	cfg, name := &a.cfg, a.w.Name()
	var code agents.Code
	if o.Rejection != nil {
		code = o.Rejection.Code
	}
	if world.UsesLegacyPosition(in.Kind, in.Payload) && a.legacyMove.CompareAndSwap(false, true) {
		cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the payload member position of a Move is deprecated; write to",
			slog.String(worldIDKey, name), slog.String(agentIDKey, in.AgentID), slog.String(reqIDKey, in.ReqID))
	}
	if m := cfg.Metrics.Intents; m != nil {
		m.IntentDecided(ctx, DecidedIntent{
			World: name, Agent: in.AgentID, ReqID: in.ReqID, Kind: in.Kind, Status: o.Status, Code: code, GlobalSeq: o.GlobalSeq, Took: took,
		})
	}
	if !cfg.Logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "intent", slog.String(worldIDKey, name),
		slog.String(agentIDKey, in.AgentID), slog.String(reqIDKey, in.ReqID), slog.String("kind", in.Kind),
		slog.Uint64(globalSeqKey, o.GlobalSeq), slog.String("status", o.Status.String()), slog.String("code", string(code)),
		latency(took.Total))
}

// SubmitBatch decides intents all or none, in their order: if one is refused, the
// others are too, with [agents.ErrBatchAborted], and nothing is recorded. The error
// is the first rejection.
func (a *Agents) SubmitBatch(ctx context.Context, intents []agents.Intent) ([]agents.Outcome, error) {
	subs := make([]agents.Submission, len(intents))
	for i := range intents {
		subs[i].Intent = &intents[i]
	}
	subs, err := a.migrated(subs, "intent %d of the batch: %w")
	if err != nil {
		return nil, err
	}
	return a.decide(ctx, subs, func(t *turn, subs []agents.Submission) agents.Decision {
		list := make([]agents.Intent, len(subs))
		for i := range subs {
			list[i] = *subs[i].Intent
		}
		return t.core.DecideBatch(t.now, list)
	})
}

// Quantum decides simultaneous submissions, in the order of (sim_time, priority,
// source_id), and those of one source that are equal in these in their order in subs;
// see [agents.Core.Decide]. The call closes the quantum,
// which is recorded. Each submission has an outcome of its own; a rejection is not
// an error of the call.
func (a *Agents) Quantum(ctx context.Context, subs ...agents.Submission) ([]agents.Outcome, error) {
	subs, err := a.migrated(subs, "submission %d of the quantum: %w")
	if err != nil {
		return nil, err
	}
	outcomes, err := a.decide(ctx, subs, func(t *turn, subs []agents.Submission) agents.Decision {
		return t.core.Decide(t.now, agents.Quantum{By: agents.CloseFlush}, subs)
	})
	return outcomes, notRejected(err)
}

// migrated returns the submissions with their intents converted to the present
// schema version. format is the format of the error, with the number of the intent
// that failed.
func (a *Agents) migrated(subs []agents.Submission, format string) ([]agents.Submission, error) {
	given := slices.Clone(subs)
	for i := range given {
		if given[i].Intent == nil {
			continue
		}
		in := *given[i].Intent
		if err := a.migrate(&in); err != nil {
			return nil, fmt.Errorf(format, i+1, err)
		}
		given[i].Intent = &in
	}
	return given, nil
}

func notRejected(err error) error {
	if _, ok := errors.AsType[*agents.Rejection](err); ok {
		return nil
	}
	return err
}

// decide decides submissions in one turn. The error is the first rejection, or the
// reason why nothing was decided.
func (a *Agents) decide(
	ctx context.Context, subs []agents.Submission, f func(*turn, []agents.Submission) agents.Decision,
) (outcomes []agents.Outcome, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := a.cfg.Now()
	lookups := make([]lookup, len(subs))
	for i := range subs {
		lookups[i] = a.lookUp(subs[i].Intent)
	}
	var decided []agents.Outcome
	var took IntentTiming // of all of them: they are decided and kept together
	var kept time.Time    // the end of the turn; zero without records
	err = a.turn(ctx, func(t *turn) error {
		turned := t.cfg.Now()
		for _, l := range lookups {
			t.answers.use(l)
		}
		d := f(t, t.inwardAll(subs))
		made := t.cfg.Now()
		ticket, err := t.keep(d.Records, false)
		if err != nil {
			return err
		}
		applied := t.cfg.Now()
		took.Wait, took.Decide, took.Apply = max(turned.Sub(began), 0), max(made.Sub(turned), 0), max(applied.Sub(made), 0)
		if ticket != nil {
			kept = applied
		}
		decided = d.Outcomes
		for i, o := range decided {
			outcomes = append(outcomes, t.outward(subs[i].Intent, o))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !kept.IsZero() {
		took.Sync = max(a.cfg.Now().Sub(kept), 0)
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
	took.Total = max(a.cfg.Now().Sub(began), 0)
	for i := range decided {
		if in := subs[i].Intent; in != nil {
			a.report(ctx, in, decided[i], took)
		}
	}
	return outcomes, err
}

// Tick is a tick of the authority over time.
type Tick struct {
	SimTime     float64 // in seconds, in order; [Agents.Tick] says what happens to an earlier one
	DeltaTime   float64 // in seconds
	FrameNumber uint64
	SourceID    string
}

// Tick closes the quantum of all submissions that wait and whose time is not after
// the tick, and decides it: at most max_quantum submissions, the others wait for
// the next tick. In a session of [session.TimeSim] it also sets the session time.
// It returns once everything is durable and delivered, with the number of
// submissions that it decided.
//
// A tick whose SimTime is before that of an earlier tick is accepted. Session time
// stays where it is, the submissions up to the earlier SimTime are decided, and their
// effects have the time of the effect before them, because effects never go back. In a
// session of another authority session time stays too, but the effects have the time of
// the tick by the same rule.
func (a *Agents) Tick(ctx context.Context, tick Tick) (decided int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	at := tick.SimTime * float64(time.Second)
	if !(at >= 0 && at < math.MaxInt64) { // NaN too
		return 0, fmt.Errorf("%w: a tick of sim_time %v", session.ErrTime, tick.SimTime)
	}
	q := agents.Quantum{
		By: agents.CloseTick, SimTime: tick.SimTime, Timed: true,
		DeltaTime: tick.DeltaTime, FrameNumber: tick.FrameNumber, SourceID: tick.SourceID,
	}
	err = a.turn(ctx, func(t *turn) error {
		if t.right.Frontier().Time.Authority == session.TimeSim {
			t.reach(time.Duration(at))
		}
		if err := t.due(); err != nil {
			return err
		}
		t.admit()
		t.answers.err = nil
		taken := t.intake.Take(t.core, t.core.Config().MaxQuantum, tick.SimTime)
		began := t.cfg.Now()
		d := t.core.Decide(t.now, q, agents.Submissions(taken))
		made := t.cfg.Now()
		ticket, err := t.keep(d.Records, false)
		applied := t.cfg.Now()
		for i := range taken {
			for _, c := range t.waiting[taken[i].Ticket] { // of the whole quantum, behind the wait for its tick
				c.took = IntentTiming{Wait: max(began.Sub(c.began), 0), Decide: max(made.Sub(began), 0), Apply: max(applied.Sub(made), 0)}
			}
			t.answer(taken[i].Ticket, d.Outcomes[i], ticket, err)
			t.count(taken[i].Intent)
		}
		decided = len(taken)
		return err
	})
	if err == nil {
		err = a.Settle(ctx)
	}
	a.moved.send()
	return decided, err
}

// migrate converts an intent of another schema version, if the program has set
// Config.Migrate.
func (a *Agents) migrate(in *agents.Intent) error {
	hook := a.cfg.Migrate
	if hook == nil || in.SchemaVersion == "" || in.SchemaVersion == world.SchemaVersion {
		return nil
	}
	migrated, err := hook(*in)
	if err != nil {
		return fmt.Errorf("sajou: intent %q of %q in version %q: %w", in.ReqID, in.AgentID, in.SchemaVersion, err)
	}
	// The hook must not change the agent or the name of the request.
	migrated.AgentID, migrated.ReqID = in.AgentID, in.ReqID
	*in = migrated
	return nil
}

// Waiting returns the number of submissions that wait for a tick.
func (a *Agents) Waiting() int {
	n := 0
	a.w.Look(func(*projection.Fold) { n = a.intake.Len() })
	return n
}

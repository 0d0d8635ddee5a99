package fork

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// walk is one pass over the entries of a fork.
type walk struct {
	*Counterfactual
	fold    *projection.Fold // the session, the world and the director of the fork
	applied agents.Applied   // of the newest entry
	report  Reapplied

	// diverged says that a decision of the world has changed, so that the following ones
	// are made again. numbers translates the world's sequence numbers.
	diverged bool
	numbers  numbering
	quantum  *quantum // whose effects are being read

	scene

	out []step // decided and not yielded yet
}

func (c *Counterfactual) walk() *walk {
	set := slices.DeleteFunc(session.Projections(session.ProjectionConfig{World: c.world}), func(p projection.Projection) bool {
		return p.Name == session.ProjectionPerformances || p.Name == session.ProjectionStage
	})
	w := &walk{Counterfactual: c, fold: projection.NewFold(set, c.parent.Genesis())}
	session.ObserveWorld(w.fold, func(change session.WorldChange) { w.applied = change.Applied })
	// The ids that the world derives are those of the parent where nothing differs.
	session.WorldOf(w.fold).Bind(c.parent.Name(), nil)
	w.played = w.continuation()
	return w
}

// steps yields the entries of the fork, and counts them.
func (w *walk) steps(ctx context.Context) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		flush := func() bool {
			for _, s := range w.out {
				w.report.Entries++
				if !yield(s, nil) {
					return false
				}
			}
			w.out = w.out[:0]
			return true
		}
		for e, err := range w.variant.Entries(ctx, 1) {
			if err == nil {
				err = w.take(ctx, &e)
			}
			if err != nil && !errors.Is(err, errStopped) {
				yield(step{}, err)
				return
			}
			if !flush() || err != nil {
				return
			}
		}
		err := ctx.Err()
		if err == nil && w.quantum != nil {
			err = w.closeQuantum()
		}
		if err == nil && w.again {
			err = w.stopping(w.played.Flush(ctx))
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(step{}, err)
			return
		}
		flush()
	}
}

// take takes the next entry of the variant.
func (w *walk) take(ctx context.Context, e *eventlog.Entry) error {
	if e.Seq == 1 {
		data, err := session.WithFork(e, w.label)
		if err != nil {
			return fmt.Errorf("%w: %w", variant.ErrChange, err)
		}
		e.Data = data
		return w.keep(e)
	}
	parent, recorded := w.variant.Parent(e.Seq)
	changed := !recorded || w.variant.Changed(e.Seq)
	var was eventlog.Entry
	if changed && recorded {
		var err error
		if was, err = w.parentEntry(ctx, parent); err != nil {
			return err
		}
	}
	// Reactions stand between the effects of a quantum.
	if reaction := w.again && !changed && own(e, parent); w.quantum != nil && !reaction && !w.quantum.wants(e, recorded) {
		if err := w.closeQuantum(); err != nil {
			return err
		}
	}
	if recorded && (e.Batch > 0 || w.first == 0) { // the first entry of all only opens the session
		first := e
		if changed {
			first = &was
		}
		w.first, w.decision = e.Seq, own(first, parent)
	}
	if changed && !w.again {
		again, err := w.reactsOtherwise(&was, e, parent, recorded)
		if err != nil {
			return err
		}
		if again {
			if err := w.begin(&was, e); err != nil {
				return err
			}
		}
	}
	if w.again {
		if done, err := w.direct(ctx, &was, e, parent, changed); err != nil || done {
			return err
		}
	} else if own(e, parent) {
		seen := *e
		seen.Seq = parent
		w.played.Saw(&seen)
	}
	switch {
	case w.quantum != nil:
		w.quantum.entries = append(w.quantum.entries, *e)
		if was.Kind == eventlog.KindEffect {
			w.forget(&was)
		}
		if w.quantum.complete() {
			return w.closeQuantum()
		}
		return nil
	case changed:
		return w.change(&was, e)
	case e.Kind == eventlog.KindEffect && !w.diverged && w.torn(e):
		w.diverged = true
		return w.decide(e)
	case e.Kind == eventlog.KindEffect && w.diverged:
		return w.decide(e)
	default:
		return w.keep(e)
	}
}

// torn reports whether an entry announces a quantum of which the variant has changed an
// effect.
func (w *walk) torn(e *eventlog.Entry) bool {
	r, err := session.WorldRecordOf(e)
	if err != nil || r.Word != agents.WordQuantum {
		return false
	}
	effects := eventlog.Seq(min(max(r.Value.IntOf("effects"), 0), eventlog.MaxBatchEntries))
	for seq := max(e.Seq, w.variant.Shared()) + 1; seq <= e.Seq+effects; seq++ {
		if w.variant.Changed(seq) {
			return true
		}
	}
	return false
}

// keep applies an entry as it is, and lets the director react if it is played again.
func (w *walk) keep(e *eventlog.Entry) error {
	made := *e
	// Behind a director that is played again there may be more entries than recorded, and
	// the newest one may be later.
	made.Seq, made.At = w.fold.Head().Seq+1, max(e.At, w.fold.At())
	w.applied = agents.Applied{}
	if err := w.fold.Apply(&made); err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	w.out = append(w.out, step{eventlog.Draft{Kind: made.Kind, At: made.At, Data: made.Data}, made.Key, made.Batch})
	if e.Kind == eventlog.KindEffect && !w.diverged {
		w.numbers.saw(e)
	}
	if w.again && w.applied.Err == nil {
		return w.hear(&made, 0)
	}
	return nil
}

// change applies an entry that the changes put in the place of was, or insert.
func (w *walk) change(was, e *eventlog.Entry) error {
	if was.Kind == eventlog.KindEffect || e.Kind == eventlog.KindEffect {
		w.diverged = true
	}
	switch e.Kind {
	case eventlog.KindSignal:
		sig, err := signal.Decode(e.Data)
		if err == nil && sig.Problem == "" {
			err = sig.Validate()
		}
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", variant.ErrChange, e.Seq, err)
		}
	case eventlog.KindBeat:
		r, err := session.BeatOf(e)
		if err == nil && r.Word != session.WordMessage {
			state := *session.DirectorOf(w.fold)
			err = state.Apply(r.Word, r.Value)
		}
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", variant.ErrChange, e.Seq, err)
		}
	case eventlog.KindDefine, eventlog.KindEffect, eventlog.KindSession: // New of package variant has checked their form
	}
	if e.Kind != eventlog.KindEffect {
		if err := w.keep(e); err != nil {
			return err
		}
	} else if err := w.given(e); err != nil {
		return err
	}
	if was.Kind == eventlog.KindEffect {
		w.forget(was)
	}
	return nil
}

// leave puts an entry that says so in the place of one that cannot be applied again.
func (w *walk) leave(e *eventlog.Entry, what, reason string) error {
	heard, err := reactions(session.DirectorOf(w.fold), e, e.Seq)
	if err != nil {
		return err
	}
	w.again = w.again || len(heard) > 0
	parent, _ := w.variant.Parent(e.Seq)
	w.noteLeft(LeftOut{w.fold.Head().Seq + 1, parent, what, reason})
	dropped := variant.Dropped(e.At)
	return w.keep(&eventlog.Entry{Seq: e.Seq, Kind: dropped.Kind, At: dropped.At, Data: dropped.Data, Batch: e.Batch})
}

func (w *walk) noteLeft(l LeftOut) {
	if len(w.report.Left) == MaxLeftOut {
		w.report.More++
		return
	}
	w.report.Left = append(w.report.Left, l)
}

package fork

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
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

	missed string // why the director would decide otherwise than recorded

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
	if w.quantum != nil && !w.quantum.wants(e, recorded) {
		if err := w.closeQuantum(); err != nil {
			return err
		}
	}
	var was eventlog.Entry
	if changed && recorded {
		var err error
		if was, err = w.parentEntry(ctx, parent); err != nil {
			return err
		}
	}
	reacts, err := w.reactsOtherwise(&was, e, changed)
	if err != nil {
		return err
	}
	switch {
	case w.quantum != nil:
		w.quantum.entries = append(w.quantum.entries, *e)
		if was.Kind == eventlog.KindEffect {
			w.forget(&was)
		}
		if w.quantum.complete() {
			err = w.closeQuantum()
		}
	case changed:
		err = w.change(&was, e)
	case e.Kind == eventlog.KindEffect && !w.diverged && w.torn(e):
		w.diverged = true
		err = w.decide(e)
	case e.Kind == eventlog.KindEffect && w.diverged:
		err = w.decide(e)
	default:
		err = w.keep(e)
	}
	if reacts = cmp.Or(reacts, w.missed); err == nil && reacts != "" {
		w.report.Stopped = &Stopped{parent + 1, reacts}
		return errStopped
	}
	return err
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

// keep applies an entry as it is.
func (w *walk) keep(e *eventlog.Entry) error {
	w.applied = agents.Applied{}
	if err := w.fold.Apply(e); err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	w.out = append(w.out, step{eventlog.Draft{Kind: e.Kind, At: e.At, Data: e.Data}, e.Key, e.Batch})
	if e.Kind == eventlog.KindEffect && !w.diverged {
		w.numbers.saw(e)
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
	if len(heard) > 0 {
		w.missed = fmt.Sprintf("the director's rules reacted to entry %d, which does not happen", e.Seq)
	}
	w.noteLeft(e, what, reason)
	dropped := variant.Dropped(e.At)
	return w.keep(&eventlog.Entry{Seq: e.Seq, Kind: dropped.Kind, At: dropped.At, Data: dropped.Data, Batch: e.Batch})
}

func (w *walk) noteLeft(e *eventlog.Entry, what, reason string) {
	if len(w.report.Left) == MaxLeftOut {
		w.report.More++
		return
	}
	parent, _ := w.variant.Parent(e.Seq)
	w.report.Left = append(w.report.Left, LeftOut{e.Seq, parent, what, reason})
}

// reactsOtherwise returns why the director would decide otherwise than recorded behind an
// entry that has changed from was to e.
func (w *walk) reactsOtherwise(was, e *eventlog.Entry, changed bool) (string, error) {
	state := session.DirectorOf(w.fold)
	if !changed || state.Episode() == nil {
		if changed && declaresEpisode(e) {
			return "an episode begins that was not played", nil
		}
		return "", nil
	}
	if was.Kind == eventlog.KindBeat || e.Kind == eventlog.KindBeat || declaresEpisode(e) || declaresEpisode(was) {
		return "the director has another past, and its decisions were not made for that", nil
	}
	if _, recorded := w.variant.Parent(e.Seq); !recorded && len(state.Episode().Signals)+len(state.Episode().FlagRules) > 0 {
		return "the director's rules name entries by their numbers, which are others behind an inserted one", nil
	}
	before, err := reactions(state, was, e.Seq)
	if err != nil {
		return "", err
	}
	after, err := reactions(state, e, e.Seq)
	if err != nil {
		return "", err
	}
	same := slices.EqualFunc(before, after, func(a, b signal.Record) bool { return a.Word == b.Word && bytes.Equal(a.Value, b.Value) })
	if !same {
		return fmt.Sprintf("the director's rules react otherwise to entry %d", e.Seq), nil
	}
	return "", nil
}

func declaresEpisode(e *eventlog.Entry) bool {
	if e.Kind != eventlog.KindDefine {
		return false
	}
	word, _, err := session.WordOf(e)
	return err == nil && word == episode.Word
}

// reactions returns the events by which the director's rules react to an entry.
func reactions(state *director.State, e *eventlog.Entry, seq eventlog.Seq) ([]signal.Record, error) {
	switch e.Kind {
	case eventlog.KindSignal:
		sig, err := signal.DecodeSound(e.Data)
		if err != nil || sig.Problem != "" {
			return nil, nil //nolint:nilerr // no rule hears an unreadable signal
		}
		return state.ExternalEvent(episode.OfSignal, sig.Type, sig.Payload, fmt.Sprintf("signal:%d", seq))
	case eventlog.KindEffect:
		r, err := session.WorldRecordOf(e)
		if err != nil || r.Word != agents.WordEffect {
			return nil, nil //nolint:nilerr // nor an unreadable effect
		}
		return state.ExternalEvent(episode.OfEffect, r.Value.TextOf("kind"), r.Value.Member("payload"), fmt.Sprintf("effect:%d", seq))
	default:
		return nil, nil
	}
}

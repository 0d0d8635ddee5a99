package replay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// StepPair is one moment of two sessions that are walked together.
type StepPair struct{ Left, Right *ScanStep }

// Together walks two sessions whose entries have the same numbers and times, such as two
// variants of one recording, and yields the moments at which either can change: each
// entry after over.From, each boundary of either one, and over.To. So it compares the
// two at equal instants, also where only one of them changes. The zero From is the
// beginning; [MomentRange].Rest and Every are not used.
//
// The steps always have the state, and with [NeedsPrev] the view at the pair before. They
// are valid until the next pair. After an error the sequence ends; [ErrNoAddress] says
// that a session does not have the range.
func Together(ctx context.Context, left, right *Replay, over MomentRange, needs Needs) iter.Seq2[StepPair, error] {
	return func(yield func(StepPair, error) bool) {
		w := pairWalk{of: [2]*Replay{left, right}, over: over, prev: needs&NeedsPrev != 0, yield: func(p StepPair) bool { return yield(p, nil) }}
		if err := w.run(ctx); err != nil {
			yield(StepPair{}, err)
		}
	}
}

// pairWalk is the state of one walk of [Together].
type pairWalk struct {
	of    [2]*Replay
	over  MomentRange
	prev  bool // the steps need the state before
	yield func(StepPair) bool

	sides [2]pairSide
	seq   eventlog.Seq  // of the present entry
	base  time.Duration // its session time
	now   time.Duration
	ended bool // the reader wants no more
}

type pairSide struct {
	step  ScanStep
	entry eventlog.Entry // of the step; reused by all
	timed []Timed
}

func (w *pairWalk) run(ctx context.Context) error {
	end, err := w.begin(ctx)
	if err != nil || w.over.From.Compare(w.over.To) >= 0 {
		return err
	}
	other, stop := iter.Pull2(w.of[1].Entries(ctx, w.seq+1))
	defer stop()
	for e, err := range w.of[0].Entries(ctx, w.seq+1) {
		if err != nil {
			return fmt.Errorf("replay: read after entry %d: %w", w.seq, err)
		}
		if e.Seq > w.over.To.Seq {
			break
		}
		same, err, ok := other()
		if err != nil {
			return fmt.Errorf("replay: read after entry %d: %w", w.seq, err)
		}
		if !ok || same.Seq != e.Seq || same.At != e.At {
			return fmt.Errorf("replay: entry %d at %v has no counterpart in the other session", e.Seq, e.At)
		}
		if err := w.between(ctx, e.At); err != nil || w.ended {
			return err
		}
		if err := w.apply(&e, &same); err != nil || w.ended {
			return err
		}
	}
	if w.seq < w.over.To.Seq {
		return w.of[0].ended(ctx, w.seq, w.over.To.Seq)
	}
	if err := w.between(ctx, end); err != nil || w.ended {
		return err
	}
	if w.now < end {
		w.advance(end, EdgeMoment)
	}
	return nil
}

// begin makes the states at the beginning of the range, and returns the session time of
// its end.
func (w *pairWalk) begin(ctx context.Context) (end time.Duration, err error) {
	from := w.over.From
	for i, r := range w.of {
		s := &w.sides[i]
		if s.step.Fold, err = r.At(ctx, from); err != nil {
			return 0, err
		}
		s.timed = timedStates(s.step.Fold)
		w.seq, w.now = from.Seq, s.step.Fold.At()
		if from.Seq > 0 {
			if s.entry, err = r.Entry(ctx, from.Seq); err != nil {
				return 0, err
			}
			s.step.Entry, w.base = &s.entry, s.entry.At
		}
		if end, err = r.timeOf(ctx, w.over.To); err != nil {
			return 0, err
		}
	}
	return end, nil
}

// apply visits the instant of an entry.
func (w *pairWalk) apply(left, right *eventlog.Entry) error {
	w.keepPrev()
	for i, e := range []*eventlog.Entry{left, right} {
		s := &w.sides[i]
		if err := s.step.Fold.Apply(e); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		s.step.Fold.Advance(e.At)
		s.entry = *e
		s.step.Entry = &s.entry
	}
	w.seq, w.base, w.now = left.Seq, left.At, left.At
	w.show(EntryMoment)
	return nil
}

// between visits the boundaries of both sides after the present moment up to limit.
func (w *pairWalk) between(ctx context.Context, limit time.Duration) error {
	for !w.ended {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, found := limit, false
		for i := range w.sides {
			// A boundary that Advance does not remove would be visited for ever.
			if next, ok := nextBoundary(w.sides[i].timed); ok && next > w.now && next <= at {
				at, found = next, true
			}
		}
		if !found {
			return nil
		}
		w.advance(at, BoundaryMoment)
	}
	return nil
}

// advance visits a moment after the present entry.
func (w *pairWalk) advance(at time.Duration, kind MomentKind) {
	w.keepPrev()
	for i := range w.sides {
		w.sides[i].step.Fold.Advance(at)
	}
	w.now = at
	w.show(kind)
}

// keepPrev keeps the views of the present states before they change.
func (w *pairWalk) keepPrev() {
	for i := range w.sides {
		s := &w.sides[i].step
		if w.prev {
			s.prev = s.View()
		}
		s.view = nil
	}
}

// show yields the present moment.
func (w *pairWalk) show(kind MomentKind) {
	for i := range w.sides {
		s := &w.sides[i].step
		s.Moment, s.Kind = Moment{Seq: w.seq, Offset: w.now - w.base}, kind
	}
	w.ended = !w.yield(StepPair{&w.sides[0].step, &w.sides[1].step})
}

package replay

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// ExaminedMoment is a moment that a search has examined.
type ExaminedMoment struct {
	Moment Moment
	At     time.Duration // session time
	Kind   MomentKind
}

// ValueInterval is a stretch of moments, from From up to and without Until, at which a value
// is the same.
type ValueInterval[V comparable] struct {
	Value V
	From  ExaminedMoment

	// Until is the first moment at which the value is another. If the interval is
	// open, it is the last moment that was examined, and the value is the same there.
	Until ExaminedMoment
	Open  bool
}

// Valuation computes a value at each step of a scan or of a walk.
type Valuation[V comparable] struct {
	Needs Needs // what Value reads of the step; at moments between entries the state always is there

	// Value returns the value at a step. An error ends the search.
	Value func(ctx context.Context, s *ScanStep) (V, error)

	// Copy, unless nil, returns an equal valuation whose Value can run at the same time
	// as those of others; see [EntryPredicate].
	Copy func() Valuation[V]
}

// Intervals evaluates a value at every moment of a range that [Replay.Moments] visits,
// and yields the intervals of equal values in their order: each ends where the next
// begins, and the last one is open. For a value without continuous parts they are
// exact: it is evaluated at every instant at which it can change. A value that reads
// something under way, such as a position, can have other values between two examined
// moments; [MomentRange].Every brings these closer together.
//
// An error ends the sequence, also that of the context. The interval under way comes
// before it, open.
func Intervals[V comparable](ctx context.Context, r *Replay, over MomentRange, values Valuation[V]) iter.Seq2[ValueInterval[V], error] {
	return func(yield func(ValueInterval[V], error) bool) {
		if over.From.IsZero() {
			over.From.Seq = 1
		}
		if err := r.checkSeq(over.To); err != nil {
			yield(ValueInterval[V]{}, err)
			return
		}
		parts := []segment{{over.From.Seq, over.To.Seq}}
		if values.Copy != nil {
			parts = r.segments(ctx, over.From.Seq, over.To.Seq, true)
		}
		tests := copies(values, values.Copy, len(parts))
		// The first interval of a part continues the last one of the part before, if it has
		// the same value.
		var open *ValueInterval[V]
		for next, err := range inOrder(ctx, r.split.workers, len(parts), func(ctx context.Context, i int, emit func(ValueInterval[V]) bool) error {
			return intervalsOf(ctx, r.walkOf(ctx, over, parts, i, values.Needs), tests[i], emit)
		}) {
			switch {
			case err != nil:
				if open == nil || yield(*open, nil) {
					yield(ValueInterval[V]{}, err)
				}
				return
			case open == nil:
				open = &next
			case open.Value == next.Value:
				open.Until = next.Until
			default:
				open.Until, open.Open = next.From, false
				if !yield(*open, nil) {
					return
				}
				open = &next
			}
		}
		if open != nil {
			yield(*open, nil)
		}
	}
}

// walkOf returns the walk of one part of a range.
func (r *Replay) walkOf(ctx context.Context, over MomentRange, parts []segment, i int, needs Needs) *momentWalk {
	w := &momentWalk{r: r, ctx: ctx, over: over, prev: needs&NeedsPrev != 0}
	if i > 0 {
		w.over.From = Moment{Seq: parts[i].from}
		if w.prev {
			// The state before the first moment is that at the last one of the part before.
			w.over.From.Seq--
			w.silent = parts[i].from
		}
	}
	if i < len(parts)-1 {
		w.over.To, w.over.Rest = Moment{Seq: parts[i].to}, false
		w.stop = parts[i].to + 1
	}
	return w
}

// intervalsOf emits the intervals of one walk, all of them open.
func intervalsOf[V comparable](ctx context.Context, w *momentWalk, values Valuation[V], emit func(ValueInterval[V]) bool) error {
	var now *ValueInterval[V]
	var failed error
	left := false
	w.yield = func(s *ScanStep) bool {
		v, err := values.Value(ctx, s)
		if err != nil {
			failed = fmt.Errorf("replay: evaluate at %v: %w", s.Moment, err)
			return false
		}
		at := ExaminedMoment{s.Moment, s.Fold.At(), s.Kind}
		if now != nil && now.Value == v {
			now.Until = at
			return true
		}
		if now != nil && !emit(*now) {
			left = true
			return false
		}
		now = &ValueInterval[V]{Value: v, From: at, Until: at, Open: true}
		return true
	}
	err := w.run()
	if now != nil && !left {
		emit(*now)
	}
	if failed != nil {
		return failed
	}
	return err
}

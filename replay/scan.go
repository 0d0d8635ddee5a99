package replay

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Needs lists the inputs of a [EntryPredicate] besides the entry. Others are not
// computed.
type Needs uint8

// The inputs of a predicate. They combine with |.
const (
	NeedsEntry Needs = 0      // the entry alone: nothing is folded
	NeedsState Needs = 1 << 0 // [ScanStep.Fold] and [ScanStep.View]
	NeedsPrev  Needs = 1 << 1 // [ScanStep.Prev], and with it the state
)

// EntryPredicate is a condition on each entry and the state after it.
type EntryPredicate struct {
	Needs Needs

	// Test evaluates the condition. An error ends the scan.
	Test func(ctx context.Context, s *ScanStep) (bool, error)

	// Copy, unless nil, returns an equal predicate whose Test can run at the same time as
	// those of others. A scan then uses all cores, if the session has saved images or
	// the predicate needs no state. Copy itself is called by one goroutine at a time.
	Copy func() EntryPredicate
}

// ScanStep is one moment of a scan or of a walk ([Replay.Moments]) and the state there,
// its instant complete. It is valid until the predicate returns. A scan visits the
// moments of entries only.
type ScanStep struct {
	Moment Moment
	Kind   MomentKind
	Entry  *eventlog.Entry  // of Moment.Seq; nil for Seq 0
	Fold   *projection.Fold // nil unless the predicate needs the state

	view, prev map[string]any
}

// View returns the state's view, made once a step, or nil if the predicate
// does not need the state.
func (s *ScanStep) View() map[string]any {
	if s.view == nil && s.Fold != nil {
		s.view = s.Fold.View()
	}
	return s.view
}

// Prev returns the view at the step before, in a scan that after the entry before, or
// nil if the predicate does not need it.
func (s *ScanStep) Prev() map[string]any { return s.prev }

// Mode says which steps a scan reports.
type Mode uint8

// The modes of a scan.
const (
	All     Mode = iota // each step where the predicate is true
	First               // only the first of them; the scan stops there
	Last                // only the last of them
	Changes             // each step where the predicate's value changes; before the first step it is false
)

// Hit is a step that a scan reports.
type Hit struct {
	Entry eventlog.Entry
	Value bool // the predicate's value; false only with Changes
}

// Scan evaluates pred at every entry from one Seq to another, both included, in one
// pass, and yields the steps that mode selects. It evaluates every Seq, so the result
// holds for any predicate. A from of 0 means 1; a to beyond the last entry is
// [ErrNoAddress]. After an error the sequence ends.
func (r *Replay) Scan(ctx context.Context, from, to eventlog.Seq, pred EntryPredicate, mode Mode) iter.Seq2[Hit, error] {
	if mode == Changes {
		return r.scanChanges(ctx, from, to, pred)
	}
	return func(yield func(Hit, error) bool) {
		parts, err := r.parts(ctx, &from, to, pred.Needs, pred.Copy != nil)
		if err != nil {
			yield(Hit{}, err)
			return
		}
		tests := copies(pred, pred.Copy, len(parts))
		if mode == Last {
			slices.Reverse(parts) // the first hit of the last part that has one
		}
		for hit, err := range inOrder(ctx, r.split.workers, len(parts), func(ctx context.Context, i int, emit func(Hit) bool) error {
			return r.scanPart(ctx, parts[i], tests[i], mode, emit)
		}) {
			if !yield(hit, err) || mode == First || mode == Last {
				return
			}
		}
	}
}

// parts divides from..to for a scan. A from of 0 becomes 1.
func (r *Replay) parts(ctx context.Context, from *eventlog.Seq, to eventlog.Seq, needs Needs, divide bool) ([]segment, error) {
	*from = max(*from, 1)
	if *from <= to {
		if err := r.checkSeq(Moment{Seq: to}); err != nil {
			return nil, err
		}
	}
	if !divide {
		return []segment{{*from, to}}, nil
	}
	return r.segments(ctx, *from, to, needs != NeedsEntry), nil
}

// copies returns n equal tests, the first of them the given one.
func copies[T any](test T, copyOf func() T, n int) []T {
	all := []T{test}
	for len(all) < n {
		all = append(all, copyOf())
	}
	return all
}

// scanPart emits the hits of one part of a scan.
func (r *Replay) scanPart(ctx context.Context, part segment, pred EntryPredicate, mode Mode, emit func(Hit) bool) error {
	var last *Hit
	err := r.steps(ctx, part.from, part.to, pred.Needs, func(s *ScanStep) (bool, error) {
		is, err := pred.Test(ctx, s)
		if err != nil {
			return false, fmt.Errorf("replay: scan entry %d: %w", s.Entry.Seq, err)
		}
		switch mode {
		case All:
			return !is || emit(Hit{*s.Entry, is}), nil
		case First:
			if is {
				emit(Hit{*s.Entry, is})
			}
			return !is, nil
		case Last:
			if is {
				last = &Hit{*s.Entry, is}
			}
			return true, nil
		case Changes: // is scanChanges
		}
		return false, fmt.Errorf("replay: scan: no mode %d", mode)
	})
	if err == nil && last != nil {
		emit(*last)
	}
	return err
}

// scanChanges is a scan with the mode [Changes].
func (r *Replay) scanChanges(ctx context.Context, from, to eventlog.Seq, pred EntryPredicate) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		first := true
		for c, err := range ScanValues(ctx, r, from, to, valuationOf(pred)) {
			if err == nil && first && !c.Value {
				first = false // it was false before
				continue
			}
			first = false
			if !yield(Hit(c), err) {
				return
			}
		}
	}
}

func valuationOf(pred EntryPredicate) Valuation[bool] {
	v := Valuation[bool]{Needs: pred.Needs, Value: pred.Test}
	if pred.Copy != nil {
		v.Copy = func() Valuation[bool] { return valuationOf(pred.Copy()) }
	}
	return v
}

// EntryValue is a value at an entry.
type EntryValue[V comparable] struct {
	Entry eventlog.Entry
	Value V
}

// ScanValues evaluates a value at every entry from one Seq to another, both included, in
// one pass, and yields the first entry and each at which the value differs from that at
// the entry before. Range and errors are those of [Replay.Scan].
func ScanValues[V comparable](ctx context.Context, r *Replay, from, to eventlog.Seq, values Valuation[V]) iter.Seq2[EntryValue[V], error] {
	return func(yield func(EntryValue[V], error) bool) {
		parts, err := r.parts(ctx, &from, to, values.Needs, values.Copy != nil)
		if err != nil {
			yield(EntryValue[V]{}, err)
			return
		}
		tests := copies(values, values.Copy, len(parts))
		var last *EntryValue[V]
		for next, err := range inOrder(ctx, r.split.workers, len(parts), func(ctx context.Context, i int, emit func(EntryValue[V]) bool) error {
			var now V
			return r.steps(ctx, parts[i].from, parts[i].to, values.Needs, func(s *ScanStep) (bool, error) {
				v, err := tests[i].Value(ctx, s)
				if err != nil {
					return false, fmt.Errorf("replay: scan entry %d: %w", s.Entry.Seq, err)
				}
				// The part does not know the value before its first entry.
				if s.Entry.Seq > parts[i].from && v == now {
					return true, nil
				}
				now = v
				return emit(EntryValue[V]{*s.Entry, v}), nil
			})
		}) {
			if err == nil && last != nil && next.Value == last.Value {
				continue
			}
			last = &next
			if !yield(next, err) {
				return
			}
		}
	}
}

// steps calls visit for each entry of from..to until it returns false.
func (r *Replay) steps(ctx context.Context, from, to eventlog.Seq, needs Needs, visit func(*ScanStep) (bool, error)) error {
	if from > to {
		return nil
	}
	if err := r.checkSeq(Moment{Seq: to}); err != nil {
		return err
	}
	var entry eventlog.Entry // reused by all steps: a step is valid only during the call
	s := ScanStep{Entry: &entry}
	if needs != NeedsEntry {
		f, err := r.foldTo(ctx, from-1, nil, nil)
		if err != nil {
			return err
		}
		f.Advance(f.At())
		s.Fold = f
	}
	for e, err := range r.src.Entries(ctx, from) {
		if err != nil {
			return fmt.Errorf("replay: read from entry %d: %w", from, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.Fold != nil {
			if needs&NeedsPrev != 0 {
				s.prev = s.View() // of the previous step, often computed already
			}
			s.view = nil
			if err := s.Fold.Apply(&e); err != nil {
				return fmt.Errorf("replay: %w", err)
			}
			s.Fold.Advance(e.At)
		}
		entry, s.Moment = e, Moment{Seq: e.Seq}
		if more, err := visit(&s); err != nil || !more {
			return err
		}
		if e.Seq >= to {
			return nil
		}
	}
	return r.ended(ctx, from, to)
}

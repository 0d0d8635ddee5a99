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
	return func(yield func(Hit, error) bool) {
		from := max(from, 1)
		if err := r.checkSeq(Moment{Seq: to}); err != nil && from <= to {
			yield(Hit{}, err)
			return
		}
		parts := []segment{{from, to}}
		if pred.Copy != nil {
			parts = r.segments(ctx, from, to, pred.Needs != NeedsEntry)
		}
		tests := []EntryPredicate{pred}
		for range parts[1:] {
			tests = append(tests, pred.Copy())
		}
		if mode == Last {
			slices.Reverse(parts) // the first hit of the last part that has one
		}
		was := false
		for hit, err := range inOrder(ctx, r.split.workers, len(parts), func(ctx context.Context, i int, emit func(Hit) bool) error {
			return r.scanSegment(ctx, parts[i], tests[i], mode, emit)
		}) {
			if err == nil && mode == Changes {
				// The parts do not know the value before their first entry.
				if hit.Value == was {
					continue
				}
				was = hit.Value
			}
			if !yield(hit, err) || mode == First || mode == Last {
				return
			}
		}
	}
}

// scanSegment emits the hits of one part of a scan. With [Changes] it also emits the
// first entry.
func (r *Replay) scanSegment(ctx context.Context, part segment, pred EntryPredicate, mode Mode, emit func(Hit) bool) error {
	var last *Hit
	first, was := true, false
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
		case Changes:
			changed := first || is != was
			first, was = false, is
			return !changed || emit(Hit{*s.Entry, is}), nil
		}
		return false, fmt.Errorf("replay: scan: no mode %d", mode)
	})
	if err == nil && last != nil {
		emit(*last)
	}
	return err
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

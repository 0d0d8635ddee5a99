package replay

import (
	"context"
	"fmt"
	"iter"

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
		var last *Hit
		was := false
		err := r.steps(ctx, max(from, 1), to, pred.Needs, func(s *ScanStep) (bool, error) {
			is, err := pred.Test(ctx, s)
			if err != nil {
				return false, fmt.Errorf("replay: scan entry %d: %w", s.Entry.Seq, err)
			}
			hit := Hit{*s.Entry, is}
			switch mode {
			case All:
				return !is || yield(hit, nil), nil
			case First:
				if is {
					yield(hit, nil)
				}
				return !is, nil
			case Last:
				if is {
					last = &hit
				}
				return true, nil
			case Changes:
				changed := is != was
				was = is
				return !changed || yield(hit, nil), nil
			}
			return false, fmt.Errorf("replay: scan: no mode %d", mode)
		})
		if err != nil {
			yield(Hit{}, err)
			return
		}
		if last != nil {
			yield(*last, nil)
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

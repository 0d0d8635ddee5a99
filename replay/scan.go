package replay

import (
	"context"
	"fmt"
	"iter"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Needs says what a [Predicate] looks at besides the entry. What it does not
// need is not computed.
type Needs uint8

// What a predicate may need. They combine with |.
const (
	NeedsEntry Needs = 0      // the entry alone: nothing is folded
	NeedsState Needs = 1 << 0 // [Step.Fold] and [Step.View]
	NeedsPrev  Needs = 1 << 1 // [Step.Prev], and with it the state
)

// Predicate is a question about each entry and the state after it.
type Predicate struct {
	Needs Needs

	// Test answers it. The step is only lent. An error ends the scan.
	Test func(ctx context.Context, s *Step) (bool, error)
}

// Step is one entry of a scan and the state right after it, its instant
// complete. It is good until the predicate returns.
type Step struct {
	Entry *eventlog.Entry
	Fold  *projection.Fold // nil unless the predicate needs the state

	view, prev map[string]any
}

// View returns the state's view, made once a step, or nil if the predicate
// does not need the state.
func (s *Step) View() map[string]any {
	if s.view == nil && s.Fold != nil {
		s.view = s.Fold.View()
	}
	return s.view
}

// Prev returns the view after the entry before, or nil if the predicate does
// not need it.
func (s *Step) Prev() map[string]any { return s.prev }

// Mode says which steps a scan reports.
type Mode uint8

// The modes of a scan.
const (
	All     Mode = iota // each step where the predicate is true
	First               // the first of them, and stop
	Last                // the last of them
	Changes             // each step where the answer is another than at the step before; before the first it is false
)

// Hit is a step that a scan reports.
type Hit struct {
	Entry eventlog.Entry
	Value bool // what the predicate said; false only with Changes
}

// Scan asks pred about every entry from one Seq to another, both included, in
// one pass, and yields what mode reports. That is exact for every Seq and
// assumes nothing of the predicate. From 0 is from 1; a to beyond the last
// entry is [ErrNoAddress]. After an error the sequence ends.
func (r *Replay) Scan(ctx context.Context, from, to eventlog.Seq, pred Predicate, mode Mode) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		var last *Hit
		was := false
		err := r.steps(ctx, max(from, 1), to, pred.Needs, func(s *Step) (bool, error) {
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
func (r *Replay) steps(ctx context.Context, from, to eventlog.Seq, needs Needs, visit func(*Step) (bool, error)) error {
	if from > to {
		return nil
	}
	if err := r.checkSeq(Moment{Seq: to}); err != nil {
		return err
	}
	var entry eventlog.Entry // one for all steps, which are only lent
	s := Step{Entry: &entry}
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
				s.prev = s.View() // of the step before, often made already
			}
			s.view = nil
			if err := s.Fold.Apply(&e); err != nil {
				return fmt.Errorf("replay: %w", err)
			}
			s.Fold.Advance(e.At)
		}
		entry = e
		if more, err := visit(&s); err != nil || !more {
			return err
		}
		if e.Seq >= to {
			return nil
		}
	}
	return r.ended(ctx, from, to)
}

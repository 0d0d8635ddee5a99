package provenance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// ErrUnmet says that the condition of [Minimize] does not hold in the session itself.
var ErrUnmet = errors.New("provenance: the condition does not hold")

// Minimal is the result of [Minimize].
type Minimal struct {
	Moment  replay.Moment
	Signals []eventlog.Seq // in order
	Of      int            // the number of signals up to the moment
	Runs    int            // how many times the session was folded
}

// Minimize finds a set of signals without which a condition at a moment no longer holds:
// with these signals and all entries that are no signals it holds, and no single one of
// them can be left out. Signals keep their numbers and times. There may be other such
// sets, also smaller ones.
//
// Guess, which may be empty, is a set to try first, such as that of [Why]. The entries
// up to the moment are held in memory. The error is [ErrUnmet] if the condition does
// not hold with all signals.
func Minimize(ctx context.Context, r *replay.Replay, at replay.Moment, holds Criterion, guess []eventlog.Seq) (Minimal, error) {
	t, err := newTrial(ctx, r, at)
	if err != nil {
		return Minimal{}, err
	}
	return t.minimize(ctx, at, holds, guess)
}

func (t *trial) minimize(ctx context.Context, at replay.Moment, holds Criterion, guess []eventlog.Seq) (Minimal, error) {
	all := t.signals()
	test := func(list []eventlog.Seq) (bool, error) {
		f, err := t.fold(ctx, setOf(list))
		if err != nil {
			return false, err
		}
		return holds(ctx, f)
	}
	ok, err := test(all)
	if err != nil {
		return Minimal{}, err
	}
	if !ok {
		return Minimal{}, fmt.Errorf("%w at %v", ErrUnmet, at)
	}
	start := all
	for _, smaller := range [][]eventlog.Seq{{}, guess} {
		if len(smaller) >= len(start) {
			continue
		}
		if ok, err = test(smaller); err != nil {
			return Minimal{}, err
		}
		if ok {
			start = smaller
			break
		}
	}
	left, err := reduce(slices.Clone(start), test)
	if err != nil {
		return Minimal{}, err
	}
	return Minimal{Moment: at, Signals: left, Of: len(all), Runs: t.runs}, nil
}

// reduce is delta debugging (Zeller and Hildebrandt, 2002): it leaves out parts of a list
// for which test holds, ever smaller ones, until no single element can be left out.
// Test holds for the list itself.
func reduce[E any](list []E, test func([]E) (bool, error)) ([]E, error) {
	for parts := 2; len(list) > 0; {
		parts = min(parts, len(list))
		removed := false
		for i := 0; i < parts; i++ {
			first, end := i*len(list)/parts, (i+1)*len(list)/parts
			rest := slices.Concat(list[:first], list[end:])
			ok, err := test(rest)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			// The parts behind stay the same ones, so that none is tried twice.
			list, removed = rest, true
			parts--
			i--
			if parts < 1 {
				break
			}
		}
		switch {
		case removed:
			parts = max(parts, min(2, len(list)))
		case parts >= len(list):
			return list, nil
		default:
			parts *= 2
		}
	}
	return list, nil
}

func setOf(list []eventlog.Seq) map[eventlog.Seq]bool {
	set := make(map[eventlog.Seq]bool, len(list))
	for _, seq := range list {
		set[seq] = true
	}
	return set
}

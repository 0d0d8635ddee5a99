package edits

import (
	"context"
	"time"

	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// Parting is the first moment at which a test sees different things in two sessions with
// equal entries.
type Parting struct {
	Moment replay.Moment
	At     time.Duration // its session time

	// Step is above 0 if a value that moves has parted between two moments at which
	// something changes at once. Moment is then at most a Step late, and it is assumed that
	// the difference stayed until the second of the two.
	Step time.Duration
}

// Part returns the first moment up to a last one at which a test sees different things in
// two sessions whose entries have the same numbers and times, or nil. It compares them at
// every entry, at every boundary of either one, and at the last moment. Where they differ
// without an entry or a boundary, because a value is under way, it goes back to the
// instant, in steps of [bisect.Resolution]. A test that reads the moment before is compared
// at entries and boundaries alone.
func Part(ctx context.Context, left, right *replay.Replay, last replay.Moment, test bisect.Test) (*Parting, error) {
	var same replay.Moment
	for p, err := range replay.Together(ctx, left, right, replay.MomentRange{To: last}, test.Needs|replay.NeedsState) {
		if err != nil {
			return nil, err
		}
		differs, err := differ(ctx, p.Left, p.Right, test)
		if err != nil {
			return nil, err
		}
		if !differs {
			same = p.Left.Moment
			continue
		}
		found := &Parting{Moment: p.Left.Moment, At: p.Left.Fold.At()}
		if test.Needs&replay.NeedsPrev != 0 {
			return found, nil
		}
		b := between{of: [2]*replay.Replay{left, right}, from: same, test: test}
		return b.refine(ctx, found)
	}
	return nil, ctx.Err()
}

// differ reports whether a test sees different things in two steps.
func differ(ctx context.Context, left, right *replay.ScanStep, test bisect.Test) (bool, error) {
	a, err := test.Input(ctx, left)
	if err != nil {
		return false, err
	}
	b, err := test.Input(ctx, right)
	return a != b, err
}

// between is the time between two successive moments of a walk.
type between struct {
	of    [2]*replay.Replay
	from  replay.Moment
	test  bisect.Test
	steps [2]replay.ScanStep // at from
}

// refine returns the parting between a moment at which the two are the same and the found
// one, at which they are not: the found one itself if its entry or boundary parts them.
func (b *between) refine(ctx context.Context, found *Parting) (*Parting, error) {
	for i, r := range b.of {
		f, err := r.At(ctx, b.from)
		if err != nil {
			return nil, err
		}
		b.steps[i] = replay.ScanStep{Moment: b.from, Fold: f}
		if b.from.Seq > 0 {
			e, err := r.Entry(ctx, b.from.Seq)
			if err != nil {
				return nil, err
			}
			b.steps[i].Entry = &e
		}
	}
	from := b.steps[0].Fold.At()
	// Before the instant of an entry the state has reached its time, and a boundary changes
	// the state at its own.
	before := found.At
	if found.Moment.Seq == b.from.Seq {
		before--
	}
	if before <= from {
		return found, nil
	}
	if differs, err := b.at(ctx, before); err != nil || !differs {
		return found, err
	}
	same, differs := from, before
	for differs-same > bisect.Resolution {
		mid := same + (differs-same)/2
		if on := mid - mid%bisect.Resolution; on > same {
			mid = on
		}
		d, err := b.at(ctx, mid)
		if err != nil {
			return nil, err
		}
		if d {
			differs = mid
		} else {
			same = mid
		}
	}
	return &Parting{Moment: b.momentOf(differs), At: differs, Step: bisect.Resolution}, nil
}

func (b *between) momentOf(at time.Duration) replay.Moment {
	return replay.Moment{Seq: b.from.Seq, Offset: b.from.Offset + at - b.steps[0].Fold.At()}
}

// at reports whether the two differ at a session time between the moments.
func (b *between) at(ctx context.Context, at time.Duration) (bool, error) {
	var steps [2]replay.ScanStep
	for i := range steps {
		f, err := b.steps[i].Fold.Clone()
		if err != nil {
			return false, err
		}
		f.Advance(at)
		steps[i] = replay.ScanStep{Moment: b.momentOf(at), Kind: replay.GridMoment, Entry: b.steps[i].Entry, Fold: f}
	}
	return differ(ctx, &steps[0], &steps[1], b.test)
}

package provenance

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// entrySource yields entries; see [replay.Source].
type entrySource interface {
	Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error]
}

// visitor sees a fold on its way.
type visitor interface {
	// advance moves the fold to a boundary, and arrives there.
	advance(f *projection.Fold, m replay.Moment, at time.Duration)
	// apply moves the fold over an entry, including everything due at its instant. The
	// fold stands at the entry's time before. It returns false to end the walk.
	apply(f *projection.Fold, e *eventlog.Entry) error
}

// walk moves f, which stands right after the entry from with its instant complete, to a
// moment. It stops at every boundary on the way.
func walk(ctx context.Context, entries entrySource, f *projection.Fold, to replay.Moment, v visitor) error {
	m := replay.Moment{Seq: f.Head().Seq}
	base := f.At()
	if m.Seq < to.Seq {
		for e, err := range entries.Entries(ctx, m.Seq+1) {
			if err != nil {
				return fmt.Errorf("provenance: read after entry %d: %w", m.Seq, err)
			}
			if err := boundaries(ctx, f, m, base, e.At, v); err != nil {
				return err
			}
			f.Advance(e.At)
			if err := v.apply(f, &e); err != nil {
				return err
			}
			m, base = replay.Moment{Seq: e.Seq}, e.At
			if e.Seq >= to.Seq {
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.Seq < to.Seq {
			return fmt.Errorf("provenance: the entries end after %d, before %d", m.Seq, to.Seq)
		}
	}
	end := base + to.Offset
	if err := boundaries(ctx, f, m, base, end, v); err != nil {
		return err
	}
	f.Advance(end)
	return nil
}

// boundaries advances f from boundary to boundary up to an instant.
func boundaries(ctx context.Context, f *projection.Fold, m replay.Moment, base, limit time.Duration, v visitor) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, ok := nextBoundary(f)
		if !ok || at > limit || at == math.MaxInt64 {
			return nil
		}
		at = max(at, f.At())
		m.Offset = at - base
		v.advance(f, m, at)
		if again, ok := nextBoundary(f); ok && again <= at {
			return nil // advancing does not remove this boundary
		}
	}
}

// nextBoundary returns the next instant at which a state changes without an entry.
func nextBoundary(f *projection.Fold) (at time.Duration, ok bool) {
	for _, st := range f.States() {
		p, is := st.(replay.Timed)
		if !is {
			continue
		}
		if t, has := p.NextBoundary(); has && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

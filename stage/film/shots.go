package film

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// At shows an interval at instants that do not decrease, in one pass. The first and the
// last picture are of exactly the entries at which the interval begins and ends; each
// other one has every entry up to its instant.
func (r *Reel) At(ctx context.Context, over Interval, instants []time.Duration) iter.Seq2[Shot, error] {
	return func(yield func(Shot, error) bool) {
		fold, err := r.travel.At(ctx, over.First)
		if err != nil {
			yield(Shot{}, err)
			return
		}
		next, stop := iter.Pull2(r.log.Entries(ctx, over.First.Seq+1))
		defer stop()
		e, err, more := next()
		entryAt := over.From - over.First.Offset // of the fold's last entry
		n := len(instants)
		for i, now := range instants {
			for (i > 0 || n == 1) && more && err == nil && e.Seq <= over.Last.Seq && (e.At <= now || i == n-1) {
				entryAt = e.At
				if err = fold.Apply(&e); err == nil {
					e, err, more = next()
				}
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Shot{}, err)
				return
			}
			fold.Advance(now)
			if !r.show(ctx, yield, fold, replay.Moment{Seq: fold.Head().Seq, Offset: fold.At() - entryAt}) {
				return
			}
		}
	}
}

// show yields the frame of a fold, and reports whether to continue.
func (r *Reel) show(ctx context.Context, yield func(Shot, error) bool, fold *projection.Fold, m replay.Moment) bool {
	f, err := r.frame(ctx, fold)
	return yield(Shot{m, fold.At(), f}, err) && err == nil
}

// Entries shows an interval at its beginning, at each of its entries and at its end.
func (r *Reel) Entries(ctx context.Context, over Interval) iter.Seq2[Shot, error] {
	return r.entries(ctx, over, r.show)
}

// effect is how long after an entry its effect is shown: beams have grown, speech has
// begun, and flashes are still seen.
const effect = 500 * time.Millisecond

// Effects is [Reel.Entries] with each frame as it is half a second after its moment, when
// the effect of the entry is seen, as if no other entry came before. The times of the shots
// and the frames are those of their moments.
func (r *Reel) Effects(ctx context.Context, over Interval) iter.Seq2[Shot, error] {
	return r.entries(ctx, over, func(ctx context.Context, yield func(Shot, error) bool, fold *projection.Fold, m replay.Moment) bool {
		at := fold.At()
		after, err := fold.Clone()
		if err != nil {
			return yield(Shot{}, err) && false
		}
		after.Advance(at + effect)
		return r.show(ctx, func(s Shot, err error) bool {
			if s.At = at; s.Frame != nil {
				s.Frame.At = at
			}
			return yield(s, err)
		}, after, m)
	})
}

// entries calls show at the beginning of an interval, at each of its entries and at its end.
func (r *Reel) entries(ctx context.Context, over Interval, show func(context.Context, func(Shot, error) bool, *projection.Fold, replay.Moment) bool) iter.Seq2[Shot, error] {
	return func(yield func(Shot, error) bool) {
		fold, err := r.travel.At(ctx, over.First)
		if err := cmp.Or(err, ctx.Err()); err != nil {
			yield(Shot{}, err)
			return
		}
		if !show(ctx, yield, fold, over.First) {
			return
		}
		for seq := over.First.Seq + 1; seq <= over.Last.Seq; seq++ {
			e, err := r.log.Entry(ctx, seq)
			if err == nil {
				err = cmp.Or(ctx.Err(), fold.Apply(&e))
			}
			if err != nil {
				yield(Shot{}, err)
				return
			}
			fold.Advance(e.At)
			if !show(ctx, yield, fold, replay.Moment{Seq: seq}) {
				return
			}
		}
		if over.Last.Offset > 0 && over.Last != over.First {
			fold.Advance(over.To)
			show(ctx, yield, fold, over.Last)
		}
	}
}

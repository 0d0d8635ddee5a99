package film

import (
	"cmp"
	"context"
	"iter"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
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
			if !show(yield, fold, replay.Moment{Seq: fold.Head().Seq, Offset: fold.At() - entryAt}) {
				return
			}
		}
	}
}

// show yields the frame of a fold, and reports whether to continue.
func show(yield func(Shot, error) bool, fold *projection.Fold, m replay.Moment) bool {
	f, err := FrameOf(fold)
	return yield(Shot{m, fold.At(), f}, err) && err == nil
}

// Entries shows an interval at its beginning, at each of its entries and at its end.
func (r *Reel) Entries(ctx context.Context, over Interval) iter.Seq2[Shot, error] {
	return func(yield func(Shot, error) bool) {
		fold, err := r.travel.At(ctx, over.First)
		if err := cmp.Or(err, ctx.Err()); err != nil {
			yield(Shot{}, err)
			return
		}
		if !show(yield, fold, over.First) {
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
			if !show(yield, fold, replay.Moment{Seq: seq}) {
				return
			}
		}
		if over.Last.Offset > 0 && over.Last != over.First {
			fold.Advance(over.To)
			show(yield, fold, over.Last)
		}
	}
}

// MaxStill bounds the time after an entry for which frames are shown. Otherwise an endless
// animation would fill hours without entries with frames.
const MaxStill = 5 * time.Minute

// Moving shows an interval frame by frame, and at each entry. Where nothing moves, and
// after [MaxStill] without an entry, it continues with the next boundary or entry.
func (r *Reel) Moving(ctx context.Context, over Interval, step time.Duration) iter.Seq2[Shot, error] {
	return func(yield func(Shot, error) bool) {
		fold, err := r.travel.At(ctx, over.First)
		if err != nil {
			yield(Shot{}, err)
			return
		}
		next, stop := iter.Pull2(r.log.Entries(ctx, over.First.Seq+1))
		defer stop()
		entryAt := over.From - over.First.Offset
		shown := func() bool {
			return show(yield, fold, replay.Moment{Seq: fold.Head().Seq, Offset: fold.At() - entryAt})
		}
		if !shown() {
			return
		}
		for {
			e, err, more := next()
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Shot{}, err)
				return
			}
			until := over.To
			last := !more || e.Seq > over.Last.Seq
			if !last {
				until = e.At
			}
			for t := fold.At(); ; {
				if t = nextFrame(fold, t, step); t >= until || t-entryAt > MaxStill {
					break
				}
				fold.Advance(t)
				if ctx.Err() != nil || !shown() {
					return
				}
			}
			if last {
				fold.Advance(until)
				shown()
				return
			}
			if err := fold.Apply(&e); err != nil {
				yield(Shot{}, err)
				return
			}
			fold.Advance(e.At)
			entryAt = e.At
			if !shown() {
				return
			}
		}
	}
}

// nextFrame returns the instant after t at which the stage has to be drawn again: the
// next frame if anything moves, otherwise the first frame after the next boundary of a
// performance.
func nextFrame(fold *projection.Fold, t, step time.Duration) time.Duration {
	after := t
	if !session.StageOf(fold).Moving() {
		at, ok := NextBoundary(fold)
		if !ok {
			return math.MaxInt64
		}
		after = max(after, at-1)
	}
	if n := after/step + 1; n < math.MaxInt64/step {
		return n * step
	}
	return math.MaxInt64
}

// NextBoundary returns the instant at which the next step of any performance begins or
// ends.
func NextBoundary(fold *projection.Fold) (next time.Duration, ok bool) {
	for _, st := range fold.States() {
		if p, is := st.(replay.Performer); is {
			if at, has := p.NextBoundary(); has && (!ok || at < next) {
				next, ok = at, true
			}
		}
	}
	return next, ok
}

// Rest returns the moment after last at which no performance is under way. It does
// not wait for a performance without an end, and stops after a million boundaries.
func Rest(ctx context.Context, travel *replay.Replay, last replay.Moment) (replay.Moment, error) {
	fold, err := travel.At(ctx, last)
	if err != nil {
		return last, err
	}
	began := fold.At()
	for range 1_000_000 {
		if err := ctx.Err(); err != nil {
			return last, err
		}
		next, ok := NextBoundary(fold)
		if !ok || next == math.MaxInt64 || next < fold.At() {
			break
		}
		before := fold.At()
		fold.Advance(next)
		if again := fold.At(); again == before && next == before {
			break
		}
	}
	last.Offset = fold.At() - began
	return last, nil
}

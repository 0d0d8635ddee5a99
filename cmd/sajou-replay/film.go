package main

import (
	"cmp"
	"context"
	"iter"
	"math"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// maxPictures bounds how many pictures one command draws.
const maxPictures = 5000

// staged is a session whose stage is looked at: as it was recorded, or with
// another scene in place of all recorded ones.
type staged struct {
	*target
	travel *replay.Replay
}

// stagedWith returns t with a scene in place of the recorded ones; nil keeps
// them.
func (t *target) stagedWith(sc *scene.Scene) staged {
	if sc == nil {
		return staged{t, t.travel}
	}
	// Saved images are of the recorded scene.
	return staged{t, replay.Open(t.log, sajou.ProjectionsWith(sajou.ProjectionConfig{Scene: sc}), nil)}
}

// frame returns what is seen at a moment.
func (s staged) frame(ctx context.Context, m replay.Moment) (*stage.Frame, error) {
	fold, err := s.travel.At(ctx, m)
	if err != nil {
		return nil, err
	}
	return frameOf(fold)
}

func frameOf(fold *projection.Fold) (*stage.Frame, error) {
	f := sajou.FrameOf(fold)
	if f == nil {
		return nil, fail(exitCannotRun, "there is no stage at %d", fold.Head().Seq)
	}
	return f, nil
}

// shot is one picture: the moment, its session time, and what is seen.
type shot struct {
	replay.Moment
	At    time.Duration
	Frame *stage.Frame
}

// span is a range with the session time of its ends.
type span struct {
	first, last replay.Moment
	from, to    time.Duration
}

func (s staged) span(ctx context.Context, first, last replay.Moment) (span, error) {
	from, err := s.timeOf(ctx, first)
	if err != nil {
		return span{}, err
	}
	to, err := s.timeOf(ctx, last)
	return span{first, last, from, to}, err
}

// timeOf returns the session time of a moment.
func (s staged) timeOf(ctx context.Context, m replay.Moment) (time.Duration, error) {
	if m.Seq == 0 {
		return m.Offset, nil
	}
	e, err := s.log.Entry(ctx, m.Seq)
	return e.At + m.Offset, err
}

// instants returns the session times of a film's pictures: one each step, and
// one at the end.
func (r span) instants(step time.Duration) (n int, at func(i int) time.Duration) {
	whole := int64(r.to-r.from) / int64(step)
	n = int(min(whole, math.MaxInt32)) + 1
	if r.from+time.Duration(whole)*step < r.to {
		n++
	}
	return n, func(i int) time.Duration {
		if i == n-1 {
			return r.to
		}
		return r.from + time.Duration(i)*step
	}
}

// spread returns the session times of n pictures, evenly from end to end.
func (r span) spread(n int) func(i int) time.Duration {
	return func(i int) time.Duration {
		if i == n-1 {
			return r.to
		}
		at := r.from + time.Duration(float64(r.to-r.from)*float64(i)/float64(n-1))
		if r.to-r.from < time.Duration(n)*time.Millisecond {
			return at
		}
		return max(r.from, at.Truncate(time.Millisecond)) // an address to read aloud
	}
}

// film shows a range at n instants that do not go back, in one pass. The first
// and the last picture are those of the range's ends, to the entry; the others
// have every entry up to their instant.
func (s staged) film(ctx context.Context, r span, n int, at func(i int) time.Duration) iter.Seq2[shot, error] {
	return func(yield func(shot, error) bool) {
		fold, err := s.travel.At(ctx, r.first)
		if err != nil {
			yield(shot{}, err)
			return
		}
		next, stop := iter.Pull2(s.log.Entries(ctx, r.first.Seq+1))
		defer stop()
		e, err, more := next()
		entryAt := r.from - r.first.Offset // of the fold's last entry
		for i := range n {
			now := at(i)
			for (i > 0 || n == 1) && more && err == nil && e.Seq <= r.last.Seq && (e.At <= now || i == n-1) {
				entryAt = e.At
				if err = fold.Apply(&e); err == nil {
					e, err, more = next()
				}
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(shot{}, err)
				return
			}
			fold.Advance(now)
			f, err := frameOf(fold)
			m := replay.Moment{Seq: fold.Head().Seq, Offset: fold.At() - entryAt}
			if !yield(shot{m, fold.At(), f}, err) || err != nil {
				return
			}
		}
	}
}

// entries shows a range at each of its entries, and where it begins and ends.
func (s staged) entries(ctx context.Context, over span) iter.Seq2[shot, error] {
	return func(yield func(shot, error) bool) {
		fold, err := s.travel.At(ctx, over.first)
		if err := cmp.Or(err, ctx.Err()); err != nil {
			yield(shot{}, err)
			return
		}
		show := func(m replay.Moment) bool {
			f, err := frameOf(fold)
			return yield(shot{m, fold.At(), f}, err) && err == nil
		}
		if !show(over.first) {
			return
		}
		for seq := over.first.Seq + 1; seq <= over.last.Seq; seq++ {
			e, err := s.log.Entry(ctx, seq)
			if err == nil {
				err = cmp.Or(ctx.Err(), fold.Apply(&e))
			}
			if err != nil {
				yield(shot{}, err)
				return
			}
			fold.Advance(e.At)
			if !show(momentOf(seq)) {
				return
			}
		}
		if over.last.Offset > 0 && over.last != over.first {
			fold.Advance(over.to)
			show(over.last)
		}
	}
}

package compare

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage"
)

// DefaultPictured is a number of moments for [FirstPicture] that take some seconds.
const DefaultPictured = 5000

// PictureSearch is the result of [FirstPicture].
type PictureSearch struct {
	Picture *PictureDiff // the first that differs, nil if none was found

	// Left and Right are the moments of Picture, or the last ones that were compared.
	Left, Right replay.Moment

	Moments int  // that were compared
	Ended   bool // nothing is left to compare behind these moments
}

// FirstPicture searches the first picture that differs from the first difference of two
// recordings on. It compares the pictures after each entry that is in both, at the moments of
// each difference, and at the boundaries of either recording in the same time since then, at
// most that many moments. Sounds are compared by their ages, and labels of forks are not
// compared. Errors: those of reading, and of ctx.
func FirstPicture(ctx context.Context, left, right *replay.Replay, d *RecordingDiff, most int) (*PictureSearch, error) {
	s := &pictureSearch{ctx: ctx, most: most, sides: [2]*recordingWalk{{half: newHalf(left)}, {half: newHalf(right)}}}
	if len(d.Differences) == 0 {
		s.out.Ended = true
		return &s.out, nil
	}
	first := &d.Differences[0]
	for i, m := range []replay.Moment{first.LeftState, first.RightState} {
		if err := s.sides[i].start(ctx, m); err != nil {
			return nil, err
		}
		defer s.sides[i].stop()
	}
	more, err := s.compare()
	if more && err == nil {
		err = s.run(d.anchors())
	}
	return &s.out, err
}

// anchors yields pairs of moments at which the recordings are to be compared, in the order of
// the alignment: those of the entries in both, and those of each difference, from the second
// one on.
func (d *RecordingDiff) anchors() iter.Seq[[2]replay.Moment] {
	return func(yield func([2]replay.Moment) bool) {
		apart := [2]map[eventlog.Seq]bool{{}, {}}
		for i := range d.Differences {
			apart[0][d.Differences[i].Left], apart[1][d.Differences[i].Right] = true, true
		}
		at := [2]eventlog.Seq{1, 1}
		// aligned returns the next entries that are in both.
		aligned := func() (pair [2]replay.Moment, ok bool) {
			for i, end := range []eventlog.Seq{d.Left.Seq, d.Right.Seq} {
				for apart[i][at[i]] {
					at[i]++
				}
				if at[i] > end {
					return pair, false
				}
				pair[i].Seq = at[i]
			}
			return pair, true
		}
		for i := range d.Differences {
			diff := &d.Differences[i]
			for {
				pair, ok := aligned()
				if !ok || !(diff.Left > 0 && pair[0].Seq < diff.Left || diff.Left == 0 && pair[1].Seq < diff.Right) {
					break
				}
				if i > 0 && !yield(pair) {
					return
				}
				at[0]++
				at[1]++
			}
			if i > 0 && !yield([2]replay.Moment{diff.LeftState, diff.RightState}) {
				return
			}
		}
		for pair, ok := aligned(); ok; pair, ok = aligned() {
			if !yield(pair) {
				return
			}
			at[0]++
			at[1]++
		}
	}
}

// pictureSearch is one run of [FirstPicture].
type pictureSearch struct {
	ctx   context.Context
	most  int // moments
	sides [2]*recordingWalk
	out   PictureSearch
}

func (s *pictureSearch) run(anchors iter.Seq[[2]replay.Moment]) error {
	for pair := range anchors {
		if s.sides[0].behind(pair[0]) || s.sides[1].behind(pair[1]) {
			continue // a difference was compared at the moment of a later entry
		}
		span := theEnd
		for i, w := range s.sides {
			left, err := w.span(pair[i])
			if err != nil {
				return err
			}
			span = min(span, left)
		}
		if more, err := s.between(span); err != nil || !more {
			return err
		}
		for i, w := range s.sides {
			if err := w.reach(pair[i]); err != nil {
				return err
			}
		}
		if more, err := s.compare(); err != nil || !more {
			return err
		}
	}
	if more, err := s.between(replay.MaxRest); err != nil || !more {
		return err
	}
	s.out.Ended = true
	return nil
}

// between compares at the boundaries of either side before a span of time has passed.
func (s *pictureSearch) between(span time.Duration) (more bool, err error) {
	begin := [2]time.Duration{s.sides[0].fold.At(), s.sides[1].fold.At()}
	for passed := time.Duration(0); ; {
		next := span
		for i, w := range s.sides {
			if at, ok := replay.NextBoundary(w.fold); ok && at-begin[i] > passed {
				next = min(next, at-begin[i])
			}
		}
		if next >= span {
			return true, nil
		}
		passed = next
		for i, w := range s.sides {
			w.fold.Advance(begin[i] + passed)
		}
		if more, err := s.compare(); err != nil || !more {
			return false, err
		}
	}
}

// compare compares the pictures of the present moments. It reports false if they differ, or
// if no more may be compared.
func (s *pictureSearch) compare() (more bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if s.out.Moments == s.most {
		return false, nil
	}
	var frames [2]*stage.Frame
	moments := [2]*replay.Moment{&s.out.Left, &s.out.Right}
	for i, w := range s.sides {
		*moments[i] = w.moment()
		f, err := w.frame(s.ctx, *moments[i])
		if err != nil {
			return false, err
		}
		frames[i] = apartFromTime(f)
	}
	s.out.Moments++
	if SameFrame(frames[0], frames[1]) {
		return true, nil
	}
	s.out.Picture, err = Frames(frames[0], frames[1])
	return false, err
}

// apartFromTime returns a frame as it is at the session time 0, without a label.
func apartFromTime(f *stage.Frame) *stage.Frame {
	if f == nil {
		return nil
	}
	now := *f
	now.At, now.Mark = 0, ""
	now.Sounds = slices.Clone(f.Sounds)
	for i := range now.Sounds {
		now.Sounds[i].At -= f.At
	}
	return &now
}

// recordingWalk goes through one recording.
type recordingWalk struct {
	*half
	entered time.Duration // the time of the last entry
	next    func() (eventlog.Entry, error, bool)
	stop    func()
	ahead   eventlog.Entry // the next entry, unless its Seq is 0
}

// start begins at a moment.
func (w *recordingWalk) start(ctx context.Context, m replay.Moment) (err error) {
	w.stop = func() {}
	if w.fold, err = w.travel.At(ctx, m); err != nil {
		return err
	}
	w.entered = w.fold.At() - m.Offset
	if m.Seq < w.travel.Head().Seq {
		w.next, w.stop = iter.Pull2(w.travel.Entries(ctx, m.Seq+1))
	}
	return nil
}

func (w *recordingWalk) moment() replay.Moment {
	return replay.Moment{Seq: w.fold.Head().Seq, Offset: w.fold.At() - w.entered}
}

// behind reports whether the walk is behind a moment.
func (w *recordingWalk) behind(m replay.Moment) bool { return w.moment().Compare(m) > 0 }

// peek returns the next entry.
func (w *recordingWalk) peek() (*eventlog.Entry, error) {
	if w.ahead.Seq == 0 {
		if w.next == nil {
			return nil, fmt.Errorf("compare: %q has no entry behind %d", w.travel.Name(), w.fold.Head().Seq)
		}
		e, err, ok := w.next()
		switch {
		case err != nil:
			return nil, fmt.Errorf("compare: read %q after entry %d: %w", w.travel.Name(), w.fold.Head().Seq, err)
		case !ok:
			return nil, fmt.Errorf("compare: the entries of %q end after %d", w.travel.Name(), w.fold.Head().Seq)
		}
		w.ahead = e
	}
	return &w.ahead, nil
}

// span returns the time that is left until a moment, or until the next entry before it.
func (w *recordingWalk) span(m replay.Moment) (time.Duration, error) {
	if m.Seq == w.fold.Head().Seq {
		return w.entered + m.Offset - w.fold.At(), nil
	}
	e, err := w.peek()
	if err != nil {
		return 0, err
	}
	return e.At - w.fold.At(), nil
}

// reach goes on to a moment.
func (w *recordingWalk) reach(m replay.Moment) error {
	for w.fold.Head().Seq < m.Seq {
		e, err := w.peek()
		if err != nil {
			return err
		}
		if err := w.apply(e); err != nil {
			return err
		}
		w.entered = e.At
		w.ahead.Seq = 0
	}
	w.fold.Advance(w.entered + m.Offset)
	return nil
}

package replay_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// careless is an album whose answers are wrong in some way. All of its images have a wrong
// state, so that a test fails if one is used.
type careless struct {
	album
	answer func(seq eventlog.Seq, img projection.Image, ok bool) (projection.Image, bool, error)
	asked  []eventlog.Seq
}

func (c *careless) Nearest(ctx context.Context, seq eventlog.Seq) (projection.Image, bool, error) {
	c.asked = append(c.asked, seq)
	img, ok, _ := c.album.Nearest(ctx, seq)
	return c.answer(seq, img, ok)
}

// Images only save time: those that cannot be read, that are later than asked for, or that are
// not earlier than others that were refused, are not used, and the entries alone give the
// answers.
func TestCarelessImages(t *testing.T) {
	s := &tape{}
	for i := range 30 {
		s.add(10*ms, byte(i%4))
	}
	broken := errors.New("broken")
	spoilt := takeImages(s, func(seq eventlog.Seq) bool { return seq%5 == 0 })
	for i := range spoilt {
		spoilt[i].Parts[0].Data[16]++ // the sum
	}
	answers := map[string]func(seq eventlog.Seq, img projection.Image, ok bool) (projection.Image, bool, error){
		"error": func(_ eventlog.Seq, img projection.Image, ok bool) (projection.Image, bool, error) {
			return img, ok, broken
		},
		"none": func(_ eventlog.Seq, img projection.Image, _ bool) (projection.Image, bool, error) {
			return img, false, nil
		},
		"later": func(seq eventlog.Seq, _ projection.Image, _ bool) (projection.Image, bool, error) {
			return spoilt[min(int(seq)/5, len(spoilt)-1)], true, nil
		},
	}
	for name, answer := range answers {
		for seq := eventlog.Seq(0); seq <= 29; seq++ {
			m := replay.Moment{Seq: seq, Offset: 3 * ms}
			images := &careless{album: spoilt, answer: answer}
			s.reads.Store(0)
			f, err := replay.Open(s, toys, images).At(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, slow(t, s, m).Image(), f.Image(), "%s: at %v", name, m)
			require.LessOrEqual(t, s.reads.Load(), int64(seq)+1, "%s: the entries up to %v, and the next one for its time", name, m)
			require.LessOrEqual(t, len(images.asked), 1, "%s: asked for %v", name, images.asked)
		}

		// A search is not divided without an image before each part: each part would fold
		// what the one before it folds.
		r := replay.Open(s, toys, &careless{album: spoilt, answer: answer})
		r.Split(3, 2)
		over := replay.MomentRange{To: replay.Moment{Seq: 29}}
		s.reads.Store(0)
		want := intervals(t, replay.Open(s, toys, nil), over, running(replay.NeedsState))
		undivided := s.reads.Swap(0)
		require.Equal(t, want, intervals(t, r, over, running(replay.NeedsState)), name)
		if name == "later" {
			continue // the part begins behind the image, and Resume trusts that there is one
		}
		require.Equal(t, undivided, s.reads.Load(), name)
		at, ok := r.Resume(t.Context(), 7, replay.NeedsState)
		require.False(t, ok, "%s: behind entry %d", name, at)
	}

	// An end of the context while an image is looked for is the error.
	ctx, cancel := context.WithCancel(t.Context())
	r := replay.Open(s, toys, &careless{album: spoilt, answer: func(eventlog.Seq, projection.Image, bool) (projection.Image, bool, error) {
		cancel()
		return projection.Image{}, false, broken
	}})
	s.reads.Store(0)
	_, err := r.At(ctx, replay.Moment{Seq: 20})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, s.reads.Load())
}

// An image of another history is passed over for the one before it, down to the first.
func TestImagesOfOtherHistories(t *testing.T) {
	s := &tape{}
	for i := range 30 {
		s.add(10*ms, byte(i%4))
	}
	for right := eventlog.Seq(0); right <= 30; right += 5 {
		images := takeImages(s, func(seq eventlog.Seq) bool { return seq%5 == 0 })
		for i := range images {
			if images[i].Head.Seq > right {
				images[i].Head.Hash[0]++
			}
		}
		all := &careless{album: images, answer: func(_ eventlog.Seq, img projection.Image, ok bool) (projection.Image, bool, error) {
			return img, ok, nil
		}}
		s.reads.Store(0)
		f, err := replay.Open(s, toys, all).At(t.Context(), replay.Moment{Seq: 28})
		require.NoError(t, err)
		require.Equal(t, slow(t, s, replay.Moment{Seq: 28}).Image(), f.Image())
		want := []eventlog.Seq{28}
		for seq := eventlog.Seq(25); seq > right && seq > 0; seq -= 5 {
			want = append(want, seq-1)
		}
		require.Equal(t, want, all.asked, "the images up to %d are right", right)
		// One entry for each image, and those from the right one on.
		require.Equal(t, int64(28-min(right, 25))+int64(len(want)-1)+map[bool]int64{true: 1}[right > 0], s.reads.Load(), "the images up to %d are right", right)
	}
}

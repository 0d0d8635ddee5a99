package film_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

var errWorn = errors.New("worn out")

// worn are the entries of a reel, of which a number can be read yet.
type worn struct {
	*film.Reel
	left int
}

func (w *worn) Entry(ctx context.Context, seq eventlog.Seq) (eventlog.Entry, error) {
	if w.left--; w.left < 0 {
		return eventlog.Entry{}, errWorn
	}
	return w.Reel.Entry(ctx, seq)
}

func (w *worn) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for e, err := range w.Travel().Entries(ctx, from) {
			if w.left--; w.left < 0 {
				yield(eventlog.Entry{}, errWorn)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Whatever is drawn, an entry that cannot be read is its error, at whichever read it comes, and
// ends the pictures.
func TestEveryReadError(t *testing.T) {
	ctx := t.Context()
	reel, head := played(t, "")
	first, last := replay.Moment{Seq: head - 9}, replay.Moment{Seq: head - 4, Offset: time.Microsecond}
	if _, err := reel.Travel().At(ctx, last); err != nil {
		last.Offset = 0
	}
	over, err := reel.Interval(ctx, first, last)
	require.NoError(t, err)
	shots := func(all iter.Seq2[film.Shot, error]) error {
		for shot, err := range all {
			if err != nil {
				require.Nil(t, shot.Frame)
				return err
			}
		}
		return nil
	}
	for name, draw := range map[string]func(r *film.Reel) error{
		"interval": func(r *film.Reel) error { _, err := r.Interval(ctx, first, last); return err },
		"caption":  func(r *film.Reel) error { _, err := r.Caption(ctx, first); return err },
		"shot":     func(r *film.Reel) error { _, err := r.Shot(ctx, first); return err },
		"shot of a fold": func(r *film.Reel) error {
			fold, err := r.Travel().At(ctx, first)
			require.NoError(t, err)
			_, err = r.ShotOf(ctx, fold, first)
			return err
		},
		"at":       func(r *film.Reel) error { return shots(r.At(ctx, over, over.Spread(4))) },
		"entries":  func(r *film.Reel) error { return shots(r.Entries(ctx, over)) },
		"effects":  func(r *film.Reel) error { return shots(r.Effects(ctx, over)) },
		"overview": func(r *film.Reel) error { _, err := r.Overview(ctx, over); return err },
		"pixels":   func(r *film.Reel) error { return r.FitsPixels(ctx, over, 3, film.Style{}) },
		"sheet of entries": func(r *film.Reel) error {
			_, _, _, err := r.Sheet(ctx, over, film.SheetConfig{Style: film.Style{Width: 20}})
			return err
		},
		"sheet of three": func(r *film.Reel) error {
			_, _, _, err := r.Sheet(ctx, over, film.SheetConfig{Style: film.Style{Width: 20}, Count: 3})
			return err
		},
		"GIF": func(r *film.Reel) error {
			_, err := r.GIF(ctx, io.Discard, over, over.Spread(3), 10, film.Style{Width: 20}, nil)
			return err
		},
	} {
		for left := 0; ; left++ {
			w := &worn{reel, left}
			err := draw(film.Open(w, reel.Travel()))
			if w.left >= 0 {
				require.NoError(t, err, name)
				require.Positive(t, left, name)
				break
			}
			require.ErrorIs(t, err, errWorn, "%s after %d reads", name, left)
		}
	}
}

// The picture of a fold is that of its moment, and a fold without a stage has none.
func TestPicturesOfFolds(t *testing.T) {
	ctx := t.Context()
	log, travel := recordedStory(t)
	reel := film.Open(log, travel)
	sc, diagnostics := scene.Parse("other.json", []byte(`{"sajou": "scene", "version": 1, "size": {"width": 123, "height": 45}, "looks": {"body": {"figure": "robot", "size": 7}}, "stranger": "body"}`))
	require.NotNil(t, sc, diagnostics)
	other := film.OpenWith(log, sc)
	require.Equal(t, "a", other.Name())
	for seq := eventlog.Seq(1); seq <= log.Head().Seq; seq++ {
		m := replay.Moment{Seq: seq}
		fold, err := travel.At(ctx, m)
		require.NoError(t, err)
		want, err := reel.Shot(ctx, m)
		require.NoError(t, err)
		require.Equal(t, session.StageOf(fold).Frame(), want.Frame)
		require.Equal(t, film.Shot{Moment: m, At: fold.At(), Frame: want.Frame}, want)
		got, err := reel.ShotOf(ctx, fold, m)
		require.NoError(t, err)
		require.Equal(t, want, got)

		// Another scene stands for all that were recorded.
		shown, err := other.Shot(ctx, m)
		require.NoError(t, err)
		require.Equal(t, []float64{123, 45}, []float64{shown.Frame.Scene.Width, shown.Frame.Scene.Height})
		require.Equal(t, want.At, shown.At)
		for _, f := range shown.Frame.Figures {
			require.Equal(t, "robot", f.Look.Figure, f.ID)
		}
	}
	_, err := reel.Shot(ctx, replay.Moment{Seq: log.Head().Seq + 1})
	require.ErrorIs(t, err, replay.ErrNoAddress)

	bare := projection.NewFold(projection.Set{}, eventlog.Hash{})
	_, err = film.FrameOf(bare)
	require.EqualError(t, err, "film: the state at entry 0 has no stage")
	_, err = reel.ShotOf(ctx, bare, replay.Moment{})
	none, ok := errors.AsType[*film.NoStageError](err)
	require.True(t, ok)
	require.Zero(t, none.Seq)
	changed, err := film.Screen(func(*stage.Frame) { t.Error("shown") }).Show(bare, replay.Moment{})
	require.ErrorAs(t, err, &none)
	require.False(t, changed)

	_, err = film.Interval{To: math.MaxInt64 / 2}.Every(time.Hour)
	require.EqualError(t, err, "film: 1281025 pictures exceed the limit of 5000")
}

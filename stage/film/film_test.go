package film_test

import (
	"bytes"
	"errors"
	"image/gif"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// The instants of an interval include both of its ends for every step.
func TestInstants(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		from, to, step time.Duration
		want           []time.Duration
	}{
		{0, 0, ms, []time.Duration{0}},
		{5 * ms, 9 * ms, 2 * ms, []time.Duration{5 * ms, 7 * ms, 9 * ms}},
		{5 * ms, 9 * ms, 3 * ms, []time.Duration{5 * ms, 8 * ms, 9 * ms}},
		{5 * ms, 9 * ms, time.Hour, []time.Duration{5 * ms, 9 * ms}},
	} {
		got, err := film.Interval{From: tc.from, To: tc.to}.Every(tc.step)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%v to %v every %v: %v, %v, want %v", tc.from, tc.to, tc.step, got, err, tc.want)
		}
	}
	if _, err := (film.Interval{To: time.Hour}).Every(ms); !isLimit(err) {
		t.Errorf("an hour in milliseconds: %v, want a BoundError", err)
	}
	for _, tc := range []struct {
		to   time.Duration
		want []time.Duration
	}{
		{10 * ms, []time.Duration{0, 3 * ms, 6 * ms, 10 * ms}},
		{3, []time.Duration{0, 1, 2, 3}},
	} {
		if got := (film.Interval{To: tc.to}).Spread(4); !slices.Equal(got, tc.want) {
			t.Errorf("4 instants of %v: %v, want %v", tc.to, got, tc.want)
		}
	}
	if got := (film.Interval{From: 1, To: 5}).Spread(1); !slices.Equal(got, []time.Duration{5}) {
		t.Errorf("1 instant: %v, want the end", got)
	}
}

func isLimit(err error) bool {
	_, ok := errors.AsType[*film.BoundError](err)
	return ok
}

// A film shows the entry that each instant has reached, the same ends as a sheet
// of entries, and the same bytes each time.
func TestReel(t *testing.T) {
	ctx := t.Context()
	engine, err := sajou.Open(filepath.Join(t.TempDir(), "store"), sajou.Config{})
	require.NoError(t, err)
	defer engine.Close()
	session, err := engine.Session(ctx, "a")
	require.NoError(t, err)
	for _, at := range []string{"1000", "1010", "1025"} {
		sig, err := signal.Parse([]byte(`{"id":"s` + at + `","type":"note","timestamp":` + at + `,"source":"agent:scout","payload":{}}`))
		require.NoError(t, err)
		if _, err := session.Signal(ctx, sig); err != nil {
			t.Fatal(err)
		}
	}
	travel, err := engine.Replay("a")
	require.NoError(t, err)
	log, err := engine.Log().Session("a")
	require.NoError(t, err)
	reel := film.Open(log, travel)
	over, err := reel.Interval(ctx, replay.Moment{Seq: 1}, replay.Moment{Seq: 4})
	require.NoError(t, err)
	instants, err := over.Every(10 * time.Millisecond)
	require.NoError(t, err)
	var shown []string
	for at, err := range reel.At(ctx, over, instants) {
		require.NoError(t, err)
		shown = append(shown, at.String())
	}
	if want := []string{"1", "3", "3+10ms", "4"}; !slices.Equal(shown, want) {
		t.Errorf("at %v: %v, want %v", instants, shown, want)
	}
	if _, last, n, err := reel.Sheet(ctx, over, film.SheetConfig{}); err != nil || n != 4 || last.Seq != 4 {
		t.Errorf("a sheet of entries: %d pictures, the last at %v, %v", n, last.Moment, err)
	}
	var films [2]bytes.Buffer
	for i := range films {
		if _, err := reel.GIF(ctx, &films[i], over, instants, 10, film.Style{Width: 32}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(films[0].Bytes(), films[1].Bytes()) {
		t.Error("two films of one interval differ")
	}
	if _, err := gif.DecodeAll(&films[0]); err != nil {
		t.Error(err)
	}
	frames := 0
	player, err := replay.NewPlayer(ctx, reel.Travel(), replay.PlayerConfig{
		From: over.First, To: over.Last, Frame: 10 * time.Millisecond,
		Screen: film.Screen(func(f *stage.Frame) {
			frames++
			clear(f.Figures) // the frame belongs to the sink
		}),
	})
	for more := err == nil; more; {
		more, err = player.Next(ctx)
	}
	require.NoError(t, err)
	if frames < 4 {
		t.Errorf("%d frames at 4 entries", frames)
	}
}

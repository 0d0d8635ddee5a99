package film_test

import (
	"bytes"
	"errors"
	"image/gif"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
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

// A film that reaches a bound is drawn, and one that exceeds it by one is refused.
func TestBounds(t *testing.T) {
	const ms = time.Millisecond
	for to, want := range map[time.Duration]int{4999 * ms: 5000, 4998*ms + 1: 5000, 5000 * ms: 0, 4999*ms + 1: 0} {
		at, err := film.Interval{To: to}.Every(ms)
		assert.Len(t, at, want, to)
		assert.Equal(t, want == 0, isLimit(err), "%v: %v", to, err)
	}
	for _, c := range []struct {
		fps, speed float64
		want       time.Duration
	}{{25, 1, 40 * ms}, {30, 2, 66_666_667}, {50, 0.25, 5 * ms}, {1e12, 1, 1}} {
		assert.Equal(t, c.want, film.Step(c.fps, c.speed))
	}

	signals := make([]string, 400)
	for i := range signals {
		signals[i] = `"type":"agent_state_change","payload":{"agentId":"ada","from":"idle","to":"thinking"}`
	}
	reel := recorded(t, signals...)
	to := func(first, last eventlog.Seq) film.Interval {
		over, err := reel.Interval(t.Context(), replay.Moment{Seq: first}, replay.Moment{Seq: last})
		require.NoError(t, err)
		return over
	}
	_, last, n, err := reel.Sheet(t.Context(), to(2, 401), film.SheetConfig{Style: film.Style{Width: 16}})
	require.NoError(t, err)
	assert.Equal(t, 400, n)
	assert.Equal(t, replay.Moment{Seq: 401}, last.Moment)
	_, _, _, err = reel.Sheet(t.Context(), to(1, 401), film.SheetConfig{})
	assert.True(t, isLimit(err), err)

	shot, err := reel.Shot(t.Context(), replay.Moment{Seq: 2})
	require.NoError(t, err)
	require.NoError(t, film.CheckPNG(picture.Draw(shot.Frame, picture.Options{Width: film.MaxWidth})))
	assert.True(t, isLimit(film.CheckPNG(picture.Draw(shot.Frame, picture.Options{Width: film.MaxWidth, Clock: true}))))
	// Pictures of 1600x900 have 1.44 million pixels, and a film 8000 million.
	require.NoError(t, reel.FitsPixels(t.Context(), to(1, 3), 5555, film.Style{Width: 1600}))
	assert.True(t, isLimit(reel.FitsPixels(t.Context(), to(1, 3), 5556, film.Style{Width: 1600})))

	for _, c := range []struct {
		first, last eventlog.Seq
		want        int
	}{{0, 3, 2}, {1, 1, 0}, {2, 2, 1}, {3, 401, 399}} {
		o, err := reel.Overview(t.Context(), film.Interval{First: replay.Moment{Seq: c.first}, Last: replay.Moment{Seq: c.last}})
		require.NoError(t, err)
		assert.Equal(t, c.want, o.Signals(), "signals of entries %d to %d", c.first, c.last)
	}
}

// Progress is reported after each picture, and a caption names the session, the moment and its
// time in every kind of picture.
func TestStyles(t *testing.T) {
	reel := recorded(t,
		`"type":"agent_state_change","payload":{"agentId":"ada","from":"idle","to":"thinking"}`,
		`"type":"agent_state_change","payload":{"agentId":"bob","from":"idle","to":"thinking"}`)
	over, err := reel.Interval(t.Context(), replay.Moment{Seq: 1}, replay.Moment{Seq: 3})
	require.NoError(t, err)
	texts := func(d *picture.Drawing) (all []string) {
		for _, m := range regexp.MustCompile(`aria-label="([^"]*)"`).FindAllStringSubmatch(string(d.AppendSVG(nil)), -1) {
			all = append(all, m[1])
		}
		return all
	}
	shot, err := reel.Shot(t.Context(), over.Last)
	require.NoError(t, err)
	assert.Equal(t, []string{"ada", "bob"}, texts(reel.Draw(shot, film.Style{})))
	assert.Equal(t, []string{"ada", "bob", "0:00.010", "3", "a"}, texts(reel.Draw(shot, film.Style{Caption: true})))

	var done []int
	sheet, last, n, err := reel.Sheet(t.Context(), over, film.SheetConfig{
		Style: film.Style{Caption: true}, Count: 2, Columns: 1,
		Progress: func(i, total int) { done = append(done, i, total) },
	})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 2, 2}, done)
	assert.Equal(t, 2, n)
	assert.Equal(t, over.Last, last.Moment)
	assert.Subset(t, texts(sheet), []string{"1..3", "a", "1", "3"})
	entries, _, n, err := reel.Sheet(t.Context(), over, film.SheetConfig{})
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	assert.Subset(t, texts(entries), []string{"1 session opened", "2 ada is thinking", "3 bob is thinking"})
	assert.NotContains(t, texts(entries), "1..3")

	// A film is the animation of its shots, with their moments below them.
	instants, err := over.Every(4 * time.Millisecond)
	require.NoError(t, err)
	for _, caption := range []bool{false, true} {
		opt := picture.GIFOptions{Options: picture.Options{Width: 300, Places: true}, Rate: 10}
		if caption {
			opt.Title, opt.Clock = "a", true
		}
		var want, got bytes.Buffer
		require.NoError(t, picture.Animate(&want, func(yield func(picture.Cell) bool) {
			for shot, err := range reel.At(t.Context(), over, instants) {
				require.NoError(t, err)
				cell := picture.Cell{Frame: shot.Frame}
				if caption {
					cell.Caption = shot.String()
				}
				if !yield(cell) {
					return
				}
			}
		}, opt))
		done = nil
		last, err := reel.GIF(t.Context(), &got, over, instants, 10, film.Style{Width: 300, Places: true, Caption: caption}, func(i int) { done = append(done, i) })
		require.NoError(t, err)
		assert.Equal(t, []int{1, 2, 3, 4}, done)
		assert.Equal(t, over.Last, last.Moment)
		assert.True(t, bytes.Equal(want.Bytes(), got.Bytes()), "captions: %v", caption)
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

package replay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// silent is a performer without commands. Its boundaries are those of a function of the
// session time.
type silent struct {
	now  time.Duration
	next func(now time.Duration) (time.Duration, bool)
}

func (s *silent) Apply(e *eventlog.Entry)             { s.now = e.At }
func (s *silent) Advance(at time.Duration)            { s.now = at }
func (s *silent) Append(dst []byte) []byte            { return binary.BigEndian.AppendUint64(dst, uint64(s.now)) }
func (s *silent) View() any                           { return int64(s.now) }
func (s *silent) NextBoundary() (time.Duration, bool) { return s.next(s.now) }
func (s *silent) Perform(choreography.CommandSink)    {}
func (s *silent) UnderWay(choreography.CommandSink)   {}

// silence is the set of one silent performer.
func silence(next func(now time.Duration) (time.Duration, bool)) projection.Set {
	return projection.Set{{
		Name: "silent", Version: 1, New: func() projection.State { return &silent{next: next} },
		Restore: func([]byte) (projection.State, error) { return nil, errors.New("not kept") },
	}}
}

// A million boundaries are passed to find an end, and not one more.
func TestAMillionBoundaries(t *testing.T) {
	const most = 1_000_000
	s := &tape{}
	s.add(0)
	for end, rest := range map[time.Duration]time.Duration{0: 0, 1: 1, most - 1: most - 1, most: most, most + 1: most} {
		r := replay.Open(s, silence(func(now time.Duration) (time.Duration, bool) { return now + 1, now < end }), nil)
		m, err := r.Rest(t.Context(), replay.Moment{Seq: 1})
		require.NoError(t, err)
		require.Equal(t, replay.Moment{Seq: 1, Offset: rest}, m, "%d boundaries", end)

		// If all boundaries were found, an address behind the last one does not resolve.
		want, message := "none", "the last entry of tape is at 0s, and nothing is under way any more"
		if end >= most {
			want, message = "1+1h0m0s", ""
		}
		got, reason := resolve(r, "t:1h")
		require.Equal(t, want, got, "%d boundaries", end)
		require.Contains(t, reason, message)
	}
}

// still is a screen whose picture never differs. It keeps the moments that it was shown.
type still []string

func (s *still) Show(_ *projection.Fold, m replay.Moment) (bool, error) {
	*s = append(*s, m.String())
	return false, nil
}

// A boundary that stays where it is when time has come to it, or has passed, ends no search and
// no playing early, and makes none endless.
func TestStuckBoundaries(t *testing.T) {
	s := &tape{}
	for range 3 {
		s.add(10*ms, 1)
	}
	for _, tt := range []struct {
		at     time.Duration
		rest   string
		frames string // of 4 ms, up to the rest
		at40   string // the address t:40ms
		shown  string // without pauses
	}{
		{0, "3", "0 0+4ms 0+8ms 1 1+2ms 1+6ms 2 2+4ms 2+8ms 3", "none", "0 0 1 2 3"},
		{10 * ms, "3", "0 1 1+2ms 1+6ms 2 2+4ms 2+8ms 3", "none", "0 1 2 3"},
		{25 * ms, "3", "0 1 2 2+8ms 3", "none", "0 1 2 2+5ms 3"},
		{30 * ms, "3", "0 1 2 3", "none", "0 1 2 3"},
		{31 * ms, "3+1ms", "0 1 2 3 3+1ms", "none", "0 1 2 3 3+1ms"},
		{39 * ms, "3+9ms", "0 1 2 3 3+9ms", "none", "0 1 2 3 3+9ms"},
		{40 * ms, "3+10ms", "0 1 2 3 3+10ms", "3+10ms", "0 1 2 3 3+10ms"},
		{41 * ms, "3+11ms", "0 1 2 3 3+11ms", "3+10ms", "0 1 2 3 3+11ms"},
		{45 * ms, "3+15ms", "0 1 2 3 3+15ms", "3+10ms", "0 1 2 3 3+15ms"},
	} {
		r := replay.Open(s, silence(func(time.Duration) (time.Duration, bool) { return tt.at, true }), nil)
		rest, err := r.Rest(t.Context(), replay.Moment{Seq: 3})
		require.NoError(t, err)
		require.Equal(t, tt.rest, rest.String(), "a boundary at %v", tt.at)

		got, reason := resolve(r, "t:40ms")
		require.Equal(t, tt.at40, got, "a boundary at %v: %s", tt.at, reason)

		c := r.Cursor()
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: 1, Offset: 5 * ms}))
		for _, direction := range []int{1, -1} {
			require.ErrorIs(t, c.StepCommand(t.Context(), direction), replay.ErrNoAddress)
			require.Equal(t, "1+5ms", c.Moment().String())
		}

		p, err := replay.NewPlayer(t.Context(), r, replay.PlayerConfig{Frame: 4 * ms})
		require.NoError(t, err)
		frames := []string{p.State().Moment.String()}
		for {
			moved, err := p.Next(t.Context())
			require.NoError(t, err)
			if !moved {
				break
			}
			frames = append(frames, p.State().Moment.String())
		}
		require.Equal(t, tt.frames, strings.Join(frames, " "), "a boundary at %v", tt.at)

		// Without pauses one tick plays all, since nothing changes. It shows each entry, the
		// boundary and the end.
		var screen still
		p, err = replay.NewPlayer(t.Context(), r, replay.PlayerConfig{Idle: -1, Screen: &screen})
		require.NoError(t, err)
		p.Play()
		require.NoError(t, p.Tick(t.Context(), 0))
		require.Equal(t, tt.shown, strings.Join(screen, " "), "a boundary at %v", tt.at)
		require.Equal(t, replay.PlayerState{Moment: rest, At: 30*ms + rest.Offset, Rate: 1, Ended: true}, p.State(), "a boundary at %v", tt.at)
	}
}

// Near the end of session time a walk, commands and steps end there, and none begins again from
// the beginning.
func TestTheEndOfTime(t *testing.T) {
	const end, every = time.Duration(math.MaxInt64), 10 * time.Second
	set := silence(func(now time.Duration) (time.Duration, bool) { return now + every, now <= end-every })
	for _, left := range []time.Duration{25 * time.Second, 59 * time.Second, 60 * time.Second, 61 * time.Second} {
		s := &tape{}
		s.add(end - left)
		r := replay.Open(s, set, nil)
		var want []string
		for at := every; at <= min(left, replay.MaxRest); at += every {
			want = append(want, replay.Moment{Seq: 1, Offset: at}.String()+" boundary")
		}
		got := walk(t, r, replay.MomentRange{From: replay.Moment{Seq: 1}, To: replay.Moment{Seq: 1}, Rest: true})
		require.Equal(t, append([]string{"1 entry"}, want...), got, "%v before the end", left)

		// A grid whose next line would be beyond the end has no more lines.
		var lines []string
		for step, err := range r.Moments(t.Context(), replay.MomentRange{From: replay.Moment{Seq: 1}, To: replay.Moment{Seq: 1, Offset: left}, Every: 7 * time.Second}, replay.NeedsState) {
			require.NoError(t, err)
			if step.Kind == replay.GridMoment {
				require.Zero(t, step.Fold.At()%(7*time.Second))
				lines = append(lines, step.Moment.String())
			}
		}
		require.Len(t, lines, int(end/(7*time.Second)-(end-left)/(7*time.Second)), "%v before the end", left)

		var rec recorder
		require.NoError(t, r.Commands(t.Context(), replay.Moment{Seq: 1}, replay.Moment{Seq: 1, Offset: left}, 3*time.Second, &rec))
		require.Empty(t, rec.commands)

		c := r.Cursor()
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: 1}))
		require.NoError(t, c.StepTime(t.Context(), left))
		require.Equal(t, end, c.Fold().At())
		require.EqualError(t, c.StepTime(t.Context(), 1), fmt.Sprintf("no such address %q: session time ends before that", replay.Moment{Seq: 1, Offset: left}.String()+"+1ns"))
		require.Equal(t, replay.Moment{Seq: 1, Offset: left}, c.Moment())
		require.NoError(t, c.StepTime(t.Context(), math.MinInt64), "before the beginning is the beginning")
		require.True(t, c.Moment().IsZero())
	}

	// A boundary at the end of time stands for none, so that nothing waits for it.
	s := &tape{}
	s.add(10 * ms)
	r := replay.Open(s, silence(func(time.Duration) (time.Duration, bool) { return end, true }), nil)
	m, err := r.Rest(t.Context(), replay.Moment{Seq: 1, Offset: ms})
	require.NoError(t, err)
	require.Equal(t, replay.Moment{Seq: 1, Offset: ms}, m)
	_, err = r.MomentAt(t.Context(), -1)
	require.EqualError(t, err, `no such address "t:-1ns": session time begins at 0`)
}

// A time is an address while a state moves, though it has no boundary.
func TestTimesOfAMovingState(t *testing.T) {
	set := projection.Set{{Name: "drift", Version: 1, New: func() projection.State { return new(drift) }, Restore: func([]byte) (projection.State, error) { return nil, errors.New("not kept") }}}
	s := &tape{}
	s.add(10 * ms)
	got, reason := resolve(replay.Open(s, set, nil), "t:1h")
	require.Equal(t, "1+59m59.99s", got, reason)
}

// A source needs no wall clock to have moments.
func TestOrigin(t *testing.T) {
	s := &tape{}
	s.add(ms)
	_, ok := replay.Open(s, toys, nil).Origin()
	require.False(t, ok)
	s.origin = time.Date(2026, 11, 21, 16, 2, 5, 0, time.FixedZone("", 7200))
	at, ok := replay.Open(s, toys, nil).Origin()
	require.True(t, ok)
	require.Equal(t, time.Date(2026, 11, 21, 14, 2, 5, 0, time.UTC), at)
	type plain struct{ replay.Source }
	at, ok = replay.Open(plain{s}, toys, nil).Origin()
	require.False(t, ok)
	require.True(t, at.IsZero())
	got, message := resolve(replay.Open(plain{s}, toys, nil), "t:14:02")
	require.Equal(t, "none", got)
	require.Contains(t, message, "tape has no wall clock; use t:1.5s, since its beginning")
}

// A search that is left, at whichever result, asks no further moment.
func TestSearchesThatAreLeft(t *testing.T) {
	s := &tape{}
	for i := range 20 {
		s.add(10*ms, byte(i%4)) // the value changes now and then
	}
	r := replay.Open(s, toys, nil)
	for leave := 1; leave <= 9; leave++ {
		asked := 0
		values := running(replay.NeedsState)
		value := values.Value
		values.Value = func(ctx context.Context, s *replay.ScanStep) (string, error) {
			asked++
			return value(ctx, s)
		}
		values.Copy = nil
		n, last := 0, replay.Moment{}
		for iv, err := range replay.Intervals(t.Context(), r, replay.MomentRange{To: replay.Moment{Seq: 20}}, values) {
			require.NoError(t, err)
			if last = iv.Until.Moment; n == leave-1 {
				n++
				break
			}
			n++
		}
		require.Equal(t, leave, n)
		want := 0 // the moments up to the first one of the next interval
		for step, err := range r.Moments(t.Context(), replay.MomentRange{To: replay.Moment{Seq: 20}}, replay.NeedsState) {
			require.NoError(t, err)
			want++
			if step.Moment.Compare(last) >= 0 {
				break
			}
		}
		require.LessOrEqual(t, asked, want+2, "left after %d", leave)

		for _, mode := range []replay.Mode{replay.All, replay.Changes} {
			tested, n := 0, 0
			odd := replay.EntryPredicate{Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
				tested++
				return s.Entry.Seq%2 == 1, nil
			}}
			for _, err := range r.Scan(t.Context(), 1, 20, odd, mode) {
				require.NoError(t, err)
				if n++; n == leave {
					break
				}
			}
			require.Equal(t, map[replay.Mode]int{replay.All: 2*leave - 1, replay.Changes: leave}[mode], tested, "mode %d, left after %d", mode, leave)
		}
	}
	for _, err := range r.Scan(t.Context(), 3, 4, replay.EntryPredicate{Test: func(context.Context, *replay.ScanStep) (bool, error) { return true, nil }}, 9) {
		require.EqualError(t, err, "replay: scan: no mode 9")
	}
	require.Equal(t, "moment kind 9", replay.MomentKind(9).String())
	_, err := replay.Diff(make(chan int), 1)
	require.ErrorContains(t, err, "replay: diff: ")
}

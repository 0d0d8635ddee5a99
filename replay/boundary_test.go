package replay_test

import (
	"encoding/binary"
	"errors"
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

		// A time behind the last boundary is no address, if all of them were seen.
		want, message := "none", "the last entry of tape is at 0s, and nothing is under way any more"
		if end >= most {
			want, message = "1+1h0m0s", ""
		}
		got, reason := resolve(r, "t:1h")
		require.Equal(t, want, got, "%d boundaries", end)
		require.Contains(t, reason, message)
	}
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
	}{
		{0, "3", "0 0+4ms 0+8ms 1 1+2ms 1+6ms 2 2+4ms 2+8ms 3", "none"},
		{10 * ms, "3", "0 1 1+2ms 1+6ms 2 2+4ms 2+8ms 3", "none"},
		{25 * ms, "3", "0 1 2 2+8ms 3", "none"},
		{30 * ms, "3", "0 1 2 3", "none"},
		{31 * ms, "3+1ms", "0 1 2 3 3+1ms", "none"},
		{39 * ms, "3+9ms", "0 1 2 3 3+9ms", "none"},
		{40 * ms, "3+10ms", "0 1 2 3 3+10ms", "3+10ms"},
		{41 * ms, "3+11ms", "0 1 2 3 3+11ms", "3+10ms"},
		{45 * ms, "3+15ms", "0 1 2 3 3+15ms", "3+10ms"},
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

		// Without pauses one tick plays all, since nothing changes.
		p, err = replay.NewPlayer(t.Context(), r, replay.PlayerConfig{Idle: -1})
		require.NoError(t, err)
		p.Play()
		require.NoError(t, p.Tick(t.Context(), 0))
		require.Equal(t, replay.PlayerState{Moment: rest, At: 30*ms + rest.Offset, Rate: 1, Ended: true}, p.State(), "a boundary at %v", tt.at)
	}
}

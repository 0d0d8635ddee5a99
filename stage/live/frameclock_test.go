package live

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/internal/writer"
)

// Frames are at the multiples of their length, the first at zero, and the next one is
// always later than the instant it follows.
func TestFrameTimes(t *testing.T) {
	c := &FrameClock{frame: 20}
	for at, want := range map[time.Duration]time.Duration{
		-1 << 62: 0, -1: 0, 0: 20, 1: 20, 19: 20, 20: 40, 21: 40,
		math.MaxInt64: math.MaxInt64, math.MaxInt64 - 7: math.MaxInt64, // 7 is the rest of MaxInt64 by 20
		math.MaxInt64 - 8:      math.MaxInt64 - 7,
		math.MaxInt64 - 7 - 20: math.MaxInt64 - 7,
		math.MaxInt64 - 7 - 21: math.MaxInt64 - 7 - 20,
	} {
		assert.Equal(t, want, c.next(at), "%d", at)
	}
	for at, want := range map[time.Duration]time.Duration{0: 0, 19: 0, 20: 20, 39: 20, 40: 40} {
		assert.Equal(t, want, c.last(at), "%d", at)
	}
}

// The rates of a clock are from 1 to 1000 frames a second.
func TestFrameRates(t *testing.T) {
	for rate, want := range map[int]time.Duration{
		-5: time.Second, 0: time.Second, 1: time.Second, 2: time.Second / 2, 60: time.Second / 60,
		999: time.Second / 999, 1000: time.Millisecond, 1001: time.Millisecond,
	} {
		assert.Equal(t, want, NewFrameClock(time.Time{}, rate, nil).frame, "%d", rate)
	}
}

// A timer waits until the instant, not at all for one that is past, and never longer than
// a minute, also if the wait is too long for a Duration.
func TestFrameWake(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	now := begin
	var waits []time.Duration
	c := &FrameClock{begin: begin, frame: 20, now: func() time.Time { return now }, after: func(d time.Duration, _ func()) func() bool {
		waits = append(waits, d)
		return func() bool { return true }
	}}
	for _, tt := range []struct{ now, at, want time.Duration }{
		{0, 0, 0},
		{0, 1, 1},
		{5, 3, 0},
		{5, 9, 4},
		{0, writer.MaxWake - 1, writer.MaxWake - 1},
		{0, writer.MaxWake, writer.MaxWake},
		{0, writer.MaxWake + 1, writer.MaxWake},
		{-10, math.MaxInt64, writer.MaxWake},
	} {
		now, waits = begin.Add(tt.now), nil
		c.wake(tt.at, func() {})
		assert.Equal(t, []time.Duration{tt.want}, waits, "%+v", tt)
	}
}

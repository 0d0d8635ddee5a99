package live

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/internal/writer"
)

// The frame after an instant is the least multiple of a frame's length that is later, and
// a timer for it is never late and never longer than the writer allows. The sums are
// computed with big integers, which do not overflow.
func TestFrames(t *testing.T) {
	begin := time.UnixMilli(1_700_000_000_000)
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]int{math.MinInt, -1, 0, 1, 3, 24, 60, 999, 1000, 1001, math.MaxInt}).Draw(t, "rate")
		near := func(label string) time.Duration {
			base := rapid.SampledFrom([]time.Duration{math.MinInt64, 0, time.Second, writer.MaxWake, math.MaxInt64 - time.Second, math.MaxInt64}).Draw(t, label)
			off := rapid.SampledFrom([]time.Duration{-time.Second, -time.Millisecond, -1, 0, 1, time.Millisecond}).Draw(t, label+" off")
			if sum := base + off; (sum > base) == (off > 0) {
				return sum
			}
			return base
		}
		at, now := near("at"), max(near("now"), -time.Hour)
		c := NewFrameClock(begin, rate, func() time.Time { return begin.Add(now) })
		require.Equal(t, now, c.Now())
		frame := time.Second / time.Duration(max(1, min(rate, 1000)))
		require.Equal(t, frame, c.frame)

		next := new(big.Int)
		if at >= 0 {
			length := big.NewInt(int64(frame))
			next.Mul(next.Add(next.Div(big.NewInt(int64(at)), length), big.NewInt(1)), length)
		}
		if !next.IsInt64() {
			next.SetInt64(math.MaxInt64)
		}
		require.Equal(t, next.Int64(), int64(c.next(at)), "after %v", at)
		if at >= 0 {
			require.Zero(t, c.last(at)%frame)
			require.Less(t, at-c.last(at), frame)
		}

		at = max(at, 0) // timers are for instants of session time
		var waits []time.Duration
		called, stopped := 0, 0
		c.after = func(d time.Duration, f func()) func() bool {
			waits = append(waits, d)
			f()
			return func() bool { stopped++; return true }
		}
		c.wake(at, func() { called++ })()
		want := new(big.Int).Sub(big.NewInt(int64(at)), big.NewInt(int64(now)))
		switch limit := big.NewInt(int64(writer.MaxWake)); {
		case want.Sign() < 0:
			want.SetInt64(0)
		case want.Cmp(limit) > 0:
			want = limit
		}
		require.Equal(t, []time.Duration{time.Duration(want.Int64())}, waits, "at %v, for %v", now, at)
		require.Equal(t, []int{1, 1}, []int{called, stopped})
	})
}

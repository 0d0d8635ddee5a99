package live_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sajou-dev/sajou-go/stage/live"
)

// Frames come at the multiples of their length since the clock's beginning, whenever
// they are requested, and not at all after cancel.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := live.NewFrameClock(begin.Add(30*time.Millisecond), 50, nil)
		if now := c.Now(); now != -30*time.Millisecond {
			t.Errorf("before the beginning it is %v", now)
		}
		at := make(chan time.Duration)
		for _, want := range []time.Duration{0, 20, 40, 80} {
			c.RequestFrame(func(now time.Duration) { at <- now })
			if got := <-at; got != want*time.Millisecond {
				t.Errorf("a frame at %v, want %v ms", got, want)
			}
			if want == 40 {
				<-time.After(27 * time.Millisecond)
			}
		}
		cancel := c.RequestFrame(func(time.Duration) { t.Error("a frame that was taken back") })
		cancel()
		cancel()
		<-time.After(time.Second)
	})
}

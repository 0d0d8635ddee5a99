package sajou

import (
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
)

// Clock is the real [choreography.Clock]: session time that runs with the
// wall's, and frames at the multiples of a fixed length. It lives here because
// package choreography reads no clock.
type Clock struct {
	begin time.Time
	frame time.Duration
	now   func() time.Time
	after func(time.Duration, func()) (stop func() bool)
}

var _ choreography.Clock = (*Clock)(nil)

// maxFrameRate bounds how many frames a second may have.
const maxFrameRate = 1000

// NewClock returns a clock whose session time was zero at begin, with frames
// per second from 1 to 1000. A nil now means time.Now.
func NewClock(begin time.Time, framesPerSecond int, now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	framesPerSecond = min(max(framesPerSecond, 1), maxFrameRate)
	return &Clock{begin, time.Second / time.Duration(framesPerSecond), now, afterFunc}
}

// Now returns the session time. It is negative before the session begins.
func (c *Clock) Now() time.Duration { return c.now().Sub(c.begin) }

// RequestFrame calls frame once, at the next multiple of a frame's length, on a
// goroutine of its own, with the session time it then is. A call that has
// begun is not stopped by cancel.
func (c *Clock) RequestFrame(frame func(now time.Duration)) (cancel func()) {
	stop := c.wake(c.next(c.Now()), func() { frame(c.Now()) })
	return func() { stop() }
}

// next returns the first frame behind an instant. The first of all is at zero.
func (c *Clock) next(at time.Duration) time.Duration {
	switch {
	case at < 0:
		return 0
	case at > math.MaxInt64-c.frame:
		return math.MaxInt64
	}
	return c.last(at) + c.frame
}

// last returns the last frame up to an instant, which is not negative.
func (c *Clock) last(at time.Duration) time.Duration { return at - at%c.frame }

// maxWake bounds how long a timer runs: the wall's clock may be set meanwhile,
// and timers do not see that.
const maxWake = time.Minute

// wake calls f at an instant of session time, or earlier.
func (c *Clock) wake(at time.Duration, f func()) (stop func() bool) {
	now := c.Now()
	d := max(at-now, 0)
	if at > now && (d == 0 || d > maxWake) { // of zero the difference is too great for a Duration
		d = maxWake
	}
	return c.after(d, f)
}

// afterFunc is time.AfterFunc as Config.AfterFunc has it.
func afterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }

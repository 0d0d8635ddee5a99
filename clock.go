package sajou

import (
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
)

// Clock is the real [choreography.Clock]: session time that runs with the
// wall's, and frames at a fixed rate. It lives here because package
// choreography reads no clock.
type Clock struct {
	begin time.Time
	frame time.Duration
	now   func() time.Time
}

var _ choreography.Clock = (*Clock)(nil)

// NewClock returns a clock whose session time was zero at begin, with frames
// per second from 1 to 1000. A nil now means time.Now.
func NewClock(begin time.Time, framesPerSecond int, now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	framesPerSecond = min(max(framesPerSecond, 1), 1000)
	return &Clock{begin, time.Second / time.Duration(framesPerSecond), now}
}

// Now returns the session time. It is negative before the session begins.
func (c *Clock) Now() time.Duration { return c.now().Sub(c.begin) }

// RequestFrame calls frame once, a frame's time from now, on a goroutine of
// its own, with the session time it then is. A call that has begun is not
// stopped by cancel.
func (c *Clock) RequestFrame(frame func(now time.Duration)) (cancel func()) {
	t := time.AfterFunc(c.frame, func() { frame(c.Now()) })
	return func() { t.Stop() }
}

package live

import (
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/writer"
)

// FrameClock is a [choreography.Clock] on the wall clock: session time runs with it,
// and frames are at the multiples of a fixed length. Package choreography itself reads
// no clock.
type FrameClock struct {
	begin time.Time
	frame time.Duration
	now   func() time.Time
	after func(time.Duration, func()) (stop func() bool)
}

var _ choreography.Clock = (*FrameClock)(nil)

// maxFrameRate is the highest frame rate, in frames a second.
const maxFrameRate = 1000

// NewFrameClock returns a clock whose session time was zero at begin, with frames
// per second from 1 to 1000. A nil now means time.Now.
func NewFrameClock(begin time.Time, framesPerSecond int, now func() time.Time) *FrameClock {
	if now == nil {
		now = time.Now
	}
	framesPerSecond = min(max(framesPerSecond, 1), maxFrameRate)
	return &FrameClock{begin, time.Second / time.Duration(framesPerSecond), now, AfterFunc}
}

// Now returns the session time. It is negative before the session begins.
func (c *FrameClock) Now() time.Duration { return c.now().Sub(c.begin) }

// RequestFrame calls frame once, at the next multiple of a frame's length, on a
// goroutine of its own, with the session time of that call. cancel does not stop a call
// that has begun.
func (c *FrameClock) RequestFrame(frame func(now time.Duration)) (cancel func()) {
	stop := c.wake(c.next(c.Now()), func() { frame(c.Now()) })
	return func() { stop() }
}

// next returns the first frame after an instant. The first frame of a session is at
// zero.
func (c *FrameClock) next(at time.Duration) time.Duration {
	if at < 0 {
		return 0
	}
	last := c.last(at)
	if last > math.MaxInt64-c.frame {
		return math.MaxInt64
	}
	return last + c.frame
}

// last returns the last frame up to an instant, which must not be negative.
func (c *FrameClock) last(at time.Duration) time.Duration { return at - at%c.frame }

// wake calls f at an instant of session time, or earlier: a timer runs at most
// [writer.MaxWake]. The caller checks the time again.
func (c *FrameClock) wake(at time.Duration, f func()) (stop func() bool) {
	now := c.Now()
	d := max(at-now, 0)
	if at > now && (d == 0 || d > writer.MaxWake) { // d is 0 if the difference overflows a Duration
		d = writer.MaxWake
	}
	return c.after(d, f)
}

// AfterFunc is [time.AfterFunc] with the signature of [Config].AfterFunc.
func AfterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }

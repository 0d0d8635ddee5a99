package choreography

import "time"

// Clock drives the caller of a scheduler: it reads the time since a fixed beginning
// and schedules the next frame. This package holds only the manual clock; a clock
// that reads real time is in package stage/live.
type Clock interface {
	// Now returns the time since the clock began. It never decreases.
	Now() time.Duration
	// RequestFrame calls frame once, with the time then, at the next frame.
	// Cancel withdraws the request; after the frame it has no effect.
	RequestFrame(frame func(now time.Duration)) (cancel func())
}

// ManualClock is a [Clock] that only [ManualClock.Advance] moves. The zero value
// stands at 0. It must not be used by several goroutines at once.
type ManualClock struct {
	now    time.Duration
	frames []*frameRequest
}

type frameRequest struct{ call func(time.Duration) }

var _ Clock = (*ManualClock)(nil)

// Now returns the sum of all advances.
func (c *ManualClock) Now() time.Duration { return c.now }

// RequestFrame makes the next [ManualClock.Advance] call frame.
func (c *ManualClock) RequestFrame(frame func(now time.Duration)) (cancel func()) {
	r := &frameRequest{frame}
	c.frames = append(c.frames, r)
	return func() { r.call = nil }
}

// Advance moves the clock by d, or not at all if d is negative, and calls the
// requested frames in order. Requests made during these calls wait for the next
// Advance.
func (c *ManualClock) Advance(d time.Duration) {
	if d > 0 {
		c.now = saturate(c.now, d)
	}
	frames := c.frames
	c.frames = nil
	for _, r := range frames {
		if call := r.call; call != nil {
			r.call = nil
			call(c.now)
		}
	}
}

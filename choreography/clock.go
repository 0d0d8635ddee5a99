package choreography

import "time"

// Clock drives whoever advances a scheduler: it tells the time since some
// beginning and when to draw the next frame. This package holds only the manual
// one; a clock that reads real time belongs to the edge.
type Clock interface {
	// Now returns the time since the clock began. It never goes back.
	Now() time.Duration
	// RequestFrame calls frame once, with the time then, at the next frame.
	// Cancel takes the request back; after the call it does nothing.
	RequestFrame(frame func(now time.Duration)) (cancel func())
}

// ManualClock is a [Clock] that moves only when told to. The zero value stands
// at 0. It is for one goroutine.
type ManualClock struct {
	now    time.Duration
	frames []*frameRequest
}

type frameRequest struct{ call func(time.Duration) }

var _ Clock = (*ManualClock)(nil)

// Now returns how far the clock was advanced.
func (c *ManualClock) Now() time.Duration { return c.now }

// RequestFrame has frame called by the next [ManualClock.Advance].
func (c *ManualClock) RequestFrame(frame func(now time.Duration)) (cancel func()) {
	r := &frameRequest{frame}
	c.frames = append(c.frames, r)
	return func() { r.call = nil }
}

// Advance moves the clock by d, or not at all if d is negative, and calls what
// was requested before, in order. What these calls request waits for the next
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

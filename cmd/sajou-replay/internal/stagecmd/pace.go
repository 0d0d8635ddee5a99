package stagecmd

import (
	"context"
	"time"
)

// Pace is the speed at which commands or frames are shown.
type Pace struct {
	Rate, fps float64
	Idle      time.Duration
}

// frame returns the session time from one frame to the next. With --fps 0 the stage
// still has ten frames a second, because it has nothing else to show.
func (p Pace) frame() time.Duration {
	if p.fps > 0 {
		return max(time.Duration(float64(time.Second)/p.fps), time.Millisecond)
	}
	return time.Second / 10
}

// wait waits for a span of session time at the pace, at most as long as Idle.
func (p Pace) wait(ctx context.Context, d time.Duration) error {
	if p.Rate == 0 || d <= 0 {
		return ctx.Err()
	}
	if scaled := float64(d) / p.Rate; scaled < float64(p.Idle) {
		d = time.Duration(scaled)
	} else {
		d = p.Idle
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

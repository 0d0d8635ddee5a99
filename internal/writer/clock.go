package writer

import (
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/session"
)

// MaxWake bounds how long a timer runs: the wall's clock may be set meanwhile, and
// timers do not see that.
const MaxWake = time.Minute

// SessionClock is the session time of decisions. In a session of [session.TimeWall] it
// runs with the wall clock once an entry has recorded the origin; otherwise it stands
// still between entries and ticks. Its fields are atomic, because it is read without the
// lock of the fold.
type SessionClock struct {
	wallNow func() time.Time // immutable
	wall    atomic.Bool      // it runs with the wall's clock, from origin on
	origin  atomic.Int64     // Unix time, ns
	last    atomic.Int64     // a lower bound of Now, ns; never decreases
}

// Now returns the present session time.
func (c *SessionClock) Now() time.Duration {
	at := time.Duration(c.last.Load())
	if !c.wall.Load() {
		return at
	}
	return max(at, time.Duration(c.wallNow().UnixNano()-c.origin.Load()))
}

// Until returns how long to wait for an instant, but at most MaxWake: the wall clock may
// be set meanwhile, so the caller then calls Until again. Signals may have moved session
// time ahead of the wall clock.
func (c *SessionClock) Until(at time.Duration) time.Duration {
	if c.Now() >= at {
		return 0
	}
	wall := time.Duration(c.wallNow().UnixNano() - c.origin.Load())
	if d := at - wall; d > 0 && d < MaxWake {
		return d
	}
	return MaxWake // also if the difference is too great for a Duration
}

// Leads reports whether a session time is ahead of the wall clock, or the session does
// not run with the wall clock.
func (c *SessionClock) Leads(at time.Duration) bool {
	return !c.wall.Load() || int64(at) > c.wallNow().UnixNano()-c.origin.Load()
}

// Runs reports whether session time runs with the wall's clock.
func (c *SessionClock) Runs() bool { return c.wall.Load() }

// Reach moves session time on to an instant.
func (c *SessionClock) Reach(at time.Duration) {
	for {
		last := c.last.Load()
		if int64(at) <= last || c.last.CompareAndSwap(last, int64(at)) {
			return
		}
	}
}

// follow takes over the time of staged entries.
func (c *SessionClock) follow(p *Frontier) {
	if p.Time.Authority == session.TimeWall && p.Time.HasOrigin && !c.wall.Load() {
		c.origin.Store(p.Time.Origin)
		c.wall.Store(true)
	}
	c.Reach(p.At)
}

package writer

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/session"
)

// wallClock returns a clock whose wall shows a number of nanoseconds since 1970.
func wallClock(wall *int64) *SessionClock {
	return &SessionClock{wallNow: func() time.Time { return time.Unix(0, *wall) }}
}

// Without an origin session time stands still between entries, and never goes back. Only a
// session of the wall's clock with an origin runs, from the first origin on.
func TestClockRuns(t *testing.T) {
	wall := int64(1_000_000)
	c := wallClock(&wall)
	at := func(p Frontier, want time.Duration, runs bool) {
		t.Helper()
		c.follow(&p)
		assert.Equal(t, want, c.Now())
		assert.Equal(t, runs, c.Runs())
	}
	at(Frontier{At: 5}, 5, false)
	at(Frontier{At: 3}, 5, false)
	at(Frontier{At: 6, Time: session.Time{Authority: session.TimeManual, HasOrigin: true, Origin: 7}}, 6, false)
	at(Frontier{At: 6, Time: session.Time{Authority: session.TimeWall, Origin: 7}}, 6, false)
	wall += 100
	assert.Equal(t, time.Duration(6), c.Now())
	at(Frontier{At: 6, Time: session.Time{Authority: session.TimeWall, HasOrigin: true, Origin: 1_000_000}}, 100, true)
	wall += 100
	assert.Equal(t, time.Duration(200), c.Now())
	at(Frontier{At: 7, Time: session.Time{Authority: session.TimeWall, HasOrigin: true, Origin: 5}}, 200, true)
	c.Reach(250)
	assert.Equal(t, time.Duration(250), c.Now(), "ahead of the wall")
	c.Reach(249)
	assert.Equal(t, time.Duration(250), c.Now())
	wall += 51
	assert.Equal(t, time.Duration(251), c.Now())
	wall -= 1000
	assert.Equal(t, time.Duration(250), c.Now(), "the wall was set back")
}

// A timer waits for an instant of the wall's clock, a minute at most, and not at all for
// one that has come. An instant is ahead of the wall until the wall shows it.
func TestClockUntil(t *testing.T) {
	wall := int64(1_000_000)
	c := wallClock(&wall)
	assert.True(t, c.Leads(0), "it does not run")
	assert.Zero(t, c.Until(0))
	assert.Equal(t, time.Minute, c.Until(1<<62), "it does not run")
	c.follow(&Frontier{Time: session.Time{Authority: session.TimeWall, HasOrigin: true, Origin: 1_000_000}})
	for _, tt := range []struct {
		wall  int64 // since the origin
		reach time.Duration
		at    time.Duration
		until time.Duration
		leads bool
	}{
		{0, 0, 0, 0, false},
		{0, 0, 1, 1, true},
		{10, 0, 10, 0, false},
		{10, 0, 11, 1, true},
		{10, 0, 9, 0, false},
		{10, 0, 10 + time.Minute - 1, time.Minute - 1, true},
		{10, 0, 10 + time.Minute, time.Minute, true},
		{10, 0, 10 + time.Minute + 1, time.Minute, true},
		{10, 0, math.MaxInt64, time.Minute, true},
		{10, 50, 40, 0, true}, // session time has reached it ahead of the wall
		{10, 50, 51, 41, true},
		{60, 50, 55, 0, false},
		{-10, 50, math.MaxInt64, time.Minute, true}, // the difference is too great for a Duration
	} {
		wall = 1_000_000 + tt.wall
		c.Reach(tt.reach)
		assert.Equal(t, tt.until, c.Until(tt.at), "%+v", tt)
		assert.Equal(t, tt.leads, c.Leads(tt.at), "%+v", tt)
	}
}

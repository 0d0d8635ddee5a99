package otlp

import "time"

// Clock is the clock of the tests.
type Clock = clock

// NewClock returns a clock that stands at [Noon].
func NewClock() *Clock { return newClock() }

// Noon is the time at which a clock begins.
var Noon = newClock().Now()

// Advance moves the clock and runs the timers that are due.
func (c *clock) Advance(d time.Duration) { c.advance(d) }

// Rest waits until nothing is being mapped.
func Rest(rv *TraceReceiver) { rv.rest() }

// BreakSpool makes the spool of a receiver fail as after an error of the disk.
func BreakSpool(rv *TraceReceiver) error { return rv.spool.Close() }

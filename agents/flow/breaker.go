package flow

import (
	"cmp"
	"time"
)

// BreakerState is the state of a [Breaker].
type BreakerState string

// The states.
const (
	BreakerClosed   BreakerState = "CLOSED"
	BreakerIsOpen   BreakerState = "OPEN"
	BreakerHalfOpen BreakerState = "HALF_OPEN"
)

// BreakerConfig says when a breaker opens and closes.
type BreakerConfig struct {
	// Failures is how many failures in a row open it. 0 means 5.
	Failures int
	// Recovery is how long it stays open after the last failure; a call is let
	// through only when strictly more time has passed. 0 means 30 s.
	Recovery time.Duration
	// Probes is how many calls may run at once while it is half open. 0 means 3.
	Probes int
	// Cumulative counts all failures since it last closed from half open, as the
	// sketch in the multi-agent design does, where a success does not reset the count.
	Cumulative bool
}

// Breaker is a circuit breaker: after some failures it lets no call through for a
// while, and then a few probes until one succeeds. The zero Breaker is closed and has
// the default configuration.
type Breaker struct {
	Config   BreakerConfig
	state    BreakerState
	failures int
	last     time.Duration // of the last failure
	running  int           // probes
}

// State returns the state. An open breaker becomes half open in Allow, not by time.
func (b *Breaker) State() BreakerState {
	if b.state == "" {
		return BreakerClosed
	}
	return b.state
}

// Failures returns how many failures it counts.
func (b *Breaker) Failures() int { return b.failures }

// Wait returns how long it stays open from now on; 0 if it is not open. Allow lets a
// call through strictly after that time.
func (b *Breaker) Wait(now time.Duration) time.Duration {
	if b.state != BreakerIsOpen {
		return 0
	}
	return max(b.recovery()-(now-b.last), 0)
}

func (b *Breaker) recovery() time.Duration { return cmp.Or(b.Config.Recovery, 30*time.Second) }

// Allow reports whether a call may be made now. After true the caller must report the
// call's end with Done or Abandon.
func (b *Breaker) Allow(now time.Duration) bool {
	if b.State() == BreakerClosed {
		return true
	}
	if b.state == BreakerIsOpen {
		if now-b.last <= b.recovery() {
			return false
		}
		b.state, b.running = BreakerHalfOpen, 0
	}
	probes := b.Config.Probes
	if probes <= 0 {
		probes = 3
	}
	if b.running >= probes {
		return false
	}
	b.running++
	return true
}

// Done reports the result of a call that Allow let through. The end of a call that
// began before the breaker opened may only move the time of the last failure.
func (b *Breaker) Done(now time.Duration, ok bool) {
	half := b.state == BreakerHalfOpen
	if half && b.running > 0 {
		b.running--
	}
	if ok {
		if half {
			b.state, b.failures = BreakerClosed, 0
		} else if b.State() == BreakerClosed && !b.Config.Cumulative {
			b.failures = 0
		}
		return
	}
	b.failures++
	b.last = max(b.last, now)
	most := b.Config.Failures
	if most <= 0 {
		most = 5
	}
	if half || b.failures >= most {
		b.state = BreakerIsOpen
	}
}

// Abandon reports that the caller gave up a call that Allow let through, so that its
// result is unknown. Another call may take its place.
func (b *Breaker) Abandon() {
	if b.state == BreakerHalfOpen && b.running > 0 {
		b.running--
	}
}

package agents

import (
	"cmp"
	"time"
)

// BreakerState is how a [Breaker] stands.
type BreakerState string

// The states.
const (
	BreakerClosed   BreakerState = "CLOSED"
	BreakerIsOpen   BreakerState = "OPEN"
	BreakerHalfOpen BreakerState = "HALF_OPEN"
)

// BreakerConfig says when a breaker opens and closes.
type BreakerConfig struct {
	// Failures in a row open it. 0 means 5.
	Failures int
	// Recovery is how long it stays open after the last failure; a call is let
	// through only when strictly more time has passed. 0 means 30 s.
	Recovery time.Duration
	// Probes is how many calls may run at once while it is half open. 0 means 3.
	Probes int
	// Cumulative counts failures since it last closed from half open, whatever
	// succeeded between them, as the document's sketch does.
	Cumulative bool
}

// Breaker keeps calls from something that fails. The time is given to it; it
// has no lock. The zero Breaker is closed, with the default configuration.
type Breaker struct {
	Config   BreakerConfig
	state    BreakerState
	failures int
	last     time.Duration // of the last failure
	running  int           // probes
}

// State returns how it stands. One that is open stays so until a call comes.
func (b *Breaker) State() BreakerState {
	if b.state == "" {
		return BreakerClosed
	}
	return b.state
}

// Failures returns how many failures it counts.
func (b *Breaker) Failures() int { return b.failures }

// Wait returns how long it stays open from now on; 0 if it is not open. Strictly
// after that a call is let through.
func (b *Breaker) Wait(now time.Duration) time.Duration {
	if b.state != BreakerIsOpen {
		return 0
	}
	return max(b.recovery()-(now-b.last), 0)
}

func (b *Breaker) recovery() time.Duration { return cmp.Or(b.Config.Recovery, 30*time.Second) }

// Allow says whether a call may be made now. If so, its end must be reported
// with Done or Abandon.
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

// Done reports how a call ended that Allow let through. One that ends while
// the breaker is open changes only when it was last seen to fail.
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

// Abandon reports that a call that Allow let through ended without showing
// anything, because whoever made it gave up. Another may be made in its place.
func (b *Breaker) Abandon() {
	if b.state == BreakerHalfOpen && b.running > 0 {
		b.running--
	}
}

package sajou

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// This file is how decisions are made that go by the newest state: those about
// the agents' world and those of the director.

// decide runs f in a round of the log, alone, with the fold at the newest entry
// and the session's lock held, and returns once what f kept is durable.
func (s *Session) decide(f func(*eventlog.Round) error) error {
	var refused error
	err := s.log.Write(func(round *eventlog.Round) { refused = s.inTurn(func() error { return f(round) }) })
	return cmp.Or(refused, err)
}

// authorityNow returns the session's time authority. Called in a round.
func (s *Session) authorityNow() TimeAuthority {
	if s.next.begun {
		return s.next.time.authority
	}
	return s.authority
}

// inTurn runs f with the fold at the newest entry. It is called in a round.
func (s *Session) inTurn(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.behind.take() {
		s.apply(t)
	}
	if broken := s.broken.Load(); broken != nil {
		return *broken
	}
	if err := s.engine.log.Err(); err != nil && s.fold.Head().Seq > s.log.Head().Seq {
		return err // the state has what the log will never have
	}
	s.clock.follow(&s.next)
	return f()
}

// openAt begins drafts in s.scratch that are of the given session time, with
// what has to come before them, and returns where the session stands then.
func (s *Session) openAt(now time.Duration) position {
	p := s.open()
	if p.time.wantsOrigin() {
		// No signal has told when session time began: so that now is as late as
		// what is recorded already.
		p.time.origin, p.time.hasOrigin = s.engine.cfg.Now().UnixNano()-int64(p.at), true
		s.scratch.data = appendClock(s.scratch.data, p.time.origin)
		s.scratch.add(eventlog.KindSession, p.at)
	}
	p.at = max(p.at, now)
	return p
}

// keep stages the drafts in s.scratch as one batch, after which the session
// stands at p, and folds it. It is called by what [Session.decide] runs. Fresh is
// [eventlog.Batch.Fresh].
func (s *Session) keep(round *eventlog.Round, p position, key string, fresh bool) (*eventlog.Ticket, error) {
	s.scratch.finish()
	t, err := round.Stage(eventlog.Batch{Drafts: s.scratch.drafts, Key: key, Fresh: fresh})
	switch {
	case err != nil:
		return nil, err
	case t.Repeat():
		return nil, fmt.Errorf("sajou: session %q: %q is decided twice", s.Name(), key)
	}
	s.clock.follow(&p)
	s.apply(t)
	p.seq, p.rules = t.Head().Seq, hasRules(s.fold)
	s.next = p
	if broken := s.broken.Load(); broken != nil {
		return nil, *broken
	}
	return t, nil
}

// sessionClock is session time as decisions go by it.
type sessionClock struct {
	engine *Engine
	wall   atomic.Bool  // it runs with the wall's clock, from origin on
	origin atomic.Int64 // Unix time, ns
	last   atomic.Int64 // where it stands at least
}

// now returns the session time it is.
func (c *sessionClock) now() time.Duration {
	at := time.Duration(c.last.Load())
	if !c.wall.Load() {
		return at
	}
	return max(at, time.Duration(c.engine.cfg.Now().UnixNano()-c.origin.Load()))
}

// until returns how long to wait until it is an instant, or at least how long to
// wait before one asks again: the wall's clock may be set meanwhile. Signals may have
// taken session time further than the wall's clock has come.
func (c *sessionClock) until(at time.Duration) time.Duration {
	if c.now() >= at {
		return 0
	}
	wall := time.Duration(c.engine.cfg.Now().UnixNano() - c.origin.Load())
	if d := at - wall; d > 0 && d < maxWake {
		return d
	}
	return maxWake // also if the difference is too great for a Duration
}

// leads reports whether a session time is ahead of what the wall's clock says, or
// there is none to ask.
func (c *sessionClock) leads(at time.Duration) bool {
	return !c.wall.Load() || int64(at) > c.engine.cfg.Now().UnixNano()-c.origin.Load()
}

// reach moves it on to an instant.
func (c *sessionClock) reach(at time.Duration) {
	for {
		last := c.last.Load()
		if int64(at) <= last || c.last.CompareAndSwap(last, int64(at)) {
			return
		}
	}
}

// follow takes over what records have said of the time.
func (c *sessionClock) follow(p *position) {
	if p.time.authority == TimeWall && p.time.hasOrigin && !c.wall.Load() {
		c.origin.Store(p.time.origin)
		c.wall.Store(true)
	}
	c.reach(p.at)
}

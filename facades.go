package sajou

import (
	"context"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// This file is what those ask who show the agents' world in another form, as the
// packages agents/rl and agents/message do.

// TimeAuthority returns where the session's time comes from.
func (s *Session) TimeAuthority() TimeAuthority {
	s.catchUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, ok := s.fold.State(ProjectionSession).(*sessionState); ok && state.time.authority != "" {
		return state.time.authority
	}
	return s.authority
}

// LatestViewSeq returns the number of the newest effect of which something has
// reached an agent by now: what an intent's context_seq is measured by. It returns
// false if nobody of this id is registered.
func (a *Agents) LatestViewSeq(id string) (seq uint64, ok bool) {
	s := a.session
	s.catchUp()
	now := a.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok = a.world.core.Settings(id); !ok {
		return 0, false
	}
	return a.world.core.LatestViewSeq(now, id), true
}

// WaitUntil returns once session time has come so far. Errors: those of ctx,
// [eventlog.ErrClosed]. Where time does not run it waits for [Agents.Advance] or
// [Agents.Tick].
func (a *Agents) WaitUntil(ctx context.Context, at time.Duration) error {
	if a.clock.now() >= at {
		return ctx.Err()
	}
	// A reader of nobody, whom nothing is told but that time has passed.
	f := a.audience.join("", math.MaxUint64)
	defer a.audience.part(f)
	for {
		now := a.clock.now()
		if now >= at {
			return ctx.Err()
		}
		if err := a.pause(ctx, f.wake, at-now); err != nil {
			return err
		}
	}
}

// pause waits for a wake, or for so much time of the wall's clock if that is
// what runs.
func (a *Agents) pause(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	var due chan struct{}
	if a.clock.wall.Load() {
		due = make(chan struct{})
		stop := a.session.engine.cfg.AfterFunc(min(d, maxWake), func() { close(due) })
		defer stop()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.session.engine.live.Done():
		return eventlog.ErrClosed
	case <-wake:
	case <-due:
	}
	return nil
}

// Poll is [Agent.NextObservation] that does not wait for one: it returns false
// if there is nothing now.
func (g *Agent) Poll(ctx context.Context) (o Observation, ok bool, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return Observation{}, false, err
		}
		d, next, err := g.feed.next(g.world.clock.now())
		switch {
		case err != nil:
			return Observation{}, false, err
		case d != nil:
			return Observation{d.Delta, g.id, d.At, d.Number}, true, nil
		case !next.whole:
			return Observation{}, false, nil
		}
		if err := g.catchUp(ctx); err != nil {
			return Observation{}, false, err
		}
	}
}

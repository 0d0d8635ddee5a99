package sajou

import (
	"context"
	"math"
	"time"
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
	for a.clock.now() < at {
		if err := a.pause(ctx, nextUp{at: at, timed: true, wake: f.wake}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

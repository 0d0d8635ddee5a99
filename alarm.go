package sajou

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// This file is how time passes for the agents.

// alarm rings when time alone would change something.
type alarm struct {
	at   time.Duration
	set  bool
	stop func() bool
	late bool // it has rung, and what was due could not be recorded
}

// arm sets the alarm for what is due next. Called in a turn.
func (t *turn) arm() {
	al := &t.alarm
	at, ok := t.core.Next()
	ok = ok && t.clock.wall.Load() && t.session.engine.live.Err() == nil && t.session.engine.log.Err() == nil
	if al.set && ok && al.at == at {
		return
	}
	late := al.late
	t.disarm()
	if !ok {
		return
	}
	wait := t.clock.until(at)
	if late {
		wait = maxWake
	}
	al.at, al.set = at, true
	al.stop = t.session.engine.cfg.AfterFunc(wait, t.ring)
}

// disarm takes the alarm back. Called in a turn, or at the end.
func (a *Agents) disarm() {
	if a.alarm.set {
		a.alarm.stop()
	}
	a.alarm = alarm{}
}

func (a *Agents) ring() {
	err := a.turn(func(t *turn) error {
		t.alarm.set = false
		err := t.due()
		t.alarm.late = err != nil
		return err
	})
	if err != nil && !errors.Is(err, eventlog.ErrClosed) {
		a.session.engine.cfg.Logger.Error("the agents' time stands still",
			slog.String(WorldIDKey, a.session.Name()), slog.Any("err", err))
	}
}

// due records what time alone has brought about: deadlines that have passed,
// each with the answer of its request, and for interruptions that were put off a
// mark that time has come so far, since they follow from that.
func (t *turn) due() error {
	if over := t.core.Expire(t.now); len(over) > 0 {
		if _, err := t.keep(over); err != nil {
			return err
		}
	}
	if !t.core.Due(t.now) {
		return nil
	}
	_, err := t.batch(nil, "")
	return err
}

// Advance lets session time pass up to an instant, in a session whose time does
// not run by itself. It returns once what has come of that is durable and told.
func (a *Agents) Advance(ctx context.Context, to time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := a.turn(func(t *turn) error {
		if t.session.authorityNow() == TimeWall {
			return fmt.Errorf("%w: the time of session %q runs by itself", ErrTime, a.session.Name())
		}
		t.reach(to)
		return t.due()
	})
	if err == nil {
		err = a.Settle(ctx)
	}
	a.moved.ring()
	return err
}

// reach lets session time come so far.
func (t *turn) reach(at time.Duration) {
	t.clock.reach(at)
	t.now = t.clock.now()
}

// Next returns when something happens next by itself: a deadline, or an
// interruption that was put off. It is for sessions whose time does not run.
func (a *Agents) Next() (at time.Duration, ok bool) {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.world.core.Next()
}

// Now returns the session time that it is for the agents.
func (a *Agents) Now() time.Duration { return a.clock.now() }

// WaitUntil returns once session time has come so far. Errors: those of ctx,
// [eventlog.ErrClosed]. Where time does not run it waits for what lets it pass: a
// signal, [Agents.Advance], [Agents.Tick].
func (a *Agents) WaitUntil(ctx context.Context, at time.Duration) error {
	for a.clock.now() < at {
		if err := a.pause(ctx, nextUp{at: at, timed: true}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pause returns when there may be something: when its time has come, or somebody
// says so.
func (a *Agents) pause(ctx context.Context, next nextUp) error {
	var due chan struct{}
	var moved, over <-chan struct{}
	if next.timed {
		moved = a.moved.next()
		if a.clock.now() >= next.at {
			return nil
		}
		if a.clock.wall.Load() {
			due = make(chan struct{})
			stop := a.session.engine.cfg.AfterFunc(a.clock.until(next.at), func() { close(due) })
			defer stop()
		}
	} else {
		over = a.outbox.over
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.session.engine.live.Done():
		return eventlog.ErrClosed
	case <-next.wake:
	case <-moved:
	case <-due:
	case <-over:
	}
	return nil
}

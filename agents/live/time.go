package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

// This file lets session time pass for the agents.

// deadlineTimer runs a turn when time alone would change the world.
type deadlineTimer struct {
	at   time.Duration
	set  bool
	stop func() bool
	late bool // it fired, and what was due could not be recorded
}

// arm sets the timer for the next deadline. It runs at the end of each turn. The caller
// holds the lock of the writer's fold.
func (a *Agents) arm() {
	al := &a.timer
	at, ok := a.core.Next()
	ok = ok && a.clock.Runs() && a.w.Context().Err() == nil && a.w.Err() == nil
	if al.set && ok && al.at == at {
		return
	}
	late := al.late
	a.disarm()
	if !ok {
		return
	}
	wait := a.clock.Until(at)
	if late {
		wait = writer.MaxWake
	}
	al.at, al.set = at, true
	al.stop = a.cfg.AfterFunc(wait, a.ring)
}

// disarm stops the timer. The caller holds the lock of the writer's fold.
func (a *Agents) disarm() {
	if a.timer.set {
		a.timer.stop()
	}
	a.timer = deadlineTimer{}
}

func (a *Agents) ring() {
	live := a.w.Context()
	err := a.turn(live, func(t *turn) error {
		t.timer.set = false
		err := t.due()
		t.timer.late = err != nil
		return err
	})
	if err != nil && live.Err() == nil && !errors.Is(err, eventlog.ErrClosed) {
		a.cfg.Logger.Error("the agents' time stands still",
			slog.String(worldIDKey, a.w.Name()), slog.Any("err", err))
	}
}

// due records what time alone has caused: an outcome for each generation past its
// deadline and, for interruptions that the debounce had delayed, a mark that time
// has passed, from which they follow.
func (t *turn) due() error {
	if over := t.core.Expire(t.now); len(over) > 0 {
		if _, err := t.keep(over, false); err != nil {
			return err
		}
	}
	if !t.core.Due(t.now) {
		return nil
	}
	_, err := t.batch(nil, "", false)
	return err
}

// Advance lets session time pass up to an instant, in a session whose time does not
// run by itself. It returns once all that was due is durable and delivered. If session
// time has already passed the instant, it stays where it is.
func (a *Agents) Advance(ctx context.Context, to time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := a.turn(ctx, func(t *turn) error {
		if t.right.Frontier().Time.Authority == session.TimeWall {
			return fmt.Errorf("%w: the time of session %q runs by itself", session.ErrTime, a.w.Name())
		}
		t.reach(to)
		return t.due()
	})
	if err == nil {
		err = a.Settle(ctx)
	}
	a.moved.send()
	return err
}

// reach lets session time pass up to an instant.
func (t *turn) reach(at time.Duration) {
	t.right.Reach(at)
	t.now = t.right.Now()
}

// Next returns the time of the next deadline, or of the next interruption that the
// debounce has delayed, for sessions whose time does not run by itself.
func (a *Agents) Next() (at time.Duration, ok bool) {
	a.w.Look(func(*projection.Fold) { at, ok = a.core.Next() })
	return at, ok
}

// Now returns the session time.
func (a *Agents) Now() time.Duration { return a.clock.Now() }

// WaitUntil returns once session time has reached an instant. Errors: those of ctx,
// [eventlog.ErrClosed]. If time does not run by itself it waits for a call that
// lets time pass: a signal, [Agents.Advance], [Agents.Tick].
func (a *Agents) WaitUntil(ctx context.Context, at time.Duration) error {
	for a.clock.Now() < at {
		if err := a.pause(ctx, nextUp{at: at, timed: true}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pause returns when next may have become available: when its time has come, or
// after a wake-up.
func (a *Agents) pause(ctx context.Context, next nextUp) error {
	var due chan struct{}
	var moved, over <-chan struct{}
	if next.timed {
		moved = a.moved.wait()
		if a.clock.Now() >= next.at {
			return nil
		}
		if a.clock.Runs() {
			due = make(chan struct{})
			stop := a.cfg.AfterFunc(a.clock.Until(next.at), func() { close(due) })
			defer stop()
		}
	} else {
		over = a.outbox.over
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.w.Context().Done():
		return eventlog.ErrClosed
	case <-next.wake:
	case <-moved:
	case <-due:
	case <-over:
	}
	return nil
}

package sajou

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// Replay travels in time through one recorded session. It has the methods of
// [replay.Replay] once [Replay.Open] says that the session exists.
type Replay struct {
	engine   *Engine
	name     string
	progress func(done, total eventlog.Seq) // nil: nobody is told
}

// Replay returns the time traveller of a session. Whether the session exists
// is found out at first use.
func (e *Engine) Replay(name string) *Replay { return &Replay{engine: e, name: name} }

// At returns the state right at an entry, which belongs to the caller. Errors:
// [eventlog.ErrNoSession], [replay.ErrNoAddress].
func (r *Replay) At(ctx context.Context, seq eventlog.Seq) (*projection.Fold, error) {
	return r.AtMoment(ctx, replay.Moment{Seq: seq})
}

// AtMoment is [Replay.At] for any moment, also between two entries.
func (r *Replay) AtMoment(ctx context.Context, m replay.Moment) (*projection.Fold, error) {
	travel, err := r.Open()
	if err != nil {
		return nil, err
	}
	return travel.At(ctx, m)
}

// Open returns the session's time travel: addresses, cursors, commands,
// searches. The error is [eventlog.ErrNoSession] when there is no such
// session.
func (r *Replay) Open() (*replay.Replay, error) { return r.OpenWith(r.engine.set) }

// OpenWith is [Replay.Open] with other projections than the engine's, such as
// those of [ProjectionsWith].
func (r *Replay) OpenWith(set projection.Set) (*replay.Replay, error) {
	log, err := r.engine.log.Session(r.name)
	if err != nil {
		return nil, err
	}
	if !log.Exists() {
		return nil, fmt.Errorf("%w: %q", eventlog.ErrNoSession, r.name)
	}
	return r.engine.replayWith(log, set), nil
}

func (e *Engine) replayOf(log *eventlog.Session) *replay.Replay { return e.replayWith(log, e.set) }

func (e *Engine) replayWith(log *eventlog.Session, set projection.Set) *replay.Replay {
	src := &source{log, e}
	if e.snaps == nil {
		return replay.Open(src, set, nil)
	}
	return replay.Open(src, set, replay.Stored(e.snaps, src, set))
}

// source is a session of the log as package replay wants it, with the wall
// clock's time at its beginning.
type source struct {
	*eventlog.Session
	engine *Engine
}

// Origin implements [replay.Origin]. It folds no more than the entries up to
// the first signal.
func (s *source) Origin() (time.Time, bool) {
	state := &sessionState{}
	for e, err := range s.Entries(context.Background(), 1) {
		if err != nil || state.time.authority == TimeManual || state.time.authority == TimeSim {
			return time.Time{}, false
		}
		if state.Apply(&e); state.time.hasOrigin {
			return time.Unix(0, state.time.origin).UTC(), true
		}
	}
	return time.Time{}, false
}

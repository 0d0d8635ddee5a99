package sajou

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// Attach sends the session's commands to sink from now on: those of every
// entry that becomes durable, and while something moves updates at the
// engine's frame rate. It returns at once; detach stops the sink and waits
// for a call under way to return. A sink must not call detach itself.
//
// Calls to one sink never overlap, and carry exact times in
// [choreography.Command].At, whenever they come. A slow sink delays nobody but
// itself: frames it is too slow for are dropped, while starts, ends,
// executions and interruptions all reach it, in order.
//
// A live picture can only show what has come: a signal that arrives with a
// time already drawn takes effect at the moment it arrives. The log is not
// touched by that, and a replay has the signal at its own time.
func (s *Session) Attach(sink choreography.CommandSink) (detach func()) {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return func() {}
	}
	ctx, cancel := context.WithCancel(e.live)
	done := make(chan struct{})
	head := s.Head() // "from now on" begins here, not when the goroutine does
	e.sinks.Add(1)
	go func() {
		defer e.sinks.Done()
		defer close(done)
		if err := s.perform(ctx, head, sink); err != nil && ctx.Err() == nil {
			e.cfg.Logger.Error("sink detached", slog.String("session", s.Name()), slog.Any("err", err))
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

// perform runs one attached sink on a copy of the state.
func (s *Session) perform(ctx context.Context, head eventlog.Head, sink choreography.CommandSink) error {
	fold, err := s.engine.replayOf(s.log).Fold(ctx, head.Seq)
	if err != nil {
		return err
	}
	p := performer{session: s, fold: fold}
	p.state, _ = fold.State(ProjectionPerformances).(replay.Performer)
	if p.state == nil {
		return errState
	}
	fold.Advance(fold.At()) // what the entries so far made due is not news
	p.state.Perform(sink)

	// The reader and the frames meet in one loop, so that calls to the sink
	// never overlap. The channel holds a few entries only so that the reader
	// runs on while the sink works; the log is the real buffer.
	ctx, cancel := context.WithCancel(ctx)
	entries := make(chan eventlog.Entry, 64)
	failed := make(chan error, 1) // one error, written once, before entries is closed
	var reader sync.WaitGroup
	reader.Go(func() {
		for e, err := range s.log.Follow(ctx, head.Seq+1) {
			if err != nil {
				failed <- err
				close(entries)
				return
			}
			select {
			case entries <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	defer reader.Wait()
	defer cancel()
	return p.run(ctx, entries, failed)
}

// performer is the loop of one attached sink.
type performer struct {
	session *Session
	fold    *projection.Fold
	state   replay.Performer
}

func (p *performer) run(ctx context.Context, entries <-chan eventlog.Entry, failed <-chan error) error {
	frames := make(chan time.Duration, 1) // at most one frame is asked for at a time
	cancel := func() {}
	defer func() { cancel() }()
	for waiting := false; ; {
		if _, moving := p.state.NextBoundary(); moving && !waiting {
			if clock := p.clock(); clock != nil {
				cancel = clock.RequestFrame(func(now time.Duration) { frames <- now })
				waiting = true
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-entries:
			if !ok {
				return <-failed
			}
			// A time already drawn cannot be undone; see Attach.
			e.At = max(e.At, p.fold.At())
			if err := p.fold.Apply(&e); err != nil {
				return err
			}
		case now := <-frames:
			waiting = false
			if now >= 0 {
				p.fold.Advance(now)
			}
		}
	}
}

// clock returns the clock that frames are drawn by, or nil while session time
// is not the wall clock's.
func (p *performer) clock() *Clock {
	state, ok := p.fold.State(ProjectionSession).(*sessionState)
	if !ok || !state.time.hasOrigin {
		return nil
	}
	cfg := &p.session.engine.cfg
	return NewClock(time.Unix(0, state.time.origin), cfg.FrameRate, cfg.Now)
}

package sajou

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/stage"
)

// FrameSink takes what a viewer sees.
type FrameSink interface {
	// Frame shows one frame. It belongs to the sink.
	Frame(*stage.Frame)
}

// Attach sends the session's commands to sink from now on: those of every
// entry that becomes durable, and while something moves updates, rate times a
// second from 1 to 1000, at whole multiples of a frame's length in session
// time. A rate of zero is the engine's, [Config.FrameRate]. It returns at once
// and lasts until ctx ends, the [Live] or the engine is closed, or the sink
// fails; it is Live that tells of errors, also of one that kept it from
// beginning.
//
// Commands carry exact times in [choreography.Command].At, whenever they come.
// Starts, ends, executions and interruptions all reach the sink, in order;
// updates are dropped while it is too slow for them. While nothing moves
// nothing is sent, and no timer runs.
//
// A live picture can only show what has come: a signal that arrives with a
// time already drawn takes effect at the moment it arrives. The log is not
// touched by that, and a replay has the signal at its own time. In a session
// whose time is not the wall clock's, time stands still between entries.
func (s *Session) Attach(ctx context.Context, sink choreography.CommandSink, rate int) *Live {
	return s.attach(ctx, fmt.Sprintf("%T", sink), rate, func(l *Live) audience {
		return &listener{gate: gate{sink: sink, live: l}}
	})
}

// Show is [Session.Attach] for a sink of frames: it gets the frame that is seen
// now, one whenever something has happened, and rate frames a second while
// something on the stage moves. Frames that it is too slow for are dropped; of
// what has come to rest it always gets the last.
func (s *Session) Show(ctx context.Context, sink FrameSink, rate int) *Live {
	return s.attach(ctx, fmt.Sprintf("%T", sink), rate, func(l *Live) audience {
		return &spectator{sink: sink, live: l}
	})
}

// Live is a sink that is attached to a session, or was.
//
// Each has a goroutine of its own, on which its sink's calls follow each other
// and never overlap. One that is slow, blocks or panics so harms nobody else:
//
//   - A panic is caught. The sink is detached, and [Live.Err] tells of it.
//   - A call that does not return delays neither writers nor other sinks. When
//     the Live or the engine is closed it is waited for as long as
//     [Config.SinkGrace] says. Then the sink is given up: the error is
//     [ErrSinkStuck], and the goroutine ends when its call returns, if ever,
//     without another call.
type Live struct {
	engine  *Engine
	session string
	sink    string             // its type
	cancel  context.CancelFunc // ends it
	stop    <-chan struct{}    // closed by cancel
	done    chan struct{}      // closed when it is detached

	mu   sync.Mutex
	end  bool          // done is closed; guarded by mu
	err  error         // guarded by mu
	call string        // under way, "" for none; guarded by mu
	at   time.Duration // what that call is told; guarded by mu
}

// Done is closed when the sink is detached: after that no call to it begins.
func (l *Live) Done() <-chan struct{} { return l.done }

// Err tells why the sink was detached; nil while it is attached, and when the
// end was asked for, by a Close or by its context. It is a [*SinkError] if the
// sink is to blame, otherwise the log's.
func (l *Live) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close detaches the sink, waits for a call under way as [Live] tells, and
// returns [Live.Err]. It can be called often. A sink does not close its own
// Live, for that would wait for itself; it cancels the context.
func (l *Live) Close() error {
	l.cancel()
	_ = l.engine.await(l) // Err has it
	return l.Err()
}

var (
	// ErrSinkPanic says that a sink panicked and was detached.
	ErrSinkPanic = errors.New("the sink panicked")

	// ErrSinkStuck says that a sink's call did not return when it was to be
	// detached, and that it was given up.
	ErrSinkStuck = errors.New("the sink does not return")
)

// SinkError tells which sink failed, and how.
type SinkError struct {
	Session string
	Sink    string        // its type, such as *main.renderer
	Call    string        // the call that was under way, "" for none
	At      time.Duration // the session time it was told
	Panic   any           // what it panicked with, if it did
	Stack   []byte        // where it panicked
	Err     error         // ErrSinkPanic or ErrSinkStuck
}

// Error names the sink, its call and what it panicked with.
func (e *SinkError) Error() string {
	where := "between calls"
	if e.Call != "" {
		where = fmt.Sprintf("in %s at %v", e.Call, e.At)
	}
	text := fmt.Sprintf("sajou: sink %s of session %q, %s: %v", e.Sink, e.Session, where, e.Err)
	if e.Panic != nil {
		text = fmt.Sprintf("%s: %v", text, e.Panic)
	}
	return text
}

// Unwrap returns the class of the error, and what the sink panicked with if
// that is an error.
func (e *SinkError) Unwrap() []error {
	if cause, ok := e.Panic.(error); ok {
		return []error{e.Err, cause}
	}
	return []error{e.Err}
}

func checkRate(rate int) error {
	if rate < 1 || rate > maxFrameRate {
		return fmt.Errorf("sajou: frame rate %d is not from 1 to %d", rate, maxFrameRate)
	}
	return nil
}

func (s *Session) attach(ctx context.Context, sink string, rate int, kind func(*Live) audience) *Live {
	e := s.engine
	ctx, cancel := context.WithCancel(ctx)
	l := &Live{engine: e, session: s.Name(), sink: sink, cancel: cancel, stop: ctx.Done(), done: make(chan struct{})}
	if rate == 0 {
		rate = e.cfg.FrameRate
	}
	if err := checkRate(rate); err != nil {
		l.finish(err)
		return l
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		l.finishQuietly(eventlog.ErrClosed)
		return l
	}
	v := &viewer{session: s, audience: kind(l), rate: rate}
	head := s.Head() // "from now on" begins here, not when the goroutine does
	e.lives[l] = struct{}{}
	e.readers.Add(1) // the viewer takes it back when it has read where to begin
	unhook := context.AfterFunc(e.live, cancel)
	go func() {
		defer func() {
			unhook()
			e.mu.Lock()
			delete(e.lives, l)
			e.mu.Unlock()
		}()
		l.guard(func() error { return v.view(ctx, head) })
	}()
	return l
}

// guard runs f and then finish with its error, or with how it ended otherwise.
func (l *Live) guard(f func() error) {
	returned := false
	var err error
	defer func() { l.finish(err) }()
	defer func() {
		if returned {
			return
		}
		cause := recover()
		if cause == nil {
			cause = "it ended its goroutine" // runtime.Goexit
		}
		failure := l.failure(ErrSinkPanic)
		failure.Panic, failure.Stack = cause, debug.Stack()
		err = failure
	}()
	err = f()
	returned = true
}

// enter begins a call of the sink, unless it is to be detached.
func (l *Live) enter(call string, at time.Duration) bool {
	select {
	case <-l.stop:
		return false
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end {
		return false
	}
	l.call, l.at = call, at
	return true
}

// leave ends a call of the sink that has returned.
func (l *Live) leave() {
	l.mu.Lock()
	l.call = ""
	l.mu.Unlock()
}

func (l *Live) failure(class error) *SinkError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &SinkError{Session: l.session, Sink: l.sink, Call: l.call, At: l.at, Err: class}
}

// finish detaches the sink, once.
func (l *Live) finish(err error) {
	if !l.finishQuietly(err) || err == nil {
		return
	}
	// Logged as well as returned: nobody need be there to ask for it.
	attrs := []slog.Attr{slog.String("session", l.session), slog.String("sink", l.sink), slog.Any("err", err)}
	var failure *SinkError
	if errors.As(err, &failure) && failure.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(failure.Stack)))
	}
	l.engine.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "sink detached", attrs...)
}

func (l *Live) finishQuietly(err error) (first bool) {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end {
		return false
	}
	l.end, l.err = true, err
	close(l.done)
	return true
}

// await waits for sinks that are to end, and gives up those that do not within
// the grace.
func (e *Engine) await(lives ...*Live) error {
	var expired chan struct{}
	var errs []error
	for _, l := range lives {
		select {
		case <-l.done:
			continue
		default:
		}
		if expired == nil { // one grace for all
			expired = make(chan struct{})
			defer e.cfg.AfterFunc(max(e.cfg.SinkGrace, 0), func() { close(expired) })()
		}
		select {
		case <-l.done:
		case <-expired:
			l.finish(l.failure(ErrSinkStuck))
			if err := l.Err(); errors.Is(err, ErrSinkStuck) { // it may just have ended by itself
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Package live shows a session while it runs: it sends the commands of the choreographer
// or the frames of the stage to sinks, at the pace of the wall clock.
//
// An [Attachment] follows the log with a fold of its own, so that it neither delays
// the writer nor sees an entry before it is durable. It never writes. The log is
// its buffer: no queue grows for a slow sink, and it loses only frames and updates.
//
// # Goroutines
//
// Each Attachment has two. The reader copies entries from the log into a short
// channel, and closing the engine waits for it. The caller calls the sink; closing the
// engine waits for it at most [Config].CloseTimeout. The fold, the timer and the renderer
// belong to the caller. The mutex of an Attachment guards only the fields that
// [Attachment.Err], [Attachment.Close] and [SinkError] need. It is never held while the
// sink is called. The mutex of [Attachments] is taken before it, never after.
//
// docs/glossary.md has the nouns of all packages.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage"
)

// FrameSink receives the frames that a viewer sees.
type FrameSink interface {
	// Frame shows one frame. The frame belongs to the sink.
	Frame(*stage.Frame)
}

// Config holds what the sinks of one engine share. All fields but Metrics must be set.
type Config struct {
	FrameRate    int           // of sinks that ask for none, from 1 to 1000
	CloseTimeout time.Duration // how long closing waits for a call of a sink; negative means no wait
	Now          func() time.Time
	AfterFunc    func(d time.Duration, f func()) (stop func() bool)
	Logger       *slog.Logger
	Metrics      SinkMetrics // nil: nothing is measured
}

// Attachments are the sinks that are attached to the sessions of one log.
type Attachments struct {
	cfg Config // immutable

	mu     sync.Mutex
	open   map[*Attachment]struct{} // guarded by mu
	closed bool                     // guarded by mu

	failed   []SinkHealth // detached by an error, the newest, at most maxDetached; guarded by mu
	detached int          // by an error; guarded by mu
}

// NewAttachments returns a set without sinks.
func NewAttachments(cfg Config) *Attachments {
	return &Attachments{cfg: cfg, open: map[*Attachment]struct{}{}}
}

// Close detaches all sinks and waits for their calls under way, for all of them together
// at most [Config].CloseTimeout. The error names the sinks that were abandoned.
func (as *Attachments) Close() error {
	as.mu.Lock()
	as.closed = true
	list := slices.Collect(maps.Keys(as.open))
	as.mu.Unlock()
	for _, a := range list {
		a.cancel()
	}
	return as.await(list...)
}

// Detach is [Attachments.Close] for the sinks of one session. Others can be attached to
// it meanwhile.
func (as *Attachments) Detach(session string) error {
	as.mu.Lock()
	var list []*Attachment
	for a := range as.open {
		if a.session == session {
			list = append(list, a)
		}
	}
	as.mu.Unlock()
	for _, a := range list {
		a.cancel()
	}
	return as.await(list...)
}

// Attach sends the session's commands to sink from now on: those of every
// entry that becomes durable, and while something moves updates, rate times a
// second from 1 to 1000, at whole multiples of a frame's length in session
// time. A rate of zero means that of the configuration. Attach returns at once. The
// sink stays attached until ctx ends, the [Attachment] or the engine is closed, the
// session is deleted, or the sink fails. [Attachment.Err] returns the error, also if the sink was never attached.
//
// First the sink is told what is under way: an ActionStart, with the time at which the
// action began, and an ActionUpdate for each running action.
//
// Commands carry exact times in [choreography.Command].At, however late they are sent.
// Starts, ends, executions and interruptions all reach the sink, in order;
// updates are dropped while it is too slow for them. While nothing moves, nothing is
// sent and no timer runs.
//
// A signal that arrives with a time already drawn takes effect at the moment it arrives.
// This does not change the log: a replay has the signal at its own time. In a session
// whose time is not the wall clock's, time stands still between entries.
func (as *Attachments) Attach(ctx context.Context, w *writer.Writer, sink choreography.CommandSink, rate int) *Attachment {
	return as.attach(ctx, w, fmt.Sprintf("%T", sink), rate, nil, func(a *Attachment) renderer {
		return &commandRenderer{commandFilter: commandFilter{sink: sink, attachment: a}}
	})
}

// AttachAt is [Attachments.Attach] from a moment of the recorded session on. The sink is
// told what was under way at that moment, then what has happened since, without waiting
// for the time between, and then what happens. No command is left out or sent twice
// between the past and the present. If the session does not have the moment, the error
// of the attachment is that of [replay.Replay.At].
func (as *Attachments) AttachAt(ctx context.Context, w *writer.Writer, sink choreography.CommandSink, rate int, from replay.Moment) *Attachment {
	return as.attach(ctx, w, fmt.Sprintf("%T", sink), rate, &from, func(a *Attachment) renderer {
		return &commandRenderer{commandFilter: commandFilter{sink: sink, attachment: a}}
	})
}

// Show is [Attachments.Attach] for a sink of frames: it gets the frame of the
// present, one whenever something has happened, and rate frames a second while
// something on the stage moves. Frames are dropped while the sink is too slow for
// them; it always gets the last one before the stage comes to rest.
func (as *Attachments) Show(ctx context.Context, w *writer.Writer, sink FrameSink, rate int) *Attachment {
	return as.attach(ctx, w, fmt.Sprintf("%T", sink), rate, nil, func(a *Attachment) renderer {
		return &frameRenderer{sink: sink, attachment: a}
	})
}

// Attachment is a sink that is attached to a session, or was.
//
// Each has a goroutine of its own, on which its sink's calls follow each other
// and never overlap. A sink that is slow, blocks or panics affects no other part:
//
//   - A panic is recovered. The sink is detached, and [Attachment.Err] returns the panic.
//   - A call that does not return delays neither writers nor other sinks. Closing
//     the Attachment or the engine waits for it at most [Config.CloseTimeout]. Then
//     the sink is abandoned: the error is [ErrSinkStuck], and the goroutine ends
//     when its call returns, if ever, without another call.
type Attachment struct {
	all     *Attachments
	session string
	sink    string             // its type
	cancel  context.CancelFunc // asks for its end
	stop    <-chan struct{}    // closed by cancel
	done    chan struct{}      // closed when it is detached
	viewer  *viewer            // nil if it was never attached; immutable after attach

	mu    sync.Mutex
	end   bool          // done is closed; guarded by mu
	err   error         // guarded by mu
	call  string        // under way, "" for none; guarded by mu
	at    time.Duration // session time of that call; guarded by mu
	began time.Time     // when that call began; zero without metrics; guarded by mu
}

// Done is closed when the sink is detached: after that no call to it begins.
func (l *Attachment) Done() <-chan struct{} { return l.done }

// Err returns the error that detached the sink. It is nil while the sink is attached,
// and after an end by Close or by its context. It is a [*SinkError] if the sink failed,
// matches [eventlog.ErrDeleted] if the session was deleted, and is otherwise an error of
// the log.
func (l *Attachment) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close detaches the sink, waits for a call under way as [Attachment] describes,
// and returns [Attachment.Err]. It can be called again. A sink must not close its own
// Attachment, because Close would wait for the sink; it can cancel the context instead.
func (l *Attachment) Close() error {
	l.cancel()
	_ = l.all.await(l) // Err returns the same error
	return l.Err()
}

var (
	// ErrSinkPanic is the error of a sink that panicked and was detached.
	ErrSinkPanic = errors.New("the sink panicked")

	// ErrSinkStuck is the error of a sink that was abandoned, because its call did not
	// return in time when it was to be detached.
	ErrSinkStuck = errors.New("the sink does not return")
)

// SinkError reports which sink failed, and how.
type SinkError struct {
	Session string
	Sink    string        // its type, such as *main.renderer
	Call    string        // the call that was under way, "" for none
	At      time.Duration // the session time of that call
	Panic   any           // the value of its panic, nil without one
	Stack   []byte        // where it panicked
	Err     error         // ErrSinkPanic or ErrSinkStuck
}

// Error names the sink, its call and the value of its panic.
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

// Unwrap returns the class of the error, and the value of the panic if that is an
// error.
func (e *SinkError) Unwrap() []error {
	if cause, ok := e.Panic.(error); ok {
		return []error{e.Err, cause}
	}
	return []error{e.Err}
}

// CheckRate refuses a frame rate that is not from 1 to 1000.
func CheckRate(rate int) error {
	if rate < 1 || rate > maxFrameRate {
		return fmt.Errorf("sajou: frame rate %d is not from 1 to %d", rate, maxFrameRate)
	}
	return nil
}

func (as *Attachments) attach(ctx context.Context, w *writer.Writer, sink string, rate int, from *replay.Moment, kind func(*Attachment) renderer) *Attachment {
	ctx, cancel := context.WithCancel(ctx)
	l := &Attachment{all: as, session: w.Name(), sink: sink, cancel: cancel, stop: ctx.Done(), done: make(chan struct{})}
	if rate == 0 {
		rate = as.cfg.FrameRate
	}
	if err := CheckRate(rate); err != nil {
		l.finish(err)
		return l
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	v := &viewer{cfg: &as.cfg, writer: w, renderer: kind(l), rate: rate, from: from}
	if as.closed || !v.follow(ctx) {
		l.finishQuietly(cmp.Or(w.Deleted(), eventlog.ErrClosed))
		return l
	}
	l.viewer = v
	as.open[l] = struct{}{}
	if m := as.cfg.Metrics; m != nil {
		m.SinkAttached(l.session, l.sink)
	}
	go func() {
		defer func() {
			as.mu.Lock()
			delete(as.open, l)
			as.mu.Unlock()
		}()
		l.guard(func() error { return v.view(ctx) })
	}()
	return l
}

// guard runs f and then finish, with its error or its panic. A sink may also end the
// goroutine with runtime.Goexit, which recover does not see: then returned is false and
// there is no panic value.
func (l *Attachment) guard(f func() error) {
	returned := false
	var err error
	defer func() { l.finish(err) }()
	defer func() {
		if returned {
			return
		}
		cause := recover()
		if cause == nil {
			cause = "it ended its goroutine"
		}
		failure := l.failure(ErrSinkPanic)
		failure.Panic, failure.Stack = cause, debug.Stack()
		err = failure
	}()
	err = f()
	returned = true
}

// enter begins a call of the sink. It returns false if the sink is to be detached: then
// it must not be called.
func (l *Attachment) enter(call string, at time.Duration) bool {
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
	if l.all.cfg.Metrics != nil {
		l.began = l.all.cfg.Now()
	}
	return true
}

// leave ends a call of the sink that has returned.
func (l *Attachment) leave() {
	l.mu.Lock()
	call, began, end := l.call, l.began, l.end
	l.call = ""
	l.mu.Unlock()
	if m := l.all.cfg.Metrics; m != nil && !end {
		m.SinkCalled(l.session, l.sink, call, max(l.all.cfg.Now().Sub(began), 0))
	}
}

func (l *Attachment) failure(class error) *SinkError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &SinkError{Session: l.session, Sink: l.sink, Call: l.call, At: l.at, Err: class}
}

// finish detaches the sink and logs its error. Only the first call has an effect.
func (l *Attachment) finish(err error) {
	l.all.mu.Lock() // held until the error is remembered: Done is closed before
	first := l.finishQuietly(err)
	failed := first && err != nil && !errors.Is(err, eventlog.ErrDeleted)
	if failed && l.viewer != nil {
		l.all.remember(SinkHealth{Session: l.session, Sink: l.sink, Err: err})
	}
	l.all.mu.Unlock()
	if !failed {
		return
	}
	// Logged as well as returned: the program need not ask for the error.
	attrs := []slog.Attr{slog.String("session", l.session), slog.String("sink", l.sink), slog.Any("err", err)}
	var failure *SinkError
	if errors.As(err, &failure) && failure.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(failure.Stack)))
	}
	l.all.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "sink detached", attrs...)
}

// finishQuietly is finish without the log. It reports whether it was the first.
func (l *Attachment) finishQuietly(err error) (first bool) {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end {
		return false
	}
	l.end, l.err = true, err
	if m := l.all.cfg.Metrics; m != nil && l.viewer != nil {
		m.SinkDetached(l.session, l.sink, err)
	}
	close(l.done)
	return true
}

// await waits for sinks that are to end, and abandons those that do not end in time.
func (as *Attachments) await(list ...*Attachment) error {
	var expired chan struct{}
	var errs []error
	for _, l := range list {
		select {
		case <-l.done:
			continue
		default:
		}
		if expired == nil { // one timeout for all
			expired = make(chan struct{})
			defer as.cfg.AfterFunc(max(as.cfg.CloseTimeout, 0), func() { close(expired) })()
		}
		select {
		case <-l.done:
		case <-expired:
			l.finish(l.failure(ErrSinkStuck))
			if err := l.Err(); errors.Is(err, ErrSinkStuck) { // otherwise it has ended in the meantime
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

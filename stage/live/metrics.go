package live

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// SinkMetrics receives measurements of attached sinks. A sink is named by its Go type,
// as in [SinkError]. The methods are called by the goroutine of the sink, or the one
// that attaches or closes it; those about different sinks may be called at once. They
// must not wait, must not call the engine, and must not panic. Durations are of
// [Config].Now and never negative.
type SinkMetrics interface {
	// SinkAttached: a sink is attached. Reports about it follow.
	SinkAttached(session, sink string)
	// SinkCalled: a call of the sink, named by its method, has returned.
	SinkCalled(session, sink, call string, took time.Duration)
	// SinkDetached: the sink is detached. err is that of [Attachment.Err]: nil if it was
	// asked for. The sink of an abandoned call may still return from it.
	SinkDetached(session, sink string, err error)
}

// SinkHealth is an attached sink that is behind the log, or one that was detached by an
// error.
type SinkHealth struct {
	Session string
	Sink    string // its Go type
	Call    string // under way, "" for none
	Behind  int    // durable entries that it has not been shown; 0 for a detached one
	Err     error  // that detached it; nil while it is attached
}

// maxDetached bounds the detached sinks that are remembered.
const maxDetached = 32

// Health returns the attached sinks that are behind the log, by session, and then the
// newest 32 of those that were detached by an error, oldest first; detached counts all of
// these.
func (as *Attachments) Health() (sinks []SinkHealth, detached int) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for a := range as.open {
		if h := a.health(); h.Err == nil && h.Behind > 0 {
			sinks = append(sinks, h)
		}
	}
	slices.SortFunc(sinks, func(a, b SinkHealth) int { return strings.Compare(a.Session+"\x00"+a.Sink, b.Session+"\x00"+b.Sink) })
	return append(sinks, as.failed...), as.detached
}

// health returns the state of one sink. The caller may hold the lock of its Attachments.
func (l *Attachment) health() SinkHealth {
	applied := l.viewer.applied.Load() // before the head, which is never behind it
	l.mu.Lock()
	defer l.mu.Unlock()
	h := SinkHealth{Session: l.session, Sink: l.sink, Call: l.call, Err: l.err}
	if !l.end {
		h.Behind = int(uint64(l.viewer.writer.Head().Seq) - applied)
	}
	return h
}

// remember keeps a sink that was detached by an error. The end of the log is not one of
// the sink. The caller holds mu.
func (as *Attachments) remember(h SinkHealth) {
	if errors.Is(h.Err, eventlog.ErrClosed) {
		return
	}
	as.detached++
	if len(as.failed) == maxDetached {
		as.failed = slices.Delete(as.failed, 0, 1)
	}
	as.failed = append(as.failed, h)
}

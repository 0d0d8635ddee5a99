// Package stream writes answers without an end: events as described by the HTML standard
// for EventSource (server-sent events).
//
// An [SSE] is one such answer. It sends heartbeats while nothing happens, so that proxies
// keep the connection and a dead peer is noticed, and it ends the connection of a peer
// that takes nothing for too long. The writer of the log never waits for a stream: who
// fills the stream reads the log at its own pace.
//
// docs/glossary.md has the nouns of all packages.
package stream

import (
	"cmp"
	"net/http"
	"sync"
	"time"
)

// SSEConfig holds the options of an [SSE].
type SSEConfig struct {
	// Heartbeat is the time between two comments that are sent while nothing else is.
	// Zero means 15 s.
	Heartbeat time.Duration

	// Stall is how long a peer may take nothing before its connection ends. Zero means
	// 30 s.
	Stall time.Duration

	// DataOnly leaves out the ids of events, so that nothing but data lines and comments
	// is sent. Clients that read by line take every other line for data.
	DataOnly bool

	// AfterFunc calls f once, d from now, on a goroutine of its own, unless stop is
	// called first. Nil is not allowed.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// SSE is one stream of events. Its methods may be called from many goroutines.
type SSE struct {
	cfg SSEConfig // immutable
	w   http.ResponseWriter
	rc  *http.ResponseController

	mu     sync.Mutex
	buf    []byte      // what is not flushed, nil if there is nothing; guarded by mu
	err    error       // why nothing more can be sent; guarded by mu
	closed bool        // guarded by mu
	quiet  bool        // nothing was sent since the last heartbeat was due; guarded by mu
	beat   func() bool // stops the next heartbeat; guarded by mu
}

// maxBuffered is the number of bytes that wait for a flush at most.
const maxBuffered = 32 << 10

// buffers has the buffers of the streams that have flushed theirs. A stream waits most of
// the time, and many streams need few buffers.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// NewSSE begins a stream as the answer to a request: it sends the header and a first
// comment. The caller closes it before its handler returns.
func NewSSE(w http.ResponseWriter, cfg SSEConfig) *SSE {
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, 15*time.Second)
	cfg.Stall = cmp.Or(cfg.Stall, 30*time.Second)
	s := &SSE{cfg: cfg, w: w, rc: http.NewResponseController(w)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // proxies must not wait for more
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(s.room(), ": connected\n\n"...)
	s.flush()
	s.beat = cfg.AfterFunc(cfg.Heartbeat, s.heartbeat)
	return s
}

// heartbeat sends a comment if nothing was sent since the last one was due.
func (s *SSE) heartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return
	}
	if s.quiet {
		s.buf = append(s.room(), ": heartbeat\n\n"...)
		s.flush()
	}
	s.quiet = true
	s.beat = s.cfg.AfterFunc(s.cfg.Heartbeat, s.heartbeat)
}

// Event adds an event. Data is one line; id may be empty. The event is sent by the next
// [SSE.Flush], or at once if much waits.
func (s *SSE) Event(id string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" && !s.cfg.DataOnly {
		s.buf = append(append(append(s.room(), "id: "...), id...), '\n')
	}
	s.buf = append(append(append(s.room(), "data: "...), data...), "\n\n"...)
	if len(s.buf) >= maxBuffered {
		s.flush()
	}
	return s.err
}

// Position adds an id without an event: a client that connects again sends it, also if no event
// has come. It is sent by the next [SSE.Flush].
func (s *SSE) Position(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cfg.DataOnly {
		// The blank line makes EventSource take the id. Without data it dispatches nothing.
		s.buf = append(append(append(s.room(), "id: "...), id...), "\n\n"...)
	}
	return s.err
}

// Comment adds a line that clients ignore.
func (s *SSE) Comment(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(append(append(s.room(), ": "...), text...), "\n\n"...)
	return s.err
}

// Flush sends what was added.
func (s *SSE) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	return s.err
}

// room returns the buffer, to which something is about to be added. It needs mu.
func (s *SSE) room() []byte {
	if s.buf == nil {
		s.buf = (*buffers.Get().(*[]byte))[:0]
	}
	return s.buf
}

// flush needs mu. It blocks while the peer takes nothing, until Config.Stall has passed.
func (s *SSE) flush() {
	if len(s.buf) == 0 || s.err != nil {
		return
	}
	// A deadline in the past ends a write that is under way. The clock is the caller's.
	stop := s.cfg.AfterFunc(s.cfg.Stall, func() { _ = s.rc.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	s.quiet = false
	if _, s.err = s.w.Write(s.buf); s.err == nil {
		s.err = s.rc.Flush()
	}
	if done := s.buf; cap(done) <= 4*maxBuffered {
		buffers.Put(&done)
	}
	s.buf = nil
}

// Close flushes the stream and ends its heartbeats. Nothing may be added afterwards.
func (s *SSE) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.closed = true
	s.beat()
	return s.err
}

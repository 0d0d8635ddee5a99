// Package dial connects to a source of signals and reads it: an emitter's WebSocket, a stream of
// server-sent events, or lines of JSON over HTTP. It connects again when the connection
// ends, so that a recording outlives its source.
//
// # What a message becomes
//
//	{"meta": …}            nothing: it is about the source, and is counted
//	[DONE], a blank line   nothing
//	an object with a type  the signal. What is missing of id, timestamp, source and payload is
//	                       filled in; a signal that the schema refuses has its Problem
//	other JSON             an "event" with the value as payload, {"value": …} if it is not an object
//	all else               an "error" with the reason, and in its metadata the beginning of
//	                       the text
//
// JSON that JavaScript writes but a value cannot hold is repaired, see [recording.ParseJSON];
// its signal has "repaired" in its metadata.
//
// Ids of signals are those of the source. They may repeat, as those of an emitter that plays
// a scenario in a loop.
//
// # Limits
//
// A message has at most [MaxMessage] bytes: a longer one becomes an error, and ends the
// connection of a WebSocket. No redirect is followed, so that a token reaches no other
// address. What a source sent while nothing was connected is lost, unless it is a stream
// of events with ids: [SignalSource] then asks for what came after the last one.
//
// docs/recording.md describes the sources for users.
package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/sajou-dev/sajou-go/signal"
)

// MaxMessage bounds one message, in bytes.
const MaxMessage = 4 << 20

// The waits between two attempts to connect.
const (
	FirstWait = 500 * time.Millisecond // doubled with each failure
	MaxWait   = 30 * time.Second
)

// ErrRefused is wrapped by the errors after which it makes no sense to connect again.
var ErrRefused = errors.New("dial: the source refuses the connection")

// Config describes a source.
type Config struct {
	// URL of the source: ws, wss, http or https.
	URL string

	// Token is sent as "Authorization: Bearer". Empty means none. It is refused with a
	// URL that is not encrypted and not of this machine.
	Token string

	// Now is the clock, for signals without a timestamp; it is required.
	Now func() time.Time

	// After returns a channel on which something arrives d later, as [time.After] does; it is
	// required.
	After func(d time.Duration) <-chan time.Time

	// Jitter returns a number from 0 up to 1, which spreads the attempts of several
	// clients; it is required.
	Jitter func() float64

	// Client makes the requests. Nil means one without limits of time. Its redirects are
	// not followed.
	Client *http.Client

	// Note, unless nil, receives a report about each connection: that it was made (nil), or why it
	// ended or failed and how long the next attempt waits.
	Note func(err error, wait time.Duration)
}

// SignalSource is a source of signals that is being read. Its methods must not be called
// concurrently.
type SignalSource struct {
	cfg    Config
	url    *url.URL
	client *http.Client

	lastID string        // of an event
	retry  time.Duration // as the source wishes; 0 for none
	begun  int64         // when the first connection was made, in milliseconds
	counts SourceCounts
}

// SourceCounts counts what a [SignalSource] has read.
type SourceCounts struct {
	Messages    int // all of them
	Signals     int // that were yielded
	Meta        int // messages about the source
	Unreadable  int // signals "error" for messages that are no JSON or too long
	Connections int
}

// New returns a source that is not connected yet.
func New(cfg Config) (*SignalSource, error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("dial: %q is not a URL", cfg.URL)
	case u.Scheme != "ws" && u.Scheme != "wss" && u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("dial: %q has no address to connect to; use ws://HOST, wss://, http:// or https://", cfg.URL)
	case u.User != nil:
		return nil, errors.New("dial: the URL has a password; give a token instead")
	case cfg.Token != "" && (u.Scheme == "ws" || u.Scheme == "http") && !loopback(u.Hostname()):
		return nil, fmt.Errorf("dial: refusing to send the token to %s without encryption; use wss or https", u.Host)
	}
	client := &http.Client{}
	if cfg.Client != nil {
		*client = *cfg.Client
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableCompression = true // a bomb would expand
		transport.MaxResponseHeaderBytes = 64 << 10
		transport.ResponseHeaderTimeout = 30 * time.Second
		client.Transport = transport
	}
	client.Timeout = 0
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if cfg.Note == nil {
		cfg.Note = func(error, time.Duration) {}
	}
	return &SignalSource{cfg: cfg, url: u, client: client}, nil
}

// Counts returns the counts so far.
func (s *SignalSource) Counts() SourceCounts { return s.counts }

// Read reads the source until yield returns an error, which it returns, ctx ends, the source
// refuses the connection for good ([ErrRefused]), or lines of JSON have reached their
// end. A connection that ends otherwise is made again, after a wait that doubles until
// a message arrives.
func (s *SignalSource) Read(ctx context.Context, yield func(*signal.Signal) error) error {
	s.begun = s.cfg.Now().UnixMilli()
	for failures := 0; ; failures++ {
		before := s.counts.Messages
		end, err := s.connection(ctx, yield)
		switch {
		case end, errors.Is(err, ErrRefused):
			return err
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the caller has ended it
		case s.counts.Messages > before:
			failures = 0
		}
		wait := s.wait(failures)
		s.cfg.Note(err, wait)
		select {
		case <-ctx.Done():
			return nil
		case <-s.cfg.After(wait):
		}
	}
}

// wait returns the time until the next attempt: half of it is chance.
func (s *SignalSource) wait(failures int) time.Duration {
	wait := max(FirstWait, min(s.retry, MaxWait))
	for range min(failures, 16) {
		wait *= 2
	}
	wait = min(wait, MaxWait)
	return wait/2 + time.Duration(float64(wait/2)*s.cfg.Jitter())
}

// consumerError is an error of the function that takes the signals.
type consumerError struct{ err error }

func (e *consumerError) Error() string { return e.err.Error() }

// connection reads one connection to its end. End says that no other one shall follow.
func (s *SignalSource) connection(ctx context.Context, yield func(*signal.Signal) error) (end bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.url.Scheme == "ws" || s.url.Scheme == "wss" {
		err = s.webSocket(ctx, yield)
	} else {
		end, err = s.stream(ctx, yield)
	}
	if consumer, ok := errors.AsType[*consumerError](err); ok {
		return true, consumer.err
	}
	if _, answered := errors.AsType[*answerError](err); err == nil || end || answered {
		return end, err
	}
	return false, &ConnectionError{s.url.Host, err}
}

func (s *SignalSource) header() http.Header {
	h := http.Header{"User-Agent": {"sajou-replay"}}
	if s.cfg.Token != "" {
		h.Set("Authorization", "Bearer "+s.cfg.Token)
	}
	return h
}

// answerError is an answer that is not the one that was asked for.
type answerError struct {
	text  string
	final bool // the next request would have the same answer
}

func (e *answerError) Error() string { return e.text }

func (e *answerError) Unwrap() error {
	if e.final {
		return ErrRefused
	}
	return nil
}

// refused returns the error of an answer that is not the one that was asked for.
func (s *SignalSource) refused(resp *http.Response) error {
	text := fmt.Sprintf("%s answered %s", s.url.Host, resp.Status)
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500, code < 200:
		return &answerError{text: text}
	case code < 300:
		text += ", which is no WebSocket; use http:// for a stream or lines"
	case code < 400:
		text += fmt.Sprintf(" to %q, which is not followed; name that address", resp.Header.Get("Location"))
	}
	return &answerError{text, true}
}

// webSocket reads one connection to an emitter.
func (s *SignalSource) webSocket(ctx context.Context, yield func(*signal.Signal) error) error {
	conn, resp, err := websocket.Dial(ctx, s.cfg.URL, &websocket.DialOptions{HTTPClient: s.client, HTTPHeader: s.header()})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return s.refused(resp)
		}
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	s.connected()
	conn.SetReadLimit(MaxMessage)
	for {
		_, text, err := conn.Read(ctx)
		switch {
		case errors.Is(err, websocket.ErrMessageTooBig):
			return errors.Join(err, s.message(nil, true, yield))
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
		if err := s.message(text, false, yield); err != nil {
			return err
		}
	}
}

func (s *SignalSource) connected() {
	s.counts.Connections++
	s.cfg.Note(nil, 0)
}

// stream reads the answer to one request.
func (s *SignalSource) stream(ctx context.Context, yield func(*signal.Signal) error) (end bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cfg.URL, nil)
	if err != nil {
		return true, err
	}
	req.Header = s.header()
	req.Header.Set("Accept", "text/event-stream, application/x-ndjson;q=0.9")
	req.Header.Set("Cache-Control", "no-store")
	if s.lastID != "" {
		req.Header.Set("Last-Event-ID", s.lastID)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNoContent:
		return true, nil // the way in which a source of events says that it has ended
	default:
		return false, s.refused(resp)
	}
	s.connected()
	if isEvents(resp.Header.Get("Content-Type")) {
		err = s.events(resp.Body, yield)
	} else {
		err = s.lines(resp.Body, yield)
		end = errors.Is(err, io.EOF)
	}
	if end {
		return true, nil
	}
	return false, err
}

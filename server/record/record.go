// Package record is the room of the server in which signals are recorded: the routes of
// the reference server of Sajou, with the answers that its clients know; the routes of
// this server, which acknowledge each signal with its place in the log; and both over
// WebSocket. Package server/otlp takes the traces of OpenTelemetry.
//
// # What an acknowledgement means
//
// A request is answered with success once all its signals are durable. A request that
// records several signals at once records all of them or none, except the NDJSON
// stream, which is recorded in batches while it arrives: its answer tells what was
// recorded before a fault.
//
// # Which session
//
// The routes below /api/v1/sessions/{session} name their session. On the routes of the
// reference server it is the header [SessionHeader], else the one of [Config.Session], or a
// part of it by [Config.Split], as package partition says.
//
// # Time
//
// Signals are recorded as they arrive. A timestamp before the session time that was
// reached does not move time back: the signal takes effect at the time that was reached, and
// the receipt counts it as out of order. A timestamp further ahead of the clock than the
// engine's MaxSkew is refused below /api/v1, and recorded with the reason on the
// routes of the reference server, which refuse no signal; it never moves session time.
//
// docs/server.md describes the routes, docs/glossary.md has the nouns of all packages.
package record

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/stream"
)

// Config holds the options of a [Receiver].
type Config struct {
	// Session is the session of the routes of the reference server. Empty means "live".
	Session string

	// Split divides what arrives on the routes of the reference server into parts of
	// Session.
	Split partition.Split

	// MaxBody bounds a body and a message, in bytes, before and after it is expanded.
	// NDJSON streams have no bound but that of their lines. Zero means 10 MiB.
	MaxBody int64

	// MaxExpanded bounds an NDJSON stream that is compressed, after it is expanded. Zero
	// means 1 GiB.
	MaxExpanded int64

	// MaxPending bounds the requests that are being recorded at one time; others are
	// refused with 429. Zero means 4096.
	MaxPending int

	// Window bounds the messages of a WebSocket that are not acknowledged; the server
	// reads no further until one is. Zero means 256.
	Window int

	// Heartbeat is the time between two signs of life on a stream or a WebSocket. Zero
	// means 15 s.
	Heartbeat time.Duration

	// Stall is how long a peer may send nothing of a body, or take nothing of an answer.
	// Zero means 30 s.
	Stall time.Duration

	// Hooks installs or removes the hooks of Claude Code on this machine, for the route
	// /api/tap. Nil means that the route refuses to.
	Hooks func(ctx context.Context, install bool) error

	// Now is the wall clock, and AfterFunc calls f once, d from now, on a goroutine of its
	// own, unless stop is called first. Package server sets both.
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// NewID returns ids for signals whose sender gave none. Nil means random UUIDs.
	NewID func() string

	// Logger receives what no answer can tell. Nil discards it.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Session = cmp.Or(c.Session, "live")
	c.MaxBody = cmp.Or(c.MaxBody, 10<<20)
	c.MaxExpanded = cmp.Or(c.MaxExpanded, 1<<30)
	c.MaxPending = cmp.Or(c.MaxPending, 4096)
	c.Window = cmp.Or(c.Window, 256)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	c.Stall = cmp.Or(c.Stall, 30*time.Second)
	if c.NewID == nil {
		c.NewID = newUUID
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Receiver records the signals of other processes into sessions of an engine. Its methods
// may be called from many goroutines.
type Receiver struct {
	cfg    Config // immutable
	engine *sajou.Engine

	pending atomic.Int64 // requests that are being recorded
	clients atomic.Int64 // streams of signals of the reference server that are open
	feed    *feed        // what was recorded into the parts of the session; nil without a Split
	shared  sharedState
}

// New returns a receiver for an engine. The error is about cfg.
func New(engine *sajou.Engine, cfg Config) (*Receiver, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Split.Check(cfg.Session); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if _, err := engine.Log().Session(cfg.Session); cfg.Split == partition.SplitNone && errors.Is(err, eventlog.ErrDeleted) {
		cfg.Logger.Warn("the session of the server was deleted; signals that name no session are refused until the setting session names another", slog.String("session", cfg.Session))
	}
	rv := &Receiver{cfg: cfg, engine: engine}
	if cfg.Split != partition.SplitNone {
		rv.feed = newFeed(cfg.Session, cfg.Now())
	}
	return rv, nil
}

// Recorded tells the streams of all parts of what another room has recorded into a session.
func (rv *Receiver) Recorded(session string, out sajou.Receipt) { rv.feed.add(session, out) }

// Routes returns the routes of the room.
func (rv *Receiver) Routes() []route.Endpoint {
	return append(rv.referenceRoutes(), rv.sessionRoutes()...)
}

// admit counts a request that is being recorded. The caller calls rv.done when it is.
func (rv *Receiver) admit() error {
	if rv.pending.Add(1) > int64(rv.cfg.MaxPending) {
		rv.pending.Add(-1)
		p := problem.New(problem.TooMany, "the disk does not keep up with the requests that record; try again later")
		p.RetryAfter = 1
		return p
	}
	return nil
}

func (rv *Receiver) done() { rv.pending.Add(-1) }

// open returns a session that the caller of ctx may use in a scope.
func (rv *Receiver) open(ctx context.Context, scope access.Scope, name string) (*sajou.Session, error) {
	if err := access.Check(ctx, scope, name); err != nil {
		return nil, err
	}
	return rv.engine.Session(ctx, name)
}

// events begins a stream of events.
func (rv *Receiver) events(w http.ResponseWriter, dataOnly bool) *stream.SSE {
	return stream.NewSSE(w, stream.SSEConfig{Heartbeat: rv.cfg.Heartbeat, Stall: rv.cfg.Stall, DataOnly: dataOnly, AfterFunc: rv.cfg.AfterFunc})
}

// untilStop returns a context that ends with the request's, and when the server begins to
// stop. The caller calls cancel.
func untilStop(r *http.Request) (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(r.Context())
	stopping := route.Stopping(r.Context())
	if stopping == nil {
		return ctx, cancel
	}
	go func() {
		select {
		case <-stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	text := make([]byte, 0, 36)
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}

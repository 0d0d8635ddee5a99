// Package otlp is the room of the server that takes the traces and logs of OpenTelemetry by
// OTLP over HTTP: POST /v1/traces and /v1/logs, in protobuf and JSON.
//
// # From spans to signals
//
// Exporters send a span when it has ended, so parents arrive last, and what a span means
// depends on those above it. The spans of a trace are therefore held until the trace is
// complete: its root, a span without a parent, has arrived and no span lacks its parent. A
// trace that does not become complete is mapped when [Config.Wait] has passed since its last
// span. Package ingest/otlp maps, by the rules of an import.
//
// A trace that was mapped is kept for [Config.Keep] more. Spans that arrive meanwhile are
// mapped together with it, so that they find their agent, and only signals that are not
// recorded yet are recorded. Log records belong to the trace that they name; those that
// name none, to the native session that they name, which is mapped at once.
//
// # Durability
//
// A request is answered with success when its spans are in a spool on disk (package spool).
// Before the signals of a trace are recorded, their ids and the idempotency key are written
// there as a plan. So a server that ends at whatever moment records everything that it
// acknowledged, once: the next one continues with the plans, and the log knows the key of a
// plan that was carried out. The key is a digest of the signals: a trace that is sent again
// after it was forgotten is recorded once too.
//
// docs/recording.md describes how to send, docs/glossary.md has the nouns of all packages.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/server/otlp/spool"
)

// Config holds the options of a [TraceReceiver].
type Config struct {
	// Dir is the directory of the spool. It is made when the first span arrives. Empty
	// means that nothing can be held, and requests are refused.
	Dir string

	// Session is the session of requests that name none, and Split divides it into parts.
	// Empty means "live".
	Session string
	Split   partition.Split

	// Wait is how long after its last span a trace is mapped that is not complete. Zero
	// means one minute.
	Wait time.Duration

	// Keep is how long after its last span a mapped trace is kept for late ones. Zero means
	// five minutes, or Wait if that is longer.
	Keep time.Duration

	// MaxSpool bounds the spool, in bytes. Zero means 256 MiB.
	MaxSpool int64

	// MaxBody bounds a body as it is sent, and MaxExpanded after it is expanded, in
	// bytes. Zero means 16 MiB and 64 MiB.
	MaxBody, MaxExpanded int64

	// MaxTrace bounds the spans that are held of a trace, in bytes. One that has more is
	// mapped at once and then forgotten. Zero means 32 MiB.
	MaxTrace int64

	// Now is the wall clock, and AfterFunc calls f once, d from now, on a goroutine of its
	// own, unless stop is called first. Package server sets both.
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// Recorded, unless nil, is called with what was recorded. It must not block.
	Recorded func(session string, out sajou.Receipt)

	// Logger receives what no answer can tell. Nil discards it.
	Logger *slog.Logger

	// Metrics receives what the spool holds. Nil means that it is not measured.
	Metrics SpoolMetrics
}

// SpoolMetrics receives measurements of the spool. The method must not wait.
type SpoolMetrics interface {
	// SpoolChanged reports how many traces the spool holds, how many of them wait to be
	// recorded, how many bytes count against its bound, and that bound.
	SpoolChanged(traces, waiting int, bytes, bound int64)
}

// maxReading bounds the requests whose bodies are expanded and read at one time.
const maxReading = 2

func (c Config) withDefaults() Config {
	c.Session = cmp.Or(c.Session, "live")
	c.Wait = cmp.Or(c.Wait, time.Minute)
	c.Keep = cmp.Or(c.Keep, max(c.Wait, 5*time.Minute))
	c.MaxSpool = cmp.Or(c.MaxSpool, 256<<20)
	c.MaxBody = cmp.Or(c.MaxBody, 16<<20)
	c.MaxExpanded = cmp.Or(c.MaxExpanded, 64<<20)
	c.MaxTrace = cmp.Or(c.MaxTrace, 32<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// TraceReceiver records the traces of other processes into sessions of an engine. Its
// methods may be called from many goroutines.
type TraceReceiver struct {
	cfg     Config // immutable
	health  func() error
	store   signalStore
	spool   *spool.Spool  // nil without a directory
	reading chan struct{} // has a place for each request whose body is being expanded and read
	lost    []uint64      // groups of the spool whose beginning is damaged; while New runs

	mu      sync.Mutex
	traces  map[traceID]*heldTrace
	numbers map[uint64]*heldTrace
	next    uint64 // the number of the next trace
	waiting int    // traces with parts that are not recorded
	queue   []*heldTrace
	working bool          // a goroutine maps the queue
	idle    chan struct{} // closed when that goroutine ends
	closed  bool
	ctx     context.Context // ends when Close gives up
	giveUp  context.CancelFunc
}

// New returns a receiver for an engine, and goes on with the traces that an earlier one has
// left. The errors are about cfg, or those of the spool.
func New(engine *sajou.Engine, cfg Config) (*TraceReceiver, error) {
	return open(engineStore{engine, cfg.Recorded}, func() error { return engine.Health().Err() }, cfg)
}

func open(store signalStore, health func() error, cfg Config) (*TraceReceiver, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Split.Check(cfg.Session); err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	rv := &TraceReceiver{
		cfg: cfg, health: health, store: store, reading: make(chan struct{}, maxReading),
		traces: map[traceID]*heldTrace{}, numbers: map[uint64]*heldTrace{}, next: 1,
	}
	rv.ctx, rv.giveUp = context.WithCancel(context.Background())
	if cfg.Dir == "" {
		return rv, nil
	}
	held, damages, err := spool.Open(cfg.Dir, spool.Config{MaxBytes: cfg.MaxSpool}, rv.load)
	if err != nil {
		return nil, fmt.Errorf("otlp: the spool in %s cannot be read: %w", cfg.Dir, err)
	}
	for _, d := range damages {
		cfg.Logger.Error("a file of the spool is damaged; what follows in it is lost, and the file is kept", slog.String("file", d.File), slog.Int64("offset", d.Offset))
	}
	rv.spool = held
	for _, group := range rv.lost {
		cfg.Logger.Error("the spans of a trace are lost, because its beginning in the spool is damaged", slog.Uint64("group", group))
		if err := held.Drop(group); err != nil {
			return nil, errors.Join(fmt.Errorf("otlp: the spool in %s: %w", cfg.Dir, err), held.Close())
		}
	}
	rv.lost = nil
	rv.resume()
	return rv, nil
}

// Close stops mapping when the traces are recorded that are complete, or when ctx ends. The
// others are mapped by the next receiver. Requests must have ended.
func (rv *TraceReceiver) Close(ctx context.Context) error {
	rv.mu.Lock()
	rv.closed = true
	for _, t := range rv.traces {
		t.disarm()
	}
	idle := rv.idle
	working := rv.working
	rv.mu.Unlock()
	var err error
	if working {
		select {
		case <-idle:
		case <-ctx.Done():
			rv.giveUp()
			<-idle
			err = ctx.Err()
		}
	}
	rv.giveUp()
	if rv.spool == nil {
		return err
	}
	// The last drops need not be synced: a dropped group may come back.
	return errors.Join(err, rv.spool.Close())
}

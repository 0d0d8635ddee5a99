// Package server is the door to an engine for other processes: one process holds the
// store and lets recorders, watchers, agents, game engines and debugging agents in.
//
// A [Server] mounts the routes of its rooms, which are packages below this one, behind
// one middleware. The middleware checks the host and the origin, identifies the caller,
// bounds the body, and turns the error of a handler into a problem document; see
// packages route, access and problem. [Server.Serve] answers on its listeners until its
// context ends, and then stops in an order that loses nothing; see there.
//
// docs/server.md describes the interface, docs/glossary.md has the nouns of all
// packages.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/agentwire"
	"github.com/sajou-dev/sajou-go/server/job"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/local"
	"github.com/sajou-dev/sajou-go/server/mcp"
	"github.com/sajou-dev/sajou-go/server/mirror"
	"github.com/sajou-dev/sajou-go/server/otlp"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/read"
	"github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/schema"
	"github.com/sajou-dev/sajou-go/server/watch"
)

// Config holds the options of a server. The zero value is a good default on loopback.
type Config struct {
	// Dir is the directory of the store, beside whose log the bookmarks are kept. Empty
	// means that bookmarks are kept as long as the server.
	Dir string

	// Access says who may do what.
	Access access.Config

	// Record says how signals are recorded. Its clock is the server's.
	Record record.Config

	// Traces says how the traces of OpenTelemetry are recorded. Its session, split, clock
	// and logger are those of Record and of the server. Without a directory of its own it
	// has the folder "otlp" in Dir; without both, no traces are taken.
	Traces otlp.Config

	// Limits bounds what the callers may use.
	Limits limit.Config

	// TLS, unless nil, makes all listeners but Unix sockets speak TLS.
	TLS *tls.Config

	// StopTimeout bounds the wait for requests that are being answered when the server
	// stops. After it their contexts end. Zero means 10 s.
	StopTimeout time.Duration

	// HeaderTimeout bounds the arrival of a header, and IdleTimeout the wait for the
	// next request of a connection. BodyTimeout bounds the arrival of a body, and
	// AnswerTimeout the answer of a request that is not a stream. Zero means 5 s, 2 min,
	// 30 s and 5 min.
	HeaderTimeout, IdleTimeout, BodyTimeout, AnswerTimeout time.Duration

	// MaxHeader bounds the header of a request, in bytes, from 1. Zero means 64 KiB.
	MaxHeader int

	// Logger receives a line for each request that failed, and for the begin and the end
	// of the server. Nil discards them.
	Logger *slog.Logger

	// Requests receives counts and durations of requests. Nil means that none are measured.
	Requests RequestMetrics

	// Tracer makes a span of each request that a route matches. Nil means none.
	Tracer RequestTracer

	// Exposition answers GET /metrics. Nil means that there is no such path. The
	// metrics name sessions: only callers that may read every session get them, and those
	// with [access.ScopeAdmin].
	Exposition http.Handler

	// AllowMCPRecord gives the tools of /mcp those that record, to callers with the
	// scopes for it.
	AllowMCPRecord bool

	// Version is the version of the program, which clients of /mcp are sent.
	Version string

	// Now is the wall clock. Nil means [time.Now].
	Now func() time.Time

	// AfterFunc calls f once, d from now, on a goroutine of its own, unless stop is
	// called first. A program that sets Now must set AfterFunc too, so that both
	// follow the same clock. Nil means [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

func (c Config) withDefaults() Config {
	c.StopTimeout = cmp.Or(c.StopTimeout, 10*time.Second)
	c.HeaderTimeout = cmp.Or(c.HeaderTimeout, 5*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 2*time.Minute)
	c.BodyTimeout = cmp.Or(c.BodyTimeout, 30*time.Second)
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, 5*time.Minute)
	c.MaxHeader = cmp.Or(c.MaxHeader, 64<<10)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.AfterFunc == nil {
		c.AfterFunc = func(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }
	}
	return c
}

// RequestMetrics receives measurements of requests. The pattern is that of the route, or
// empty for requests that no route matches, so that the values are few. The methods are
// called from many goroutines at once and must not wait.
type RequestMetrics interface {
	// RequestDone reports the end of a request that is not a stream.
	RequestDone(pattern string, status int, took time.Duration)

	// StreamOpened and StreamClosed report the begin and the end of a stream.
	StreamOpened(pattern string)
	StreamClosed(pattern string, status int)

	// Watch is called once for a server, before its requests. The functions return what is
	// counted at the moment when the measurements are read: what all callers use of each
	// limit, the bounds of the limits that have one, and the security events of each kind
	// since the server began. The limits are connections, streams, jobs and memory, the
	// bytes of bodies.
	Watch(used, bounds func() map[string]int64, events func() map[string]uint64)
}

// RequestTracer makes the spans of requests. Its methods are called from many goroutines
// at once and must not wait. [adapter/otel] has one.
//
// [adapter/otel]: https://pkg.go.dev/github.com/sajou-dev/sajou-go/adapter/otel
type RequestTracer interface {
	// BeginRequest begins the span of a request with a header, on the route with a
	// pattern. The handler gets the context that it returns. End is called once, with the
	// session in the path if the caller may use it, else "", and the status of the answer.
	BeginRequest(ctx context.Context, header http.Header, pattern string) (traced context.Context, end func(session string, status int))
}

// room is a part of the server with routes of its own.
type room interface{ Routes() []route.Endpoint }

// closer is a room with work that goes on between requests. Close ends it once no
// request is being answered.
type closer interface{ Close(context.Context) error }

// Server answers requests about the store of one engine. Its methods may be called
// from many goroutines.
type Server struct {
	cfg      Config // immutable after New
	engine   *sajou.Engine
	gate     *access.Gate
	limits   *limit.Limits
	mux      *http.ServeMux
	routes   []route.Endpoint // of all rooms, in the order of their mounting; immutable after New
	rooms    []room           // immutable after New
	traces   *otlp.TraceReceiver
	stopping chan struct{} // closed when the server begins to stop
	stop     sync.Once     // closes stopping
	requests sync.WaitGroup
}

// New returns a server for an engine, which the caller closes after [Server.Serve] has
// returned. The errors are about cfg.
func New(engine *sajou.Engine, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	gate, limits, err := newAdmission(cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, engine: engine, gate: gate, limits: limits, mux: http.NewServeMux(), stopping: make(chan struct{})}
	if cfg.Requests != nil {
		cfg.Requests.Watch(s.used, s.bounds, s.noted)
	}
	cfg.Record.Now, cfg.Record.AfterFunc, cfg.Record.Logger = cfg.Now, cfg.AfterFunc, cfg.Logger
	recorded, err := record.New(engine, cfg.Record)
	if err != nil {
		return nil, err
	}
	traces, err := newTraces(engine, cfg, recorded)
	if err != nil {
		return nil, err
	}
	s.traces = traces
	s.rooms = []room{
		health{s},
		mcp.New(mcp.Config{
			Lend: func(context.Context, bool) (*sajou.Engine, func() error, error) {
				return engine, func() error { return nil }, nil
			},
			AllowRecord: cfg.AllowMCPRecord, Version: cfg.Version, Now: cfg.Now, Logger: cfg.Logger,
			EmitSession: recorded.SessionOf, Recorded: recorded.Recorded,
		}),
		agentwire.New(engine, agentwire.Config{Recognize: gate.Recognize, Guard: gate.Guard, Now: cfg.Now, Logger: cfg.Logger}),
		security{gate.Events()},
		local.NewCheckpoints(engine, cfg.Logger),
		read.New(engine, read.Config{Dir: cfg.Dir}),
		watch.New(engine, watch.Config{}),
		recorded,
		traces,
		mirror.New(engine, cfg.AfterFunc),
		job.New(engine, job.Config{Now: cfg.Now}),
		schema.New(s.Routes),
	}
	for _, r := range s.rooms {
		for _, rt := range r.Routes() {
			s.routes = append(s.routes, rt)
			s.mux.Handle(rt.Pattern, s.mounted(rt))
		}
	}
	s.mux.HandleFunc(catchAll, s.unmatched)
	return s, nil
}

// newTraces returns the room that takes traces.
func newTraces(engine *sajou.Engine, cfg Config, recorded *record.Receiver) (*otlp.TraceReceiver, error) {
	c := cfg.Traces
	if c.Dir == "" && cfg.Dir != "" {
		c.Dir = filepath.Join(cfg.Dir, "otlp")
	}
	c.Session, c.Split = cfg.Record.Session, cfg.Record.Split
	c.Now, c.AfterFunc, c.Logger, c.Recorded = cfg.Now, cfg.AfterFunc, cfg.Logger, recorded.Recorded
	return otlp.New(engine, c)
}

// Routes returns the table of all routes.
func (s *Server) Routes() []route.Endpoint { return append([]route.Endpoint(nil), s.routes...) }

// SecurityEvents returns the security events of the server.
func (s *Server) SecurityEvents() *access.Events { return s.gate.Events() }

// Traces returns the room that takes traces. Serve closes it.
func (s *Server) Traces() *otlp.TraceReceiver { return s.traces }

// InUse returns what the callers use of the limits now.
func (s *Server) InUse() limit.InUse { return s.limits.InUse() }

// health answers whether the server lives and whether it takes entries.
type health struct{ s *Server }

func (h health) Routes() []route.Endpoint {
	plain := []route.Content{{Type: "text/plain"}}
	endpoints := []route.Endpoint{
		{Pattern: "GET /healthz", Handler: h.alive, Doc: &route.Doc{
			Summary: "Whether the process can answer at all",
			Success: []route.Success{{Status: http.StatusOK, Content: plain}},
		}},
		{Pattern: "GET /readyz", Handler: h.ready, Doc: &route.Doc{
			Summary: "Whether the store takes entries and the spool of traces takes spans",
			Success: []route.Success{{Status: http.StatusOK, Content: plain}},
			Errors:  []problem.ErrorCode{problem.ReadOnly, problem.DiskFull, problem.Stopping},
		}},
	}
	if h.s.cfg.Exposition != nil {
		endpoints = append(endpoints, route.Endpoint{Pattern: "GET /metrics", Handler: h.metrics, Doc: &route.Doc{
			Summary: "Measurements of the engine and the server, for Prometheus",
			Success: []route.Success{{Status: http.StatusOK, Content: plain}},
			Errors:  []problem.ErrorCode{problem.Unauthenticated, problem.Forbidden},
		}})
	}
	return endpoints
}

// metrics answers with the measurements of the engine and of the server. They name
// sessions.
func (h health) metrics(w http.ResponseWriter, r *http.Request) error {
	if !access.From(r.Context()).MayEvery(access.ScopeRead) {
		if err := access.Check(r.Context(), access.ScopeAdmin, ""); err != nil {
			return err
		}
	}
	h.s.cfg.Exposition.ServeHTTP(w, r)
	return nil
}

// alive answers as long as the process can answer at all.
func (health) alive(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, "ok")
	return nil
}

// ready answers 200 while the store takes entries, traces can be held and the server is not
// stopping.
func (h health) ready(w http.ResponseWriter, r *http.Request) error {
	if err := cmp.Or(h.s.takesEntries(), h.s.traces.Err()); err != nil {
		return err
	}
	return h.alive(w, r)
}

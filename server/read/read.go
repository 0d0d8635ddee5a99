// Package read answers requests about recorded sessions under /api/v1: sessions, entries,
// states, pictures, the views of agents, causes, definitions, bookmarks and exports.
//
// An answer has the JSON that the command line prints with -o json; see package
// internal/answer. A moment and a range are written as on the command line, see
// [replay.Address], escaped as a URL needs it.
//
// # Caching
//
// An answer has a strong ETag: the head of the last entry on which it depends, such as
// "812:9f3a…", and what else it depends on. An answer that no later entry can change is
// marked as immutable: one whose moments are named by the numbers or the whole hashes of
// entries, see [fixed]. All others are to be asked for again, which costs little with
// If-None-Match. Nothing else about an answer depends on the session's later entries.
//
// # Bounds
//
// A request is bounded in its time, in the entries that it examines, and in the bytes
// that it builds; what is long is sent as it is found. A request reads the log through a
// replay, so it never waits for a writer and no writer waits for it.
//
// docs/server.md describes the requests, docs/glossary.md has the nouns of all packages.
package read

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// Config holds the options of a [Library]. The zero value is a good default.
type Config struct {
	// Dir is the directory of the store, beside whose log the bookmarks are kept. Empty
	// means that bookmarks are kept as long as the room.
	Dir string

	// MaxTime bounds the time of an answer that is not a stream, MaxBytes the bytes of
	// one that is built before it is sent, and MaxExamined the entries that one page
	// of a list examines. Zero means 30 s, 64 MiB and 100,000.
	MaxTime     time.Duration
	MaxBytes    int
	MaxExamined int

	// Concurrent bounds the answers that are computed at the same time, and Streams the
	// lists and exports that are being sent. Zero means 8 and 64.
	Concurrent, Streams int
}

func (c Config) withDefaults() Config {
	c.MaxTime = cmp.Or(c.MaxTime, 30*time.Second)
	c.MaxBytes = cmp.Or(c.MaxBytes, 64<<20)
	c.MaxExamined = cmp.Or(c.MaxExamined, 100_000)
	c.Concurrent = cmp.Or(c.Concurrent, 8)
	c.Streams = cmp.Or(c.Streams, 64)
	return c
}

// Library answers requests about the recorded sessions of one engine. Its methods may be
// called from many goroutines.
type Library struct {
	cfg     Config // immutable after New
	engine  *sajou.Engine
	slots   chan struct{} // has an element for each answer that is being computed
	streams chan struct{} // has an element for each stream

	marks sync.Mutex     // guards the bookmarks of the store
	book  *bookmark.Book // without a Dir; guarded by marks
}

// New returns a room for an engine, which the caller closes after the last request.
func New(engine *sajou.Engine, cfg Config) *Library {
	cfg = cfg.withDefaults()
	return &Library{cfg: cfg, engine: engine, slots: make(chan struct{}, cfg.Concurrent), streams: make(chan struct{}, cfg.Streams), book: &bookmark.Book{}}
}

// Routes returns the routes of the room.
func (room *Library) Routes() []route.Endpoint {
	var all []route.Endpoint
	for _, part := range [][]route.Endpoint{
		room.sessionRoutes(), room.entryRoutes(), room.stateRoutes(), room.stageRoutes(),
		room.agentRoutes(), room.causeRoutes(), room.definitionRoutes(), room.markRoutes(), room.exportRoutes(),
	} {
		all = append(all, part...)
	}
	return all
}

// errTooLong is the cause of the end of the context of a request that takes too long.
var errTooLong = errors.New("the answer took too long")

// handler answers one request.
type handler func(q *request) error

// computed returns the endpoint of an answer that is built and then sent.
func (room *Library) computed(pattern string, scope access.Scope, doc route.Doc, h handler) route.Endpoint {
	return room.endpoint(pattern, scope, doc, func(q *request) error {
		ctx, cancel := context.WithTimeoutCause(q.ctx, room.cfg.MaxTime, errTooLong)
		defer cancel()
		q.ctx = ctx
		release, err := room.slot(ctx)
		if err != nil {
			return err
		}
		defer release()
		err = h(q)
		if err != nil && errors.Is(context.Cause(ctx), errTooLong) {
			return &problem.Details{Code: problem.OverBudget, Detail: "the answer took more than " + room.cfg.MaxTime.String() + "; ask for less, or start a job", Err: err}
		}
		return err
	}, problem.TooMany, problem.OverBudget)
}

// slot waits for a place for an answer that is computed. A free place counts, also if the
// time is over.
func (room *Library) slot(ctx context.Context) (release func(), err error) {
	select {
	case room.slots <- struct{}{}:
	default:
		select {
		case room.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, &problem.Details{Code: problem.TooMany, Detail: "too many answers are being computed; try again", RetryAfter: 1, Err: ctx.Err()}
		}
	}
	return func() { <-room.slots }, nil
}

// streamed returns the endpoint of an answer that is sent while it is read.
func (room *Library) streamed(pattern string, scope access.Scope, doc route.Doc, h handler) route.Endpoint {
	return room.endpoint(pattern, scope, doc, func(q *request) error {
		select {
		case room.streams <- struct{}{}:
			defer func() { <-room.streams }()
			return h(q)
		default:
			return &problem.Details{Code: problem.TooMany, Detail: "too many lists and exports are being sent; try again", RetryAfter: 1}
		}
	}, problem.TooMany)
}

// endpoint returns an endpoint that takes the parameters of its description and no
// others.
func (room *Library) endpoint(pattern string, scope access.Scope, doc route.Doc, h handler, more ...problem.ErrorCode) route.Endpoint {
	doc.Errors = append(append([]problem.ErrorCode{problem.BadRequest}, doc.Errors...), more...)
	return route.Endpoint{Pattern: pattern, Scope: scope, Doc: &doc, Handler: func(w http.ResponseWriter, r *http.Request) error {
		q, err := newRequest(room, w, r, &doc)
		if err != nil {
			return err
		}
		return h(q)
	}}
}

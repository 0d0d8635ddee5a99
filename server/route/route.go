// Package route describes the requests that the server answers. An [Endpoint] is one entry
// of the server's table: the pattern of a request, what its caller needs, and how large
// its body may be. The rooms of the server return their routes; package server mounts
// them behind one middleware, which does what the route says before the handler runs.
//
// docs/glossary.md has the nouns of all packages.
package route

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
)

// HandlerFunc answers one request. A handler that returns an error has written nothing; the
// middleware answers with the problem document of the error, see package problem. A
// handler that has begun its answer returns nil, whatever happens afterwards.
//
// The request's context ends when the caller goes away and when the server gives up
// waiting for requests at its end.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Endpoint is one kind of request.
type Endpoint struct {
	// Pattern is a pattern of [http.ServeMux] with a method, such as
	// "GET /api/v1/sessions/{session}/entries". The wildcard {session} stands for the
	// name of a session in all patterns.
	Pattern string

	// Scope is what the caller needs, on the session of the pattern if it has one. A
	// handler that learns the session elsewhere calls [access.Check] too.
	Scope access.Scope

	// MaxBody bounds the body, in bytes. Zero means that the route takes none; a
	// negative value means that the handler bounds the body itself.
	MaxBody int64

	// Stream marks an answer without an end. It counts against the bound of open
	// streams, has no deadline for writing, and ends when the channel of [Stopping] is
	// closed.
	Stream bool

	// Plain marks an endpoint whose answers, but those that refuse a request, are JSON and
	// hold nothing that was recorded but the name of the session. They do without the
	// headers that keep a browser from running or embedding an answer, other than
	// X-Content-Type-Options.
	Plain bool

	Handler HandlerFunc

	// ErrorForm is the form of the answers to requests that failed. Nil means problem
	// documents.
	ErrorForm problem.ErrorForm

	// Doc describes the endpoint in the OpenAPI document of the server.
	Doc *Doc
}

// SessionWildcard is the name of the wildcard of a session in patterns.
const SessionWildcard = "session"

// Session returns the name of the session in the path of a request, or "".
func Session(r *http.Request) string { return r.PathValue(SessionWildcard) }

// SessionHeader names the session of a request to a route that does not name it.
const SessionHeader = "Sajou-Session"

// NamedSession returns the session that a request names in its header or query, or "".
func NamedSession(r *http.Request) (string, error) {
	name := r.Header.Get(SessionHeader)
	if name == "" && r.URL.RawQuery != "" {
		name = r.URL.Query().Get("session")
	}
	if name == "" {
		return "", nil
	}
	if err := chain.CheckName(name); err != nil {
		return "", problem.New(problem.BadRequest, fmt.Sprintf("%s: %v", SessionHeader, err))
	}
	return name, nil
}

type stoppingKey struct{}

// WithStopping returns a context that carries the channel of [Stopping].
func WithStopping(ctx context.Context, stopping <-chan struct{}) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// Stopping returns a channel that is closed when the server begins to stop. A handler of
// a stream then sends what is acknowledged, tells the caller where to continue, and
// returns. Without a server the channel is nil, which is never closed.
func Stopping(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(stoppingKey{}).(<-chan struct{})
	return c
}

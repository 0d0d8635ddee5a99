package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// corsMaxAge is how long, in seconds, a browser keeps the answer to a preflight request.
const corsMaxAge = "86400"

// answer is the writer of one answer. It knows whether the answer has begun, because a
// problem document cannot follow then.
type answer struct {
	http.ResponseWriter
	begun  bool
	status int // of the answer; 0 before it has begun
}

func (a *answer) WriteHeader(status int) {
	// An informational status is not the answer, except that of another protocol.
	if !a.begun && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		a.begun, a.status = true, status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun, a.status = true, http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap lets [http.ResponseController] reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// ServeHTTP answers one request: it checks the host, the origin and the form of the path,
// and hands the request to the route of the path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	defer s.requests.Done()
	a := &answer{ResponseWriter: w}
	defer s.recoverPanic(a, r)
	h := w.Header()
	err := s.refuseOrigin(h, r)
	if err == nil {
		err = s.refuseHeader(h, r)
	}
	if err != nil {
		s.refuse(a, r, err)
		return
	}
	if r.Method == http.MethodOptions {
		maps.Copy(h, secured)
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Content-Type, Content-Encoding, Authorization, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, "+route.SessionHeader)
		h.Set("Access-Control-Max-Age", corsMaxAge)
		a.WriteHeader(http.StatusNoContent)
		return
	}
	if !canonical(r.URL.EscapedPath()) {
		s.refuse(a, r, problem.New(problem.NotFound, "the path is not in its shortest form; write it without //, /./ and /../"))
		return
	}
	s.mux.ServeHTTP(a, r)
}

// refuse answers a request that reaches no route.
func (s *Server) refuse(a *answer, r *http.Request, err error) {
	if m := s.cfg.Requests; m != nil {
		defer s.measured(m, a, route.Endpoint{})()
	}
	s.fail(a, r, err)
}

// refuseHeader returns the problem of a header that is too large. Package net/http counts
// differently, and refuses twice the bound before a request comes here.
func (s *Server) refuseHeader(h http.Header, r *http.Request) error {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + 4 // the colon, the blank and the end of the line
		}
	}
	if n <= s.cfg.MaxHeader {
		return nil
	}
	h.Set("Connection", "close")
	return problem.New(problem.HeadersTooLarge, fmt.Sprintf("the header has %d bytes, at most %d are allowed", n, s.cfg.MaxHeader))
}

// mounted returns the handler of a route behind the checks that its entry demands.
func (s *Server) mounted(rt route.Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m := s.cfg.Requests; m != nil {
			defer s.measured(m, w, rt)()
		}
		session := ""
		if t := s.cfg.Tracer; t != nil {
			ctx, end := t.BeginRequest(r.Context(), r.Header, rt.Pattern)
			r = r.WithContext(ctx)
			defer func() { end(session, statusOf(w)) }()
		}
		if rt.Plain {
			w.Header()["X-Content-Type-Options"] = noSniff
		} else {
			maps.Copy(w.Header(), secured) // a handler that adds a value to one of them gets a copy
		}
		r, held, err := s.admit(w, r, &rt)
		defer held.release()
		if err == nil {
			session = route.Session(r)
			err = rt.Handler(w, r)
		}
		if rt.Stream {
			s.noteEnd(r)
		}
		if err != nil {
			s.failAs(w, r, err, rt.ErrorForm)
		}
	})
}

// measured returns a function that reports the end of a request, which begins now.
func (s *Server) measured(m RequestMetrics, w http.ResponseWriter, rt route.Endpoint) func() {
	begin := s.cfg.Now()
	if rt.Stream {
		m.StreamOpened(rt.Pattern)
	}
	return func() {
		status := statusOf(w)
		if rt.Stream {
			m.StreamClosed(rt.Pattern, status)
			return
		}
		m.RequestDone(rt.Pattern, status, max(s.cfg.Now().Sub(begin), 0))
	}
}

// statusOf returns the status of an answer, when its handler has ended.
func statusOf(w http.ResponseWriter) int {
	if a, ok := w.(*answer); ok && a.begun {
		return a.status
	}
	return http.StatusInternalServerError // the handler panicked before its answer
}

// unmatched answers requests that no route matches.
func (s *Server) unmatched(w http.ResponseWriter, r *http.Request) {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := s.mux.Handler(other); pattern != catchAll {
			methods = append(methods, m)
		}
	}
	if m := s.cfg.Requests; m != nil {
		defer s.measured(m, w, route.Endpoint{})()
	}
	if len(methods) == 0 {
		s.fail(w, r, problem.New(problem.NotFound, fmt.Sprintf("there is nothing under %q; GET /api/v1/openapi.json lists the paths", r.URL.Path)))
		return
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	s.fail(w, r, problem.New(problem.MethodNotAllowed, fmt.Sprintf("%q takes %s", r.URL.Path, strings.Join(methods, ", "))))
}

// fail answers with the problem of an error, unless the answer has begun, and logs the
// errors that are the server's.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) { s.failAs(w, r, err, nil) }

// failAs is fail with the form of a route's errors.
func (s *Server) failAs(w http.ResponseWriter, r *http.Request, err error, form problem.ErrorForm) {
	a, ok := w.(*answer)
	if ok && a.begun {
		s.cfg.Logger.Warn("an answer ended early", slog.String("path", r.URL.Path), slog.Any("err", err))
		return
	}
	if r.Context().Err() != nil {
		if cause := context.Cause(r.Context()); errors.Is(cause, problem.ErrStopping) {
			err = cause
		}
	}
	h := w.Header()
	maps.Copy(h, secured)
	if h["Vary"] == nil {
		h.Set("Vary", "Origin") // all refusals have the same header
	}
	var p *problem.Details
	if form == nil {
		p = problem.Write(w, r, err)
	} else {
		p = problem.WriteForm(w, r, err, form)
	}
	s.noteRefusal(r, p, err)
	if p.Status() >= http.StatusInternalServerError {
		s.cfg.Logger.Error("a request failed", slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("code", string(p.Code)), slog.Any("err", cause(p)))
	}
}

// cause returns the cause of a problem, or the problem.
func cause(p *problem.Details) error {
	if p.Err != nil {
		return p.Err
	}
	return p
}

// recoverPanic answers a request whose handler panicked. The process goes on: the
// requests of others and what they recorded do not depend on it.
func (s *Server) recoverPanic(a *answer, r *http.Request) {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler { //nolint:errorlint // the documented value, never wrapped
		panic(reason)
	}
	s.cfg.Logger.Error("a handler panicked", slog.String("path", r.URL.Path), slog.Any("reason", reason), slog.String("stack", string(debug.Stack())))
	if a.begun {
		panic(http.ErrAbortHandler) // the caller must not take the answer for whole
	}
	s.fail(a, r, fmt.Errorf("a handler panicked: %v", reason))
}

// catchAll is the pattern of the requests that no route matches.
const catchAll = "/"

// takesEntries returns why the store takes no entries, or nil.
func (s *Server) takesEntries() error {
	select {
	case <-s.stopping:
		return problem.ErrStopping
	default:
	}
	return s.engine.Health().Err()
}

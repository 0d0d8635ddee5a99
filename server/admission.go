package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// newAdmission returns what decides on the admission of requests.
func newAdmission(cfg Config) (*access.Gate, *limit.Limits, error) {
	if cfg.Access.Now == nil {
		cfg.Access.Now = cfg.Now
	}
	if cfg.Access.Logger == nil {
		cfg.Access.Logger = cfg.Logger
	}
	gate, err := access.NewGate(cfg.Access)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Limits.Now == nil {
		cfg.Limits.Now = cfg.Now
	}
	refused := cfg.Limits.Refused
	cfg.Limits.Refused = func(peer netip.Addr, err error) {
		gate.Events().Note(access.SecurityEvent{Kind: access.LimitExceeded, Peer: peer.String(), Detail: err.Error()})
		if refused != nil {
			refused(peer, err)
		}
	}
	return gate, limit.New(cfg.Limits), nil
}

// secured are the headers that keep a browser from taking an answer for something that
// runs, and pages of other sites from embedding it: recorded text is in many answers.
var secured = http.Header{
	"X-Content-Type-Options":       noSniff,
	"Content-Security-Policy":      {"default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"},
	"Cross-Origin-Resource-Policy": {"same-site"},
	"Referrer-Policy":              {"no-referrer"},
}

// noSniff keeps a browser from taking an answer for another media type than it has.
var noSniff = []string{"nosniff"}

// refuseOrigin returns the problem of a request under a foreign host, or of a page that
// may not use the server. It sets the headers that tell a page what it may do.
func (s *Server) refuseOrigin(h http.Header, r *http.Request) error {
	if !overSocket(r.Context()) && !s.gate.AllowsHost(r.Host) {
		return problem.New(problem.OriginRefused, fmt.Sprintf("the server is not known as %.100q; name the host with --host", r.Host))
	}
	if access.Embedded(r) {
		return problem.New(problem.OriginRefused, "pages of other sites may not embed answers")
	}
	// Also without an origin: a browser that keeps this answer must not give it to a page.
	// It keeps none to the other methods.
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		h.Add("Vary", "Origin")
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return nil
	}
	if len(origins) > 1 || !s.gate.AllowsOrigin(origins[0]) && !s.gate.FromServer(r) {
		return problem.New(problem.OriginRefused, fmt.Sprintf("pages of %.100q may not use the server; allow them with --allow-origin", strings.Join(origins, ", ")))
	}
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Set("Access-Control-Expose-Headers", "ETag, Retry-After, Mcp-Session-Id")
	return nil
}

// canonical reports whether a path has its shortest form. The others would be redirected
// there, and a client would send its token a second time.
func canonical(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path, "/./") && !strings.Contains(path, "/../") &&
		!strings.HasSuffix(path, "/.") && !strings.HasSuffix(path, "/..")
}

// admit does what a route says before its handler runs. It returns the request for the
// handler, and what has to be done after the handler. The order of the checks counts: an
// unknown caller learns nothing but that it is unknown.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, rt *route.Endpoint) (admitted *http.Request, held holds, err error) {
	local := access.FromThisMachine(r)
	id, refused := s.identify(r, local)
	client := clientOf(r, id, local)
	ctx := r.Context()
	if route.Stopping(ctx) != s.stopping { // Serve has put it there
		ctx = route.WithStopping(ctx, s.stopping)
	}
	ctx = limit.With(access.WithRequest(ctx, s.gate.Events(), r, id), s.limits, client)
	r = r.WithContext(ctx)
	if err := s.limits.Take(client, 1); err != nil {
		return r, held, err
	}
	if refused != nil {
		return r, held, refused
	}
	session := route.Session(r)
	if err := access.Check(ctx, rt.Scope, session); err != nil {
		return r, held, err
	}
	if session != "" {
		if err := eventlog.CheckName(session); err != nil {
			return r, held, err
		}
	}
	r.Body = incoming{r.Body}
	if rt.MaxBody >= 0 {
		r.Body = http.MaxBytesReader(w, r.Body, rt.MaxBody)
	}
	if rt.MaxBody > 0 {
		r.Body, held.body = s.limits.Body(r.Body)
	}
	if rt.Stream {
		done, err := s.limits.Stream(client)
		if err != nil {
			return r, held, err
		}
		held.stream = done
		ctx, held.guard = s.gate.Guard(ctx, id)
		r = r.WithContext(ctx)
		// Without this the deadlines of the other requests would end the stream. A
		// connection without deadlines, as of a test, has nothing to lift.
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(time.Time{})
		_ = c.SetReadDeadline(time.Time{})
	}
	return r, held, nil
}

// holds is what a request holds until its handler has ended; the functions release it, and
// nil holds nothing.
type holds struct{ body, stream, guard func() }

func (h *holds) release() {
	for _, f := range [...]func(){h.body, h.stream, h.guard} {
		if f != nil {
			f()
		}
	}
}

// incoming is a body as it arrives. Its errors are the client's, except that it took too
// long: they must not be taken for those of the store.
type incoming struct{ io.ReadCloser }

func (b incoming) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: %w", limit.ErrIncomplete, err)
	}
	return n, err
}

// identify returns the caller of a request.
func (s *Server) identify(r *http.Request, local bool) (*access.Caller, error) {
	if overSocket(r.Context()) {
		return access.SocketCaller(), nil
	}
	id, err := s.gate.IdentifyFrom(r, local)
	if err != nil && !errors.Is(err, access.ErrUnauthenticated) {
		s.cfg.Logger.Error("callers cannot be recognized", slog.Any("err", err))
	}
	return id, err
}

// clientOf returns the client of a request for the limits.
func clientOf(r *http.Request, id *access.Caller, local bool) limit.Requester {
	c := limit.Requester{Local: local || overSocket(r.Context())}
	if id != nil {
		c.Name, c.Tenant = id.Name, id.Tenant
	}
	if addr, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		c.Peer = addr.Addr()
	}
	return c
}

// noteRefusal notes a security event for an answer that refuses a request for reasons of
// security.
func (s *Server) noteRefusal(r *http.Request, p *problem.Details, err error) {
	event := access.SecurityEvent{Detail: p.Detail, Session: route.Session(r)}
	switch {
	case p.Code == problem.Unauthenticated:
		event.Kind, event.Caller = access.AuthFailed, access.RefusedName(err)
	case errors.Is(err, access.ErrHidden), p.Code == problem.Forbidden:
		event.Kind, event.Detail = access.ActForbidden, err.Error()
	case p.Code == problem.OriginRefused:
		event.Kind = access.OriginRefused
	case p.Code == problem.TooMany:
		event.Kind = access.LimitExceeded
	default:
		return
	}
	access.Note(access.WithEvents(r.Context(), s.gate.Events(), r), event)
}

// used returns what the callers use of each limit.
func (s *Server) used() map[string]int64 { return byLimit(s.limits.InUse()) }

// bounds returns the bounds of the limits that have one.
func (s *Server) bounds() map[string]int64 {
	all := byLimit(s.limits.Bounds())
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n < 0 })
	return all
}

func byLimit(u limit.InUse) map[string]int64 {
	return map[string]int64{"connections": int64(u.Connections), "streams": int64(u.Streams), "jobs": int64(u.Jobs), "memory": u.Memory}
}

// noted returns the number of security events of each kind.
func (s *Server) noted() map[string]uint64 {
	all := map[string]uint64{}
	for kind, n := range s.gate.Events().Counts() {
		all[string(kind)] = n
	}
	return all
}

// noteEnd notes a stream that ended because its token did.
func (s *Server) noteEnd(r *http.Request) {
	if cause := context.Cause(r.Context()); errors.Is(cause, access.ErrUnauthenticated) {
		access.Note(r.Context(), access.SecurityEvent{Kind: access.TokenEnded, Session: route.Session(r), Detail: cause.Error()})
	}
}

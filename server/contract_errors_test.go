package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/otlp"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/read"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/schema"
	"github.com/sajou-dev/sajou-go/signal"
)

// remote is the address of a caller from another machine, that of [call].
const remote = "10.0.0.1:99"

// stateful are the errors that need a state of the server. The later tests of [TestErrors]
// provoke them.
var stateful = []problem.ErrorCode{problem.OverBudget, problem.ReadOnly, problem.DiskFull, problem.Stopping, problem.Internal, problem.Damaged}

// someRequest returns a request of a route.
func someRequest(t *testing.T, e *route.Endpoint) asked {
	t.Helper()
	list := slices.Concat(answered[e.Pattern], streams[e.Pattern].requests())
	require.NotEmpty(t, list, "%s: add a request to answered or streams", e.Pattern)
	return list[0]
}

// asking sends a request that is made of another one, and leaves a stream that begins.
func asking(t *testing.T, h http.Handler, e *route.Endpoint, a asked, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method(e), "http://localhost"+a.target, strings.NewReader(a.body))
	r.RemoteAddr = "127.0.0.1:1"
	for i := 0; i+1 < len(a.header); i += 2 {
		r.Header.Set(a.header[i], a.header[i+1])
	}
	change(r)
	w := httptest.NewRecorder()
	if e.Stream {
		h.ServeHTTP(begun{w, cancel}, r)
	} else {
		h.ServeHTTP(w, r)
	}
	return w
}

// begun is the answer to a client that leaves a stream when it begins.
type begun struct {
	*httptest.ResponseRecorder
	leave func()
}

func (b begun) WriteHeader(status int) {
	b.ResponseRecorder.WriteHeader(status)
	if status < http.StatusBadRequest {
		b.leave()
	}
}

func (b begun) Write(p []byte) (int, error) {
	b.leave()
	return b.ResponseRecorder.Write(p)
}

func (b begun) Flush() {
	if b.Code < http.StatusBadRequest {
		b.leave()
	}
	b.ResponseRecorder.Flush()
}

// slow is a body that does not arrive in time.
type slow struct{}

func (slow) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// provoke returns the answers to all requests that have an error of a kind at a route.
func (c *contract) provoke(t *testing.T, e *route.Endpoint, code problem.ErrorCode) (answers []*httptest.ResponseRecorder) {
	t.Helper()
	usual := someRequest(t, e)
	usual.target = strings.ReplaceAll(usual.target, "JOB", c.job)
	if usual.during != "" && (code == problem.TooLarge || code == problem.Timeout) {
		live := httptest.NewServer(c)
		defer live.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		opened(ctx, t, live.URL+usual.during)
	}
	ask := func(a asked, changes ...func(*http.Request)) {
		answers = append(answers, asking(t, c, e, a, func(r *http.Request) {
			for _, change := range changes {
				change(r)
			}
		}))
	}
	if a, ok := refused[e.Pattern][code]; ok && a.hooks == hooksForbidden {
		answers = append(answers, asking(t, c.bare, e, a, func(*http.Request) {}))
	} else if ok {
		ask(a)
	}
	session := strings.Contains(e.Pattern, "{session}")
	in := func(name string) asked {
		a := usual
		a.target = regexp.MustCompile(`^/api/v1/sessions/[^/?]+`).ReplaceAllString(a.target, sessions+name)
		return a
	}
	with := func(name, value string) asked {
		path, query, _ := strings.Cut(usual.target, "?")
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		values.Set(name, value)
		a := usual
		a.target = path + "?" + values.Encode()
		return a
	}
	has := func(name string) bool {
		return slices.ContainsFunc(e.Doc.Params, func(p route.Parameter) bool { return p.Name == name && p.In == "" })
	}
	from := func(r *http.Request) { r.RemoteAddr = remote }
	switch code {
	case problem.OriginRefused:
		ask(usual, func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example") })
	case problem.Unauthenticated:
		ask(usual, from)
	case problem.Forbidden:
		answers = append(answers, asking(t, c.strict, e, usual, func(*http.Request) {}))
	case problem.NoSession:
		ask(usual, from, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.token) })
	case problem.TooMany:
		answers = append(answers, asking(t, c.busy, e, usual, from))
	case problem.Invalid:
		if session {
			ask(in("a%0Ab"))
		}
	case problem.Deleted:
		if session {
			ask(in("gone"))
		}
	case problem.TooLarge:
		most := e.MaxBody
		if most < 0 {
			most = 1 << 16
		}
		a := usual
		a.body = `"` + strings.Repeat("x", int(most)) + `"`
		ask(a)
		if most > 1<<20 {
			break // once is enough
		}
		a.header = nil
		ask(a, func(r *http.Request) { r.ContentLength, r.Header["Content-Type"] = -1, usual.mediaType() })
	case problem.Timeout:
		ask(usual, func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(slow{}), -1 })
	case problem.MediaUnsupported:
		if refused[e.Pattern][code].target == "" {
			ask(usual, func(r *http.Request) { r.Header.Set("Content-Encoding", "br") })
		}
	case problem.NoAgent:
		a := usual
		a.target = regexp.MustCompile(`/agents/[^/?]+`).ReplaceAllString(a.target, "/agents/nobody")
		if method(e) != http.MethodPut { // no agent would be registered
			ask(a)
		}
	case problem.NotAcceptable:
		path, query, _ := strings.Cut(usual.target, "?")
		if a := usual; len(answers) == 0 {
			a.target, a.header = path+"?"+regexp.MustCompile(`&?format=[a-z]+`).ReplaceAllString(query, ""), []string{"Accept", "application/x-nothing"}
			ask(a)
		}
	case problem.BadRequest:
		if len(answers) == 0 {
			ask(with("there-is-no-such-parameter", "1"))
		}
	case problem.NoMoment:
		if len(answers) > 0 {
			break
		}
		switch a := usual; {
		case has("at"):
			ask(with("at", "9999"))
		case has("from"):
			ask(with("from", "9999"))
		case has("range"):
			ask(with("range", "9998..9999"))
		default:
			a.target = strings.Replace(a.target, "/36", "/9999", 1)
			ask(a)
		}
	default:
	}
	return answers
}

// mediaType returns the header Content-Type of a request.
func (a asked) mediaType() []string {
	if i := slices.Index(a.header, "Content-Type"); i >= 0 {
		return a.header[i+1 : i+2]
	}
	return nil
}

// provoked are the codes of the answers that were checked.
type provoked map[problem.ErrorCode]bool

// isProblem checks that an answer is the problem document of a code.
func (p provoked) isProblem(t *testing.T, e *route.Endpoint, code problem.ErrorCode, w *httptest.ResponseRecorder) {
	t.Helper()
	p[code] = true
	isProblem(t, e, code, w)
}

// isProblem checks that an answer is the problem document of a code.
func isProblem(t *testing.T, e *route.Endpoint, code problem.ErrorCode, w *httptest.ResponseRecorder) {
	t.Helper()
	if !assert.Equal(t, schema.StatusOf(e, code), w.Code, "%s %s: %.300s", e.Pattern, code, w.Body) {
		return
	}
	assert.Equal(t, errtext.Plain(textOf(t, w)), textOf(t, w), "%s: the text names a Go package", e.Pattern)
	if e.ErrorForm != nil && code != problem.OriginRefused {
		if w.Header().Get("Content-Type") == "application/x-protobuf" {
			return // no schema describes it
		}
		assert.Equal(t, route.MediaJSON, w.Header().Get("Content-Type"), e.Pattern)
		valid(t, compiled(t)(e.Doc.ErrorSchema), w.Body.Bytes(), e.Pattern)
		return
	}
	assert.Equal(t, problem.MediaType, w.Header().Get("Content-Type"), e.Pattern)
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"), e.Pattern)
	valid(t, compiled(t)("problem"), w.Body.Bytes(), e.Pattern)
	assert.Equal(t, code, codeOf(t, w), "%s: %s", e.Pattern, w.Body)
}

// textOf returns the text of an error for people: the detail of a problem document, also inside
// the form of the reference server, or the message of a status of OpenTelemetry.
func textOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Header().Get("Content-Type") == "application/x-protobuf" {
		return w.Body.String()
	}
	doc, err := signal.ParseValue(w.Body.Bytes())
	require.NoError(t, err, "%.300s", w.Body)
	for _, v := range []signal.Value{doc.Member("detail"), doc.Member("message"), doc.Member("error").Member("detail"), doc.Member("error")} {
		if text, ok := v.Text(); ok {
			return text
		}
	}
	require.Fail(t, "no text", "%.300s", w.Body)
	return ""
}

// Every code that the program has is documented, and is the answer to a request here.
func TestErrors(t *testing.T) {
	p, tests := provoked{}, 0
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"of routes", p.ofRoutes},
		{"of no route", p.ofNoRoute},
		{"of the disk", p.ofTheDisk},
		{"of damage", p.ofDamage},
		{"of the end", p.ofTheEnd},
		{"of the budget", p.ofTheBudget},
		{"of the program", p.ofTheProgram},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t)
			tests++
		})
	}
	if tests < 7 {
		return // a part of the tests was asked for
	}
	for _, class := range problem.Classes() {
		assert.True(t, p[class.Code], "no request is answered with %s", class.Code)
	}
	assert.Len(t, p, len(problem.Classes()))
}

// Every documented error of a route is answered with its status, its code and a problem
// document.
func (p provoked) ofRoutes(t *testing.T) {
	c := newContract(t, nil)
	c.judge(t)
	for _, e := range c.Routes() {
		for code := range refused[e.Pattern] {
			assert.Contains(t, schema.Errors(&e), code, "%s: a request has this error, and the description does not", e.Pattern)
		}
		for _, code := range schema.Errors(&e) {
			if slices.Contains(stateful, code) {
				continue
			}
			answers := c.provoke(t, &e, code)
			require.NotEmpty(t, answers, "%s: add a request that has the error %q to refused", e.Pattern, code)
			for _, w := range answers {
				p.isProblem(t, &e, code, w)
			}
		}
	}
}

// Requests that reach no route have documented answers too.
func (p provoked) ofNoRoute(t *testing.T) {
	s := unserved(t, server.Config{MaxHeader: 2048})
	e := &route.Endpoint{Pattern: "GET /", Doc: &route.Doc{}}
	p.isProblem(t, e, problem.NotFound, servertest.Ask(s, "GET", "/nothing", ""))
	p.isProblem(t, e, problem.NotFound, servertest.Ask(s, "GET", "/healthz/.", ""))
	w := servertest.Ask(s, "DELETE", "/healthz", "")
	p.isProblem(t, e, problem.MethodNotAllowed, w)
	assert.Equal(t, "GET", w.Header().Get("Allow"))
	p.isProblem(t, e, problem.OriginRefused, servertest.Ask(s, "OPTIONS", "/healthz", "", "Origin", "null"))
	w = servertest.Ask(s, "GET", "/healthz", "", "X-A", strings.Repeat("a", 2048))
	p.isProblem(t, e, problem.HeadersTooLarge, w)
	assert.Equal(t, "close", w.Header().Get("Connection"))
	assert.Equal(t, http.StatusOK, servertest.Ask(s, "GET", "/healthz", "", "X-A", strings.Repeat("a", 1500)).Code)
}

// No route answers with a part of a damaged session.
func (p provoked) ofDamage(t *testing.T) {
	disk := vfs.NewMem()
	engine := servertest.Store(t, "..", sajou.Config{FS: disk})
	require.NoError(t, engine.Close())
	damage(t, disk, "store", servertest.Night)
	engine, err := sajou.Open("store", sajou.Config{FS: disk})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	s, err := server.New(engine, server.Config{Access: access.Config{Loopback: access.Scopes()}, Traces: otlp.Config{Dir: t.TempDir()}})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Traces().Close(context.Background())) }()
	for _, e := range s.Routes() {
		if !strings.HasPrefix(strings.SplitAfter(e.Pattern, " ")[1], sessions+"{session}") {
			continue
		}
		a := someRequest(t, &e)
		a.target = regexp.MustCompile(`^/api/v1/sessions/[^/?]+`).ReplaceAllString(a.target, sessions+servertest.Night)
		w := asking(t, s, &e, a, func(*http.Request) {})
		switch {
		case w.Code == http.StatusInternalServerError:
			p.isProblem(t, &e, problem.Damaged, w)
		case w.Code == http.StatusNotImplemented: // a recorder cannot be hijacked
		default:
			require.GreaterOrEqual(t, w.Code, 400, e.Pattern)
			assert.Contains(t, schema.Errors(&e), codeOf(t, w), e.Pattern)
		}
	}
}

// A path that exists and names something that does not is answered with a title that is true
// for it, and a detail that names it.
func TestNotFoundSaysWhat(t *testing.T) {
	c := newContract(t, nil)
	for _, a := range []struct{ method, target, body, detail string }{
		{"GET", sessions + "night/board", "", "no episode is played"},
		{"POST", sessions + "choice/director/choose", `{"choice_point":"shut","choice":"yes"}`, `not found: choice point "shut"`},
		{"POST", sessions + "night/director/choose", `{"choice_point":"open","choice":"yes"}`, `not found: choice point "open": no episode is played; start one first`},
		{"GET", "/nothing", "", `"/nothing"`},
	} {
		w := servertest.Ask(c, a.method, a.target, a.body)
		doc, err := signal.ParseValue(w.Body.Bytes())
		require.NoError(t, err)
		assert.Equal(t, "not-found", doc.TextOf("code"), w.Body)
		assert.Equal(t, "The request names something that does not exist", doc.TextOf("title"))
		assert.Contains(t, doc.TextOf("detail"), a.detail)
	}
}

// The page about the server lists every code with its status.
func TestPageHasAllCodes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "server.md"))
	require.NoError(t, err)
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| (`[a-z-]+` \\| [0-9]{3}) \\| [^|]+ \\|$").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1])
	}
	var codes []string
	for _, class := range problem.Classes() {
		codes = append(codes, fmt.Sprintf("`%s` | %d", class.Code, class.Status))
	}
	assert.Equal(t, codes, listed)
}

// A session that is not there, or no longer, has a documented answer at every route.
func TestAnswersAboutNoSession(t *testing.T) {
	c := newContract(t, nil)
	for _, e := range c.Routes() {
		if !strings.Contains(e.Pattern, "{session}") {
			continue
		}
		a := someRequest(t, &e)
		for _, name := range []string{"gone", "nothing"} {
			a := a
			a.target = regexp.MustCompile(`^/api/v1/sessions/[^/?]+`).ReplaceAllString(strings.ReplaceAll(a.target, "JOB", c.job), sessions+name)
			if w := asking(t, c, &e, a, func(*http.Request) {}); w.Code >= 400 && w.Code != http.StatusNotImplemented { // a recorder cannot be hijacked
				assert.Contains(t, schema.Errors(&e), codeOf(t, w), "%s in %q: %s", e.Pattern, name, w.Body)
			}
		}
	}
}

// A disk that is full or broken has its documented answers, and reading goes on.
func (p provoked) ofTheDisk(t *testing.T) {
	for code, cause := range map[problem.ErrorCode]error{
		problem.DiskFull: fmt.Errorf("write: %w", syscall.ENOSPC),
		problem.ReadOnly: errors.New("the disk is broken"),
	} {
		disk := enginetest.NewDisk()
		c := newContract(t, disk)
		disk.Fail(cause)
		require.Equal(t, problem.ClassOf(code).Status, servertest.Ask(c, "POST", "/api/signal", "{}").Code)
		for _, e := range c.Routes() {
			documented := slices.Contains(schema.Errors(&e), code)
			if e.Stream {
				if documented {
					p.isProblem(t, &e, code, lent(t, c, &e))
				}
				continue
			}
			provoked := false
			for _, a := range answered[e.Pattern] {
				switch w := c.ask(method(&e), a); {
				case !documented:
					assert.NotEqual(t, problem.ClassOf(code).Status, w.Code, "%s: %s", e.Pattern, w.Body)
				case w.Code >= 400:
					p.isProblem(t, &e, code, w)
					provoked = true
				}
			}
			assert.Equal(t, documented, provoked, "%s: none of its requests is answered with %s", e.Pattern, code)
		}
	}
}

// lent asks for a checkpoint on a socket of its own.
func lent(t *testing.T, c *contract, e *route.Endpoint) *httptest.ResponseRecorder {
	t.Helper()
	client, stop := overSocket(t, c.Server)
	defer stop()
	req, err := http.NewRequestWithContext(t.Context(), method(e), "http://localhost"+someRequest(t, e).target, http.NoBody)
	require.NoError(t, err)
	res, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	w := httptest.NewRecorder()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, err = io.Copy(w, res.Body)
	require.NoError(t, err)
	return w
}

// overSocket serves on a Unix socket until stop is called.
func overSocket(t *testing.T, s *server.Server) (client *http.Client, stop func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	return &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		cancel()
		assert.NoError(t, <-done)
	}
}

// While the server stops, and after the store is closed, requests that record are refused with
// the documented answer.
func (p provoked) ofTheEnd(t *testing.T) {
	c := newContract(t, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, c.Serve(ended))
	require.NoError(t, c.engine.Close())
	for _, e := range c.Routes() {
		if e.Stream || !slices.Contains(schema.Errors(&e), problem.Stopping) {
			continue
		}
		p.isProblem(t, &e, problem.Stopping, c.ask(method(&e), answered[e.Pattern][0]))
	}
}

// A computation beyond the budget has the documented answer.
func (p provoked) ofTheBudget(t *testing.T) {
	library := read.New(servertest.Store(t, "..", sajou.Config{}), read.Config{MaxTime: time.Nanosecond, MaxBytes: 1})
	for _, e := range library.Routes() {
		if !slices.Contains(schema.Errors(&e), problem.OverBudget) {
			continue
		}
		mux := http.NewServeMux()
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) {
			r = r.WithContext(access.With(r.Context(), access.SocketCaller()))
			if err := e.Handler(w, r); err != nil {
				_ = problem.Write(w, r, err)
			}
		})
		provoked := false
		for _, a := range answered[e.Pattern] {
			if w := servertest.Ask(mux, method(&e), a.target, a.body, a.header...); w.Code >= 400 {
				p.isProblem(t, &e, problem.OverBudget, w)
				provoked = true
			}
		}
		// The removal of a bookmark computes nothing.
		assert.Equal(t, method(&e) != http.MethodDelete, provoked, e.Pattern)
	}
}

// A handler that fails in a way that has no code, or panics, is answered without the reason.
func (p provoked) ofTheProgram(t *testing.T) {
	s := unserved(t, server.Config{})
	for name, h := range map[string]route.HandlerFunc{
		"fails":  func(http.ResponseWriter, *http.Request) error { return errors.New("secret") },
		"panics": func(http.ResponseWriter, *http.Request) error { panic("secret") },
	} {
		e := route.Endpoint{Pattern: "GET /" + name, Handler: h, Doc: &route.Doc{}}
		s.Mount(e)
		w := servertest.Ask(s, http.MethodGet, "/"+name, "")
		p.isProblem(t, &e, problem.Internal, w)
		assert.NotContains(t, w.Body.String(), "secret")
	}
}

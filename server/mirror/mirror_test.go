package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/mirror"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t require.TestingT) *sajou.Engine {
	e, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	return e
}

// record appends signals to a session in one batch for each length.
func record(t require.TestingT, e *sajou.Engine, name string, lengths ...int) eventlog.Head {
	ses, err := e.Session(context.Background(), name)
	require.NoError(t, err)
	var head eventlog.Head
	for _, n := range lengths {
		var sigs []*signal.Signal
		for i := range n {
			sigs = append(sigs, &signal.Signal{ID: fmt.Sprint(i), Type: "user.wave", Source: "t", Timestamp: signal.Int(1), Payload: signal.NewObject(0).Value()})
		}
		receipt, err := ses.Record(context.Background(), sajou.Addition{Signals: sigs})
		require.NoError(t, err)
		head = receipt.Head
	}
	return head
}

// raw returns the raw export of a session.
func raw(t require.TestingT, e *sajou.Engine, name string) string {
	log, err := e.Log().Session(name)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, session.Export(context.Background(), &b, log, session.ExportRaw, 1, 0))
	return b.String()
}

// serve starts a server for an engine, behind a handler that may change its answers.
func serve(t *testing.T, e *sajou.Engine, change func(http.Handler) http.Handler) *mirror.Remote {
	t.Helper()
	s, err := server.New(e, server.Config{})
	require.NoError(t, err)
	var h http.Handler = s
	if change != nil {
		h = change(s)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	remote, err := mirror.NewRemote(srv.URL, "", nil)
	require.NoError(t, err)
	return remote
}

// A copied session is the same, entry by entry and batch by batch, and is continued when
// it has grown.
func TestCopy(t *testing.T) {
	from, to := open(t), open(t)
	defer func() { assert.NoError(t, errors.Join(from.Close(), to.Close())) }()
	record(t, from, "talk", 1, 3, 40, 1)
	record(t, from, "über/all", 2)
	remote := serve(t, from, nil)
	for range 2 {
		list, err := remote.Sessions(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 2)
		assert.Equal(t, "talk", list[0].Name)
		for _, s := range list {
			require.NoError(t, remote.Copy(t.Context(), to, s))
			assert.Equal(t, raw(t, from, s.Name), raw(t, to, s.Name))
		}
		record(t, from, "talk", 2, 2)
	}
	err := remote.Copy(t.Context(), to, mirror.RemoteSession{Name: "nobody"})
	status, ok := errors.AsType[*mirror.StatusError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, http.StatusNotFound, status.Status)
}

// cutting ends each answer with a log after some bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// A session that is followed over connections that break anywhere arrives without loss and
// repeat, while it grows.
func TestFollowOverBrokenConnections(t *testing.T) {
	left := 0
	from := open(t)
	remote := serve(t, from, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&cutting{w, left}, r) })
	})
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		name := fmt.Sprintf("s-%d", number)
		record(t, from, name, 1)
		to := open(t)
		defer func() { require.NoError(t, to.Close()) }()
		log, err := to.Log().Session(name)
		require.NoError(t, err)
		var shown eventlog.Seq
		for range rapid.IntRange(1, 6).Draw(t, "connections") {
			want := record(t, from, name, rapid.SliceOfN(rapid.IntRange(1, 30), 1, 5).Draw(t, "batches")...)
			left = rapid.IntRange(0, 8000).Draw(t, "bytes")
			ctx, stop := context.WithCancel(context.Background())
			_ = remote.Follow(ctx, to, name, func() error {
				require.GreaterOrEqual(t, log.Head().Seq, shown)
				if shown = log.Head().Seq; shown == want.Seq {
					stop()
				}
				return nil
			})
			stop()
			require.True(t, strings.HasPrefix(raw(t, from, name), raw0(t, to, name)))
		}
		left = 1 << 30
		end := record(t, from, name, 1)
		ctx, stop := context.WithCancel(context.Background())
		err = remote.Follow(ctx, to, name, func() error {
			if log.Head() == end {
				stop()
			}
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, raw(t, from, name), raw(t, to, name))
	})
	require.NoError(t, from.Close())
}

// raw0 is raw for a session that need not exist.
func raw0(t require.TestingT, e *sajou.Engine, name string) string {
	log, err := e.Log().Session(name)
	require.NoError(t, err)
	if !log.Exists() {
		return ""
	}
	return raw(t, e, name)
}

// A log that is not the one that was recorded is refused, however it was changed, and
// nothing of it is recorded from the change on.
func TestHostileServers(t *testing.T) {
	from := open(t)
	defer func() { assert.NoError(t, from.Close()) }()
	head := record(t, from, "talk", 3, 4)
	record(t, from, "other", 7)
	honest := raw(t, from, "talk")
	lines := strings.SplitAfter(honest, "\n")
	list := fmt.Sprintf("{\"session\":\"talk\",\"seq\":%d,\"hash\":\"%v\"}\n", head.Seq, head.Hash)
	for name, tt := range map[string]struct{ list, log, error string }{
		"another session":      {list, raw(t, from, "other"), "instead of that of"},
		"an entry is missing":  {list, lines[0] + lines[1] + strings.Join(lines[3:], ""), "line is of entry"},
		"an entry was changed": {list, strings.Replace(honest, `"entry":"`, `"entry":"A`, 3), "not arrive as it was recorded"},
		"the end is missing":   {list, strings.Join(lines[:5], ""), "does not have the head"},
		"nothing":              {list, "", "the text is empty"},
		"another head":         {strings.Replace(list, head.Hash.String()[:4], "0000", 1), honest, "does not have the head"},
		"a page":               {list, "<html>\n", "not a line of a raw export"},
		"a long line":          {list, strings.Repeat("x", 5<<20), "long"},
		"a list of a page":     {"<html>", "", "cannot be read"},
		"a list of nonsense":   {"{}\n", "", "list of sessions"},
		"a list without end":   {strings.Repeat(list, 200_000), "", "has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			to := open(t)
			defer func() { assert.NoError(t, to.Close()) }()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := tt.log
				if r.URL.Path == "/api/v1/logs" {
					body = tt.list
				}
				_, _ = io.WriteString(w, body)
			}))
			defer srv.Close()
			remote, err := mirror.NewRemote(srv.URL, "", nil)
			require.NoError(t, err)
			sessions, err := remote.Sessions(t.Context())
			if err == nil {
				err = remote.Copy(t.Context(), to, sessions[0])
			}
			require.ErrorContains(t, err, tt.error)
			assert.True(t, strings.HasPrefix(honest, raw0(t, to, "talk")))
		})
	}
}

// A token is sent to the server alone: not over http to another machine, and not to the
// place to which an answer points.
func TestTokenStays(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://sajou.example": true, "http://127.0.0.1:5175": true, "http://localhost": true, "http://[::1]:5175/prefix/": true,
		"http://sajou.example": false, "http://127.0.0.1.example": false, "ftp://localhost": false, "localhost:5175": false,
		"https://user:word@sajou.example": false, "https://sajou.example?x=1": false, "": false,
	} {
		_, err := mirror.NewRemote(address, "secret", nil)
		assert.Equal(t, ok, err == nil, "%s: %v", address, err)
	}
	_, err := mirror.NewRemote("http://sajou.example", "", nil)
	require.NoError(t, err)
	_, err = mirror.NewRemote("https://sajou.example", "two\nlines", nil)
	require.Error(t, err)

	seen := ""
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen += r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	remote, err := mirror.NewRemote(srv.URL, "secret", nil)
	require.NoError(t, err)
	_, err = remote.Sessions(t.Context())
	require.ErrorContains(t, err, "which is not followed")
	assert.Empty(t, seen)
}

// A caller receives nothing about sessions that it may not read.
func TestScopes(t *testing.T) {
	e := open(t)
	defer func() { assert.NoError(t, e.Close()) }()
	record(t, e, "mine", 1)
	record(t, e, "yours", 1)
	caller := &access.Caller{Name: "test", Grants: []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"mine"}}}}
	for _, rt := range mirror.New(e, nil).Routes() {
		if !strings.HasSuffix(rt.Pattern, "/logs") {
			continue
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/api/v1/logs", nil)
		require.NoError(t, rt.Handler(w, r.WithContext(access.With(t.Context(), caller))))
		assert.Equal(t, route.MediaNDJSON, w.Header().Get("Content-Type"))
		assert.Contains(t, w.Body.String(), "mine")
		assert.NotContains(t, w.Body.String(), "yours")
	}
}

// Requests that are wrong have a documented answer.
func TestLogRefusals(t *testing.T) {
	e := open(t)
	defer func() { assert.NoError(t, e.Close()) }()
	record(t, e, "talk", 3)
	s, err := server.New(e, server.Config{})
	require.NoError(t, err)
	for path, status := range map[string]int{
		"/api/v1/sessions/talk/log":            200,
		"/api/v1/sessions/talk/log?from=5":     200,
		"/api/v1/sessions/talk/log?from=6":     416,
		"/api/v1/sessions/talk/log?from=0":     400,
		"/api/v1/sessions/talk/log?from=-1":    400,
		"/api/v1/sessions/talk/log?follow=may": 400,
		"/api/v1/sessions/nobody/log":          404,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
		r.RemoteAddr = "127.0.0.1:4000"
		s.ServeHTTP(w, r)
		assert.Equal(t, status, w.Code, "%s: %s", path, w.Body)
	}
}

// Whatever a server sends, a follower records only entries that follow from those before.
func FuzzFollow(f *testing.F) {
	from, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(f, err)
	record(f, from, "talk", 2, 3)
	honest := raw(f, from, "talk")
	require.NoError(f, from.Close())
	f.Add([]byte(honest + "\n"))
	f.Add([]byte(strings.Replace(honest, "A", "B", 1) + "\n"))
	f.Add([]byte("{}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		to := open(t)
		defer func() { require.NoError(t, to.Close()) }()
		client := &http.Client{Transport: answering(body)}
		remote, err := mirror.NewRemote("http://localhost", "", client)
		require.NoError(t, err)
		_ = remote.Follow(t.Context(), to, "talk", func() error { return nil })
		log, err := to.Log().Session("talk")
		require.NoError(t, err)
		if !log.Exists() {
			return
		}
		report, err := to.Log().Verify(t.Context(), "talk", verify.Options{})
		require.NoError(t, err)
		require.True(t, report.Whole())
	})
}

// answering answers every request with the same body.
type answering []byte

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a))}, nil
}

func Example() {
	from, _ := sajou.Open("from", sajou.Config{FS: vfs.NewMem()})
	to, _ := sajou.Open("to", sajou.Config{FS: vfs.NewMem()})
	ses, _ := from.Session(context.Background(), "talk")
	head, _ := ses.Signal(context.Background(), &signal.Signal{ID: "1", Type: "user.wave", Source: "example", Timestamp: signal.Int(1), Payload: signal.NewObject(0).Value()})
	s, _ := server.New(from, server.Config{})
	srv := httptest.NewServer(s)
	defer srv.Close()

	remote, _ := mirror.NewRemote(srv.URL, "", nil)
	sessions, _ := remote.Sessions(context.Background())
	for _, session := range sessions {
		err := remote.Copy(context.Background(), to, session)
		log, _ := to.Log().Session(session.Name)
		fmt.Println(session.Name, err, log.Head() == head)
	}
	fmt.Println(errors.Join(from.Close(), to.Close()))
	// Output:
	// talk <nil> true
	// <nil>
}

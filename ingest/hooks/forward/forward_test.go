package forward_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	dir, err := os.MkdirTemp("", "hooks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	object := strings.NewReader(`{"session_id":"3f2a","hook_event_name":"UserPromptSubmit","prompt":"Any tests?"}`)
	err = forward.Handle(context.Background(), object, forward.Config{
		Dir:    dir,
		Now:    func() time.Time { return time.UnixMilli(1_763_000_000_000) },
		Random: func([]byte) {},
		Dial: func(context.Context, string, string) (io.ReadWriteCloser, error) {
			return nil, errors.New("the server is down")
		},
	})
	fmt.Println(errors.Is(err, forward.ErrWaiting))
	for _, q := range forward.Queues(dir) {
		fmt.Println(q.Items, q.Err)
	}
	// Output:
	// true
	// 1 <nil>
}

// Items that waited while the server was down are delivered first, in order.
func TestWaitsAndFollows(t *testing.T) {
	s := newRecorder(t)
	c := newClient(t, s.URL)
	c.delivered(t, "one")
	s.set(status(503))
	c.waiting(t, "two")
	c.waiting(t, "three")
	s.set(nil)
	c.delivered(t, "four")
	assert.Equal(t, []string{"s one", "s two", "s three", "s four"}, s.list())
	info, err := os.Stat(spoolFile(t, c.Dir))
	require.NoError(t, err)
	assert.Zero(t, info.Size())
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func spoolFile(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "spool-*.jsonl"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

// Random hooks and a server that fails in all ways: every object is recorded once, in
// the order in which the hooks ran.
func TestNothingIsLostOrRepeated(t *testing.T) {
	s := newRecorder(t)
	answers := map[string]func(http.ResponseWriter, *http.Request) bool{
		"up": nil, "busy": status(429, "Retry-After", "7"), "stopping": status(503), "forbidden": status(403), "absent": status(404),
		"moved": status(307, "Location", s.URL), "another": status(200), "page": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "<html>")
			return true
		},
	}
	names := []string{"up", "up", "busy", "stopping", "forbidden", "absent", "moved", "another", "page", "lost"}
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		c := newClient(t, fmt.Sprint(s.URL, "/", round))
		c.Server = s.URL
		c.Session = fmt.Sprint("round-", round)
		before := len(s.list())
		var sent []string
		for i := range rapid.IntRange(1, 12).Draw(rt, "hooks") {
			if answer := rapid.SampledFrom(names).Draw(rt, "answer"); answer == "lost" {
				s.lose()
			} else {
				s.set(answers[answer])
			}
			c.advance(time.Duration(rapid.IntRange(0, 10).Draw(rt, "seconds")) * time.Second)
			text := fmt.Sprint(i)
			_ = c.hook(t, text)
			sent = append(sent, c.Session+" "+text)
		}
		s.set(nil)
		c.advance(time.Hour)
		_, err := forward.Drain(t.Context(), c.Config)
		require.NoError(rt, err)
		require.Equal(rt, sent, s.list()[before:])
	})
}

// Many hooks at once, while the server comes and goes: each object is recorded once.
func TestConcurrentHooks(t *testing.T) {
	s := newRecorder(t)
	var mu sync.Mutex
	n := 0
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		n++
		if n%3 == 0 {
			w.WriteHeader(503)
			return true
		}
		return false
	})
	c := newClient(t, s.URL)
	var all sync.WaitGroup
	const hooks = 60
	for i := range hooks {
		all.Go(func() { _ = c.hook(t, fmt.Sprint(i)) })
	}
	all.Wait()
	s.set(nil)
	_, err := forward.Drain(t.Context(), c.Config)
	require.NoError(t, err)
	list := s.list()
	seen := map[string]bool{}
	for _, o := range list {
		assert.False(t, seen[o], o)
		seen[o] = true
	}
	assert.Len(t, list, hooks)
	assert.Empty(t, c.notes)
}

// An object that the server will never take does not hold up those behind it.
func TestRefused(t *testing.T) {
	for _, code := range []int{400, 410, 413, 415, 422} {
		s := newRecorder(t)
		c := newClient(t, s.URL)
		s.set(status(code))
		c.delivered(t, "bad")
		s.set(nil)
		c.delivered(t, "good")
		assert.Equal(t, []string{"s good"}, s.list())
		require.Len(t, c.notes, 1)
		assert.Contains(t, c.notes[0], fmt.Sprintf(`session "s" with status %d: answered %d`, code, code))
	}
}

// A server that does not answer delays one hook. The next ones leave it alone for a while.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c := newClient(t, "http://"+l.Addr().String())
	c.Deadline = 30 * time.Millisecond
	c.waiting(t, "one")
	c.Dial = func(context.Context, string, string) (io.ReadWriteCloser, error) {
		return nil, errors.New("nobody may dial now")
	}
	err = c.hook(t, "two")
	require.ErrorIs(t, err, forward.ErrWaiting)
	assert.ErrorContains(t, err, "did not answer a while ago")
	c.advance(time.Minute)
	assert.ErrorContains(t, c.hook(t, "three"), "nobody may dial now")
}

// Answers that are none, or have no end.
func TestHostileAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing": "", "text": "hello\n", "no status": "HTTP/1.1 ok\r\n\r\n", "version": "HTTP/2 200\r\n\r\n{\"head\":1}",
		"endless line": "HTTP/1.1 200 " + strings.Repeat("x", 1<<20), "endless headers": "HTTP/1.1 200 OK\r\n" + strings.Repeat("a: b\r\n", 1<<18),
		"cut": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"head\"", "no head": "HTTP/1.1 200 OK\r\n\r\n{}", "length": "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"endless body": "HTTP/1.1 200 OK\r\n\r\n{\"head\":\"" + strings.Repeat("x", 1<<20),
	} {
		c := newClient(t, "http://127.0.0.1:1")
		c.Dial = func(context.Context, string, string) (io.ReadWriteCloser, error) {
			return &scripted{Reader: strings.NewReader(answer)}, nil
		}
		assert.ErrorIs(t, c.hook(t, name), forward.ErrWaiting, name)
	}
}

// scripted is a connection whose other end has a fixed text to say.
type scripted struct {
	io.Reader
	written bytes.Buffer
}

func (s *scripted) Write(p []byte) (int, error) { return s.written.Write(p) }
func (s *scripted) Close() error                { return nil }

// The token goes to no other address than the one that was named, and not over the network in
// plain text. A redirect is not followed.
func TestToken(t *testing.T) {
	other := newRecorder(t)
	s := newRecorder(t)
	c := newClient(t, s.URL)
	c.Token = "secret"
	var got string
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		got = r.Header.Get("Authorization")
		return status(308, "Location", other.URL+r.URL.Path)(w, r)
	})
	c.waiting(t, "one")
	assert.Equal(t, "Bearer secret", got)
	assert.Zero(t, other.requests)
	for _, server := range []string{"http://10.0.0.1:5175", "http://example.com"} {
		c.Server = server
		err := c.hook(t, "two")
		assert.ErrorContains(t, err, "refusing to send the token")
		assert.NotContains(t, err.Error(), "secret")
	}
	for _, server := range []string{"ftp://x", "127.0.0.1:5175", "http://user:pass@127.0.0.1", "http://127.0.0.1/?a=b", "https://127.0.0.1"} {
		c.Server = server
		assert.Error(t, c.hook(t, "three"), server)
	}
}

// A base path and a Unix socket.
func TestAddresses(t *testing.T) {
	var conn *scripted
	var network, address string
	c := newClient(t, "http://[::1]:80/base/")
	c.Session = "a/b ?"
	c.Dial = func(_ context.Context, n, a string) (io.ReadWriteCloser, error) {
		network, address = n, a
		conn = &scripted{Reader: strings.NewReader("HTTP/1.1 200 OK\r\n\r\n{\"head\":{}}")}
		return conn, nil
	}
	c.delivered(t, "one")
	assert.Equal(t, "tcp [::1]:80", network+" "+address)
	assert.Contains(t, conn.written.String(), "POST /base/api/v1/sessions/a%2Fb%20%3F/signals?lenient=true HTTP/1.0\r\nHost: [::1]:80\r\n")
	c.Server = "unix:/run/sajou.sock"
	c.delivered(t, "two")
	assert.Equal(t, "unix /run/sajou.sock", network+" "+address)
}

// The spool is bounded. What it does not take is delivered if the server is there.
func TestSpoolIsBounded(t *testing.T) {
	s := newRecorder(t)
	c := newClient(t, s.URL)
	c.MaxSpool = 3000
	s.set(status(503))
	full := 0
	for i := range 20 {
		if errors.Is(c.hook(t, fmt.Sprint(i)), forward.ErrSpoolFull) {
			full++
		}
	}
	assert.Greater(t, full, 10)
	info, err := os.Stat(spoolFile(t, c.Dir))
	require.NoError(t, err)
	assert.LessOrEqual(t, info.Size(), int64(3000+100))
	s.set(nil)
	_ = c.hook(t, "last")
	assert.Contains(t, s.list(), "s last")
}

// Lines that are not items are skipped and noted; a line that was cut off does not swallow the
// next one; a damaged header delivers all again, which the keys make harmless.
func TestDamagedSpool(t *testing.T) {
	s := newRecorder(t)
	c := newClient(t, s.URL)
	s.set(status(503))
	c.waiting(t, "one")
	path := spoolFile(t, c.Dir)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("\x00\xff not json\n{}\n" + strings.Repeat("x", 21<<20) + "\n" + `{"session":"s","key":"k","sig`)
	require.NoError(t, errors.Join(err, f.Close()))
	c.waiting(t, "two")
	s.set(nil)
	c.delivered(t, "three")
	assert.Equal(t, []string{"s one", "s two", "s three"}, s.list())
	assert.Len(t, c.notes, 4)

	s.set(status(503))
	c.waiting(t, "four")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	copy(text, "sajou-hooks/9")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	s.set(nil)
	c.delivered(t, "five")
	assert.Equal(t, []string{"s four", "s five"}, s.list()[3:])
	require.NoError(t, os.WriteFile(path, []byte("sajou"), 0o600))
	c.delivered(t, "six")
	assert.Equal(t, "s six", s.list()[5])
}

// Without a directory that can be written, an object is delivered at once or not at all.
func TestNoDirectory(t *testing.T) {
	s := newRecorder(t)
	c := newClient(t, s.URL)
	file := filepath.Join(c.Dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	c.Dir = filepath.Join(file, "hooks")
	require.Error(t, c.hook(t, "one"))
	assert.Equal(t, []string{"s one"}, s.list())
	c.Dir = t.TempDir()
	require.NoError(t, os.MkdirAll(c.Dir+"/x", 0o700))
	for _, q := range forward.Queues(c.Dir) {
		t.Fatal(q)
	}
}

// The splits name the session.
func TestSessions(t *testing.T) {
	s := newRecorder(t)
	c := newClient(t, s.URL)
	c.delivered(t, "a")
	c.Split = "day"
	c.delivered(t, "b")
	c.Split = "source"
	c.delivered(t, "c")
	c.Session, c.Split = "", ""
	c.delivered(t, "d")
	c.Split = "week"
	c.delivered(t, "e")
	require.Len(t, c.notes, 1)
	assert.Contains(t, c.notes[0], `no split "week"`)
	assert.Equal(t, []string{"s a", "s.2026-11-23 b", "s.adapter_claude c", "claude.n1 d", "claude.n1 e"}, s.list())
}

package forward_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
)

// recorder is a server that records each key once, in order.
type recorder struct {
	*httptest.Server

	mu       sync.Mutex
	keys     map[string]bool
	recorded []string // session and prompt of each object
	requests int
	answer   func(w http.ResponseWriter, r *http.Request) (done bool) // nil for none
	lost     bool                                                     // it records, and does not say so
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{keys: map[string]bool{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Server.Close)
	return r
}

func (s *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests++
	answer := s.answer
	s.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	var list []struct {
		Type    string `json:"type"`
		Payload struct {
			Description string `json:"description"`
		} `json:"payload"`
	}
	session, ours := strings.CutPrefix(r.URL.Path, "/api/v1/sessions/")
	if err != nil || json.Unmarshal(body, &list) != nil || !ours || path.Base(session) != "signals" || len(list) == 0 {
		http.Error(w, `{"detail":"bad body"}`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := r.Header.Get("Idempotency-Key"); !s.keys[key] {
		s.keys[key] = true
		s.recorded = append(s.recorded, path.Dir(session)+" "+list[0].Payload.Description)
	}
	if s.lost {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, `{"seq":1,"head":{"seq":1,"hash":"00"}}`)
}

// set changes how the server answers.
func (s *recorder) set(answer func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.lost = answer, false
}

// lose makes the server record what comes and end the connection without an answer.
func (s *recorder) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.lost = nil, true
}

func (s *recorder) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.recorded...)
}

func status(code int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"detail":"answered %d"}`, code)
		return true
	}
}

func dial(ctx context.Context, network, address string) (io.ReadWriteCloser, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// named counts the objects of all tests.
var named atomic.Uint64

// client is a hook with a clock of its own.
type client struct {
	forward.Config
	mu    sync.Mutex
	at    time.Time
	notes []string
}

func newClient(t *testing.T, server string) *client {
	t.Helper()
	c := &client{at: time.Date(2026, 11, 23, 23, 0, 0, 0, time.UTC)}
	c.Config = forward.Config{
		Server: server, Session: "s", Dir: t.TempDir(), Deadline: 5 * time.Second, Dial: dial,
		Now: func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.at
		},
		Random: func(b []byte) {
			binary.BigEndian.PutUint64(b, named.Add(1))
		},
		Note: func(err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.notes = append(c.notes, err.Error())
		},
	}
	return c
}

func (c *client) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func prompt(text string) io.Reader {
	return strings.NewReader(fmt.Sprintf(`{"session_id":"n1","hook_event_name":"UserPromptSubmit","prompt":%q}`, text))
}

func (c *client) hook(t *testing.T, text string) error {
	t.Helper()
	return forward.Handle(t.Context(), prompt(text), c.Config)
}

// waiting asserts that an object waits in the spool.
func (c *client) waiting(t *testing.T, text string) {
	t.Helper()
	assert.ErrorIs(t, c.hook(t, text), forward.ErrWaiting)
}

func (c *client) delivered(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, c.hook(t, text))
}

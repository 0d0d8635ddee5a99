package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/session"
)

// Record takes what an emitter sends, ids that repeat included, and its session can be
// verified and recorded into again.
func TestRecord(t *testing.T) {
	emitter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		err = conn.Write(r.Context(), websocket.MessageText, []byte(`{"meta":"scenarios","available":[]}`))
		for n := 0; err == nil; n++ {
			err = conn.Write(r.Context(), websocket.MessageText, fmt.Appendf(nil, `{"id":"sig-%04d","type":"note","timestamp":%d,"source":"adapter:emitter","payload":{}}`, n%3, 1000+n))
		}
	}))
	defer emitter.Close()
	store := filepath.Join(t.TempDir(), "store")
	url := "ws" + strings.TrimPrefix(emitter.URL, "http")
	for n := range 2 {
		r := sajouReplay(t.Context(), t, nil, "-C", store, "record", url, "--max", "10", "-o", "jsonl")
		require.Zero(t, r.code, r.stderr)
		assert.Equal(t, `{"session":"live","signals":10,"meta":1,"unreadable":0,"connections":1}`+"\n", r.stdout)
		r = sajouReplay(t.Context(), t, nil, "-C", store, "verify", "live")
		require.Zero(t, r.code, r.stderr)
		assert.Contains(t, r.stdout, fmt.Sprintf("%d entries", 1+10*(n+1)))
	}
	r := sajouReplay(t.Context(), t, nil, "-C", store, "record", "ftp://x")
	assert.Equal(t, 2, r.code)
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	r = sajouReplay(t.Context(), t, nil, "-C", store, "record", gone.URL)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "404 Not Found")
}

// Of the signals of one packet, record takes as many as --max says and no more.
func TestRecordMax(t *testing.T) {
	url, _ := stream(t, strings.Split(strings.Repeat(`{"type":"note"} `, 200), " ")[:200]...)
	store := filepath.Join(t.TempDir(), "store")
	for n := range 8 {
		r := sajouReplay(t.Context(), t, nil, "-C", store, "-s", fmt.Sprint("run-", n), "record", url, "--max", "1", "-o", "jsonl")
		require.Zero(t, r.code, r.stderr)
		assert.Equal(t, fmt.Sprintf(`{"session":"run-%d","signals":1,"meta":0,"unreadable":0,"connections":1}`+"\n", n), r.stdout)
	}
}

// stream is a source of lines. It sends some, then waits for a request to continue.
func stream(t *testing.T, lines ...string) (url string, sent <-chan struct{}) {
	t.Helper()
	all := make(chan struct{}, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, line := range lines {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", line); err != nil {
				return
			}
		}
		if http.NewResponseController(w).Flush() == nil {
			all <- struct{}{}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, all
}

// What is not JSON becomes an error signal, JSON without a type an event.
func TestRecordWhatIsNoSignal(t *testing.T) {
	url, _ := stream(t, `{"type":"note","payload":{"n":1}}`, `half of {"a`, `[1,2]`)
	store := filepath.Join(t.TempDir(), "store")
	r := sajouReplay(t.Context(), t, nil, "-C", store, "record", url, "--max", "3", "-o", "jsonl")
	require.Zero(t, r.code, r.stderr)
	assert.Equal(t, `{"session":"live","signals":3,"meta":0,"unreadable":1,"connections":1}`+"\n", r.stdout)
	r = sajouReplay(t.Context(), t, nil, "-C", store, "cat", "live", "--kind", "signal", "-o", "jsonl")
	require.Zero(t, r.code, r.stderr)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 3)
	assert.Contains(t, lines[0], `"payload":{"n":1}`)
	assert.Contains(t, lines[1], `"type":"error"`)
	assert.Contains(t, lines[1], `half of {\"a`)
	assert.Contains(t, lines[2], `"type":"event"`)
	assert.Contains(t, lines[2], `[1,2]`)
}

// The recording ends after its time, whatever the source does then, with exit code 0.
func TestRecordFor(t *testing.T) {
	url, _ := stream(t)
	r := sajouReplay(t.Context(), t, nil, "-C", filepath.Join(t.TempDir(), "store"), "record", url, "--for", "20ms")
	assert.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stdout, `recorded 0 signals into "live"`)
}

// An interrupt ends the recording, and what came before it is kept.
func TestRecordInterrupted(t *testing.T) {
	url, sent := stream(t, `{"type":"note"}`, `{"type":"note"}`)
	store := filepath.Join(t.TempDir(), "store")
	r := sajouReplay(t.Context(), t, nil, "-C", store, "record", url, "--max", "2")
	require.Zero(t, r.code, r.stderr)
	<-sent
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan result, 1)
	go func() { done <- sajouReplay(ctx, t, nil, "-C", store, "record", url) }()
	<-sent
	interrupt() // perhaps before the second lines were read
	interrupted := <-done
	assert.Zero(t, interrupted.code, interrupted.stderr)
	r = sajouReplay(t.Context(), t, nil, "-C", store, "cat", "live", "--kind", "signal", "-o", "jsonl")
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, interrupted.stdout, fmt.Sprintf("recorded %d signal", strings.Count(r.stdout, "\n")-2))
	r = sajouReplay(t.Context(), t, nil, "-C", store, "verify", "live")
	assert.Zero(t, r.code, r.stderr)
}

// With --server the signals go to a server that holds the store.
func TestRecordToAServer(t *testing.T) {
	engine, err := sajou.Open(filepath.Join(t.TempDir(), "store"), sajou.Config{})
	require.NoError(t, err)
	defer func() { _ = engine.Close() }()
	s, err := server.New(engine, server.Config{})
	require.NoError(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, tcp) }()
	url, _ := stream(t, `{"type":"tool_call","payload":{"n":1}}`, `{"type":"note","payload":{"n":2}}`) // the schema refuses the first
	r := sajouReplay(t.Context(), t, nil, "-s", "far", "record", url, "--server", "http://"+tcp.Addr().String(), "--max", "2")
	assert.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stdout, `recorded 2 signals into "far"`)
	travel, err := engine.Replay("far")
	require.NoError(t, err)
	last, err := travel.Entry(t.Context(), travel.Head().Seq)
	require.NoError(t, err)
	sig, err := session.SignalOf(&last)
	require.NoError(t, err)
	assert.JSONEq(t, `{"n":2}`, string(sig.Payload.AppendJSON(nil)))
	stop()
	require.NoError(t, <-served)
}

// SAJOU_SERVER is the server if no store is named, and the count is honest when it takes
// nothing.
func TestRecordToTheServerOfTheEnvironment(t *testing.T) {
	taken := 0
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		taken++
		w.WriteHeader(http.StatusGone)
	}))
	defer far.Close()
	t.Setenv("SAJOU_SERVER", far.URL)
	url, _ := stream(t, `{"type":"note"}`, `{"type":"note"}`)
	r := sajouReplay(t.Context(), t, nil, "record", url, "--max", "2")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stdout, `recorded 0 signals into "live"; 2 signals were read and not recorded`)
	assert.Contains(t, r.stderr, "410")
	assert.Equal(t, 1, taken)
	store := filepath.Join(t.TempDir(), "store")
	r = sajouReplay(t.Context(), t, nil, "-C", store, "record", url, "--max", "2")
	assert.Zero(t, r.code, r.stderr)
	assert.Equal(t, 1, taken)
	r = sajouReplay(t.Context(), t, nil, "-C", store, "record", url, "--server", far.URL)
	assert.Equal(t, 2, r.code, r.stderr)
	r = sajouReplay(t.Context(), t, nil, "record", url, "--server", "notaurl")
	assert.Equal(t, 2, r.code, r.stderr)
}

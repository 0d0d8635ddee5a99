package watch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/watch"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hall is a server of watchers over one session of manual time.
type hall struct {
	t        *testing.T
	engine   *sajou.Engine
	ses      *sajou.Session
	url      string
	stopping chan struct{}
	at       int64 // milliseconds of the last signal
	recorded int   // signals
}

// open opens a hall. New entries are shown at once.
func open(t *testing.T, cfg watch.Config) *hall {
	t.Helper()
	engine, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	ses, err := engine.Begin(t.Context(), "s", session.TimeManual)
	require.NoError(t, err)
	if cfg.AfterFunc == nil {
		cfg.AfterFunc = func(d time.Duration, f func()) func() bool {
			if d > 50*time.Millisecond { // only the pause before new entries ends
				return func() bool { return true }
			}
			go f()
			return func() bool { return false }
		}
	}
	h := &hall{t: t, engine: engine, ses: ses, stopping: make(chan struct{})}
	mux := http.NewServeMux()
	for _, e := range watch.New(engine, cfg).Routes() {
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := e.Handler(w, r.WithContext(route.WithStopping(r.Context(), h.stopping))); err != nil {
				http.Error(w, err.Error(), http.StatusTeapot)
			}
		})
	}
	srv := httptest.NewServer(mux)
	h.url = srv.URL + "/api/v1/sessions/s/live"
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		assert.NoError(t, engine.Close())
	})
	return h
}

// record appends signals of a type.
func (h *hall) record(typ string, n int) {
	h.t.Helper()
	var list []*signal.Signal
	for range n {
		h.at += 100
		h.recorded++
		s, err := signal.Parse(fmt.Appendf(nil, `{"id":"i%d","type":%q,"timestamp":%d,"source":"t","payload":{}}`, h.recorded, typ, h.at))
		require.NoError(h.t, err)
		list = append(list, s)
	}
	_, err := h.ses.Record(h.t.Context(), sajou.Addition{Signals: list})
	require.NoError(h.t, err)
}

// message is one event of a stream, or an id without data.
type message struct{ id, data string }

// events reads the events of a stream, and its comments.
type events struct {
	t    *testing.T
	scan *bufio.Scanner
	body io.Closer
}

// watch asks for a stream. Last is the id of the last event, or "".
func (h *hall) watch(query, last string) *events {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+query, nil)
	require.NoError(h.t, err)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = res.Body.Close() })
	require.Equal(h.t, http.StatusOK, res.StatusCode)
	require.Equal(h.t, "text/event-stream", res.Header.Get("Content-Type"))
	scan := bufio.NewScanner(res.Body)
	scan.Buffer(nil, 1<<20)
	require.True(h.t, scan.Scan())
	require.Equal(h.t, ": connected", scan.Text())
	return &events{h.t, scan, res.Body}
}

// position returns the id without data that comes next.
func (e *events) position() string {
	e.t.Helper()
	for e.scan.Scan() {
		if id, is := strings.CutPrefix(e.scan.Text(), "id: "); is {
			require.True(e.t, e.scan.Scan())
			require.Empty(e.t, e.scan.Text())
			return id
		}
	}
	require.Fail(e.t, "the stream ended")
	return ""
}

// next returns the next event; false at the end of the stream.
func (e *events) next() (m message, ok bool) {
	for e.scan.Scan() {
		line := e.scan.Text()
		if id, is := strings.CutPrefix(line, "id: "); is {
			m.id = id
		}
		if data, is := strings.CutPrefix(line, "data: "); is {
			m.data = data
			return m, true
		}
	}
	return m, false
}

// take returns the next n events.
func (e *events) take(n int) []message {
	e.t.Helper()
	list := make([]message, n)
	for i := range list {
		var ok bool
		list[i], ok = e.next()
		require.True(e.t, ok, "the stream ended after %d of %d events: %v", i, n, e.scan.Err())
	}
	return list
}

// seqs returns the ids of events as numbers.
func seqs(t *testing.T, list []message) []int {
	t.Helper()
	out := make([]int, len(list))
	for i, m := range list {
		n, err := strconv.Atoi(m.id)
		require.NoError(t, err)
		var entry struct{ Seq int }
		require.NoError(t, json.Unmarshal([]byte(m.data), &entry))
		require.Equal(t, n, entry.Seq)
		out[i] = n
	}
	return out
}

func upTo(from, to int) []int {
	var list []int
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

// Every watcher sees every entry once and in order, wherever it begins: also one that is
// further behind than the entries that are kept for all.
func TestEveryEntryInOrder(t *testing.T) {
	h := open(t, watch.Config{})
	h.record("note", 10)
	live := h.watch("", "")
	past := h.watch("?from=1", "")
	again := h.watch("", "4")
	h.record("note", 3000)
	assert.Equal(t, upTo(12, 3011), seqs(t, live.take(3000)))
	assert.Equal(t, upTo(1, 3011), seqs(t, past.take(3011)))
	assert.Equal(t, upTo(5, 3011), seqs(t, again.take(3007)))
	late := h.watch("?from=2", "")
	h.record("note", 1)
	assert.Equal(t, upTo(2, 3012), seqs(t, late.take(3011)))
	assert.Equal(t, []int{3012}, seqs(t, live.take(1)))
}

func TestFilters(t *testing.T) {
	h := open(t, watch.Config{})
	odd := h.watch("?from=1&type=odd", "")
	h.record("even", 1)
	h.record("odd", 1)
	h.record("even", 1200)
	h.record("odd", 1)
	assert.Equal(t, []int{3, 1204}, seqs(t, odd.take(2)))
	opened := h.watch("?from=1&kind=session", "")
	assert.Equal(t, []int{1}, seqs(t, opened.take(1)))
}

// A watcher that connects again after any command gets the commands behind it, wherever
// its feed began: at the beginning, in mid-performance, or between entries of one instant.
func TestCommandsGoOn(t *testing.T) {
	h := open(t, watch.Config{})
	text, err := os.ReadFile("testdata/walk.json")
	require.NoError(t, err)
	_, err = h.ses.Define(t.Context(), declarations(t, text)...)
	require.NoError(t, err)
	h.record("go", 3)
	h.at -= 100
	h.record("go", 2) // the first at the time of the one before it
	h.record("note", 20)
	next := func(stream *events) message {
		for {
			m, ok := stream.next()
			require.True(t, ok)
			if !strings.Contains(m.data, `"update"`) {
				return m
			}
		}
	}
	const last = `{"t":650,"kind":"execute","performance":"p-7-1","action":"destroy","entityRef":"scout","params":{}}`
	for from := range 10 {
		var commands []message
		stream := h.watch(fmt.Sprintf("?feed=commands&rate=1&from=%d", from), "")
		for len(commands) == 0 || commands[len(commands)-1].data != last {
			commands = append(commands, next(stream))
		}
		for i, had := range commands {
			stream := h.watch("?feed=commands&rate=1", had.id)
			for _, want := range commands[i+1:] {
				assert.Equal(t, want, next(stream), "from %d, after %s", from, had.id)
			}
		}
	}
}

func declarations(t *testing.T, text []byte) []language.Declaration {
	t.Helper()
	list, diagnostics := language.Parse("walk.json", text)
	require.Empty(t, diagnostics)
	return list
}

func TestFramesAndBoard(t *testing.T) {
	h := open(t, watch.Config{})
	h.record("note", 1)
	frame, ok := h.watch("?feed=frames", "").next()
	require.True(t, ok)
	assert.Contains(t, frame.data, `"figures"`)
	board, ok := h.watch("?feed=board", "").next()
	require.True(t, ok)
	assert.Equal(t, "[]", board.data)
}

// When the server stops, a watcher gets what is acknowledged, and the stream ends.
func TestStop(t *testing.T) {
	h := open(t, watch.Config{AfterFunc: func(time.Duration, func()) func() bool { // nothing is shown in time
		return func() bool { return true }
	}})
	live := h.watch("", "")
	h.record("note", 5)
	close(h.stopping)
	assert.Equal(t, upTo(1, 6), seqs(t, live.take(6)))
	_, ok := live.next()
	assert.False(t, ok)
	assert.NoError(t, live.scan.Err())
}

// A watcher that has got no event continues where its feed began, or where the server stopped.
func TestWatcherWithoutEventsGoesOn(t *testing.T) {
	h := open(t, watch.Config{})
	empty := h.watch("", "").position()
	assert.Equal(t, "0", empty)
	h.record("note", 3)
	assert.Equal(t, upTo(1, 4), seqs(t, h.watch("", empty).take(4)))
	assert.Equal(t, "4", h.watch("", "").position())
	assert.Equal(t, "2", h.watch("?from=3", "").position())
	assert.Equal(t, "3", h.watch("", "3").position())
	assert.Equal(t, "4", h.watch("", "99").position(), "an id of another store")
	filtered := h.watch("?type=odd", "")
	assert.Equal(t, "4", filtered.position())
	h.record("note", 2)

	text, err := os.ReadFile("testdata/walk.json")
	require.NoError(t, err)
	_, err = h.ses.Define(t.Context(), declarations(t, text)...)
	require.NoError(t, err)
	behind := h.watch("?feed=commands&rate=1", "").position()
	assert.Equal(t, "e7.0", behind)
	h.record("go", 1)
	h.record("note", 20)
	for _, last := range []string{behind, h.watch("?feed=commands&rate=1", behind).position()} {
		command, ok := h.watch("?feed=commands&rate=1", last).next()
		require.True(t, ok)
		assert.Contains(t, command.data, `"performance":"p-8-1"`)
	}
	close(h.stopping)
	assert.Equal(t, "28", filtered.position())
}

func TestSocket(t *testing.T) {
	h := open(t, watch.Config{})
	h.record("note", 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn, res, err := websocket.Dial(ctx, h.url+"/ws?after=2", nil)
	require.NoError(t, err)
	if res.Body != nil {
		defer res.Body.Close()
	}
	defer func() { _ = conn.CloseNow() }()
	_, text, err := conn.Read(ctx)
	require.NoError(t, err)
	assert.Equal(t, `{"id":"2"}`, string(text))
	h.record("note", 1)
	for seq := 3; seq <= 5; seq++ {
		_, text, err := conn.Read(ctx)
		require.NoError(t, err)
		var m struct {
			ID   string
			Data struct{ Seq int }
		}
		require.NoError(t, json.Unmarshal(text, &m))
		assert.Equal(t, seq, m.Data.Seq)
		assert.Equal(t, strconv.Itoa(seq), m.ID)
	}
	close(h.stopping)
	_, text, err = conn.Read(ctx)
	require.NoError(t, err)
	assert.Equal(t, `{"id":"5"}`, string(text))
	_, _, err = conn.Read(ctx)
	assert.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err))
}

// A watcher that takes nothing delays neither the writer nor another watcher, and loses
// its connection.
func TestStalledWatcher(t *testing.T) {
	var mu sync.Mutex
	expired := false            // the clock has passed the bound of every write
	stalls := map[*int]func(){} // the bounds of the writes under way
	h := open(t, watch.Config{Stall: time.Hour, AfterFunc: func(d time.Duration, f func()) func() bool {
		if d <= 50*time.Millisecond {
			go f()
		}
		if d != time.Hour {
			return func() bool { return true }
		}
		mu.Lock()
		defer mu.Unlock()
		key := new(int)
		stalls[key] = f
		if expired {
			go f()
		}
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			delete(stalls, key)
			return true
		}
	}})
	address := strings.TrimPrefix(h.url[:strings.Index(h.url, "/api")], "http://")
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /api/v1/sessions/s/live?from=1 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	live := h.watch("?from=1", "")
	h.at = 0
	for range 40 {
		h.record(strings.Repeat("long", 1000), 250) // more than the buffers of a connection hold
	}
	assert.Len(t, live.take(10_001), 10_001)
	mu.Lock()
	expired = true
	for _, f := range stalls {
		go f()
	}
	mu.Unlock()
	_, err = io.Copy(io.Discard, conn)
	assert.NoError(t, err, "the connection ends")
}

func TestRefusedWishes(t *testing.T) {
	h := open(t, watch.Config{})
	for query, want := range map[string]string{
		"?feed=sounds":             "must be entries, commands, frames or board",
		"?from=x":                  "must be the number of an entry",
		"?from=99":                 "the session has 0 entries",
		"?rate=0&feed=frames":      "must be a whole number from 1 to 60",
		"?kind=odd":                "must be one of signal",
		"?feed=frames&type=a":      "select entries",
		"?colour=red":              "there is no parameter",
		"?feed=commands&after=1.x": "", // after belongs to the WebSocket
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+query, nil)
		require.NoError(t, err)
		if want == "" {
			req.Header.Set("Last-Event-ID", "1.x")
			want = "is not an id of the feed commands"
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, http.StatusTeapot, res.StatusCode, query)
		assert.Contains(t, string(body), want, query)
	}
}

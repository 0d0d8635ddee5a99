package record_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/record"
)

const signalsPath = "/api/v1/sessions/run-7/signals"

const ndjson = "application/x-ndjson"

func TestPostOneAndMany(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	status, header, body := d.do("POST", signalsPath, toolCall("a"))
	require.Equal(t, 200, status, body)
	ses, err := d.engine.Session(t.Context(), "run-7")
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf(`{"session":"run-7","first":1,"head":{"seq":2,"hash":"%v"},"signals":1,"flagged":0,"out_of_order":0,"repeat":false}`, ses.Head().Hash), body)
	assert.Equal(t, `"`+ses.Head().String()+`"`, header.Get("ETag"))

	status, header, body = d.do("POST", signalsPath, "["+toolCall("b")+",\n"+toolCall("c")+"]", "If-Match", header.Get("ETag"))
	require.Equal(t, 200, status, body)
	assert.InDelta(t, 4, member(t, body, "head", "seq"), 0)

	// The head that is expected is that of before.
	status, _, body = d.do("POST", signalsPath+"?expect=2:"+strings.Repeat("0", 64), toolCall("d"))
	assert.Equal(t, 409, status)
	assert.Equal(t, "conflict", member(t, body, "code"))
	assert.Equal(t, header.Get("ETag"), fmt.Sprintf(`"%v:%v"`, member(t, body, "head", "seq"), member(t, body, "head", "hash")))

	// All or none.
	status, _, body = d.do("POST", signalsPath, `[`+toolCall("d")+`,{"id":"e","type":"tool_call","timestamp":1,"source":"s","payload":{}}]`)
	assert.Equal(t, 422, status)
	assert.Equal(t, "/1/payload/toolName", member(t, body, "pointer"))
	assert.InDelta(t, 1, member(t, body, "index"), 0)
	assert.Len(t, d.signals("run-7"), 3)

	// Leniently it is recorded.
	status, _, body = d.do("POST", signalsPath+"?lenient=1", `[`+toolCall("d")+`,{"id":"e","type":"tool_call","timestamp":1,"source":"s","payload":{}}]`)
	assert.Equal(t, 200, status, body)
	assert.InDelta(t, 1, member(t, body, "flagged"), 0)
	assert.InDelta(t, 1, member(t, body, "out_of_order"), 0)
}

// A receipt has few headers: it holds nothing that a browser could run. A refusal can have
// texts of the request.
func TestHeaderOfAReceipt(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	names := func(h http.Header) []string { return slices.Sorted(maps.Keys(h)) }
	status, header, body := d.do("POST", signalsPath, toolCall("a"))
	require.Equal(t, 200, status, body)
	assert.Equal(t, []string{"Content-Length", "Content-Type", "Date", "Etag", "X-Content-Type-Options"}, names(header))
	status, header, body = d.do("POST", signalsPath, `{"id":"<script>"}`)
	require.Equal(t, 422, status, body)
	assert.Equal(t, []string{
		"Cache-Control", "Content-Length", "Content-Security-Policy", "Content-Type", "Cross-Origin-Resource-Policy", "Date", "Referrer-Policy", "Vary", "X-Content-Type-Options",
	}, names(header))
}

func TestIdempotencyKey(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	status, _, first := d.do("POST", signalsPath, toolCall("a"), "Idempotency-Key", "k-1")
	require.Equal(t, 200, status, first)
	d.do("POST", signalsPath, toolCall("b"))
	status, _, again := d.do("POST", signalsPath, toolCall("a"), "Idempotency-Key", "k-1")
	require.Equal(t, 200, status, again)
	assert.Equal(t, true, member(t, again, "repeat"))
	assert.Equal(t, member(t, first, "head"), member(t, again, "head"))
	assert.Len(t, d.signals("run-7"), 2)

	// The receipt is that of what was recorded, whatever is sent again.
	for _, body := range []string{`[` + toolCall("x") + `,` + toolCall("y") + `]`, `{"type":"tool_call"}`} {
		status, _, again = d.do("POST", signalsPath+"?lenient=true", body, "Idempotency-Key", "k-1")
		require.Equal(t, 200, status, again)
		assert.Equal(t, strings.Replace(first, `"repeat":false`, `"repeat":true`, 1), again)
	}
	_, _, flagged := d.do("POST", signalsPath+"?lenient=true", `[{"type":"tool_call"},`+toolCall("c")+`]`, "Idempotency-Key", "k-2")
	_, _, again = d.do("POST", signalsPath, toolCall("d"), "Idempotency-Key", "k-2")
	assert.Equal(t, strings.Replace(flagged, `"repeat":false`, `"repeat":true`, 1), again)
	assert.Len(t, d.signals("run-7"), 4)
	status, _, _ = d.do("POST", signalsPath, toolCall("a"), "Idempotency-Key", strings.Repeat("k", 300))
	assert.Equal(t, 400, status)
}

// A timestamp that the time of the session does not take is named by its place.
func TestPlaceOfATimestamp(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	ahead := `{"id":"a","type":"x","timestamp":4000000000000,"source":"s","payload":{}}`
	_, _, body := d.do("POST", signalsPath, ahead)
	assert.Equal(t, "/timestamp", member(t, body, "pointer"))
	_, _, body = d.do("POST", signalsPath, `[`+toolCall("a")+`,`+ahead+`]`)
	assert.Equal(t, "/1/timestamp", member(t, body, "pointer"))
	_, _, body = d.do("POST", signalsPath, toolCall("a")+"\n"+ahead, "Content-Type", "application/x-ndjson")
	assert.Equal(t, "/timestamp", member(t, body, "pointer"))
	assert.InDelta(t, 2, member(t, body, "line"), 0)
	c := d.dial(signalsPath+"/ws", record.Subprotocol)
	receive(t, c)
	send(t, c, `{"n":1,"signal":`+ahead+`}`)
	assert.Contains(t, receive(t, c), `"pointer":"/signal/timestamp"`)
}

func TestBadRequests(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{MaxBody: 4096})
	for _, c := range []struct {
		name, path, body string
		header           []string
		status           int
		code             string
	}{
		{"no JSON", signalsPath, `{"id"`, nil, 400, "bad-request"},
		{"no body", signalsPath, ``, nil, 400, "bad-request"},
		{"no signal", signalsPath, `5`, nil, 422, "invalid"},
		{"an empty array", signalsPath, `[]`, nil, 422, "invalid"},
		{"a number that cannot be kept", signalsPath, `{"id":"a","type":"x","timestamp":123456789012345678901234567890,"source":"s","payload":{}}`, nil, 400, "bad-request"},
		{"far ahead", signalsPath, `{"id":"a","type":"x","timestamp":4000000000000,"source":"s","payload":{}}`, nil, 422, "invalid"},
		{"too long", signalsPath, toolCall(strings.Repeat("x", 5000)), nil, 413, "too-large"},
		{"another media type", signalsPath, toolCall("a"), []string{"Content-Type", "application/msgpack"}, 415, "unsupported-media-type"},
		{"another coding", signalsPath, toolCall("a"), []string{"Content-Encoding", "br"}, 415, "unsupported-media-type"},
		{"no gzip", signalsPath, toolCall("a"), []string{"Content-Encoding", "gzip"}, 400, "bad-request"},
		{"no zstd", signalsPath, toolCall("a"), []string{"Content-Encoding", "zstd"}, 400, "bad-request"},
		{"no head", signalsPath + "?expect=x", toolCall("a"), nil, 400, "bad-request"},
		{"a guard that is misspelled", signalsPath + "?expct=1:" + strings.Repeat("0", 64), toolCall("a"), nil, 400, "bad-request"},
		{"a query that cannot be read", signalsPath + "?expect=%zz", toolCall("a"), nil, 400, "bad-request"},
		{"a weak tag", signalsPath, toolCall("a"), []string{"If-Match", "*"}, 400, "bad-request"},
		{"no truth", signalsPath + "?lenient=maybe", toolCall("a"), nil, 400, "bad-request"},
		{"a name with a line break", "/api/v1/sessions/a%0Ab/signals", toolCall("a"), nil, 422, "invalid"},
		{"no WebSocket", "/api/v1/sessions/a/signals/ws", "", nil, 405, "method-not-allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, body := d.do("POST", c.path, c.body, c.header...)
			assert.Equal(t, c.status, status, body)
			assert.Equal(t, c.code, member(t, body, "code"))
		})
	}
	status, _, body := d.do("GET", wsPath+"?expect=0:", "", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	assert.Equal(t, 400, status)
	assert.Contains(t, body, `there is no parameter \"expect\"; the request takes client, lenient`)
	names, err := d.engine.Sessions()
	require.NoError(t, err)
	assert.Empty(t, names)
}

func gzipped(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

// Bodies are expanded within bounds.
func TestCodings(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{MaxBody: 1 << 20, MaxExpanded: 1 << 20})
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer z.Close()
	status, _, body := d.do("POST", signalsPath, gzipped(t, []byte(toolCall("a"))), "Content-Encoding", "gzip")
	assert.Equal(t, 200, status, body)
	status, _, body = d.do("POST", signalsPath, string(z.EncodeAll([]byte(toolCall("b")), nil)), "Content-Encoding", "zstd")
	assert.Equal(t, 200, status, body)
	status, _, body = d.do("POST", signalsPath, gzipped(t, []byte(toolCall("c")+"\n"+toolCall("d"))), "Content-Encoding", "gzip", "Content-Type", ndjson)
	assert.Equal(t, 200, status, body)
	assert.Len(t, d.signals("run-7"), 4)

	bomb := bytes.Repeat([]byte{' '}, 16<<20)
	for _, media := range []string{"application/json", ndjson} {
		status, _, body = d.do("POST", signalsPath, gzipped(t, bomb), "Content-Encoding", "gzip", "Content-Type", media)
		assert.Equal(t, 413, status, body)
		status, _, body = d.do("POST", signalsPath, string(z.EncodeAll(bomb, nil)), "Content-Encoding", "zstd", "Content-Type", media)
		assert.Equal(t, 413, status, body)
	}
	damaged := gzipped(t, []byte(toolCall("e")))
	status, _, body = d.do("POST", signalsPath, damaged[:len(damaged)-6], "Content-Encoding", "gzip")
	assert.Equal(t, 400, status, body)
	assert.Len(t, d.signals("run-7"), 4)
}

// A stream of lines is recorded up to its fault, and the answer tells how far.
func TestLinesUpToAFault(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	lines := make([]string, 0, 2503)
	for i := range 2500 {
		lines = append(lines, toolCall(itoa(i)))
	}
	text := "\xef\xbb\xbf" + strings.Join(lines[:1200], "\n") + "\r\n\n" + strings.Join(lines[1200:], "\n")
	status, _, body := d.do("POST", signalsPath, text, "Content-Type", ndjson)
	require.Equal(t, 200, status, body)
	assert.InDelta(t, 2500, member(t, body, "signals"), 0)
	assert.Equal(t, lines, d.signals("run-7"))

	for _, c := range []struct {
		name, line string
		status     int
		detail     string
	}{
		{"no JSON", `{"id"`, 400, "line 1101: "},
		{"refused by the schema", `{"id":"x","type":"tool_call","timestamp":1,"source":"s","payload":{}}`, 422, "line 1101: "},
		{"refused by the log", `{"id":"x","type":"x","timestamp":4000000000000,"source":"s","payload":{}}`, 422, "line 1101: "},
		{"too long", strings.Repeat("x", 5<<20), 413, "line 1101: "},
		{"too long for an entry", toolCall(strings.Repeat("x", 2<<20)), 413, "line 1101: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := strings.ReplaceAll(c.name, " ", "-")
			text := strings.Join(lines[:1100], "\n") + "\n" + c.line + "\n" + strings.Join(lines[1100:], "\n")
			status, _, body := d.do("POST", "/api/v1/sessions/"+session+"/signals", text, "Content-Type", ndjson)
			assert.Equal(t, c.status, status, body)
			assert.Contains(t, member(t, body, "detail"), c.detail)
			assert.InDelta(t, 1101, member(t, body, "line"), 0)
			assert.InDelta(t, 1100, member(t, body, "recorded", "signals"), 0)
			assert.Equal(t, lines[:1100], d.signals(session))
		})
	}
}

// Of two faults the earlier one counts, also if the log finds it while the line of the
// later one is read.
func TestTheFirstFaultCounts(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	var lines []string
	for i := range 1500 {
		lines = append(lines, toolCall(itoa(i)))
	}
	lines[900] = `{"id":"x","type":"x","timestamp":4000000000000,"source":"s","payload":{}}`
	for key, recorded := range map[string]int{"": 900, "upload": 0} {
		path := "/api/v1/sessions/with-key-" + key + "/signals"
		status, _, body := d.do("POST", path, strings.Join(lines, "\n")+"\n{", "Content-Type", ndjson, "Idempotency-Key", key)
		assert.Equal(t, 422, status, body)
		assert.InDelta(t, 901, member(t, body, "line"), 0)
		assert.InDelta(t, recorded, member(t, body, "recorded", "signals"), 0)
		assert.Len(t, d.signals("with-key-"+key), recorded)
	}
}

// With a key, a stream that broke is sent again as a whole, and each line is recorded once.
func TestLinesAreRepeated(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	var lines []string
	for i := range 2500 {
		lines = append(lines, toolCall(itoa(i)))
	}
	broken := strings.Join(lines[:1500], "\n") + "\n{"
	status, _, body := d.do("POST", signalsPath, broken, "Content-Type", ndjson, "Idempotency-Key", "upload")
	require.Equal(t, 400, status, body)
	assert.InDelta(t, 1000, member(t, body, "recorded", "signals"), 0)
	status, _, body = d.do("POST", signalsPath, strings.Join(lines, "\n"), "Content-Type", ndjson, "Idempotency-Key", "upload")
	require.Equal(t, 200, status, body)
	assert.Equal(t, false, member(t, body, "repeat"))
	assert.Equal(t, lines, d.signals("run-7"))
	status, _, body = d.do("POST", signalsPath, strings.Join(lines, "\n"), "Content-Type", ndjson, "Idempotency-Key", "upload")
	require.Equal(t, 200, status, body)
	assert.Equal(t, true, member(t, body, "repeat"))
	assert.Equal(t, lines, d.signals("run-7"))
}

// The lines of a stream that have arrived are recorded before the others come. A sender that stalls,
// and a server that stops, end the stream with what was recorded.
func TestLinesAreRecordedAsTheyArrive(t *testing.T) {
	for _, stop := range []bool{false, true} {
		stalls := make(chan func(), 64)
		cfg := record.Config{Stall: 7 * time.Second, AfterFunc: func(after time.Duration, f func()) func() bool {
			if after == 7*time.Second {
				stalls <- f
			}
			return func() bool { return false }
		}}
		d := open(t, sajou.Config{}, cfg)
		body, feed := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+d.addr+signalsPath, body)
		require.NoError(t, err)
		req.Header.Set("Content-Type", ndjson)
		type answer struct {
			status int
			body   string
		}
		answers := make(chan answer, 1)
		go func() {
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				answers <- answer{0, err.Error()}
				return
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			answers <- answer{res.StatusCode, string(text)}
		}()
		_, err = io.WriteString(feed, toolCall("a")+"\n"+toolCall("b")+"\n{")
		require.NoError(t, err)
		ses, err := d.engine.Session(t.Context(), "run-7")
		require.NoError(t, err)
		seen := 0
		for e, err := range ses.Subscribe(t.Context(), 1) {
			require.NoError(t, err)
			if seen = int(e.Seq); seen == 3 {
				break
			}
		}
		if stop {
			go d.stop()
		} else {
			var last func()
			for last == nil || len(stalls) > 0 {
				last = <-stalls
			}
			last()
		}
		got := <-answers
		_ = feed.Close()
		if stop {
			assert.Equal(t, 503, got.status, got.body)
			assert.Equal(t, "stopping", member(t, got.body, "code"))
		} else {
			assert.Equal(t, 408, got.status, got.body)
		}
		assert.InDelta(t, 2, member(t, got.body, "recorded", "signals"), 0)
	}
}

// lineStream is a request of lines that are sent as the test says. AfterFunc of the server
// puts what it is given for the stall of a sender into stalls.
type lineStream struct {
	*door
	feed    *io.PipeWriter
	answers <-chan string // the status and the body of the answer
	stalls  <-chan func()
}

func openLines(t *testing.T, disk vfs.FS) *lineStream {
	t.Helper()
	stalls := make(chan func(), 64)
	d := open(t, sajou.Config{FS: disk}, record.Config{Stall: 7 * time.Second, AfterFunc: func(after time.Duration, f func()) func() bool {
		if after == 7*time.Second {
			stalls <- f
		}
		return func() bool { return true }
	}})
	body, feed := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+d.addr+signalsPath, body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", ndjson)
	answers := make(chan string, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			answers <- err.Error()
			return
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		answers <- fmt.Sprint(res.StatusCode, " ", string(text))
	}()
	return &lineStream{d, feed, answers, stalls}
}

func (l *lineStream) send(text string) {
	l.t.Helper()
	_, err := io.WriteString(l.feed, text)
	require.NoError(l.t, err)
}

// The next lines are read while the disk is busy with those before.
func TestLinesAreReadAhead(t *testing.T) {
	var busy atomic.Bool
	waits, goOn := make(chan struct{}, 64), make(chan struct{})
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if busy.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
			waits <- struct{}{}
			<-goOn
		}
		return nil
	}))
	l := openLines(t, disk)
	defer l.feed.Close()
	<-l.stalls // the first read waits
	busy.Store(true)
	l.send(toolCall("a") + "\n")
	<-waits
	<-l.stalls // the read after it
	l.send(toolCall("b") + "\n")
	<-l.stalls
	close(goOn)
	require.NoError(t, l.feed.Close())
	answer := <-l.answers
	assert.True(t, strings.HasPrefix(answer, "200 "), answer)
	assert.Equal(t, []string{toolCall("a"), toolCall("b")}, l.signals("run-7"))
}

// A log that fails ends a stream whose sender sends nothing more.
func TestFailureEndsAStream(t *testing.T) {
	var failing atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("the disk is broken")
		}
		return nil
	}))
	l := openLines(t, disk)
	defer l.feed.Close()
	l.send(toolCall("a") + "\n")
	ses, err := l.engine.Session(t.Context(), "run-7")
	require.NoError(t, err)
	for e, err := range ses.Subscribe(t.Context(), 1) {
		require.NoError(t, err)
		if e.Seq == 2 {
			break
		}
	}
	failing.Store(true)
	l.send(toolCall("b") + "\n{")
	answer := <-l.answers
	require.True(t, strings.HasPrefix(answer, "503 "), answer)
	_, body, _ := strings.Cut(answer, " ")
	assert.Equal(t, "read-only", member(t, body, "code"))
	assert.InDelta(t, 1, member(t, body, "recorded", "signals"), 0)
	// The connection was interrupted, and serves no further request.
	status, _, text := l.do("GET", "/healthz", "")
	assert.Equal(t, 200, status, text)
}

// A disk that is full makes the store read-only, and reading goes on.
func TestDiskFull(t *testing.T) {
	mem := vfs.NewMem()
	var full atomic.Bool
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return fmt.Errorf("write %s: %w", op.Path, syscall.ENOSPC)
		}
		return nil
	}))
	d := open(t, sajou.Config{FS: disk}, record.Config{})
	status, _, body := d.do("POST", signalsPath, toolCall("a"))
	require.Equal(t, 200, status, body)
	full.Store(true)
	for range 2 {
		status, header, body := d.do("POST", signalsPath, toolCall("b"))
		assert.Equal(t, 507, status, body)
		assert.NotEmpty(t, header.Get("Retry-After"))
	}
	status, _, body = d.do("POST", signalsPath, toolCall("b"), "Content-Type", ndjson)
	assert.Equal(t, 507, status, body)
	w := d.watch("/__signals__/stream?session=run-7", "Last-Event-ID", "0")
	w.position()
	assert.Equal(t, []string{"id: 2", "data: " + toolCall("a")}, w.next(2))
}

// A store that a failed write made read-only says so.
func TestReadOnly(t *testing.T) {
	var failing atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("the disk is broken")
		}
		return nil
	}))
	d := open(t, sajou.Config{FS: disk}, record.Config{})
	failing.Store(true)
	status, header, body := d.do("POST", "/api/signal", toolCall("a"))
	assert.Equal(t, 503, status, body)
	assert.Equal(t, "read-only", member(t, body, "code"))
	assert.NotEmpty(t, header.Get("Retry-After"))
}

// Too many requests at once are refused before they are read.
func TestTooManyRequests(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{MaxPending: 1})
	body, feed := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+d.addr+"/api/signal", body)
	require.NoError(t, err)
	// The client sends the body once the server reads it, and so has admitted the request.
	req.Header.Set("Expect", "100-continue")
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
	defer client.CloseIdleConnections()
	answered := make(chan int, 1)
	go func() {
		res, err := client.Do(req)
		if err != nil {
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	_, err = io.WriteString(feed, `{"type":`)
	require.NoError(t, err)
	status, header, _ := d.do("POST", "/api/signal", toolCall("a"))
	assert.Equal(t, 429, status)
	assert.Equal(t, "1", header.Get("Retry-After"))
	_, err = io.WriteString(feed, `"x"}`)
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	assert.Equal(t, 200, <-answered)
}

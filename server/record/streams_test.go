package record_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/server/record"
)

// watcher reads a stream of events by line.
type watcher struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
}

// watch opens a stream and reads its first comment.
func (d *door) watch(path string, header ...string) *watcher {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.addr+path, nil)
	require.NoError(d.t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(d.t, err)
	require.Equal(d.t, 200, res.StatusCode)
	require.Equal(d.t, "text/event-stream", res.Header.Get("Content-Type"))
	require.Equal(d.t, "no-cache", res.Header.Get("Cache-Control"))
	w := &watcher{d.t, bufio.NewScanner(res.Body), func() {
		cancel()
		res.Body.Close()
	}}
	d.t.Cleanup(w.close)
	require.Equal(d.t, []string{": connected", ""}, w.next(2))
	return w
}

// position reads the id with which a stream begins, or ends.
func (w *watcher) position() string {
	w.t.Helper()
	lines := w.next(2)
	id, ok := strings.CutPrefix(lines[0], "id: ")
	require.True(w.t, ok, lines)
	require.Empty(w.t, lines[1])
	return id
}

// next reads lines.
func (w *watcher) next(n int) []string {
	w.t.Helper()
	var lines []string
	for range n {
		require.True(w.t, w.lines.Scan(), "the stream ended: %v", w.lines.Err())
		lines = append(lines, w.lines.Text())
	}
	return lines
}

// rest reads the lines until the stream ends.
func (w *watcher) rest() []string {
	var lines []string
	for w.lines.Scan() {
		lines = append(lines, w.lines.Text())
	}
	return lines
}

// A browser sees each signal with an id, and continues behind the last one that it saw.
func TestSignalStream(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	d.do("POST", "/api/signal", toolCall("before"))
	w := d.watch("/__signals__/stream")
	assert.Equal(t, "2", w.position())
	_, _, body := d.do("POST", "/api/signal", toolCall("a"))
	assert.Equal(t, `{"ok":true,"id":"a","clients":1}`, body)
	assert.Equal(t, []string{"id: 3", "data: " + toolCall("a"), ""}, w.next(3))
	w.close()
	d.do("POST", "/api/signal", toolCall("b"))
	w = d.watch("/__signals__/stream", "Last-Event-ID", "3")
	assert.Equal(t, "3", w.position())
	assert.Equal(t, []string{"id: 4", "data: " + toolCall("b"), ""}, w.next(3))
	d.do("POST", "/api/signal", `{"id":"`+strings.Repeat("é\u2028", 3)+`","type":"x"}`)
	lines := w.next(3)
	assert.Equal(t, "id: 5", lines[0])
	assert.Equal(t, strings.Repeat("é\u2028", 3), member(t, strings.TrimPrefix(lines[1], "data: "), "id"))

	// A browser would not connect again after an error.
	for _, id := range []string{"a", "k3f-0", "6", "-1"} {
		other := d.watch("/__signals__/stream", "Last-Event-ID", id)
		assert.Contains(t, other.next(2)[0], ": the last event is not remembered", id)
		assert.Equal(t, "5", other.position())
		other.close()
	}

	go d.stop()
	assert.Equal(t, []string{"id: 5", ""}, w.rest())
}

// A reader that has got no event misses nothing when it connects again, after the server has
// stopped or the connection broke, in one session and in all parts of it.
func TestStreamWithoutEventsGoesOn(t *testing.T) {
	for _, split := range []partition.Split{partition.SplitNone, partition.SplitSource} {
		d := open(t, sajou.Config{}, record.Config{Split: split})
		for _, id := range []string{"a", "b"} { // the first into an empty session
			w := d.watch("/__signals__/stream")
			position := w.position()
			w.close()
			d.do("POST", "/api/signal", toolCall(id))
			w = d.watch("/__signals__/stream", "Last-Event-ID", position)
			assert.Equal(t, position, w.position())
			assert.Equal(t, "data: "+toolCall(id), w.next(3)[1])
		}
		w := d.watch("/__signals__/stream")
		position := w.position()
		go d.stop()
		assert.Equal(t, []string{"id: " + position, ""}, w.rest())
	}
}

// Clients that read by line get nothing but data and comments.
func TestPlainStream(t *testing.T) {
	beats := make(chan func(), 64)
	cfg := record.Config{Heartbeat: time.Second, AfterFunc: func(after time.Duration, f func()) func() bool {
		if after == time.Second {
			beats <- f
		}
		return func() bool { return true }
	}}
	d := open(t, sajou.Config{}, cfg)
	w := d.watch("/__signals__/plain")
	d.do("POST", "/api/signal", toolCall("a"))
	assert.Equal(t, []string{"data: " + toolCall("a"), ""}, w.next(2))
	for range 2 { // the first is due after something was sent, the second after a silence
		f := <-beats
		f()
	}
	assert.Equal(t, []string{": heartbeat", ""}, w.next(2))
}

// With a split, the stream has all parts, and is resumed among them.
func TestStreamOfAllParts(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{Split: partition.SplitSource})
	w := d.watch("/__signals__/stream")
	w.position()
	from := func(source, id string) string {
		return `{"id":"` + id + `","type":"x","timestamp":1772366400000,"source":"` + source + `","payload":{}}`
	}
	d.do("POST", "/api/signal", from("one", "a"))
	first := w.next(3)
	assert.Equal(t, "data: "+from("one", "a"), first[1])
	d.do("POST", "/api/signal", from("two", "b"))
	assert.Equal(t, "data: "+from("two", "b"), w.next(3)[1])
	w.close()
	d.do("POST", "/api/signal", from("one", "c"))
	w = d.watch("/__signals__/stream", "Last-Event-ID", strings.TrimPrefix(first[0], "id: "))
	w.position()
	assert.Equal(t, "data: "+from("two", "b"), w.next(3)[1])
	assert.Equal(t, "data: "+from("one", "c"), w.next(3)[1])
	w.close()
	w = d.watch("/__signals__/stream", "Last-Event-ID", "another-0")
	assert.Contains(t, w.next(1)[0], ": the last event is not remembered")

	// What was recorded before is not sent again, nor what is of another session.
	w.next(1)
	w.position()
	path := "/api/v1/sessions/live.one/signals"
	d.do("POST", path, from("one", "d"), "Idempotency-Key", "k")
	d.do("POST", path, from("one", "d"), "Idempotency-Key", "k")
	d.do("POST", "/api/v1/sessions/other/signals", from("one", "e"))
	d.do("POST", path, from("one", "f"), "Content-Type", "application/x-ndjson")
	assert.Equal(t, "data: "+from("one", "d"), w.next(3)[1])
	assert.Equal(t, "data: "+from("one", "f"), w.next(3)[1])
	w.close()
	w = d.watch("/__signals__/stream?session=live.two", "Last-Event-ID", "0")
	w.position()
	assert.Equal(t, "data: "+from("two", "b"), w.next(3)[1])
}

// The commands of the session, as its choreographies make them, from the moment at which the
// reader hears that it is connected.
func TestCommandStream(t *testing.T) {
	posted := make(chan struct{})
	cfg := record.Config{Heartbeat: time.Second, AfterFunc: func(after time.Duration, _ func()) func() bool {
		if after == time.Second { // the reader has heard it
			<-posted
		}
		return func() bool { return true }
	}}
	d := open(t, sajou.Config{Now: time.Now, AfterFunc: func(after time.Duration, f func()) func() bool { return time.AfterFunc(after, f).Stop }}, cfg)
	ses, err := d.engine.Session(t.Context(), "live")
	require.NoError(t, err)
	defs, diags := language.Parse("test", []byte(`{"on":"x","steps":[{"action":"playSound","sound":"bell"}]}`))
	require.NoError(t, diags.Err(nil))
	_, err = ses.Define(t.Context(), defs...)
	require.NoError(t, err)
	w := d.watch("/__commands__/stream")
	d.do("POST", "/api/signal", `{"type":"x"}`)
	close(posted)
	line := w.next(1)[0]
	require.True(t, strings.HasPrefix(line, "data: "), line)
	assert.Equal(t, "playSound", member(t, strings.TrimPrefix(line, "data: "), "action"))
	_, _, body := d.do("GET", "/api/choreographies", "")
	assert.Contains(t, body, `"playSound"`)
}

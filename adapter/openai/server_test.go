package openai_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents/generate"
)

// No test leaves a goroutine running, whatever its server did.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "sk-S3cret/Key+with=odd"

// The time limits of the tests' clients. All differ, so that a duration identifies a
// timer.
const (
	firstByte = 31 * time.Second
	idle      = 17 * time.Second
	whole     = 61 * time.Second
	linger    = 250 * time.Millisecond // the package's own
)

// clock is a manual clock: its time advances when a timer is fired.
type clock struct {
	mu     sync.Mutex
	cond   *sync.Cond
	now    time.Time
	timers []*timer
	armed  map[time.Duration]int // how often a timer of this duration was started
	waited []time.Duration       // between attempts
}

type timer struct {
	d time.Duration
	f func()
}

func newClock() *clock {
	c := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), armed: map[time.Duration]int{}}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// AfterFunc starts a timer. A duration other than the limits above is a wait between
// attempts, which ends at once.
func (c *clock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains([]time.Duration{firstByte, idle, whole, linger}, d) {
		c.waited = append(c.waited, d)
		c.now = c.now.Add(d)
		f()
		return func() bool { return false }
	}
	t := &timer{d, f}
	c.timers = append(c.timers, t)
	c.armed[d]++
	c.cond.Broadcast()
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := len(c.timers)
		c.timers = slices.DeleteFunc(c.timers, func(other *timer) bool { return other == t })
		return len(c.timers) < n
	}
}

// fire waits until at least n timers of a duration were started and one of them is
// running, and fires it.
func (c *clock) fire(d time.Duration, n int) {
	c.mu.Lock()
	for {
		i := slices.IndexFunc(c.timers, func(t *timer) bool { return t.d == d })
		if i >= 0 && c.armed[d] >= n {
			t := c.timers[i]
			c.timers = slices.Delete(c.timers, i, i+1)
			c.now = c.now.Add(d)
			c.mu.Unlock()
			t.f()
			return
		}
		c.cond.Wait()
	}
}

// running returns the number of running timers, without that of the whole request.
func (c *clock) running() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.timers {
		if t.d != whole {
			n++
		}
	}
	return n
}

func (c *clock) waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.waited)
}

// peer is a test server and its client.
type peer struct {
	*openai.Client
	*clock
	server *httptest.Server
	calls  atomic.Int32 // requests received
	conns  atomic.Int32 // connections accepted
}

// serve starts a server. The handler gets the number of the request, from 1, and
// the request with its body read.
func serve(t *testing.T, tune func(*openai.Config), handle func(p *peer, n int, w http.ResponseWriter, r *http.Request)) *peer {
	t.Helper()
	p := &peer{clock: newClock()}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // net/http detects a closed connection only after the body was read
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		handle(p, int(p.calls.Add(1)), w, r)
	}))
	p.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			p.conns.Add(1)
		}
	}
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.Start()
	cfg := openai.Config{
		BaseURL: p.server.URL + "/v1", Model: "m", APIKey: openai.NewKey(secret),
		FirstByte: firstByte, Idle: idle, Timeout: whole, Now: p.Now, AfterFunc: p.AfterFunc,
	}
	if tune != nil {
		tune(&cfg)
	}
	var err error
	if p.Client, err = openai.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		p.server.Close()
		if n := len(p.timers); n != 0 { // every request has ended
			t.Errorf("%d timers still run", n)
		}
	})
	return p
}

// send writes and flushes.
func send(w http.ResponseWriter, format string, args ...any) {
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		panic(http.ErrAbortHandler)
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// delta returns an event with one token; end has the last events of an answer.
func delta(token string) string {
	return fmt.Sprintf("data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", token)
}

const end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

var prompt = generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: "Hi"}}}

// tokensOf returns the tokens of a generation and how it ended.
func tokensOf(ctx context.Context, g generate.Generator, p generate.Prompt) (tokens []string, err error) {
	for token, failed := range g.Generate(ctx, p) {
		if err != nil {
			return nil, fmt.Errorf("the sequence continued after its error %w", err)
		}
		if failed != nil {
			err = failed
			continue
		}
		tokens = append(tokens, token)
	}
	return tokens, err
}

// until waits until n timers of a duration were started.
func (c *clock) until(d time.Duration, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.armed[d] < n {
		c.cond.Wait()
	}
}

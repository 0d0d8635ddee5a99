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

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/openai"
)

// No generation leaves anything running, whatever its server did.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "sk-S3cret/Key+with=odd"

// The times of the clients here. All differ, so that a test can name a timer by
// its length.
const (
	firstByte = 31 * time.Second
	idle      = 17 * time.Second
	whole     = 61 * time.Second
	linger    = 250 * time.Millisecond // the package's own
)

// clock is a clock that stands still unless a timer is fired.
type clock struct {
	mu     sync.Mutex
	cond   *sync.Cond
	now    time.Time
	timers []*timer
	armed  map[time.Duration]int // how often a timer of this length was begun
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

// AfterFunc begins a timer. The waits between attempts, which are of no length
// that is watched, end at once.
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

// fire waits until timers of a length were begun at least n times and one of
// them is running, and lets it end.
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

// running returns how many timers run beside that of the whole request.
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

// peer is a server that misbehaves and the client that bears it.
type peer struct {
	*openai.Client
	*clock
	server *httptest.Server
	calls  atomic.Int32 // requests that came
	conns  atomic.Int32 // connections that were opened
}

// serve starts a server. The handler gets the number of the request, from 1,
// whose body was read.
func serve(t *testing.T, tune func(*openai.Config), handle func(p *peer, n int, w http.ResponseWriter, r *http.Request)) *peer {
	t.Helper()
	p := &peer{clock: newClock()}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // which also lets the server see that the client goes
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
		if n := len(p.timers); n != 0 { // of those who use it nobody is left
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

// delta is one event with a token, end the last ones of an answer.
func delta(token string) string {
	return fmt.Sprintf("data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", token)
}

const end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

var prompt = sajou.Prompt{Messages: []sajou.Message{{Role: "user", Content: "Hi"}}}

// generate returns the tokens of a generation and how it ended.
func generate(ctx context.Context, g sajou.Generator, p sajou.Prompt) (tokens []string, err error) {
	for token, failed := range g.Generate(ctx, p) {
		if err != nil {
			return nil, fmt.Errorf("the sequence went on behind its error %w", err)
		}
		if failed != nil {
			err = failed
			continue
		}
		tokens = append(tokens, token)
	}
	return tokens, err
}

// until waits until timers of a length were begun n times.
func (c *clock) until(d time.Duration, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.armed[d] < n {
		c.cond.Wait()
	}
}

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/route"
)

// measurements keeps what a server reports.
type measurements struct {
	done         []string
	shortest     time.Duration
	used, bounds func() map[string]int64
	events       func() map[string]uint64
}

func (m *measurements) RequestDone(pattern string, status int, took time.Duration) {
	m.shortest = min(m.shortest, took)
	m.done = append(m.done, fmt.Sprintf("%s %d", pattern, status))
}

func (m *measurements) StreamOpened(pattern string) { m.done = append(m.done, pattern+" opened") }

func (m *measurements) StreamClosed(pattern string, status int) {
	m.done = append(m.done, fmt.Sprintf("%s closed %d", pattern, status))
}

func (m *measurements) Watch(used, bounds func() map[string]int64, events func() map[string]uint64) {
	m.used, m.bounds, m.events = used, bounds, events
}

// Every request is counted, those that reach no route too, and so are refusals and what is used
// of the limits.
func TestRequestsAreMeasured(t *testing.T) {
	m := &measurements{}
	inside := route.Endpoint{Pattern: "GET /inside", Stream: true, Handler: func(w http.ResponseWriter, _ *http.Request) error {
		assert.Equal(t, int64(1), m.used()["streams"])
		_, err := fmt.Fprintln(w, "ok")
		return err
	}}
	s := unserved(t, server.Config{
		Requests: m, MaxHeader: 2048, Limits: limit.Config{AllStreams: 7, AllJobs: -1, UnknownRate: 1, Now: atNoon},
		Access: access.Config{Loopback: []access.Scope{}},
	}, append(room(func(string) bool { return true }), inside)...)
	servertest.Ask(s, "GET", "/open", "")
	servertest.Ask(s, "GET", "/test/x", "")
	servertest.Ask(s, "GET", "/inside", "")
	servertest.Ask(s, "GET", "/nothing", "")
	servertest.Ask(s, "GET", "/open/.", "")
	servertest.Ask(s, "GET", "/open", "", "Origin", "null")
	servertest.Ask(s, "GET", "/open", "", "X-A", strings.Repeat("a", 2048))
	for range 3 {
		call{path: "/open"}.to(s)
	}
	assert.Equal(t, []string{
		"GET /open 200", "GET /test/{session} 401", "GET /inside opened", "GET /inside closed 200", " 404", " 404", " 403", " 431",
		"GET /open 200", "GET /open 200", "GET /open 429",
	}, m.done)
	assert.Equal(t, map[string]int64{"connections": 0, "streams": 0, "jobs": 0, "memory": 0}, m.used())
	assert.Equal(t, map[string]int64{"connections": 16384, "streams": 7, "memory": 256 << 20}, m.bounds())
	assert.Equal(t, map[string]uint64{
		"AUTH_FAILED": 1, "ACT_FORBIDDEN": 0, "ORIGIN_REFUSED": 1, "LIMIT_EXCEEDED": 1, "TOKEN_ENDED": 0, "AGENT_QUARANTINED": 0,
	}, m.events())
}

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/route"
)

// notedRequests notes the spans of requests.
type notedRequests struct{ ended []string }

type tracedKey struct{}

func (n *notedRequests) BeginRequest(ctx context.Context, header http.Header, pattern string) (context.Context, func(string, int)) {
	ctx = context.WithValue(ctx, tracedKey{}, header.Get("Traceparent"))
	return ctx, func(session string, status int) {
		n.ended = append(n.ended, fmt.Sprintf("%s session=%q %d", pattern, session, status))
	}
}

// The span of a request names the session if the caller may use it. A handler gets the
// context of the span.
func TestRequestsAreTraced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	token := makeToken(t, path, "reader", access.Grant{Scope: access.ScopeRead, Sessions: []string{"open-*"}})
	spans := &notedRequests{}
	traced := ""
	s := unserved(t, server.Config{Access: access.Config{Tokens: path, Loopback: []access.Scope{}}, Tracer: spans}, route.Endpoint{
		Pattern: "GET /test/{session}", Scope: access.ScopeRead, Handler: func(w http.ResponseWriter, r *http.Request) error {
			traced, _ = r.Context().Value(tracedKey{}).(string)
			if route.Session(r) == "open-broken" {
				panic("a defect")
			}
			_, err := fmt.Fprintln(w, "ok")
			return err
		},
	})
	for _, c := range []call{
		{method: "GET", path: "/test/open-1", peer: "127.0.0.1:1", token: token},
		{method: "GET", path: "/test/secret", peer: "127.0.0.1:1", token: token},
		{method: "GET", path: "/test/open-1", peer: "127.0.0.1:1"},
		{method: "GET", path: "/test/open-broken", peer: "127.0.0.1:1", token: token},
		{method: "GET", path: "/nothing", peer: "127.0.0.1:1", token: token},
	} {
		c.header = http.Header{"Traceparent": {"the caller's"}}
		c.to(s)
	}
	assert.Equal(t, "the caller's", traced)
	assert.Equal(t, []string{
		`GET /test/{session} session="open-1" 200`,
		`GET /test/{session} session="" 404`,
		`GET /test/{session} session="" 401`,
		`GET /test/{session} session="open-broken" 500`,
	}, spans.ended)
}

package read_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a server for a store with recorded sessions, where loopback may record,
// read and define.
func serve(t testing.TB) http.Handler {
	t.Helper()
	return open(t, servertest.Store(t, "../..", sajou.Config{}))
}

// open returns a server for an engine.
func open(t testing.TB, engine *sajou.Engine) http.Handler {
	t.Helper()
	s, err := server.New(engine, server.Config{Access: access.Config{Loopback: []access.Scope{access.ScopeRecord, access.ScopeRead, access.ScopeDefine}}})
	require.NoError(t, err)
	return s
}

// get asks for a path below /api/v1/sessions/.
func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	return servertest.Ask(h, http.MethodGet, "/api/v1/sessions/"+path, "", header...)
}

func TestHead(t *testing.T) {
	h := serve(t)
	for _, path := range []string{"night", "night/state?at=36", "night/picture?at=36&format=png", "night/entries?format=ndjson", "night/entries", "nothing"} {
		// The size of the store is part of an answer, and can change once between two requests.
		var full, bare *httptest.ResponseRecorder
		for again := get(h, path); full == nil || full.Header().Get("ETag") != again.Header().Get("ETag"); again = get(h, path) {
			full, bare = again, servertest.Ask(h, http.MethodHead, "/api/v1/sessions/"+path, "")
		}
		assert.Equal(t, full.Code, bare.Code, path)
		assert.Empty(t, bare.Body.Bytes(), path)
		assert.Equal(t, full.Header().Get("ETag"), bare.Header().Get("ETag"), path)
		assert.Equal(t, full.Header().Get("Content-Type"), bare.Header().Get("Content-Type"), path)
	}
}

func TestNegotiation(t *testing.T) {
	h := serve(t)
	for _, c := range []struct{ path, accept, media string }{
		{"night/picture?at=36", "", "image/svg+xml"},
		{"night/picture?at=36", "image/png", "image/png"},
		{"night/picture?at=36", "image/*;q=0.5, image/png", "image/png"},
		{"night/picture?at=36", "image/*, image/svg+xml;q=0.1", "image/png"},
		{"night/picture?at=36", "text/html, */*;q=0.1", "image/svg+xml"},
		{"night/picture?at=36&format=png", "image/svg+xml", "image/png"},
		{"night/picture?at=36", "text/html", ""},
		{"night/picture?at=36", "image/svg+xml;q=0, image/png;q=0", ""},
		{"night/entries", "application/x-ndjson", "application/x-ndjson"},
		{"night/entries", "*/*", "application/json"},
	} {
		var header []string
		if c.accept != "" {
			header = []string{"Accept", c.accept}
		}
		w := get(h, c.path, header...)
		if c.media == "" {
			assert.Equal(t, http.StatusNotAcceptable, w.Code, c)
			continue
		}
		require.Equal(t, http.StatusOK, w.Code, c)
		assert.Equal(t, c.media, w.Header().Get("Content-Type"), c)
		assert.Contains(t, w.Header().Values("Vary"), "Accept", c)
	}
}

package server_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
)

// discard is a writer that keeps nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)               {}

// BenchmarkAdmission measures what the frame costs a request whose handler does nothing.
func BenchmarkAdmission(b *testing.B) {
	path := filepath.Join(b.TempDir(), "tokens")
	token := makeToken(b, path, "tap", access.Grant{Scope: access.ScopeRead, Sessions: []string{"*"}})
	s := unserved(b, server.Config{Access: access.Config{Tokens: path}, Limits: limit.Config{Rate: -1}}, room(func(string) bool { return true })...)
	for name, header := range map[string]http.Header{"loopback": {}, "token": {"Authorization": {"Bearer " + token}}} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "http://localhost/test/x", nil)
			r.RemoteAddr = "127.0.0.1:1"
			r.Header = header
			for b.Loop() {
				s.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}

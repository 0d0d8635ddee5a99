package read_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Any query and any address in a path is answered, never with a failure of the server.
func FuzzQuery(f *testing.F) {
	h := serve(f)
	for _, seed := range []string{
		"state?at=36%2B50ms", "entries?range=..&limit=3&where=seq%3E1", "entries/%23e374", "diff?from=0&to=end-1", "frame?at=t:1s", "picture?width=16&theme=dark",
		"agents/A/knows?path=/", "blame?path=stage", "export?format=raw&range=1..1", "state?at=@x", "marks?format=ndjson", "why?at=perf:p-36-1", "entries?cursor=0", "entries/36%2B1h",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse("http://localhost/api/v1/sessions/night/" + text)
		if err != nil || u.Host != "localhost" || strings.ContainsAny(u.Path, "\x00") || strings.Contains(text, "why") && len(text) > 60 {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		r.URL, r.RemoteAddr = u, "127.0.0.1:1"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Less(t, w.Code, http.StatusInternalServerError, "%s: %s", u, w.Body)
	})
}

// Any body of a declaration or a bookmark is answered.
func FuzzBodies(f *testing.F) {
	h := serve(f)
	f.Add("definitions", `{"on":"note","steps":[{"action":"wait","duration":3}]}`)
	f.Add("definitions", `[{"sajou":"scene","version":1}]`)
	f.Add("definitions", "on: note\nsteps: []")
	f.Add("marks/x", `{"at":"36","note":"n"}`)
	f.Add("jobs", `{"kind":"scan","where":"true","range":"1..2"}`)
	f.Add("jobs", `{"kind":"scan","image":{"png":"AAAA"}}`)
	f.Fuzz(func(t *testing.T, path, body string) {
		method := http.MethodPost
		if strings.HasPrefix(path, "marks/") {
			method = http.MethodPut
		}
		r := httptest.NewRequest(method, "http://localhost/api/v1/sessions/night/definitions", strings.NewReader(body))
		if u, err := url.Parse("http://localhost/api/v1/sessions/night/" + path); err == nil && u.Host == "localhost" {
			r.URL = u
		}
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Less(t, w.Code, http.StatusInternalServerError, "%s %s: %s", path, body, w.Body)
	})
}

package server_test

import (
	"bytes"
	"compress/gzip"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/schema"
)

// isDescribed checks that an answer is one that its route describes, and not a fault of the
// server.
func isDescribed(t *testing.T, e *route.Endpoint, w *httptest.ResponseRecorder, what string) {
	t.Helper()
	switch {
	case w.Code == http.StatusNotImplemented && e.Stream: // a recorder cannot be hijacked
	case w.Code == http.StatusPermanentRedirect, w.Code >= http.StatusInternalServerError:
		assert.Fail(t, "not described", "%s %s: %d %.200s", e.Pattern, what, w.Code, w.Body)
	case w.Code == http.StatusNotModified: // the caller has the answer
	case slices.ContainsFunc(e.Doc.Success, func(s route.Success) bool { return s.Status == w.Code }):
	case e.ErrorForm != nil:
		assert.True(t, slices.ContainsFunc(schema.Errors(e), func(code problem.ErrorCode) bool { return schema.StatusOf(e, code) == w.Code }), "%s %s: %d", e.Pattern, what, w.Code)
	default:
		assert.Contains(t, append(schema.Errors(e), problem.NotFound), codeOf(t, w), "%s %s: %.300s", e.Pattern, what, w.Body)
	}
}

// hostileTexts are values of parameters and parts of paths.
var hostileTexts = map[string]string{
	"nothing": "", "a NUL": "\x00", "no UTF-8": "\xff\xfe", "a line": "a\r\nX-Injected: 1", "a path": "../../../../etc/passwd", "an escape": "%2e%2e%2f",
	"a long text": strings.Repeat("a", 3000), "a large number": "99999999999999999999", "a negative number": "-1", "no number": "NaN", "an exponent": "1e999",
	"other digits": "\u0661\uff11", "a look-alike": "n\u0456ght", "reversed": "\u202egnirts", "a span": "1..2..3", "an open span": "..", "an expression": "((((((((((", "a moment": "1+9e99s",
	"a hash": "#" + strings.Repeat("0", 64), "a quote": `"';--`, "an object": `{"$ref":"x"}`,
}

// TestAttackParameters gives every parameter and every part of every path values that it should
// not have. Each answer is a described one.
func TestAttackParameters(t *testing.T) {
	c := newContract(t, nil)
	for _, e := range c.Routes() {
		usual := someRequest(t, &e)
		usual.target = strings.ReplaceAll(usual.target, "JOB", c.job)
		path, query, _ := strings.Cut(usual.target, "?")
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		for name, text := range hostileTexts {
			for _, p := range e.Doc.Params {
				a := usual
				switch p.In {
				case "":
					own := url.Values{p.Name: {text}}
					for k, v := range values {
						if k != p.Name {
							own[k] = v
						}
					}
					a.target = path + "?" + own.Encode()
				case "header":
					if strings.ContainsAny(text, "\x00\r\n") {
						continue // no request has them
					}
					a.header = append(slices.Clone(a.header), p.Name, text)
				default:
					continue
				}
				isDescribed(t, &e, asking(t, c, &e, a, func(*http.Request) {}), p.Name+" is "+name)
			}
			segments := strings.Split(strings.SplitAfter(e.Pattern, " ")[1], "/")
			for i, segment := range segments {
				if !strings.HasPrefix(segment, "{") || segment == "{$}" || text == "" {
					continue
				}
				parts := strings.Split(path, "/")
				parts[i] = url.PathEscape(text)
				a := usual
				a.target = strings.Join(parts, "/") + "?" + query
				isDescribed(t, &e, asking(t, c, &e, a, func(*http.Request) {}), segment+" is "+name)
			}
		}
	}
	// A job ends behind the answer that created it.
	require.Eventually(t, func() bool { return c.InUse() == limit.InUse{} }, 10*time.Second, time.Millisecond)
}

// hostileBodies are bodies of requests that no client sends.
func hostileBodies(t *testing.T) map[string]asked {
	t.Helper()
	zeros := make([]byte, 8<<20)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(zeros)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	bodies := map[string]asked{
		"gzip":           {body: packed.String(), header: []string{"Content-Encoding", "gzip"}},
		"gzip in gzip":   {body: packed.String(), header: []string{"Content-Encoding", "gzip, gzip"}},
		"zstd":           {body: string(encoder.EncodeAll(zeros, nil)), header: []string{"Content-Encoding", "zstd"}},
		"no gzip":        {body: "{}", header: []string{"Content-Encoding", "gzip"}},
		"a deep array":   {body: strings.Repeat("[", 20_000)},
		"a deep object":  {body: strings.Repeat(`{"a":`, 10_000)},
		"deep and whole": {body: strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)},
	}
	for _, text := range []string{
		"", " ", "null", "true", "0", `""`, "[]", "{}", "[null]", "[{}]", `{"":""}`, "{}{}", "{}\x00", "\xef\xbb\xbf{}", "\xff\xfe{\x00}\x00", `{"a":"` + "\xff" + `"}`, `{"a":"\ud800"}`,
		`{"a":1,"a":2}`, `{"type":1e999999}`, `{"timestamp":` + strings.Repeat("9", 5000) + `}`, `{"type":{"type":{"type":null}}}`, `{"__proto__":{"x":1}}`, "\n\n\n", "<x/>", "a=b&c=d",
	} {
		bodies[text[:min(len(text), 40)]] = asked{body: text}
	}
	return bodies
}

// TestAttackBodies sends every route bodies that are bombs, or not what it takes. Each answer is
// a described one, and no memory is held afterwards.
func TestAttackBodies(t *testing.T) {
	c := newContract(t, nil)
	bodies := hostileBodies(t)
	for _, e := range c.Routes() {
		if e.MaxBody == 0 {
			continue
		}
		usual := someRequest(t, &e)
		for name, b := range bodies {
			a := usual
			a.body, a.header = b.body, append(slices.Clone(a.header), b.header...)
			isDescribed(t, &e, asking(t, c, &e, a, func(*http.Request) {}), name)
		}
	}
	// A job ends behind the answer that created it.
	require.Eventually(t, func() bool { return c.InUse() == limit.InUse{} }, 10*time.Second, time.Millisecond)
}

// trickyNames are names of sessions that lead elsewhere where a name becomes a path, or look like
// another one.
var trickyNames = []string{
	"..", ".", "../../escaped", "/etc/passwd", `..\..\escaped`, "C:\\x", "CON", "a/b", "a//b", "~root", "-rf", "$(id)", "`id`", "a;b", "a%2Fb", "%2e%2e", "a b", `a"b`, "a'b", "<b>", "x.sst", "LOCK",
	"night", "Night", "n\u0456ght", "\uff4e\uff49\uff47\uff48\uff54", "caf\u00e9", "cafe\u0301",
}

// escaped returns a name as a part of a path: a dot could lead elsewhere.
func escaped(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }

// TestAttackNames records sessions whose names are tricks, through every door that takes a name.
// Each is a session of its own, and no file appears but those of the store.
func TestAttackNames(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "deep", "store")
	engine, err := sajou.Open(dir, sajou.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	s, err := server.New(engine, server.Config{Dir: dir, Access: access.Config{Loopback: access.Scopes()}, Record: record.Config{Session: "live"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Traces().Close(t.Context())) }()
	ok := func(w *httptest.ResponseRecorder) {
		t.Helper()
		require.Equal(t, http.StatusOK, w.Code, w.Body)
	}
	for i, name := range trickyNames {
		door := [](func() *httptest.ResponseRecorder){
			func() *httptest.ResponseRecorder {
				return servertest.Ask(s, "POST", sessions+escaped(name)+"/signals", note(1))
			},
			func() *httptest.ResponseRecorder {
				return servertest.Ask(s, "POST", "/api/signal?session="+url.QueryEscape(name), note(1))
			},
			func() *httptest.ResponseRecorder {
				return servertest.Ask(s, "POST", "/api/signal", note(1), route.SessionHeader, name)
			},
		}[i%3]
		ok(door())
		ok(servertest.Ask(s, "PUT", sessions+escaped(name)+"/marks/m", `{"at":"1"}`))
		export := servertest.Ask(s, "GET", sessions+escaped(name)+"/export?format=entries", "")
		ok(export)
		if disposition := export.Header().Get("Content-Disposition"); disposition != "" {
			_, params, err := mime.ParseMediaType(disposition)
			require.NoError(t, err, disposition)
			assert.NotRegexp(t, `[/\\]|^\.`, params["filename"])
		}
	}
	listed, err := engine.Sessions()
	require.NoError(t, err)
	assert.ElementsMatch(t, trickyNames, listed)
	for _, name := range []string{"a\x00b", "a\nb", "\u202e", "a\u200bb", "a\u2028b", "\xff", strings.Repeat("a", 2000), "\ufeffnight", "\u00ad"} {
		w := servertest.Ask(s, "POST", sessions+escaped(name)+"/signals", note(1))
		assert.Equal(t, http.StatusUnprocessableEntity, w.Code, "%q: %s", name, w.Body)
		assert.Equal(t, http.StatusBadRequest, servertest.Ask(s, "POST", "/api/signal?session="+url.QueryEscape(name), note(1)).Code, "%q", name)
	}
	var files []string
	require.NoError(t, filepath.WalkDir(above, func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			files = append(files, filepath.ToSlash(path[len(above)+1:]))
		}
		return err
	}))
	for _, f := range files {
		assert.Regexp(t, regexp.MustCompile(`^deep/(store/[A-Za-z0-9._-]+|store/otlp/[A-Za-z0-9._-]+|store\.[a-z.]+)$`), f)
	}
}

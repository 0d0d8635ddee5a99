package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/schema"
)

// contract is a server with recorded sessions, a world, and a job that has ended. A
// caller of this machine may do everything.
type contract struct {
	*server.Server
	engine *sajou.Engine
	job    string
	token  string // may do everything on the session "other" alone
	hooks  hooks

	// Servers of the same engine: one that may not change the settings of Claude Code, one whose
	// callers of this machine may only tick, and one that callers of others have asked too often.
	bare, strict, busy *server.Server
}

func newContract(t *testing.T, fs vfs.FS) *contract {
	t.Helper()
	c := &contract{engine: servertest.Store(t, "..", sajou.Config{FS: fs, JudgeTimeout: time.Hour})}
	tokens := filepath.Join(t.TempDir(), "tokens")
	var grants []access.Grant
	for _, s := range access.Scopes() {
		g := access.Grant{Scope: s, Sessions: []string{"other"}}
		if s == access.ScopeAct {
			g.Agent = "*"
		}
		grants = append(grants, g)
	}
	c.token = makeToken(t, tokens, "other", grants...)
	cfg := server.Config{
		Access: access.Config{Loopback: access.Scopes(), Tokens: tokens},
		Record: record.Config{MaxBody: 1 << 16},
		Exposition: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "up 1\n")
		}),
	}
	var err error
	c.bare, err = server.New(c.engine, cfg)
	require.NoError(t, err)
	c.strict, err = server.New(c.engine, server.Config{Access: access.Config{Loopback: []access.Scope{access.ScopeTick}}, Exposition: http.NotFoundHandler()})
	require.NoError(t, err)
	c.busy, err = server.New(c.engine, server.Config{Limits: limit.Config{UnknownRate: 1, Now: atNoon}, Exposition: http.NotFoundHandler()})
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, http.StatusOK, call{path: "/healthz"}.to(c.busy).Code)
	}
	cfg.Record.Hooks = func(context.Context, bool) error {
		if c.hooks == hooksFail {
			return errors.New("the settings cannot be read")
		}
		return nil
	}
	cfg.Traces.Dir = t.TempDir()
	c.Server, err = server.New(c.engine, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Traces().Close(context.Background()) })
	for _, a := range []asked{
		{target: "PUT " + sessions + "hall/world", body: world},
		{target: "PUT " + sessions + "hall/agents/alice", body: `{"policy":{"distance_limit":50}}`},
		{target: "PUT " + sessions + "clock/world", body: strings.Replace(world, "manual", "sim", 1)},
		{target: "PUT " + sessions + "hall/agents/dora", body: `{}`},
		{target: "PUT " + sessions + "opening/world", body: `{"time":"manual"}`},
		{target: "POST " + sessions + "night/signals", body: wrote},
		{target: "POST " + sessions + "turn/director/start", body: start},
		{target: "POST " + sessions + "reply/director/start", body: start},
		{target: "POST " + sessions + "reply/director/guide", body: guide},
		{target: "POST " + sessions + "judged/director/start", body: strings.Replace(start, "keyword", "semantic", 1)},
		{target: "POST " + sessions + "judged/director/guide", body: guide},
		{target: "POST " + sessions + "choice/director/start", body: start},
		{target: "POST " + sessions + "choice/director/guide", body: guide},
		{target: "POST " + sessions + "choice/director/respond", body: respond},
		{target: "POST " + sessions + "chosen/director/start", body: start},
		{target: "POST " + sessions + "chosen/director/guide", body: guide},
		{target: "POST " + sessions + "chosen/director/respond", body: respond},
		{target: "POST " + sessions + "chosen/director/choose", body: `{"choice_point":"open","choice":"yes"}`},
	} {
		method, target, _ := strings.Cut(a.target, " ")
		w := servertest.Ask(c, method, target, a.body)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
	}
	w := servertest.Ask(c, http.MethodPost, sessions+"night/jobs", `{"kind":"verify"}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	c.job = w.Header().Get("Location")[strings.LastIndex(w.Header().Get("Location"), "/")+1:]
	return c
}

// judge has a judge asked about a response of the session "judged" until the test ends.
func (c *contract) judge(t *testing.T) {
	t.Helper()
	ses, err := c.engine.Session(t.Context(), "judged")
	require.NoError(t, err)
	asked, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	judge := enginetest.JudgeFunc(func(context.Context, director.Question) (string, error) {
		close(asked)
		<-release
		return "NO", nil
	})
	go func() {
		_, err := ses.Director().With(judge).Respond(context.WithoutCancel(t.Context()), director.Response{Turn: 1, Text: "A knock."})
		done <- err
	}()
	t.Cleanup(func() {
		close(release)
		assert.NoError(t, <-done)
	})
	select {
	case <-asked:
	case err := <-done:
		require.NoError(t, err, "the judge was not asked")
	}
}

func (c *contract) ask(method string, a asked) *httptest.ResponseRecorder {
	c.hooks = a.hooks
	h := c.Server
	if a.hooks == hooksForbidden {
		h = c.bare
	}
	return servertest.Ask(h, method, strings.ReplaceAll(a.target, "JOB", c.job), a.body, a.header...)
}

// method returns the method of a pattern.
func method(e *route.Endpoint) string {
	m, _, _ := strings.Cut(e.Pattern, " ")
	return m
}

var schemaBase = "http://localhost/api/v1/schemas/"

// compiler has the schemas of the server. The tests of a package run one after the other.
var compiler = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler()
	for _, name := range schema.Names() {
		text, _ := schema.Get(name)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := c.AddResource(schemaBase+name, doc); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, nil
})

// compiled returns the schemas of the server.
func compiled(t *testing.T) func(name string) *jsonschema.Schema {
	t.Helper()
	c, err := compiler()
	require.NoError(t, err)
	return func(name string) *jsonschema.Schema {
		s, err := c.Compile(schemaBase + name)
		require.NoError(t, err, name)
		return s
	}
}

// valid compares a JSON text with a schema of the server.
func valid(t *testing.T, s *jsonschema.Schema, text []byte, what string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err, "%s: %.200s", what, text)
	assert.NoError(t, s.Validate(value), "%s: %.300s", what, text)
}

// contentOf returns the described content of an answer, which has to be there.
func contentOf(t *testing.T, e *route.Endpoint, status int, header http.Header, body, what string) (c *route.Content, index string) {
	t.Helper()
	j := slices.IndexFunc(e.Doc.Success, func(s route.Success) bool { return s.Status == status })
	require.GreaterOrEqual(t, j, 0, "%s: %d %.300s", what, status, body)
	content := e.Doc.Success[j].Content
	if content == nil {
		assert.Empty(t, body, what)
		return nil, strconv.Itoa(status)
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	require.NoError(t, err, what)
	k := slices.IndexFunc(content, func(c route.Content) bool {
		described, _, _ := mime.ParseMediaType(c.Type)
		return described == media
	})
	require.GreaterOrEqual(t, k, 0, "%s: %s is not described", what, media)
	return &content[k], strconv.Itoa(status) + " " + content[k].Type
}

// Every answer is as the description of its route says, and every route, status and media
// type has one here.
func TestAnswersAreAsDescribed(t *testing.T) {
	c := newContract(t, nil)
	get := compiled(t)
	live := httptest.NewServer(c)
	defer live.Close()
	routes := slices.DeleteFunc(c.Routes(), func(e route.Endpoint) bool { return e.Stream })
	last := func(e route.Endpoint) int { return slices.Index([]string{"PUT", "GET", "POST", "DELETE"}, method(&e)) }
	slices.SortStableFunc(routes, func(a, b route.Endpoint) int { return cmp.Compare(last(a), last(b)) })
	for i := range routes {
		e := &routes[i]
		require.NotNil(t, e.Doc, "%s: describe it", e.Pattern)
		require.NotEmpty(t, answered[e.Pattern], "%s: add a request to answered", e.Pattern)
		var missing []string
		for _, s := range e.Doc.Success {
			for _, content := range s.Content {
				missing = append(missing, strconv.Itoa(s.Status)+" "+content.Type)
			}
			if s.Content == nil {
				missing = append(missing, strconv.Itoa(s.Status))
			}
		}
		for _, a := range answered[e.Pattern] {
			what := method(e) + " " + a.target
			if a.during != "" {
				ctx, cancel := context.WithCancel(t.Context())
				opened(ctx, t, live.URL+a.during)
				defer cancel()
			}
			w := c.ask(method(e), a)
			content, index := contentOf(t, e, w.Code, w.Header(), w.Body.String(), what)
			missing = slices.DeleteFunc(missing, func(m string) bool { return m == index })
			if content == nil || content.Schema == "" {
				continue
			}
			texts := [][]byte{w.Body.Bytes()}
			if content.Type == route.MediaNDJSON {
				texts = bytes.Split(bytes.TrimSuffix(w.Body.Bytes(), []byte("\n")), []byte("\n"))
			}
			for _, text := range texts {
				if len(text) > 0 || content.Type != route.MediaNDJSON { // a list may have no line
					valid(t, get(content.Schema), text, what)
				}
			}
		}
		assert.Empty(t, missing, "%s: add requests with these answers to answered", e.Pattern)
	}
}

// opened opens a stream until ctx ends, and waits for its first byte.
func opened(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	_, err = res.Body.Read(make([]byte, 1))
	require.NoError(t, err)
}

// The OpenAPI document has every route and nothing else, and refers to schemas that exist.
func TestDocumentHasEveryRoute(t *testing.T) {
	c := newContract(t, nil)
	w := servertest.Ask(c, http.MethodGet, "/api/v1/openapi.json", "")
	require.Equal(t, http.StatusOK, w.Code)
	valid(t, compiled(t)("openapi"), w.Body.Bytes(), "the OpenAPI document")
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	var have, want []string
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			have = append(have, strings.ToUpper(method)+" "+path)
			assert.False(t, ids[op.OperationID], "%s is the id of two operations", op.OperationID)
			ids[op.OperationID] = true
		}
	}
	for _, e := range c.Routes() {
		want = append(want, strings.ReplaceAll(strings.ReplaceAll(e.Pattern, "...}", "}"), "{$}", ""))
	}
	slices.Sort(have)
	slices.Sort(want)
	assert.Equal(t, want, have)
	get := compiled(t)
	for _, m := range regexp.MustCompile(`"\$ref": "schemas/([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		get(m[1])
	}
}

// Every schema is a schema, can be asked for, and is used.
func TestSchemasAreServed(t *testing.T) {
	c := newContract(t, nil)
	get := compiled(t)
	used := servertest.Ask(c, http.MethodGet, "/api/v1/openapi.json", "").Body.String()
	for _, name := range schema.Names() {
		get(name)
		w := servertest.Ask(c, http.MethodGet, "/api/v1/schemas/"+name, "")
		assert.Equal(t, http.StatusOK, w.Code, name)
		used += w.Body.String()
	}
	for _, name := range schema.Names() {
		if text, _ := schema.Get(name); bytes.Contains(text, []byte(`"$id"`)) {
			continue // an export of the engine
		}
		assert.Regexp(t, `"\$ref": "(schemas/)?`+name+`["#]`, used, "no route and no schema uses %s", name)
	}
	for _, pattern := range slices.Sorted(maps.Keys(answered)) {
		assert.True(t, slices.ContainsFunc(c.Routes(), func(e route.Endpoint) bool { return e.Pattern == pattern }), "there is no route %s", pattern)
	}
}

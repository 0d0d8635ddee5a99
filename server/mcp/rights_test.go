package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/mcp"
	"github.com/sajou-dev/sajou-go/server/problem"
)

// overHTTP returns a server of the route of a toolbox, for one caller.
func overHTTP(t *testing.T, cfg mcp.Config, id *access.Caller) *httptest.Server {
	t.Helper()
	endpoint := mcp.New(cfg).Routes()[0]
	method, path, _ := strings.Cut(endpoint.Pattern, " ")
	mux := http.NewServeMux()
	mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, endpoint.MaxBody)
		if err := endpoint.Handler(w, r.WithContext(access.With(r.Context(), id))); err != nil {
			_ = problem.Write(w, r, err)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// client returns a client over HTTP.
func client(t *testing.T, s *httptest.Server) *sdk.ClientSession {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: s.Client(), DisableStandaloneSSE: true}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func grants(scopes ...access.Grant) *access.Caller {
	return &access.Caller{Name: "token:test", Grants: scopes}
}

// A caller sees the sessions that it may read. For every tool, the answer about another one
// is the same as about a name that was never used.
func TestHiddenSessionsDoNotExist(t *testing.T) {
	engine := openEngine(t)
	recordDemo(t, engine)
	recordConversation(t, engine)
	s := client(t, overHTTP(t, mcp.Config{Lend: lend(engine), AllowRecord: true, Now: fixedNow}, grants(
		access.Grant{Scope: access.ScopeRead, Sessions: []string{"night"}}, access.Grant{Scope: access.ScopeRecord, Sessions: []string{"out"}}, access.Grant{Scope: access.ScopeDefine, Sessions: []string{"out"}},
	)))
	list := structure(t, called(t, s, "list_sessions", `{}`))
	assert.Contains(t, string(list.Recorded), `"night"`)
	assert.NotContains(t, string(list.Recorded), "conversation")
	for tool, all := range samples {
		for _, sample := range all {
			if !strings.Contains(sample, `"session": %s`) {
				continue
			}
			hidden := shown(called(t, s, tool, argumentsOf(t, sample, "conversation")))
			absent := shown(called(t, s, tool, argumentsOf(t, sample, "conversatiom")))
			same := strings.ReplaceAll(hidden, "conversation", "conversatiom")
			assert.Equal(t, unnamed(absent), unnamed(same), "%s %s", tool, sample)
			assert.Contains(t, hidden, "no-session", "%s %s", tool, sample)
		}
	}
	// Nor is the default session one that the caller may not read.
	assert.Contains(t, shown(called(t, s, "verify", `{}`)), `"session":"night"`)
	assert.Contains(t, shown(called(t, s, "emit_signal", `{"type":"x","from":"me","session":"night"}`)), "forbidden")
	assert.Contains(t, shown(called(t, s, "emit_signal", `{"type":"x","from":"me","session":"out"}`)), `"seq":2`)
	assert.Contains(t, shown(called(t, s, "fork", `{"session":"night","name":"elsewhere"}`)), "forbidden")
}

// unnamed leaves the names of blocks out of a text.
func unnamed(text string) string {
	for _, m := range opening.FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, m[1], "recorded")
	}
	return text
}

// A caller with the right to act as one agent sees what that agent sees, and nothing else.
func TestAgentSeesItsView(t *testing.T) {
	engine := openEngine(t)
	recordConversation(t, engine)
	s := client(t, overHTTP(t, mcp.Config{Lend: lend(engine), AllowRecord: true}, grants(access.Grant{Scope: access.ScopeAct, Sessions: []string{"*"}, Agent: "A"})))
	view := shown(called(t, s, "state", `{"session":"conversation","as_agent":"A"}`))
	assert.Contains(t, view, "visible_entities")
	assert.NotContains(t, view, "light is out")
	for _, path := range []string{"/visible_entities/C/private_message", "/visible_entities/C/no_such_message"} {
		got := shown(called(t, s, "state", fmt.Sprintf(`{"session":"conversation","as_agent":"A","path":%q}`, path)))
		assert.Equal(t, "Error no-moment. The view of the agent does not have it: whether it was hidden or absent, the agent could not tell.", strings.Split(got, "\n")[0])
	}
	for _, arguments := range []string{`{"session":"conversation"}`, `{"session":"conversation","as_agent":"C"}`, `{"session":"conversation","path":"world"}`, `{"session":"nothing","as_agent":"C"}`} {
		assert.Contains(t, shown(called(t, s, "state", arguments)), "no-session", arguments)
	}
	assert.Contains(t, shown(called(t, s, "state", `{"session":"conversation","as_agent":"A","at":"corr:secret"}`)), "forbidden")
	assert.Contains(t, shown(called(t, s, "state", `{"session":"conversation","as_agent":"A","at":"9"}`)), "forbidden")
	tools, err := s.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		assert.True(t, tool.Annotations.ReadOnlyHint, "%s is not offered", tool.Name)
		for _, sample := range samples[tool.Name] {
			assert.NotContains(t, shown(called(t, s, tool.Name, argumentsOf(t, sample, "conversation"))), "light is out", tool.Name)
		}
	}
}

// What is not a message is answered with a problem document.
func TestBadPosts(t *testing.T) {
	engine := openEngine(t)
	s := overHTTP(t, mcp.Config{Lend: lend(engine)}, grants())
	post := func(s *httptest.Server, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := s.Client().Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(text)
	}
	for body, want := range map[string]int{
		"": 400, "[]": 400, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`: 400, "{": 400, `{"a":1}`: 400,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("x", mcp.MaxMessage) + `"}}`: 413,
	} {
		status, text := post(s, body)
		assert.Equal(t, want, status, "%.40s: %.200s", body, text)
	}
	status, text := post(s, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`)
	assert.Equal(t, 200, status)
	assert.Contains(t, text, "-32601")
	status, text = post(overHTTP(t, mcp.Config{Lend: lend(engine)}, nil), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	assert.Equal(t, 401, status)
	assert.Contains(t, text, "unauthenticated")
}

// A page, and the parts of a text, put together are the answer without a bound; each is
// within its bound.
func TestPagesAreTheAnswer(t *testing.T) {
	engine := openEngine(t)
	recordConversation(t, engine)
	recordDemo(t, engine)
	const most = 2500
	small := connected(t, mcp.Config{Lend: lend(engine), MaxBytes: most, MaxEntries: 7})
	large := connected(t, mcp.Config{Lend: lend(engine), MaxBytes: 10 << 20})
	for tool, arguments := range map[string]string{
		"list_entries":       `{"session":"night"}`,
		"state":              `{"session":"night"}`,
		"get_scene_state":    `{"session":"night"}`,
		"get_choreographies": `{"session":"night"}`,
		"diff":               `{"session":"night","from":"0","to":"end","path":"stage"}`,
		"blame":              `{"session":"night","path":"stage.entities.smith","all":true}`,
		"scan":               `{"session":"night","where":"entry.kind == 'signal'"}`,
		"scan ":              `{"session":"night","where":"state.stage.entities.smith.state","mode":"changes"}`,
		"scan  ":             `{"session":"night","where":"entry.type == 'tool_call'","mode":"last"}`,
		"scan   ":            `{"session":"night","where":"entry.type == 'tool_call'","mode":"first"}`,
		"why":                `{"session":"night","at":"38"}`,
	} {
		name := strings.TrimSpace(tool)
		want := structure(t, called(t, large, name, arguments))
		require.Nil(t, want.Error, "%s: %s", tool, want.Recorded)
		var items []json.RawMessage
		text, cursor, pages := "", "", 0
		for {
			given := arguments
			if cursor != "" {
				given = strings.TrimSuffix(arguments, "}") + fmt.Sprintf(`,"cursor":%q}`, cursor)
			}
			got := structure(t, called(t, small, name, given))
			require.Nil(t, got.Error, "%s: %s", given, got.Recorded)
			require.LessOrEqual(t, len(got.Recorded)+len(got.Part), most+200, given)
			text += got.Part
			if got.Part == "" && got.Recorded[0] == '{' {
				text = string(got.Recorded) // it fits
			} else if got.Part == "" {
				var page []json.RawMessage
				require.NoError(t, json.Unmarshal(got.Recorded, &page))
				items = append(items, page...)
			}
			if pages++; got.Next == "" {
				break
			}
			require.NotEqual(t, cursor, got.Next)
			require.Less(t, pages, 200)
			cursor = got.Next
		}
		if text == "" {
			all, err := json.Marshal(items)
			require.NoError(t, err)
			text = string(all)
		}
		if name != "diff" && name != "blame" && name != "list_entries" && name != "get_choreographies" { // a huge item is told by its size
			assert.JSONEq(t, string(want.Recorded), text, "%s %s in %d pages", tool, arguments, pages)
		}
		if name == "list_entries" {
			var whole []json.RawMessage
			require.NoError(t, json.Unmarshal(want.Recorded, &whole))
			assert.Len(t, items, len(whole))
		}
	}
}

// A search of moments is continued where its budget ended it.
func TestMomentsAreContinued(t *testing.T) {
	engine := openEngine(t)
	recordDemo(t, engine)
	arguments := `{"session":"night","where":"state.performances.size() % 2 == 1","moments":true}`
	want := structure(t, called(t, connected(t, mcp.Config{Lend: lend(engine)}), "scan", arguments))
	s := connected(t, mcp.Config{Lend: lend(engine), MaxEntries: 12})
	var items, whole []json.RawMessage
	require.NoError(t, json.Unmarshal(want.Recorded, &whole))
	cursor := ""
	for pages := 0; ; pages++ {
		require.Less(t, pages, 100)
		got := structure(t, called(t, s, "scan", strings.TrimSuffix(arguments, "}")+fmt.Sprintf(`,"cursor":%q}`, cursor)))
		require.Nil(t, got.Error, string(got.Recorded))
		var page []json.RawMessage
		require.NoError(t, json.Unmarshal(got.Recorded, &page))
		items = append(items, page...)
		if cursor = got.Next; cursor == "" {
			break
		}
	}
	require.Len(t, items, len(whole))
	for i := range whole {
		var a, b struct {
			From, Until struct{ Moment string }
		}
		require.NoError(t, json.Unmarshal(whole[i], &a))
		require.NoError(t, json.Unmarshal(items[i], &b))
		assert.Equal(t, a, b)
	}
}

// A call ends with its time, also if its work does not, and a panic ends one call alone.
func TestCallsEnd(t *testing.T) {
	engine := openEngine(t)
	recordDemo(t, engine)
	answered := make(chan struct{}) // until then no work ends
	s := connected(t, mcp.Config{Timeout: 1, Lend: func(ctx context.Context, write bool) (*sajouEngine, func() error, error) {
		<-answered
		return lend(engine)(ctx, write)
	}})
	for _, tool := range []string{"scan", "state", "verify"} {
		sample := argumentsOf(t, samples[tool][0], "night")
		assert.Contains(t, shown(called(t, s, tool, sample)), "Error timeout.", tool)
	}
	close(answered)
	broken := connected(t, mcp.Config{Lend: func(context.Context, bool) (_ *sajouEngine, _ func() error, _ error) { panic("boom") }})
	assert.Contains(t, shown(called(t, broken, "list_sessions", `{}`)), "Error internal.")
	secret := connected(t, mcp.Config{Lend: func(context.Context, bool) (*sajouEngine, func() error, error) {
		return nil, nil, fmt.Errorf("open /home/ann/store: no luck")
	}})
	text := shown(called(t, secret, "list_sessions", `{}`))
	assert.Contains(t, text, "Error internal.")
	assert.NotContains(t, text, "/home/ann")
}

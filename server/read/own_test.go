package read_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/read"
	"github.com/sajou-dev/sajou-go/signal"
)

// acting returns the routes for a caller that may do nothing but act as one agent.
func acting(engine *sajou.Engine, agent string) http.Handler {
	mux := http.NewServeMux()
	for _, e := range read.New(engine, read.Config{}).Routes() {
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) {
			caller := &access.Caller{Name: "token:" + agent, Grants: []access.Grant{{Scope: access.ScopeAct, Sessions: []string{"*"}, Agent: agent}}}
			r = r.WithContext(access.With(r.Context(), caller))
			err := access.Check(r.Context(), e.Scope, r.PathValue("session"))
			if err == nil {
				err = e.Handler(w, r)
			}
			if err != nil {
				_ = problem.Write(w, r, err)
			}
		})
	}
	return mux
}

// all returns everything of an answer that a caller can see.
func all(w *httptest.ResponseRecorder) string {
	res := w.Result()
	defer func() { _ = res.Body.Close() }()
	var header []byte
	for _, name := range []string{"ETag", "Cache-Control", "Content-Type", "Content-Length", "Vary"} {
		header = append(header, name+"="+res.Header.Get(name)+"\n"...)
	}
	return res.Status + "\n" + string(header) + w.Body.String()
}

// hidden returns an engine with a world in which ann sees nothing of what bob does, who
// has done something or not.
func hidden(t *testing.T, does bool) *sajou.Engine {
	t.Helper()
	engine := enginetest.Memory(t, sajou.Config{})
	world := enginetest.BeginManual(t, engine, "s").Agents()
	parse := func(text string) signal.Value {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		return v
	}
	require.NoError(t, world.Begin(t.Context(), parse(`{"entities":{"ann":{"type":"agent"},"bob":{"type":"agent"}}}`)))
	_, err := world.Register(t.Context(), "ann", parse(`{"policy":"self"}`))
	require.NoError(t, err)
	if does {
		_, err = world.Register(t.Context(), "bob", parse(`{"policy":"everything"}`))
		require.NoError(t, err)
	}
	require.NoError(t, world.Settle(t.Context()))
	return engine
}

// A caller that may only act as ann sees her view, and the same bytes whether bob exists or not.
func TestHiddenIsAbsent(t *testing.T) {
	with, without := acting(hidden(t, true), "ann"), acting(hidden(t, false), "ann")
	for _, path := range []string{
		"s/agents/ann/view", "s/agents/bob/view", "s/agents/nobody/view", "s/agents/ann/view?at=1", "s/agents/ann/view?at=9999", "s/agents/ann/knows",
		"s/agents", "s/entries", "s/entries/1", "s", "s/state", "s/agents/ann/leak?path=bob", "s/export", "s/frame", "nothing/agents/ann/view",
	} {
		assert.Equal(t, all(get(without, path)), all(get(with, path)), path)
	}
	assert.Equal(t, http.StatusOK, get(with, "s/agents/ann/view").Code)
	assert.Equal(t, all(get(with, "s/agents/nobody/view")), all(get(with, "s/agents/bob/view")))
	assert.Equal(t, http.StatusForbidden, get(with, "s/agents/bob/view").Code)
	assert.Equal(t, http.StatusForbidden, get(with, "s/entries").Code)
	other := acting(hidden(t, true), "carl")
	assert.Equal(t, all(get(other, "nothing/agents/carl/view")), all(get(other, "s/agents/carl/view")), "no session, no agent")
	assert.NotContains(t, get(other, "s/agents/carl/view").Body.String(), "bob")
}

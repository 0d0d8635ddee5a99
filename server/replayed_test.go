package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mathrand "math/rand"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
)

// newToken adds a token that expires to a file and returns its text.
func newToken(t *testing.T, path, name string, seed int64, expires time.Time, grants ...access.Grant) string {
	t.Helper()
	text, token, err := access.NewToken(mathrand.New(mathrand.NewSource(seed)), name, grants, noon, expires)
	require.NoError(t, err)
	require.NoError(t, access.ChangeTokens(path, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
		return access.AddToken(tokens, token, noon)
	}))
	return text
}

// TestAttackReplayedTokens sends tokens that no longer count, tokens that were found in files of
// the server, and tokens in places where proxies and browsers keep them. None of them lets a
// caller in, over HTTP or as the first message of a WebSocket.
func TestAttackReplayedTokens(t *testing.T) {
	c := newContract(t, nil)
	path := filepath.Join(t.TempDir(), "tokens")
	var now atomic.Int64
	now.Store(noon.UnixNano())
	s, err := server.New(c.engine, server.Config{
		Access: access.Config{Tokens: path, Loopback: []access.Scope{}},
		Now:    func() time.Time { return time.Unix(0, now.Load()) },
	})
	require.NoError(t, err)
	live := httptest.NewServer(s)
	defer live.Close()
	grants := []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"hall"}}, {Scope: access.ScopeAct, Agent: "alice", Sessions: []string{"hall"}}}
	const target = sessions + "hall/entries?limit=1"
	byHeader := func(header ...string) problem.ErrorCode {
		w := servertest.Ask(s, http.MethodGet, target, "", header...)
		if w.Code == http.StatusOK {
			return ""
		}
		assert.Equal(t, http.StatusUnauthorized, w.Code)
		return codeOf(t, w)
	}
	byHello := func(token string) int {
		k := upgraded(t, strings.TrimPrefix(live.URL, "http://"), sessions+"hall/agents/alice/ws", "sajou.agent.v1")
		defer func() { _ = k.Close() }()
		hello, err := json.Marshal(map[string]string{"type": "hello", "token": token})
		require.NoError(t, err)
		k.send(t, string(frame(0x81, string(hello)))+string(frame(0x88, "\x03\xe8")))
		return k.closeCode(t)
	}
	lets := func(token string) {
		t.Helper()
		require.Empty(t, byHeader("Authorization", "Bearer "+token))
		require.Equal(t, 1000, byHello(token))
	}
	refuses := func(token string) {
		t.Helper()
		assert.Equal(t, problem.Unauthenticated, byHeader("Authorization", "Bearer "+token))
		assert.Equal(t, 4001, byHello(token))
	}

	short := newToken(t, path, "short", 1, noon.Add(time.Hour), grants...)
	long := newToken(t, path, "long", 2, time.Time{}, grants...)
	lets(short)
	lets(long)
	for _, header := range [][]string{
		{"Cookie", "token=" + long},
		{"X-Api-Key", long},
		{"Authorization", "Basic " + long},
		{"Authorization", long},
		{"Proxy-Authorization", "Bearer " + long},
		{"Authorization", "Bearer " + long, "Authorization", "Bearer " + short},
		{"Authorization", "Bearer " + long + ", Bearer " + short},
	} {
		assert.Equal(t, problem.Unauthenticated, byHeader(header...), header)
	}
	for _, query := range []string{"token=", "access_token=", "authorization=Bearer+"} {
		w := servertest.Ask(s, http.MethodGet, sessions+"hall/entries?"+query+long, "")
		assert.Equal(t, http.StatusUnauthorized, w.Code, query)
	}
	refuses(strings.ToUpper(long))
	refuses(long + " ")
	refuses(long[:len(long)-1])
	refuses(strings.Replace(long, "a", "\u0430", 1))
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	var kept struct {
		Tokens []access.AccessToken `json:"tokens"`
	}
	require.NoError(t, json.Unmarshal(file, &kept))
	require.Len(t, kept.Tokens, 2)
	assert.NotContains(t, string(file), long)
	for _, k := range kept.Tokens { // of a copy of the file
		refuses(k.Hash)
		refuses(k.ID)
	}

	now.Store(noon.Add(time.Hour).UnixNano())
	refuses(short)
	lets(long)
	now.Store(noon.UnixNano())
	require.NoError(t, access.ChangeTokens(path, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
		tokens, _, err := access.RevokeToken(tokens, "long", noon)
		return tokens, err
	}))
	refuses(long)
	again := newToken(t, path, "long", 3, time.Time{}, grants...)
	refuses(long)
	lets(again)
	assert.NotZero(t, s.SecurityEvents().Counts()[access.AuthFailed])
	for _, event := range s.SecurityEvents().After(0, "", 1000) {
		text, err := json.Marshal(event)
		require.NoError(t, err)
		assert.NotContains(t, string(text), long)
	}
}

// TestAttackClock sets the clock of a server back and ahead. It goes on recording, the time of
// the session never goes back, and nothing else stands still.
func TestAttackClock(t *testing.T) {
	var now atomic.Int64
	now.Store(noon.UnixNano())
	clock := func() time.Time { return time.Unix(0, now.Load()) }
	never := func(time.Duration, func()) func() bool { return func() bool { return true } }
	engine := enginetest.Memory(t, sajou.Config{Now: clock, AfterFunc: never})
	m := &measurements{}
	s, err := server.New(engine, server.Config{Now: clock, AfterFunc: never, Requests: m, Access: access.Config{Loopback: access.Scopes()}})
	require.NoError(t, err)
	for i, step := range []time.Duration{0, -time.Second, -48 * time.Hour, 400 * 24 * time.Hour, -30 * 365 * 24 * time.Hour, 0, 200 * 365 * 24 * time.Hour, -220 * 365 * 24 * time.Hour, 30 * 24 * time.Hour} {
		now.Add(int64(step))
		for range 2 {
			w := servertest.Ask(s, http.MethodPost, "/api/signal", `{"type":"user.tick"}`)
			require.Equal(t, http.StatusOK, w.Code, "after %v: %s", step, w.Body)
			now.Add(int64(time.Millisecond))
		}
		assert.Equal(t, problem.BadRequest, codeOf(t, servertest.Ask(s, http.MethodPost, "/api/signal", `{`)))
		assert.Equal(t, problem.Forbidden, codeOf(t, servertest.Ask(s, http.MethodPost, "/api/v1/checkpoints", ``)))
		w := servertest.Ask(s, http.MethodPost, sessions+"live/jobs", `{"kind":"verify"}`)
		require.Equal(t, http.StatusAccepted, w.Code, w.Body)
		var report server.SecurityReport
		require.NoError(t, json.Unmarshal(servertest.Ask(s, http.MethodGet, "/api/v1/security/events", "").Body.Bytes(), &report))
		assert.Equal(t, uint64(i+1), report.Counts[access.ActForbidden])
	}
	w := servertest.Ask(s, http.MethodGet, sessions+"live/entries?format=ndjson", "")
	require.Equal(t, http.StatusOK, w.Code)
	last, n := -1.0, 0
	for line := range strings.Lines(w.Body.String()) {
		var e struct {
			At   float64 `json:"at"`
			Type string  `json:"type"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		assert.GreaterOrEqual(t, e.At, last, line)
		last, n = e.At, n+1
	}
	assert.Equal(t, 19, n, "the entry that begins the session, and each signal")
	assert.True(t, m.shortest >= 0, "no request took less than no time")
}

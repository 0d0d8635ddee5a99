package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTokensOfARunningServer shows that a server notices a new and a revoked token, and
// that what it refused can be read back.
func TestTokensOfARunningServer(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 1)
	url, stop := serveStore(t, store)
	ask := func(token string) (status int, body string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/security/events", nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		data, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode, string(data)
	}
	status, _ := ask("")
	assert.Equal(t, http.StatusForbidden, status, "a caller of this machine records and reads only")
	made := sajouReplay(t.Context(), t, nil, "-C", store, "token", "create", "watch", "--scope", "admin")
	require.Zero(t, made.code, made.stderr)
	token := strings.TrimSpace(made.stdout)
	status, body := ask(token)
	require.Equal(t, http.StatusOK, status)
	var report struct {
		Counts map[string]int
		Events []struct{ Kind, Caller string }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &report))
	require.Len(t, report.Events, 1)
	assert.Equal(t, "loopback", report.Events[0].Caller)
	assert.Equal(t, 1, report.Counts["ACT_FORBIDDEN"])
	require.Zero(t, sajouReplay(t.Context(), t, nil, "-C", store, "token", "revoke", "watch").code)
	status, _ = ask(token)
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Zero(t, stop())

	written, err := os.ReadFile(store + ".security.jsonl")
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(written), "\n"))
	assert.Contains(t, string(written), `"kind":"AUTH_FAILED","caller":"token:watch"`)
	assert.NotContains(t, string(written), token)
	require.Zero(t, sajouReplay(t.Context(), t, nil, "-C", store, "verify").code, "the files beside the store do not disturb it")
}

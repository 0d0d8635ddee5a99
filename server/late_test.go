package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server"
)

// A late signal is marked by each of the routes that show entries.
func TestLateSignalsAreMarked(t *testing.T) {
	s := serve(t, server.Config{})
	for _, at := range []string{"2000", "1000"} {
		res, err := http.Post(s.url+"/api/v1/sessions/late/signals", "application/json", strings.NewReader(`{"id":"a`+at+`","type":"note","timestamp":`+at+`,"source":"t","payload":{}}`))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
	for path, want := range map[string]int{"entries": 1, "entries?range=3..3": 1, "entries?range=1..2": 0, "entries?format=ndjson": 1, "entries/3": 1, "entries/2": 0, "export?format=entries": 1, "export?format=entries&range=3..": 1, "export?format=raw": 0} {
		status, _, body := ask(t, http.MethodGet, s.url+"/api/v1/sessions/late/"+path, nil)
		require.Equal(t, http.StatusOK, status, string(body))
		assert.Equal(t, want, strings.Count(string(body), `"late":true`), "%s: %s", path, body)
	}
	for tool, args := range map[string]string{"inspect_entry": `"at":"3"`, "list_entries": `"range":"3.."`, "scan": `"where":"true"`} {
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"session":"late",` + args + `}}}`
		w := servertest.Ask(s, http.MethodPost, "/mcp", call, mcpHeader...)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		assert.Contains(t, w.Body.String(), `\"late\":true`, tool)
	}
	res, err := http.Get(s.url + "/api/v1/sessions/late/live?from=3")
	require.NoError(t, err)
	var event []byte
	for !strings.Contains(string(event), `"payload"`) {
		part := make([]byte, 1024)
		n, err := res.Body.Read(part)
		event = append(event, part[:n]...)
		require.NoError(t, err, string(event))
	}
	require.NoError(t, res.Body.Close())
	assert.Contains(t, string(event), `"late":true`)
}

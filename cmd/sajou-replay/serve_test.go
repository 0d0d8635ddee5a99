package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// serveStore runs "serve" for a store on a port of its own and returns its URL, and a
// function that interrupts it and returns its exit code.
func serveStore(t *testing.T, store string, args ...string) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	lines, stderr := io.Pipe()
	code := make(chan int, 1)
	go func() {
		err := run(ctx, append([]string{"-C", store, "serve", "--listen", "127.0.0.1:0"}, args...), nil, io.Discard, stderr)
		code <- cli.ExitCode(err, stderr)
		_ = stderr.Close()
	}()
	scanner := bufio.NewScanner(lines)
	for url == "" && scanner.Scan() {
		if m := regexp.MustCompile(`serving .* at (http\S+);`).FindStringSubmatch(scanner.Text()); m != nil {
			url = m[1]
		}
	}
	require.NotEmpty(t, url, "serve did not begin")
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	stop = func() int {
		cancel()
		<-drained
		got := <-code
		code <- got
		return got
	}
	t.Cleanup(func() { stop() })
	return url, stop
}

func TestServe(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 3)
	var spans bytes.Buffer // what the receiver of traces gets until the server has stopped
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		spans.WriteString(r.URL.Path)
		_, _ = io.Copy(&spans, r.Body)
	}))
	defer receiver.Close()
	url, stop := serveStore(t, store, "--otlp", receiver.URL)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/readyz", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusOK, res.StatusCode)
	req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	require.NoError(t, err)
	res, err = http.DefaultClient.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Contains(t, string(body), `sajou_http_requests_total{route="GET /readyz",status="200"} 1`)
	assert.Contains(t, string(body), "sajou_log_failed 0")
	assert.Contains(t, string(body), "sajou_spool_traces 0")
	second := sajouReplay(t.Context(), t, nil, "-C", store, "--wait", "0s", "serve", "--listen", "127.0.0.1:0")
	assert.Equal(t, cli.ExitLocked, second.code)
	assert.Contains(t, second.stderr, "is in use by another process")
	taken := sajouReplay(t.Context(), t, nil, "-C", store+"2", "serve", "--listen", url[len("http://"):])
	assert.Equal(t, cli.ExitNo, taken.code)
	assert.Contains(t, taken.stderr, "is in use, perhaps by another server")
	assert.NoDirExists(t, store+"2")
	assert.Equal(t, 0, stop())
	for _, part := range []string{"/v1/traces", "sajou-replay", "GET /readyz", "GET /metrics"} {
		assert.Contains(t, spans.String(), part)
	}
	assert.Equal(t, 0, sajouReplay(t.Context(), t, nil, "-C", store, "verify").code)
}

// With --allow-hooks, a page can connect the tap: the hooks of Claude Code are installed in
// the directory of the server, and removed again. Without it, nothing is changed.
func TestServeConnectsTap(t *testing.T) {
	t.Chdir(t.TempDir())
	const file = ".claude/settings.local.json"
	post := func(url string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return strings.TrimSpace(string(body))
	}
	url, stop := serveStore(t, filepath.Join(t.TempDir(), "store"))
	assert.Contains(t, post(url+"/api/tap/connect"), `"ok":false`)
	assert.NoFileExists(t, file)
	assert.Zero(t, stop())
	url, _ = serveStore(t, filepath.Join(t.TempDir(), "store"), "--allow-hooks")
	assert.JSONEq(t, `{"ok":true}`, post(url+"/api/tap/connect"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), "PreToolUse")
	assert.Contains(t, string(text), "--server "+url)
	assert.JSONEq(t, `{"ok":true}`, post(url+"/api/tap/disconnect"))
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "PreToolUse")
}

func TestConfigCheck(t *testing.T) {
	t.Setenv("SAJOU_IDLE_TIMEOUT", "9s")
	r := sajouReplay(t.Context(), t, nil, "config", "check", "--host", "a.example", "-o", "jsonl")
	assert.Zero(t, r.code)
	assert.Contains(t, r.stdout, `{"name":"host","value":["a.example"],"source":"--host"}`)
	assert.Contains(t, r.stdout, `{"name":"idle-timeout","value":"9s","source":"SAJOU_IDLE_TIMEOUT"}`)
	assert.Contains(t, r.stdout, `{"name":"body-timeout","value":"30s","source":"default"}`)
	r = sajouReplay(t.Context(), t, nil, "config", "check", "--log-level", "loud")
	assert.Equal(t, cli.ExitMisuse, r.code)
	assert.Contains(t, r.stderr, `"loud" is not a level; use debug, info, warn or error`)
}

// config check refuses what serve refuses before it opens the store, and names a variable
// that is almost one of a setting.
func TestConfigCheckRefusesAsServeDoes(t *testing.T) {
	t.Setenv("SAJOU_STORE", filepath.Join(t.TempDir(), "store"))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"the certificate cannot be used", []string{"--tls-cert", "none.pem", "--tls-key", "none.pem"}},
		{"can be reached from other machines, and there is no access token", []string{"--listen", "0.0.0.0:1"}},
	} {
		r := sajouReplay(t.Context(), t, nil, append([]string{"config", "check"}, c.args...)...)
		assert.Equal(t, cli.ExitMisuse, r.code, "%v", c.args)
		assert.Contains(t, r.stderr, c.want)
		assert.Empty(t, r.stdout)
	}
	t.Setenv("SAJOU_LISTN", "127.0.0.1:1")
	t.Setenv("SAJOU_TOKEN", "x")
	r := sajouReplay(t.Context(), t, nil, "config", "check")
	assert.Zero(t, r.code)
	assert.Contains(t, r.stderr, "SAJOU_LISTN is not a setting; did you mean SAJOU_LISTEN?")
	assert.NotContains(t, r.stderr, "SAJOU_TOKEN ")
}

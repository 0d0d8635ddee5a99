package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// TestMain is the service itself if the test asks for it, and otherwise runs the tests.
func TestMain(m *testing.M) {
	if os.Getenv("SAJOU_SERVICE_TEST") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// client gives up before the test does.
var client = &http.Client{Timeout: 30 * time.Second}

// process is a running service.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	logs chan string // what it logs, once it has ended
}

// start runs the service on a store, and returns when it listens.
func start(t *testing.T, store, backups string) *process {
	t.Helper()
	p := &process{t: t, logs: make(chan string, 1)}
	p.cmd = exec.CommandContext(t.Context(), os.Args[0], "-store", store, "-backups", backups, "-listen", "127.0.0.1:0")
	p.cmd.Env = append(os.Environ(), "SAJOU_SERVICE_TEST=1")
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	lines, listening := bufio.NewReader(stderr), regexp.MustCompile(`msg=listening address=(\S+)`)
	var seen strings.Builder
	for p.url == "" {
		line, err := lines.ReadString('\n')
		seen.WriteString(line)
		require.NoError(t, err, seen.String())
		if m := listening.FindStringSubmatch(line); m != nil {
			p.url = "http://" + m[1]
		}
	}
	go func() {
		rest, _ := io.ReadAll(lines)
		p.logs <- seen.String() + string(rest)
	}()
	return p
}

// stop sends the signal of a supervisor, and waits for the end.
func (p *process) stop() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	logs := <-p.logs
	require.NoError(p.t, p.cmd.Wait(), logs)
	assert.NotContains(p.t, logs, "level=ERROR")
	assert.NotContains(p.t, logs, "level=WARN")
}

// do returns the status and the body of a request.
func (p *process) do(method, path, body string, header ...string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	require.NoError(p.t, err)
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	require.NoError(p.t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(p.t, err)
	require.NoError(p.t, res.Body.Close())
	return res.StatusCode, strings.TrimSpace(string(text))
}

// want checks the status of a request and returns its body.
func (p *process) want(status int, method, path, body string, header ...string) string {
	p.t.Helper()
	got, text := p.do(method, path, body, header...)
	require.Equal(p.t, status, got, "%s %s: %s", method, path, text)
	return text
}

// kinds reads the kinds of n commands, or of all if n is negative.
func kinds(t *testing.T, r *bufio.Reader, n int) (list []string) {
	t.Helper()
	for n < 0 || len(list) < n {
		line, err := r.ReadBytes('\n')
		if err == io.EOF && n < 0 {
			break
		}
		require.NoError(t, err)
		var c struct{ Kind, EntityRef string }
		require.NoError(t, json.Unmarshal(line, &c))
		list = append(list, c.Kind+" "+c.EntityRef)
	}
	return list
}

const dispatch = `{"id":"1","type":"task_dispatch","timestamp":1700000000000,"source":"test","payload":{"taskId":"t","from":"boss","to":"scout"}}`

func usage(id int, cost string) string {
	return fmt.Sprintf(`{"id":"u%d","type":"token_usage","timestamp":1700000000100,"source":"test",`+
		`"payload":{"agentId":"scout","promptTokens":1,"completionTokens":1,"model":"m","cost":%s}}`, id, cost)
}

// The service records, shows, plays, counts, copies and stops, as its page says.
func TestService(t *testing.T) {
	dir := t.TempDir()
	store, backups := filepath.Join(dir, "store"), filepath.Join(dir, "backups")
	p := start(t, store, backups)

	// Signals: once each, and only those that the schema permits.
	first := p.want(http.StatusOK, "POST", "/sessions/a/signals", dispatch, "Idempotency-Key: one")
	require.Contains(t, first, `"repeat":false`)
	again := p.want(http.StatusOK, "POST", "/sessions/a/signals", dispatch, "Idempotency-Key: one")
	require.Equal(t, strings.Replace(first, "false", "true", 1), again)
	// A client's key is never one of the service.
	for _, key := range []string{"choreographies-1", "service/choreographies-1"} {
		require.Contains(t, p.want(http.StatusOK, "POST", "/sessions/keys/signals", dispatch, "Idempotency-Key: "+key), `"repeat":false`)
	}
	require.Contains(t, p.want(http.StatusBadRequest, "POST", "/sessions/a/signals", `{"id":"2"}`), "/type: is required")
	p.want(http.StatusBadRequest, "POST", "/sessions/a/signals", `{`)
	p.want(http.StatusBadRequest, "POST", "/sessions/a/signals", strings.Repeat(" ", 1<<20+1))
	p.want(http.StatusOK, "POST", "/sessions/a/signals", usage(1, "0.25"))
	p.want(http.StatusOK, "POST", "/sessions/a/signals", usage(2, "4"))

	// The program's projection, now and at an entry.
	require.JSONEq(t, `{"cost":4.25,"entry":5}`, p.want(http.StatusOK, "GET", "/sessions/a/costs", ""))
	require.JSONEq(t, `{"cost":0.25,"entry":4}`, p.want(http.StatusOK, "GET", "/sessions/a/costs?at=4", ""))
	p.want(http.StatusNotFound, "GET", "/sessions/a/costs?at=9", "")
	p.want(http.StatusBadRequest, "GET", "/sessions/a/costs?at=x", "")
	p.want(http.StatusNotFound, "GET", "/sessions/none/costs", "")

	// The player.
	res, err := client.Get(p.url + "/sessions/a/replay?from=1")
	require.NoError(t, err)
	require.Equal(t, []string{"start scout", "complete scout"}, kinds(t, bufio.NewReader(res.Body), -1))
	require.NoError(t, res.Body.Close())

	// A message of an agent that joins with it.
	said := p.want(http.StatusOK, "POST", "/sessions/a/agents/ann/messages", `{"text":"hello","req_id":"1"}`)
	require.JSONEq(t, `{"status":"accepted"}`, said)
	said = p.want(http.StatusOK, "POST", "/sessions/a/agents/ann/messages", `{"text":"hello","req_id":"1"}`)
	require.JSONEq(t, `{"status":"duplicate"}`, said)
	require.Contains(t, p.want(http.StatusUnprocessableEntity, "POST", "/sessions/a/agents/bob/messages", `{"text":"?","to":"nobody","req_id":"1"}`), "nobody")
	for _, body := range []string{`?`, `[]`, `{"text":1}`} {
		require.Equal(t, "want a JSON object with the strings text, to and req_id", p.want(http.StatusBadRequest, "POST", "/sessions/a/agents/ann/messages", body))
	}

	// Probe, metrics, backup.
	require.JSONEq(t, `{"sinks_failed":0,"snapshots":true}`, p.want(http.StatusOK, "GET", "/ready", ""))
	require.Contains(t, p.want(http.StatusOK, "GET", "/metrics", ""), "sajou_log_entries_total")
	copied := p.want(http.StatusOK, "POST", "/backups/monday", "")
	p.want(http.StatusConflict, "POST", "/backups/monday", "")
	p.want(http.StatusBadRequest, "POST", "/backups/..%2Fstore", "")

	// A viewer that is there when the service stops.
	res, err = client.Get(p.url + "/sessions/live/live")
	require.NoError(t, err)
	p.want(http.StatusOK, "POST", "/sessions/live/signals", dispatch)
	viewer := bufio.NewReader(res.Body)
	require.Equal(t, []string{"start scout"}, kinds(t, viewer, 1))
	p.stop()
	_ = kinds(t, viewer, -1) // the stream has ended, and not in the middle of a line
	require.NoError(t, res.Body.Close())

	// Nothing is lost, and the backup is a store.
	for name, sessions := range map[string]int{store: 3, filepath.Join(backups, "monday"): 2} {
		eng, err := sajou.Open(name, sajou.Config{ReadOnly: true})
		require.NoError(t, err)
		names, err := eng.Sessions()
		require.NoError(t, err)
		require.Len(t, names, sessions)
		report, err := eng.Log().Verify(t.Context(), "a", verify.Options{})
		require.NoError(t, err)
		require.True(t, report.Whole())
		require.Contains(t, copied, fmt.Sprintf(`"a":%q`, report.Head))
		require.NoError(t, eng.Close())
	}

	// It continues where it stopped.
	p = start(t, store, backups)
	require.Equal(t, again, p.want(http.StatusOK, "POST", "/sessions/a/signals", dispatch, "Idempotency-Key: one"))
	p.stop()
}

// A store that is none, or is damaged, is an error of the process, and left as it is.
func TestServiceRefusesADamagedStore(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	start(t, store, t.TempDir()).stop()
	name := filepath.Join(store, "SAJOU")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, bytes.ToUpper(text), 0o600))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-store", store, "-listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "SAJOU_SERVICE_TEST=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "the store is damaged and was left as it is")
}

package record_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time on the clock of the tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// door is a server that records.
type door struct {
	t      *testing.T
	engine *sajou.Engine
	addr   string
	stop   func() // ends the server
}

// open starts a server over a store. It stops at the end of the test.
func open(t *testing.T, engineCfg sajou.Config, cfg record.Config) *door {
	t.Helper()
	dir := "store"
	if engineCfg.FS == nil {
		dir = t.TempDir()
	}
	if engineCfg.Now == nil {
		engineCfg.Now, engineCfg.AfterFunc = func() time.Time { return noon }, func(time.Duration, func()) func() bool { return func() bool { return true } }
	}
	engine, err := sajou.Open(dir, engineCfg)
	require.NoError(t, err)
	var ids atomic.Int64
	if cfg.NewID == nil {
		cfg.NewID = func() string { return fmt.Sprintf("id-%d", ids.Add(1)) }
	}
	s, err := server.New(engine, server.Config{Record: cfg, Now: func() time.Time { return noon }, AfterFunc: cfg.AfterFunc})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stopped := false
	d := &door{t: t, engine: engine, addr: l.Addr().String()}
	d.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			assert.NoError(t, <-done)
		}
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		d.stop()
		_ = engine.Close() // a test may have broken its disk
	})
	return d
}

// do sends a request and returns the status, the header and the body of the answer.
func (d *door) do(method, path, body string, header ...string) (int, http.Header, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, "http://"+d.addr+path, strings.NewReader(body))
	require.NoError(d.t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(d.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(d.t, err)
	return res.StatusCode, res.Header, string(text)
}

// signals returns the recorded signals of a session as JSON.
func (d *door) signals(name string) []string {
	d.t.Helper()
	ses, err := d.engine.Session(d.t.Context(), name)
	require.NoError(d.t, err)
	var list []string
	for e, err := range ses.Entries(d.t.Context(), 1) {
		require.NoError(d.t, err)
		if e.Kind == eventlog.KindSignal {
			sig, err := session.SignalOf(&e)
			require.NoError(d.t, err)
			list = append(list, string(sig.AppendJSON(nil)))
		}
	}
	return list
}

// problems returns the Problem of each signal of a session.
func (d *door) problems(name string) []string {
	d.t.Helper()
	ses, err := d.engine.Session(d.t.Context(), name)
	require.NoError(d.t, err)
	var list []string
	for e, err := range ses.Entries(d.t.Context(), 1) {
		require.NoError(d.t, err)
		if e.Kind == eventlog.KindSignal {
			sig, err := session.SignalOf(&e)
			require.NoError(d.t, err)
			list = append(list, sig.Problem)
		}
	}
	return list
}

// member returns a member of a JSON document by its path.
func member(t *testing.T, doc string, path ...string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(doc), &v), doc)
	for _, name := range path {
		o, ok := v.(map[string]any)
		require.Truef(t, ok, "%s has no %q", doc, path)
		v = o[name]
	}
	return v
}

// toolCall is a valid signal.
func toolCall(id string) string {
	return `{"id":"` + id + `","type":"tool_call","timestamp":1772366400000,"source":"adapter:tap","correlationId":"c-1","payload":{"toolName":"Read","agentId":"claude","callId":"k-` + id + `","input":{"path":"/a"}}}`
}

func itoa(n int) string { return fmt.Sprint(n) }

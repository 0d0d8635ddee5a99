package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serving is a server on a listener of its own.
type serving struct {
	*server.Server
	url  string
	stop func() error // ends Serve and returns its error
}

// serve starts a server with an empty store. It stops at the end of the test.
func serve(t *testing.T, cfg server.Config, others ...net.Listener) *serving {
	t.Helper()
	engine, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	s, err := server.New(engine, cfg)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // the server stops in the clean-up
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, append([]net.Listener{l}, others...)...) }()
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		assert.NoError(t, stop())
		assert.NoError(t, engine.Close())
	})
	return &serving{s, "http://" + l.Addr().String(), stop}
}

// The log of a server that has stopped as it should names no error.
func TestLogOfAStop(t *testing.T) {
	var log bytes.Buffer
	s := serve(t, server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, s.stop())
	assert.Contains(t, log.String(), "level=INFO msg=stopped\n")
}

// ask sends a request and returns the status, the header and the body of the answer.
func ask(t *testing.T, method, url string, header http.Header) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for name, values := range header {
		req.Header[name] = values
	}
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, res.Header, body
}

func TestUnmatchedRequests(t *testing.T) {
	s := serve(t, server.Config{})
	for _, c := range []struct {
		name, method, path string
		header             http.Header
		status             int
		code               problem.ErrorCode
	}{
		{"no such path", "GET", "/nothing", nil, 404, problem.NotFound},
		{"another method", "POST", "/healthz", nil, 405, problem.MethodNotAllowed},
		{"a foreign host", "GET", "/healthz", http.Header{"Host": {"attacker.example"}}, 403, problem.OriginRefused},
		{"a foreign origin", "GET", "/healthz", http.Header{"Origin": {"https://attacker.example"}}, 403, problem.OriginRefused},
		{"a foreign origin asks first", "OPTIONS", "/healthz", http.Header{"Origin": {"null"}}, 403, problem.OriginRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, header, body := ask(t, c.method, s.url+c.path, c.header)
			assert.Equal(t, c.status, status)
			assert.Equal(t, problem.MediaType, header.Get("Content-Type"))
			assert.Empty(t, header.Get("Access-Control-Allow-Origin"))
			var doc map[string]any
			require.NoError(t, json.Unmarshal(body, &doc))
			assert.Equal(t, string(c.code), doc["code"])
			assert.InDelta(t, c.status, doc["status"], 0)
		})
	}
}

func TestPagesOfThisMachine(t *testing.T) {
	s := serve(t, server.Config{})
	status, header, _ := ask(t, "OPTIONS", s.url+"/healthz", http.Header{"Origin": {"http://localhost:5173"}})
	assert.Equal(t, http.StatusNoContent, status)
	assert.Equal(t, "http://localhost:5173", header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "Origin", header.Get("Vary"))
	for _, name := range []string{"Sajou-Session", "Content-Encoding", "Mcp-Session-Id", "Mcp-Protocol-Version"} {
		assert.Contains(t, header.Get("Access-Control-Allow-Headers"), name)
	}
	// What a browser has kept of a request without an origin is not for its pages.
	_, header, _ = ask(t, "GET", s.url+"/healthz", nil)
	assert.Equal(t, "Origin", header.Get("Vary"))
}

func TestReadyUntilStopped(t *testing.T) {
	s := serve(t, server.Config{})
	status, _, _ := ask(t, "GET", s.url+"/readyz", nil)
	assert.Equal(t, http.StatusOK, status)
	require.NoError(t, s.stop())
}

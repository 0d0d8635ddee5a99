package record_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/signal"
)

// Any body gives a signal that a log can hold, or a syntax error.
func FuzzEnvelope(f *testing.F) {
	for _, text := range []string{toolCall("a"), `[1]`, `null`, `{"type":"x","id":0}`, `{"type":"x","payload":"p"}`, `{`, "\xff", `{"type":"","timestamp":-0.0}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sig, err := record.Envelope(body, noon, func() string { return "id" })
		if err != nil {
			require.ErrorIs(t, err, signal.ErrSyntax)
			return
		}
		again, err := signal.Decode(sig.Append(nil))
		require.NoError(t, err)
		assert.Equal(t, string(sig.AppendJSON(nil)), string(again.AppendJSON(nil)))
	})
}

// Any body of any of the routes has an answer that is documented, and records what it says.
func FuzzBodies(f *testing.F) {
	f.Add("/api/signal", "", "", []byte(toolCall("a")))
	f.Add(signalsPath, "application/json", "", []byte(`[`+toolCall("a")+`,`+toolCall("b")+`]`))
	f.Add(signalsPath, ndjson, "", []byte(toolCall("a")+"\n\n"+toolCall("b")+"\r\n{"))
	f.Add(signalsPath+"?lenient=1", ndjson, "", []byte(`{"type":5}`))
	f.Add(signalsPath, ndjson, "gzip", []byte("\x1f\x8b\x08\x00"))
	f.Add("/api/state/push", "", "zstd", []byte("\x28\xb5\x2f\xfd"))
	engine, err := sajou.Open(f.TempDir(), sajou.Config{NoSnapshots: true})
	require.NoError(f, err)
	f.Cleanup(func() { _ = engine.Close() })
	s, err := server.New(engine, server.Config{Now: func() time.Time { return noon }})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, path, media, coding string, body []byte) {
		switch path {
		case "/api/signal", signalsPath, signalsPath + "?lenient=1", "/api/state/push":
		default:
			return
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, bytes.NewReader(body))
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("Content-Type", media)
		r.Header.Set("Content-Encoding", coding)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		switch w.Code {
		case 200:
			assert.NotEmpty(t, w.Body.Bytes())
		case 400, 413, 415, 422:
			assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		default:
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}

// Any message of the acknowledged WebSocket is recorded, refused, or ends the connection.
func FuzzMessage(f *testing.F) {
	for _, text := range []string{numbered(1, toolCall("a")), `{"n":2}`, `{"n":-1,"signal":{}}`, `{"n":1.0,"signal":5}`, `{"n":9007199254740993}`, `[]`, ``} {
		f.Add([]byte(text))
	}
	engine, err := sajou.Open(f.TempDir(), sajou.Config{NoSnapshots: true})
	require.NoError(f, err)
	f.Cleanup(func() { _ = engine.Close() })
	ses, err := engine.Session(f.Context(), "fuzz")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		number, refused, unreadable := record.Message(t.Context(), ses, text)
		if unreadable != nil {
			require.NoError(t, refused)
			assert.Less(t, len(unreadable.Error()), 250)
			return
		}
		assert.Less(t, number, uint64(1)<<53)
	})
}

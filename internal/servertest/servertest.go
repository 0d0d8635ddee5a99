// Package servertest has what the tests of the server's rooms share: a store with
// sessions of each kind, and requests to a handler. Only tests import it.
package servertest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/internal/simulate"
	"github.com/sajou-dev/sajou-go/signal"
)

// The sessions of [Store].
const (
	Night        = "night"        // signals, choreographies, a scene: 54 entries
	Conversation = "conversation" // three agents, A, B and C, in a world
	Dinner       = "dinner"       // an episode of the director
	Gone         = "gone"         // deleted
)

// Store returns an engine in memory with the sessions above. Root is the path of the
// module from the package of the test.
func Store(t testing.TB, root string, cfg sajou.Config) *sajou.Engine {
	t.Helper()
	engine := enginetest.Memory(t, cfg)
	recordNight(t, engine, filepath.Join(root, "cmd", "sajou-replay", "demo"))
	s, diagnostics := simulate.Parse("conversation.json", simulate.Example())
	require.Empty(t, diagnostics)
	played, err := s.Play(t.Context(), Conversation, func(*simulate.Event) error { return nil })
	require.NoError(t, err)
	_, err = played.Record(t.Context(), engine)
	require.NoError(t, err)
	require.NoError(t, played.Close())
	enginetest.PlayDinner(t, engine, enginetest.InTurn(enginetest.DinnerAnswers))
	ses, err := engine.Session(t.Context(), Gone)
	require.NoError(t, err)
	sig, err := signal.Parse([]byte(`{"id":"1","type":"note","timestamp":1000,"source":"test","payload":{}}`))
	require.NoError(t, err)
	_, err = ses.Signal(t.Context(), sig)
	require.NoError(t, err)
	_, err = engine.Delete(t.Context(), Gone)
	require.NoError(t, err)
	return engine
}

// recordNight records the bundled session.
func recordNight(t testing.TB, engine *sajou.Engine, dir string) {
	t.Helper()
	var declarations []language.Declaration
	c := new(language.Catalog)
	for _, name := range []string{"scene.json", "choreographies.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		declared, next, diagnostics := lint.Read(c, name, text)
		require.NoError(t, diagnostics.Err(definition.ErrInvalid))
		for _, d := range declared {
			declarations = append(declarations, d.Declaration)
		}
		c = next
	}
	ses, err := engine.Session(t.Context(), Night)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "session.jsonl"))
	require.NoError(t, err)
	r, err := ingest.NewRecorder(t.Context(), ses, ingest.Config{Definitions: declarations})
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.All(t.Context(), ingest.JSONL(bytes.NewReader(text), "session.jsonl", false)))
}

// Ask sends a request from this machine to a handler. The header is given as pairs of a
// name and a value.
func Ask(h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	var content io.Reader
	if body != "" {
		content = bytes.NewReader([]byte(body))
	}
	r := httptest.NewRequest(method, "http://localhost"+target, content)
	r.RemoteAddr = "127.0.0.1:1"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

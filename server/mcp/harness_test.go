package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/internal/simulate"
	"github.com/sajou-dev/sajou-go/server/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type sajouEngine = sajou.Engine

const demoDir = "../../cmd/sajou-replay/demo"

// openEngine opens an engine that the test closes.
func openEngine(t testing.TB) *sajou.Engine {
	t.Helper()
	engine, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

// recordDemo records the demo of the command line as the session "night".
func recordDemo(t testing.TB, engine *sajou.Engine) {
	t.Helper()
	var all []language.Declaration
	c := new(language.Catalog)
	for _, name := range []string{"scene.json", "choreographies.json"} {
		text, err := os.ReadFile(filepath.Join(demoDir, name))
		require.NoError(t, err)
		declared, next, diagnostics := lint.Read(c, name, text)
		require.False(t, diagnostics.Refused())
		for _, d := range declared {
			all = append(all, d.Declaration)
		}
		c = next
	}
	text, err := os.ReadFile(filepath.Join(demoDir, "session.jsonl"))
	require.NoError(t, err)
	record(t, engine, "night", string(text), all...)
}

// record records lines of signals as a session.
func record(t testing.TB, engine *sajou.Engine, name, lines string, declarations ...language.Declaration) {
	t.Helper()
	s, err := engine.Session(t.Context(), name)
	require.NoError(t, err)
	r, err := ingest.NewRecorder(t.Context(), s, ingest.Config{Definitions: declarations})
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.All(t.Context(), ingest.JSONL(strings.NewReader(lines), name, true)))
}

// recordConversation records the bundled scenario of three agents as "conversation".
func recordConversation(t testing.TB, engine *sajou.Engine) {
	t.Helper()
	scenario, diagnostics := simulate.Parse("conversation", simulate.Example())
	require.Empty(t, diagnostics)
	played, err := scenario.Play(t.Context(), "conversation", func(*simulate.Event) error { return nil })
	require.NoError(t, err)
	_, err = played.Record(t.Context(), engine)
	require.NoError(t, err)
	require.NoError(t, played.Close())
}

// lend lends one engine to all calls.
func lend(engine *sajou.Engine) func(context.Context, bool) (*sajou.Engine, func() error, error) {
	return func(context.Context, bool) (*sajou.Engine, func() error, error) {
		return engine, func() error { return nil }, nil
	}
}

// connected returns a client of a toolbox, over a pair of pipes.
func connected(t testing.TB, cfg mcp.Config) *sdk.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { served <- mcp.New(cfg).Serve(ctx, toServer, fromServer) }()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(ctx, &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
		cancel()
	})
	return s
}

// called calls a tool with arguments in JSON.
func called(t *testing.T, s *sdk.ClientSession, tool, arguments string) *sdk.CallToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	require.NoError(t, err)
	return res
}

// structured is the structured content of a result.
type structured struct {
	Recorded json.RawMessage `json:"recorded"`
	Part     string          `json:"recorded_part"`
	Next     string          `json:"next"`
	Notes    []string        `json:"notes"`
	Error    *struct {
		Code string `json:"code"`
		Do   string `json:"do"`
	} `json:"error"`
}

func structure(t *testing.T, res *sdk.CallToolResult) (s structured) {
	t.Helper()
	data, err := json.Marshal(res.StructuredContent)
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&s), "%s", data)
	return s
}

// shown is a result as a reader of the text sees it.
func shown(res *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			b.WriteString(c.Text)
		case *sdk.ImageContent:
			fmt.Fprintf(&b, "[%s]\n", c.MIMEType)
		}
	}
	return b.String()
}

// fixedNow is a clock that stands.
func fixedNow() time.Time { return time.UnixMilli(1_700_000_000_000) }

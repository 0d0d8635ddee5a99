package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/mcp"
)

// FuzzArguments calls tools with any arguments: each call is answered within its bounds,
// with marked data, and never with an internal error.
func FuzzArguments(f *testing.F) {
	for tool, all := range samples {
		for _, sample := range all {
			f.Add(tool, strings.ReplaceAll(sample, "%s", `"night"`))
		}
	}
	f.Add("scan", `{"session":"night","where":"state.stage.entities.map(x, x).size() > 0","cursor":"1-99999999999999999.000000000000"}`)
	f.Add("lint", `{"files":[{"name":"a.yaml","text":"a: &a [*a, *a]"}]}`)
	f.Add("state", `{"path":"/~","at":"end-9223372036854775808","as_agent":"\u0000"}`)
	engine := openEngine(f)
	recordConversation(f, engine)
	recordDemo(f, engine)
	s := connected(f, mcp.Config{Lend: lend(engine), AllowRecord: true, MaxBytes: 2000, Timeout: 5 * time.Second, Now: fixedNow})
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		if !json.Valid([]byte(arguments)) || len(arguments) > 4096 || strings.HasPrefix(tool, "render") || tool == "timeline" {
			return
		}
		res, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
		if err != nil {
			assert.ErrorContains(t, err, "unknown tool")
			return
		}
		got := structure(t, res)
		assert.LessOrEqual(t, len(got.Recorded)+len(got.Part), 2200)
		for _, c := range res.Content {
			if c, ok := c.(*sdk.TextContent); ok {
				outside(t, c.Text)
			}
		}
		if got.Error != nil {
			assert.NotEqual(t, "internal", got.Error.Code, "%s %s: %s", tool, arguments, got.Recorded)
			assert.NotEmpty(t, got.Error.Do)
		}
	})
}

// FuzzLines sends any bytes to a server on streams: it answers or drops each line, and ends
// when its input ends.
func FuzzLines(f *testing.F) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	for _, lines := range []string{
		"", "garbage\n", "[]\n", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"METHOD":1}`,
		`{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"lint","arguments":{"files":[]}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"initialize","params":7}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`,
		`{"jsonrpc":"2.0","id":6,"result":{}}`, strings.Repeat("[", 300) + strings.Repeat("]", 300), `{"jsonrpc":"2.0","id":"` + strings.Repeat("é", 100) + `","method":"prompts/get","params":{"name":"debug_recording","arguments":{"symptom":"\ud800"}}}`,
	} {
		f.Add([]byte(lines))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		if len(lines) > 64<<10 {
			return
		}
		var out bytes.Buffer
		box := mcp.New(mcp.Config{Timeout: time.Second, Lend: func(context.Context, bool) (*sajou.Engine, func() error, error) {
			return nil, nil, io.ErrUnexpectedEOF
		}})
		err := box.Serve(t.Context(), io.NopCloser(io.MultiReader(strings.NewReader(hello), bytes.NewReader(lines))), closing{&out})
		require.NoError(t, err)
		for line := range bytes.Lines(out.Bytes()) {
			require.True(t, json.Valid(line), "%q", line)
		}
	})
}

// closing is a writer with a Close that does nothing.
type closing struct{ io.Writer }

func (closing) Close() error { return nil }

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// A client of the protocol starts the program, and finds the planted bug of the demo with
// its tools. Between two calls another command records in the same store.
func TestMCP(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	home := t.TempDir()
	name := filepath.Join(home, "sajou-replay")
	require.NoError(t, os.Symlink(program, name))
	store := filepath.Join(home, "store")
	require.Zero(t, sajouReplay(t.Context(), t, nil, "-C", store, "demo").code)
	require.Zero(t, sajouReplay(t.Context(), t, nil, "-C", store, "mark", "add", "late", "38+400ms").code)

	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.CommandContext(t.Context(), name, "-C", store, "mcp", "--allow-record")}, nil)
	require.NoError(t, err)
	call := func(tool, arguments string) (string, *mcp.CallToolResult) {
		t.Helper()
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
		require.NoError(t, err)
		data, err := json.Marshal(res.StructuredContent)
		require.NoError(t, err)
		return string(data), res
	}
	sessions, _ := call("list_sessions", `{}`)
	require.Contains(t, sessions, `"session":"night-shift"`)
	const wrong = `state.stage.entities.smoke.visible \u0026\u0026 state.stage.entities.smith.strength \u003e 0.5`
	found, _ := call("bisect", `{"where":"`+wrong+`"}`)
	require.Contains(t, found, `"firstBad":"36"`)
	cause, _ := call("why", `{"at":"38","minimize":true,"where":"`+wrong+`"}`)
	require.Contains(t, cause, `"signals":[32,36]`)
	_, picture := call("render", `{"at":"@late"}`)
	require.Len(t, picture.Content, 2)
	image, ok := picture.Content[1].(*mcp.ImageContent)
	require.True(t, ok)
	require.True(t, strings.HasPrefix(string(image.Data), "\x89PNG"))

	importLines(t, store, 3) // the store is free
	sessions, _ = call("list_sessions", `{}`)
	require.Contains(t, sessions, `"session":"a"`)
	emitted, _ := call("emit_signal", `{"session":"a","type":"custom.note","from":"debugger"}`)
	require.Contains(t, emitted, `"seq":5`)
	forked, _ := call("fork", `{"session":"night-shift","name":"mended","drop":["36"]}`)
	require.Contains(t, forked, `"parent":"night-shift"`)
	none, _ := call("scan", `{"session":"mended","moments":true,"where":"`+wrong+`"}`)
	require.Contains(t, none, `"recorded":[]`)
	require.NoError(t, s.Close())
}

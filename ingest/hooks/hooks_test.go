package hooks_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/hooks"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, hooks.Format(), in)
	})
}

// Each payload of a real capture is one signal at least, in the order of the file.
func TestRealHooks(t *testing.T) {
	files, there := recordingtest.Real("../..", "claude-hooks")
	if !there {
		t.Log("no real recordings are there")
		return
	}
	for name, typ := range map[string]string{"pre_tool_use.json": "tool_call", "notification.json": "agent_state_change"} {
		text, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		var payloads []map[string]any
		require.NoError(t, json.Unmarshal(text, &payloads))
		list, balance := recordingtest.Read(t, hooks.Format(), files, name, recording.Options{Final: true})
		assert.Equal(t, len(payloads), balance.Mapped)
		next := 0
		for _, s := range list {
			if s.Type == typ && next < len(payloads) && (typ != "tool_call" || s.Payload.TextOf("callId") == payloads[next]["tool_use_id"]) {
				next++
			}
		}
		assert.Equal(t, len(payloads), next, name)
	}
}

func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) {
		recordingtest.Fuzzed(t, hooks.Format(), "s.json", text)
	})
}

package copilot_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/copilot"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, copilot.Format(), in)
	})
}

// A catalogue of the kinds of events, counted straight from the file. Values that its publisher
// trimmed are taken for absent.
func TestRealCatalogue(t *testing.T) {
	files, there := recordingtest.Real("../..", "copilot-cli")
	if !there {
		t.Log("no real recordings are there")
		return
	}
	const name = "events-small.jsonl"
	text, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	want := map[string]int{}
	records := 0
	for line := range bytes.Lines(text) {
		records++
		var e struct {
			Type string
			Data struct{ Content string }
		}
		require.NoError(t, json.Unmarshal(line, &e))
		trimmed := e.Data.Content == "[trimmed for fixture]"
		switch {
		case e.Type == "user.message":
			want["task_dispatch"]++ // the trimmed one has an attachment
		case e.Type == "assistant.message" && !trimmed:
			want["text_delta"]++
		case e.Type == "tool.execution_start":
			want["tool_call"]++
		case e.Type == "tool.execution_complete":
			want["tool_result"]++
		case e.Type == "abort" || e.Type == "session.error":
			want["error"]++
		}
	}
	list, balance := recordingtest.Read(t, copilot.Format(), files, name, recording.Options{Final: true})
	got := recordingtest.Count(list)
	for typ, n := range want {
		assert.Equal(t, n, got[typ], typ)
	}
	assert.Equal(t, records, balance.Records)
	for _, s := range list {
		for _, member := range []string{"agentId", "to", "from", "toolName", "callId", "taskId"} {
			assert.NotContains(t, s.Payload.TextOf(member), "trimmed", "%s %s", s.Type, member)
		}
	}
	recordingtest.Prefixes(t, copilot.Format(), files, name)
}

func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) {
		recordingtest.Fuzzed(t, copilot.Format(), "events.jsonl", text)
	})
}

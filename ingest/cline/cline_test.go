package cline_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/cline"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, cline.Format(), in)
	})
}

// The facts of a real session, counted straight from the file, are those of the signals.
func TestRealRecording(t *testing.T) {
	files, is := recordingtest.Real("../..", "cline")
	if !is {
		return
	}
	const name = "session.messages.json"
	text, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	var doc struct {
		Messages []struct {
			Role    string
			TS      float64
			Content []struct{ Type string }
			Metrics *struct {
				Input  int64 `json:"inputTokens"`
				Output int64 `json:"outputTokens"`
				Cost   float64
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &doc))
	want := map[string]int{}
	var input, output int64
	var cost float64
	for _, m := range doc.Messages {
		kinds := map[string]int{}
		for _, block := range m.Content {
			kinds[block.Type]++
		}
		switch {
		case m.Role == "user" && kinds["tool_result"] == 0:
			want["task_dispatch"]++
		case m.Role == "assistant":
			want["text_delta"] += kinds["text"]
			want["tool_call"] += kinds["tool_use"]
		}
		want["tool_result"] += kinds["tool_result"]
		if m.Metrics != nil {
			want["token_usage"]++
			input += m.Metrics.Input
			output += m.Metrics.Output
			cost += m.Metrics.Cost
		}
	}
	list, _ := recordingtest.Read(t, cline.Format(), files, name, recording.Options{Final: true})
	got := recordingtest.Count(list)
	for kind, n := range want {
		assert.Equal(t, n, got[kind], kind)
	}
	var gotInput, gotOutput int64
	var gotCost float64
	for _, s := range list {
		gotInput += s.Payload.IntOf("promptTokens")
		gotOutput += s.Payload.IntOf("completionTokens")
		part, _ := s.Payload.Member("cost").Float64()
		gotCost += part
	}
	assert.Equal(t, []int64{input, output}, []int64{gotInput, gotOutput})
	assert.InDelta(t, cost, gotCost, 1e-9)
	assert.InDelta(t, doc.Messages[0].TS, recordingtest.Milliseconds(list[0]), 0)
	assert.InDelta(t, doc.Messages[len(doc.Messages)-1].TS, recordingtest.Milliseconds(list[len(list)-1]), 0)
}

// Files of the extension that lie beside the main one belong to it.
func TestPartOf(t *testing.T) {
	part := cline.Format().PartOf
	assert.Equal(t, "tasks/1/ui_messages.json", part("tasks/1/api_conversation_history.json"))
	assert.Empty(t, part("tasks/1/ui_messages.json"))
	assert.Empty(t, part("session.messages.json"))
}

// FuzzRead reads a file of any text.
func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) { recordingtest.Fuzzed(t, cline.Format(), "recording", text) })
}

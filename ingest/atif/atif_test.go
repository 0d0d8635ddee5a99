package atif_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/atif"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, atif.Format(), in)
	})
}

// The facts of a real trajectory, counted straight from the file, are those of the signals.
func TestRealRecording(t *testing.T) {
	files, is := recordingtest.Real("../..", "atif")
	if !is {
		return
	}
	const name = "harbor-terminus2-timeout.json"
	text, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	var doc struct {
		Steps []struct {
			Source, Message string
			Calls           []struct{} `json:"tool_calls"`
			Observation     struct{ Results []struct{} }
			Metrics         struct {
				Prompt     int64 `json:"prompt_tokens"`
				Completion int64 `json:"completion_tokens"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &doc))
	var want, got [6]int64
	for _, step := range doc.Steps {
		if step.Source == "user" {
			want[0]++
		} else if step.Message != "" {
			want[1]++
		}
		want[2] += int64(len(step.Calls))
		want[3] += int64(len(step.Observation.Results))
		want[4] += step.Metrics.Prompt
		want[5] += step.Metrics.Completion
	}
	list, _ := recordingtest.Read(t, atif.Format(), files, name, recording.Options{Final: true})
	for i, kind := range []string{"task_dispatch", "text_delta", "tool_call", "tool_result"} {
		got[i] = int64(recordingtest.Count(list)[kind])
	}
	for _, s := range list {
		got[4] += s.Payload.IntOf("promptTokens")
		got[5] += s.Payload.IntOf("completionTokens")
	}
	assert.Equal(t, want, got)
}

// FuzzRead reads a file of any text.
func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) { recordingtest.Fuzzed(t, atif.Format(), "recording", text) })
}

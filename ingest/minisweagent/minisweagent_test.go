package minisweagent_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/minisweagent"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, minisweagent.Format(), in)
	})
	golden.Run(t, "testdata/chat/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, minisweagent.ChatFormat(), in)
	})
}

// The facts of real trajectories, counted straight from the files, are those of the signals.
func TestRealRecordings(t *testing.T) {
	files, is := recordingtest.Real("../..", "mini-swe-agent")
	if !is {
		return
	}
	type message struct {
		Role  string
		Calls []struct{ ID string } `json:"tool_calls"`
		Extra struct {
			Returncode *int
			Timestamp  float64
			Response   struct {
				Usage struct {
					Prompt     int64 `json:"prompt_tokens"`
					Completion int64 `json:"completion_tokens"`
				}
			}
		}
	}
	text, err := fs.ReadFile(files, "astropy-12907.traj.json")
	require.NoError(t, err)
	var doc struct{ Messages []message }
	require.NoError(t, json.Unmarshal(text, &doc))
	var calls, failures, prompt, completion int64
	var last float64
	for _, m := range doc.Messages {
		calls += int64(len(m.Calls))
		if code := m.Extra.Returncode; code != nil && *code != 0 {
			failures++
		}
		prompt += m.Extra.Response.Usage.Prompt
		completion += m.Extra.Response.Usage.Completion
		last = max(last, m.Extra.Timestamp)
	}
	list, _ := recordingtest.Read(t, minisweagent.Format(), files, "astropy-12907.traj.json", recording.Options{Final: true})
	n := recordingtest.Count(list)
	assert.Equal(t, []int64{1, calls, calls, 1}, []int64{int64(n["task_dispatch"]), int64(n["tool_call"]), int64(n["tool_result"]), int64(n["completion"])})
	var gotFailures, gotPrompt, gotCompletion int64
	for _, s := range list {
		gotPrompt += s.Payload.IntOf("promptTokens")
		gotCompletion += s.Payload.IntOf("completionTokens")
		if s.Type == "tool_result" && !s.Payload.BoolOf("success") {
			gotFailures++
		}
	}
	assert.Equal(t, []int64{failures, prompt, completion}, []int64{gotFailures, gotPrompt, gotCompletion})
	assert.InDelta(t, last*1000, recordingtest.Milliseconds(list[len(list)-1]), 0.001)

	text, err = fs.ReadFile(files, "local.traj.json")
	require.NoError(t, err)
	var bare []message
	require.NoError(t, json.Unmarshal(text, &bare))
	answers := 0
	for _, m := range bare {
		if m.Role == "assistant" {
			answers++
		}
	}
	list, _ = recordingtest.Read(t, minisweagent.Format(), files, "local.traj.json", recording.Options{Final: true})
	n = recordingtest.Count(list)
	assert.Equal(t, []int{1, answers, answers, answers}, []int{n["task_dispatch"], n["text_delta"], n["tool_call"], n["tool_result"]})
}

// FuzzRead reads a file of any text.
func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	recordingtest.Seeds(f, "testdata/chat/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) {
		recordingtest.Fuzzed(t, minisweagent.Format(), "recording", text)
		recordingtest.Fuzzed(t, minisweagent.ChatFormat(), "recording", text)
	})
}

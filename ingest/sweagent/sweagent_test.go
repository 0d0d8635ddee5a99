package sweagent_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/sweagent"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, sweagent.Format(), in)
	})
}

// The facts of real trajectories, counted straight from the files, are those of the signals.
func TestRealRecordings(t *testing.T) {
	files, is := recordingtest.Real("../..", "swe-agent")
	if !is {
		return
	}
	names, err := fs.Glob(files, "*.traj")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		var doc struct {
			Trajectory []struct{ Action, Thought string }
			Info       struct {
				Stats struct {
					Sent     int64 `json:"tokens_sent"`
					Received int64 `json:"tokens_received"`
				} `json:"model_stats"`
			}
		}
		require.NoError(t, json.Unmarshal(text, &doc))
		list, _ := recordingtest.Read(t, sweagent.Format(), files, name, recording.Options{Final: true})
		n := recordingtest.Count(list)
		thoughts := 0
		for _, step := range doc.Trajectory {
			if step.Thought != "" {
				thoughts++
			}
		}
		steps := len(doc.Trajectory)
		assert.Equal(t, []int{1, steps, steps, thoughts, 1}, []int{n["task_dispatch"], n["tool_call"], n["tool_result"], n["thinking"], n["completion"]}, name)
		var sent, received int64
		for _, s := range list {
			if s.Type == "token_usage" {
				sent += s.Payload.IntOf("promptTokens")
				received += s.Payload.IntOf("completionTokens")
			}
		}
		assert.Equal(t, []int64{doc.Info.Stats.Sent, doc.Info.Stats.Received}, []int64{sent, received}, name)
	}
}

// FuzzRead reads a file of any text.
func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) { recordingtest.Fuzzed(t, sweagent.Format(), "recording", text) })
}

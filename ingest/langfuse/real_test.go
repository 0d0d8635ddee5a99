package langfuse_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/langfuse"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

// The facts of real exports, counted straight from the files.
func TestRealSessions(t *testing.T) {
	files, ok := recordingtest.Real("../..", "langfuse")
	if !ok {
		return
	}
	names, err := fs.Glob(files, "*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			text, err := fs.ReadFile(files, name)
			require.NoError(t, err)
			var export struct {
				Observations []struct {
					Type, Name, Level string
					UsageDetails      struct{ Input, Output int64 }
				}
			}
			require.NoError(t, json.Unmarshal(text, &export))
			want, got := map[string]int64{}, map[string]int64{}
			for _, o := range export.Observations {
				want["prompt tokens"] += o.UsageDetails.Input
				want["completion tokens"] += o.UsageDetails.Output
				if o.Type == "TOOL" || o.Name == "Web-Search" {
					want["calls"]++
				}
				if o.Type == "AGENT" {
					want["agents"]++
				}
			}
			// Without an agent, the root is the task.
			want["agents"] = max(want["agents"], 1)
			found := formats.Detect(recording.NewSample(name, text, true))
			require.Len(t, found, 1, formats.Describe(found))
			require.Equal(t, langfuse.Name, found[0].Format.Name)
			list, balance := recordingtest.Read(t, langfuse.Format(), files, name, recording.Options{Final: true})
			assert.Equal(t, len(export.Observations), balance.Records)
			users := 0
			for _, s := range list {
				switch s.Type {
				case "task_dispatch":
					got["agents"]++
					if s.Payload.TextOf("from") == recording.User {
						users++
						assert.Contains(t, s.Payload.TextOf("description"), map[bool]string{true: "Search", false: "weather"}[want["prompt tokens"] == 168])
					}
				case "tool_call":
					got["calls"]++
				case "token_usage":
					got["prompt tokens"] += s.Payload.IntOf("promptTokens")
					got["completion tokens"] += s.Payload.IntOf("completionTokens")
				}
			}
			assert.Equal(t, want, got)
			assert.Equal(t, 1, users)
		})
	}
}

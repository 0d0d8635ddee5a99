package claudecode_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/claudecode"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

// Whatever the text, the reading ends without a fault, its signals are valid, and every
// record counts once.
func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) {
		recordingtest.Fuzzed(t, claudecode.Format(), "s.jsonl", text)
	})
}

// A description of a subagent may be any text too.
func FuzzDescription(f *testing.F) {
	f.Add([]byte(`{"agentType":"worker","toolUseId":"t1"}`))
	f.Add([]byte(`{"agentType":7}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		fsys := fstest.MapFS{
			"s.jsonl":                          {Data: []byte(`{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00Z","message":{"content":"Go"}}`)},
			"s/subagents/agent-a.jsonl":        {Data: []byte(`{"type":"user","uuid":"v","timestamp":"2026-01-01T00:00:00Z","message":{"content":"Do"}}`)},
			"s/subagents/agent-a.meta.json":    {Data: text},
			"s/subagents/agent-.jsonl":         {},
			"s/subagents/agent-b.jsonl.backup": {},
		}
		list, _ := recordingtest.Read(t, claudecode.Format(), fsys, "s.jsonl", recording.Options{Final: true})
		require.Equal(t, 2, recordingtest.Count(list)["task_dispatch"])
	})
}

package formats_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestFormats(t *testing.T) {
	names := formats.Names()
	unique := slices.Compact(slices.Sorted(slices.Values(names)))
	assert.Len(t, unique, len(names))
	for _, f := range formats.All() {
		assert.NotEmpty(t, f.Title, f.Name)
		assert.NotEmpty(t, f.Recognized, f.Name)
		assert.NotNil(t, f.Detect, f.Name)
		assert.Equal(t, f.Name == formats.Sajou, f.Map == nil, f.Name)
		assert.Regexp(t, `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`, f.Name)
		assert.Empty(t, f.Detect(recording.NewSample("empty", nil, true)), f.Name)
		assert.Empty(t, f.Detect(recording.NewFolderSample("empty", nil)), f.Name)
	}
	_, known := formats.Named("nothing")
	assert.False(t, known)
}

// folders are the formats of a collection of real recordings, by its folders.
var folders = map[string]string{
	"claude-code": "claude-code", "claude-hooks": "hooks", "codex": "codex", "gemini-cli": "gemini-cli", "copilot-cli": "copilot-cli",
	"atif": "atif", "cline": "cline", "mini-swe-agent": "mini-swe-agent", "openhands": "openhands", "swe-agent": "swe-agent",
	"langfuse": "", "otlp": "", "otel-genai": "",
}

// Each real recording is of one format at most, and of the one that its folder tells.
func TestDetectReal(t *testing.T) {
	for folder := range folders {
		files, there := recordingtest.Real("../..", folder)
		if !there {
			t.Log("no real recordings are there")
			return
		}
		require.NoError(t, fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			if e.IsDir() {
				if strings.HasPrefix(name, "sdk-conversation") {
					return fs.SkipDir // the folder is the recording
				}
				return nil
			}
			text, err := fs.ReadFile(files, name)
			require.NoError(t, err)
			head := text[:min(len(text), recording.SampleBytes)]
			got := formats.Detect(recording.NewSample(name, head, len(head) == len(text)))
			assert.LessOrEqual(t, len(got), 1, "%s/%s: %s", folder, name, formats.Describe(got))
			if _, known := formats.Named(folders[folder]); known && assert.NotEmpty(t, got, "%s/%s", folder, name) {
				assert.Equal(t, folders[folder], got[0].Format.Name, "%s/%s", folder, name)
			}
			return nil
		}))
	}
}

func TestDetect(t *testing.T) {
	for _, tt := range []struct{ name, head, want string }{
		{"s.jsonl", `{"id":"1","type":"x","timestamp":1,"source":"a","payload":{}}` + "\n", formats.Sajou},
		{"s.jsonl", `{"type":"summary","summary":"s","leafUuid":"u"}` + "\n" + `{"type":"mode","mode":"plan","sessionId":"s"}` + "\n", "claude-code"},
		{"s.jsonl", `{"type":"queue-operation","operation":"enqueue","sessionId":"s"}`, "claude-code"},
		{"s.jsonl", `{"session_id":"s","hook_event_name":"Stop"}`, "hooks"},
		{"s.json", `[{"session_id":"s","hook_event_name":"Stop"}]`, "hooks"},
		{"s.jsonl", `{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":{"type":"user_message"}}`, "codex"},
		{"s.jsonl", `{"id":"t","timestamp":"2025-06-04T00:00:00Z","instructions":null}` + "\n" + `{"record_type":"state"}`, "codex"},
		{"s.jsonl", `{"type":"thread.started","thread_id":"t"}` + "\n" + `{"type":"turn.started"}`, "codex"},
		{"s.json", "{\n\"sessionId\":\"s\",\"projectHash\":\"h\",\"messages\":[]}", "gemini-cli"},
		{"s.jsonl", `{"sessionId":"s","projectHash":"h","kind":"main"}` + "\n" + `{"id":"1","type":"user","content":[]}`, "gemini-cli"},
		{"s.jsonl", `{"type":"session.start","data":{"sessionId":"s"},"id":"e","timestamp":"2026-01-01T00:00:00Z"}`, "copilot-cli"},
		{"s.jsonl", `{"specversion":"1.0","id":"1","source":"/bus","type":"a"}`, "cloudevents"},
		{"s.json", `[{"specversion":"1.0","id":"1","source":"/bus","type":"a"}]`, "cloudevents"},
		{"s.json", `{"loglines":[{"type":"user","uuid":"u"}]}`, "claude-code"},
	} {
		got := formats.Detect(recording.NewSample(tt.name, []byte(tt.head), true))
		require.Len(t, got, 1, formats.Describe(got))
		assert.Equal(t, tt.want, got[0].Format.Name)
	}
}

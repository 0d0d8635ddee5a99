package gemini_test

import (
	"encoding/json"
	"io/fs"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/gemini"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, gemini.Format(), in)
	})
}

// A document with fewer messages gives a beginning of the signals of the whole.
func TestDocumentGrows(t *testing.T) {
	message := func(id, kind, content string) map[string]any {
		return map[string]any{"id": id, "type": kind, "content": content, "timestamp": "2025-10-29T10:00:0" + id + ".000Z"}
	}
	all := []any{message("1", "user", "a"), message("2", "gemini", "b"), message("3", "user", "c"), message("4", "gemini", "d")}
	var before string
	for n := range len(all) + 1 {
		text, err := json.Marshal(map[string]any{"sessionId": "s", "projectHash": "h", "messages": all[:n]})
		require.NoError(t, err)
		list, balance := recordingtest.Read(t, gemini.Format(), recordingtest.File("s.json", text), "s.json", recording.Options{})
		told := recordingtest.Tell(list)
		assert.Contains(t, told, before)
		assert.Equal(t, min(n, 1), balance.Held)
		before = told
	}
	assert.NotEmpty(t, before)
}

func TestRealSessions(t *testing.T) {
	files, there := recordingtest.Real("../..", "gemini-cli")
	if !there {
		t.Log("no real recordings are there")
		return
	}
	names, err := fs.Glob(files, "*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		var session struct {
			Messages []struct {
				Type, Content string
				Timestamp     time.Time
				Thoughts      []any
				ToolCalls     []struct{ Status string }
				Tokens        *struct{ Input, Output, Thoughts int64 }
			}
		}
		require.NoError(t, json.Unmarshal(text, &session))
		want := map[string]int{"import.recording": 1, "import.end": 1}
		var prompt, completion int64
		for _, m := range session.Messages {
			if m.Type == "user" {
				want["task_dispatch"]++
				want["completion"]++
				continue
			}
			if m.Content != "" {
				want["text_delta"]++
			}
			want["thinking"] += len(m.Thoughts)
			want["tool_call"] += len(m.ToolCalls)
			want["tool_result"] += len(m.ToolCalls)
			if m.Tokens != nil {
				want["token_usage"]++
				prompt += m.Tokens.Input
				completion += m.Tokens.Output + m.Tokens.Thoughts
			}
		}
		list, _ := recordingtest.Read(t, gemini.Format(), files, name, recording.Options{Final: true})
		got := recordingtest.Count(list)
		delete(got, "agent_state_change")
		assert.Equal(t, want, got, name)
		for _, s := range list {
			if s.Type == "token_usage" {
				prompt -= s.Payload.IntOf("promptTokens")
				completion -= s.Payload.IntOf("completionTokens")
			}
		}
		assert.Zero(t, prompt)
		assert.Zero(t, completion)
		assert.EqualValues(t, session.Messages[0].Timestamp.UnixMilli(), recordingtest.Milliseconds(list[0]))
		assert.EqualValues(t, session.Messages[len(session.Messages)-1].Timestamp.UnixMilli(), recordingtest.Milliseconds(list[len(list)-1]))
	}
}

func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) {
		recordingtest.Fuzzed(t, gemini.Format(), "s.json", text)
	})
}

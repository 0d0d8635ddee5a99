package codex_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/codex"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, codex.Format(), in)
	})
}

// facts are what a rollout says of itself, counted without the reader.
type facts struct {
	prompts, texts, calls, results, completions, messages int
	promptTokens, completionTokens                        int64
	first, last                                           time.Time
}

func TestRealRollout(t *testing.T) {
	files, there := recordingtest.Real("../..", "codex")
	if !there {
		t.Log("no real recordings are there")
		return
	}
	const name = "web-search-0.128.jsonl"
	file, err := files.Open(name)
	require.NoError(t, err)
	defer file.Close()
	var want facts
	var total string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v struct {
			Timestamp time.Time
			Type      string
			Payload   struct {
				Type, Role string
				Info       *struct {
					Total json.RawMessage `json:"total_token_usage"`
					Last  struct {
						Input  int64 `json:"input_tokens"`
						Output int64 `json:"output_tokens"`
					} `json:"last_token_usage"`
				}
			}
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		if v.Type != "event_msg" && v.Type != "response_item" {
			continue
		}
		if v.Payload.Type == "user_message" && want.first.IsZero() {
			want.first = v.Timestamp
		}
		want.last = v.Timestamp
		switch p := v.Payload; p.Type {
		case "user_message":
			want.prompts++
		case "message":
			if p.Role == "assistant" {
				want.texts++
			}
		case "function_call", "web_search_call":
			want.calls++
			if p.Type == "web_search_call" {
				want.results++
			}
		case "function_call_output":
			want.results++
		case "task_complete":
			want.completions++
		case "token_count":
			if p.Info != nil && string(p.Info.Total) != total {
				total = string(p.Info.Total)
				want.messages++
				want.promptTokens += p.Info.Last.Input
				want.completionTokens += p.Info.Last.Output
			}
		}
	}
	require.NoError(t, lines.Err())
	require.EqualValues(t, 349493, want.promptTokens)

	list, balance := recordingtest.Read(t, codex.Format(), files, name, recording.Options{Final: true})
	n := recordingtest.Count(list)
	got := facts{
		prompts: n["task_dispatch"], texts: n["text_delta"], calls: n["tool_call"], results: n["tool_result"], completions: n["completion"], messages: n["token_usage"],
		first: time.UnixMilli(int64(recordingtest.Milliseconds(list[0]))).UTC(),
		last:  time.UnixMilli(int64(recordingtest.Milliseconds(list[len(list)-1]))).UTC(),
	}
	models := map[string]bool{}
	for _, s := range list {
		if s.Type == "token_usage" {
			got.promptTokens += s.Payload.IntOf("promptTokens")
			got.completionTokens += s.Payload.IntOf("completionTokens")
			models[s.Payload.TextOf("model")] = true
		}
	}
	assert.Equal(t, want, got)
	assert.Len(t, models, 2)
	assert.Zero(t, balance.Unreadable+balance.Held)
	recordingtest.Prefixes(t, codex.Format(), files, name)
}

// A catalogue of 48 kinds of records, with values that its publisher trimmed: none is an error,
// and none of the trimmed values is taken for an id or a time.
func TestRealCatalogue(t *testing.T) {
	files, there := recordingtest.Real("../..", "codex")
	if !there {
		t.Log("no real recordings are there")
		return
	}
	const name = "record-kinds-0.146.jsonl"
	list, balance := recordingtest.Read(t, codex.Format(), files, name, recording.Options{Final: true})
	for _, s := range list {
		if s.CorrelationID != nil {
			assert.NotContains(t, *s.CorrelationID, "trimmed", s.Type)
		}
		for _, member := range []string{"agentId", "to", "from", "toolName", "callId", "taskId"} {
			assert.NotContains(t, s.Payload.TextOf(member), "trimmed", "%s %s", s.Type, member)
		}
	}
	assert.Zero(t, balance.Unreadable+balance.Ahead)
	recordingtest.Prefixes(t, codex.Format(), files, name)
	text, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	assert.Equal(t, bytes.Count(text, []byte("\n")), balance.Records)
}

func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) {
		recordingtest.Fuzzed(t, codex.Format(), "s.jsonl", text)
	})
}

// BenchmarkRead reads some MB of the story of a rollout, with outputs that make its lines as
// long as those of real ones, 0.7 KB on average.
func BenchmarkRead(b *testing.B) {
	story, err := os.ReadFile("testdata/rollout.txtar")
	require.NoError(b, err)
	output := strings.Repeat(`ok  	example.com/app/internal/store	0.012s\n`, 300)
	main := strings.ReplaceAll(strings.ReplaceAll(string(txtar.Parse(story).Files[0].Data), `\nFAIL`, strings.ReplaceAll(output, "\t", " ")), "*** Begin Patch", strings.ReplaceAll(output, "\t", " "))
	var text bytes.Buffer
	for i := range 150 {
		text.WriteString(strings.NewReplacer(`"call_id":"`, fmt.Sprintf(`"call_id":"%d-`, i), `"turn_id":"`, fmt.Sprintf(`"turn_id":"%d-`, i)).Replace(main))
	}
	recordingtest.Benchmark(b, codex.Format(), text.Bytes())
}

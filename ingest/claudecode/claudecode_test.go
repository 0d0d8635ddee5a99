package claudecode_test

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/claudecode"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, claudecode.Format(), in)
	})
}

// facts are what a transcript says of itself, counted without the reader.
type facts struct {
	prompts, texts, thoughts, calls, results, failures, subagents int
	promptTokens, completionTokens                                int64
	messages                                                      int
	first, last                                                   time.Time
}

type native struct {
	Type        string
	UUID        string
	ParentUUID  *string
	AgentID     string
	IsSidechain bool
	IsMeta      bool
	Timestamp   time.Time
	Message     *struct {
		ID      string
		Role    string
		Content json.RawMessage
		Usage   *struct {
			InputTokens              int64 `json:"input_tokens"`
			OutputTokens             int64 `json:"output_tokens"`
			CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
			CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
		}
	}
}

func count(t *testing.T, fsys fs.FS, names ...string) facts {
	var f facts
	usage := map[string][2]int64{}
	for _, name := range names {
		file, err := fsys.Open(name)
		require.NoError(t, err)
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var n native
			require.NoError(t, json.Unmarshal(lines.Bytes(), &n))
			if n.UUID != "" && (f.first.IsZero() || n.Timestamp.Before(f.first)) {
				f.first = n.Timestamp
			}
			if n.Timestamp.After(f.last) {
				f.last = n.Timestamp
			}
			if n.Message == nil {
				continue
			}
			var text string
			var blocks []struct {
				Type, Text, Thinking string
				IsError              bool `json:"is_error"`
			}
			if json.Unmarshal(n.Message.Content, &text) != nil {
				require.NoError(t, json.Unmarshal(n.Message.Content, &blocks))
			}
			root := n.IsSidechain && n.ParentUUID == nil
			if root {
				f.subagents++
			}
			asks := text != ""
			for _, b := range blocks {
				switch b.Type {
				case "text":
					if n.Type == "assistant" {
						f.texts++
					}
					asks = true
				case "thinking":
					f.thoughts++
				case "tool_use":
					f.calls++
				case "tool_result":
					f.results++
					if b.IsError {
						f.failures++
					}
				}
			}
			if n.Type == "user" && asks && !n.IsMeta && !n.IsSidechain {
				f.prompts++
			}
			if u := n.Message.Usage; u != nil {
				usage[n.Message.ID] = [2]int64{u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, u.OutputTokens}
			}
		}
		require.NoError(t, lines.Err())
	}
	for _, u := range usage {
		f.promptTokens += u[0]
		f.completionTokens += u[1]
	}
	f.messages = len(usage)
	return f
}

func told(list []*signal.Signal) facts {
	var f facts
	n := recordingtest.Count(list)
	f.texts, f.thoughts, f.calls, f.results, f.messages = n["text_delta"], n["thinking"], n["tool_call"], n["tool_result"], n["token_usage"]
	for _, s := range list {
		switch s.Type {
		case "task_dispatch":
			if s.Payload.TextOf("from") == recording.User {
				f.prompts++
			} else {
				f.subagents++
			}
		case "tool_result":
			if !s.Payload.BoolOf("success") {
				f.failures++
			}
		case "token_usage":
			f.promptTokens += s.Payload.IntOf("promptTokens")
			f.completionTokens += s.Payload.IntOf("completionTokens")
		}
	}
	f.first = at(list[0])
	f.last = at(list[len(list)-1])
	return f
}

func at(s *signal.Signal) time.Time {
	return time.UnixMilli(int64(recordingtest.Milliseconds(s))).UTC()
}

// The facts of real transcripts, counted straight from the files.
func TestRealTranscripts(t *testing.T) {
	files, there := recordingtest.Real("../..", "claude-code")
	if !there {
		t.Log("no real recordings are there")
		return
	}
	names, err := fs.Glob(files, "*.jsonl")
	require.NoError(t, err)
	folder, err := fs.Glob(files, "*/*.jsonl")
	require.NoError(t, err)
	for _, name := range append(names, folder...) {
		t.Run(path.Base(name), func(t *testing.T) {
			beside, err := fs.Glob(files, strings.TrimSuffix(name, ".jsonl")+"/subagents/agent-*.jsonl")
			require.NoError(t, err)
			want := count(t, files, append([]string{name}, beside...)...)
			list, balance := recordingtest.Read(t, claudecode.Format(), files, name, recording.Options{Final: true})
			got := told(list)
			assert.Equal(t, want, got)
			assert.Zero(t, balance.Unreadable+balance.Ahead+balance.Cut+balance.Repaired)
			again, _ := recordingtest.Read(t, claudecode.Format(), files, name, recording.Options{Final: true})
			assert.Equal(t, recordingtest.Tell(list), recordingtest.Tell(again))
			recordingtest.Prefixes(t, claudecode.Format(), files, name)
		})
	}
}

// Subagents of real sessions have their tasks from the calls that started them.
func TestRealSubagents(t *testing.T) {
	files, there := recordingtest.Real("../..", "claude-code")
	if !there {
		t.Log("no real recordings are there")
		return
	}
	list, _ := recordingtest.Read(t, claudecode.Format(), files, "sidechain-1.0.108.jsonl", recording.Options{Final: true})
	var tasks, ends []string
	for _, s := range list {
		switch s.Type {
		case "task_dispatch":
			if s.Payload.TextOf("to") != "claude" {
				tasks = append(tasks, s.Payload.TextOf("to"))
				assert.NotEmpty(t, s.Metadata.TextOf("callId"))
			}
		case "completion":
			if agent := s.Payload.TextOf("agentId"); agent != "claude" {
				ends = append(ends, agent)
				assert.True(t, s.Payload.BoolOf("success"))
			}
		}
	}
	assert.Len(t, tasks, 2)
	assert.Equal(t, tasks, ends)
	assert.NotEqual(t, tasks[0], tasks[1])
	types := recordingtest.Count(list)
	assert.Equal(t, 3, types["completion"])
	assert.Equal(t, 1, slices.IndexFunc(list, func(s *signal.Signal) bool { return s.Type == "task_dispatch" }))
}

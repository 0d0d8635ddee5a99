package otlpexport_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/ingest/otlpexport"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
	"github.com/sajou-dev/sajou-go/signal"
)

func each(list []*signal.Signal) iter.Seq2[*signal.Signal, error] {
	return func(yield func(*signal.Signal, error) bool) {
		for _, s := range list {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func export(t testing.TB, list []*signal.Signal) []byte {
	var b bytes.Buffer
	for line, err := range otlpexport.Lines("talk", "", each(list)) {
		require.NoError(t, err)
		// The decoder of the collector reads it too.
		_, err = (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

func parse(t testing.TB, lines string) []*signal.Signal {
	var list []*signal.Signal
	for line := range strings.Lines(lines) {
		s, err := signal.ParseLenient([]byte(line))
		require.NoError(t, err)
		list = append(list, s)
	}
	return list
}

func reimport(t testing.TB, text []byte) []*signal.Signal {
	if len(text) == 0 {
		return nil
	}
	list, _, err := recordingtest.TryRead(t, otlp.Format(), recordingtest.File("f", text), "f", recording.Options{Final: true})
	require.NoError(t, err)
	return list
}

// facts are what an export keeps, in an order that does not depend on equal times.
func facts(list []*signal.Signal) []string {
	var all []string
	for _, s := range list {
		p := signal.ObjectOf(s.Payload)
		p = slices.Clone(p)
		switch s.Type {
		case "tool_call", "tool_result", "text_delta", "thinking":
		case "token_usage":
			for _, name := range []string{"cacheReadTokens", "cacheWriteTokens", "reasoningTokens"} {
				if v := s.Metadata.Member(name); v.Kind() != signal.KindAbsent {
					p.Add(name, v)
				}
			}
		case "task_dispatch":
			p.Remove("taskId")
		case "completion":
			p.Remove("taskId")
		default:
			continue
		}
		p.Sort()
		all = append(all, fmt.Sprintf("%.0f %s %s", recordingtest.Milliseconds(s)*1000, s.Type, p.Value().AppendJSON(nil)))
	}
	slices.SortStableFunc(all, cmp.Compare)
	return all
}

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		text := export(t, parse(t, string(in[0].Data)))
		return []txtar.File{
			{Name: "told", Data: bytes.ReplaceAll(text, []byte(`{"traceId"`), []byte("\n"+`{"traceId"`))},
			{Name: "imported again", Data: []byte(recordingtest.Tell(reimport(t, text)))},
		}
	})
}

// Whatever was recorded from traces: what is exported and imported again has the same facts.
func TestRealSessions(t *testing.T) {
	for _, file := range []string{
		"otel-genai/k8s.json", "otel-genai/tempo_export_with_batches.json", "otlp/jaeger-helm.json", "otlp/flat-adot-claude.json",
		"otlp/flat-genai-openai-agents.json", "otlp/flat-openinference-smolagents.json", "langfuse/claude-agent-2025-12-22.trace.json",
	} {
		files, ok := recordingtest.Real("../..", path.Dir(file))
		if !ok {
			return
		}
		text, err := fs.ReadFile(files, path.Base(file))
		require.NoError(t, err)
		f := formats.Detect(recording.NewSample(file, text, true))[0].Format
		list, _ := recordingtest.Read(t, f, files, path.Base(file), recording.Options{Final: true})
		again := reimport(t, export(t, list))
		assert.Equal(t, facts(list), facts(again), file)
	}
}

// Any order of calls, results, words and tasks: the facts stay the same.
func TestAnySignals(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		var lines strings.Builder
		now := int64(1_767_225_600_000)
		emit := func(typ, payload string) {
			fmt.Fprintf(&lines, `{"id":"%d","type":%q,"timestamp":%d,"source":"s","payload":%s}`+"\n", lines.Len(), typ, now, payload)
		}
		open := map[string]bool{}
		var calls []string
		for i := range rapid.IntRange(1, 40).Draw(t, "n") {
			now += rapid.Int64Range(1, 3).Draw(t, "later")
			agent := rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "agent")
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				if !open[agent] {
					open[agent] = true
					emit("task_dispatch", fmt.Sprintf(`{"taskId":%q,"from":"user","to":%q,"description":"do %d"}`, agent, agent, i))
				}
			case 1:
				if open[agent] && !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, agent) }) {
					delete(open, agent)
					emit("completion", fmt.Sprintf(`{"taskId":%q,"success":true,"agentId":%q,"result":"%d"}`, agent, agent, i))
				}
			case 2:
				calls = append(calls, fmt.Sprintf("%s-%d", agent, i))
				emit("tool_call", fmt.Sprintf(`{"toolName":"t","agentId":%q,"callId":"%s-%d","input":{"n":%d}}`, agent, agent, i, i))
			case 3:
				if len(calls) > 0 {
					at := rapid.IntRange(0, len(calls)-1).Draw(t, "call")
					name, _, _ := strings.Cut(calls[at], "-")
					emit("tool_result", fmt.Sprintf(`{"toolName":"t","agentId":%q,"success":%v,"callId":%q,"output":{"x":[1,"%d"]}}`, name, i%2 == 0, calls[at], i))
					calls = slices.Delete(calls, at, at+1)
				}
			case 4:
				emit("token_usage", fmt.Sprintf(`{"agentId":%q,"promptTokens":%d,"completionTokens":2,"model":"m","cost":0.25}`, agent, 1<<55+i))
			default:
				// A text has the time at which its agent has said all, so it ends at once.
				emit("thinking", fmt.Sprintf(`{"agentId":%q,"content":"hm %d"}`, agent, i))
				emit("token_usage", fmt.Sprintf(`{"agentId":%q,"promptTokens":1,"completionTokens":1}`, agent))
			}
		}
		list := parse(outer, lines.String())
		require.Equal(t, facts(list), facts(reimport(outer, export(outer, list))))
	})
}

// An error of the signals ends the lines.
func TestError(t *testing.T) {
	for line, err := range otlpexport.Lines("talk", "", func(yield func(*signal.Signal, error) bool) { yield(nil, fs.ErrClosed) }) {
		require.Nil(t, line)
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}

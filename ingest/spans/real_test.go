package spans_test

import (
	"encoding/json"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

// plainSpan is a span as encoding/json reads it, the same for all formats.
type plainSpan struct {
	id, parent string
	start, end float64 // milliseconds
	attributes map[string]any
	failed     bool
}

// plainSpans reads the spans of a real file in the plainest way.
func plainSpans(t *testing.T, text []byte) []plainSpan {
	var doc any
	require.NoError(t, json.Unmarshal(text, &doc))
	var list []plainSpan
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if s, is := plain(v); is {
				list = append(list, s)
				return
			}
			for _, name := range []string{"data", "batches", "instrumentationLibrarySpans", "spans"} {
				walk(v[name])
			}
		}
	}
	walk(doc)
	return list
}

func plain(v map[string]any) (plainSpan, bool) {
	s := plainSpan{attributes: map[string]any{}}
	switch {
	case v["span_id"] != nil:
		s.id, _ = v["span_id"].(string)
		s.parent, _ = v["parent_span_id"].(string)
		s.start, s.end = v["start_time"].(float64)/1e6, v["end_time"].(float64)/1e6
		s.attributes = v["attributes"].(map[string]any)
		s.failed = v["status"].(map[string]any)["code"] == "ERROR"
	case v["spanID"] != nil:
		s.id = v["spanID"].(string)
		for _, r := range v["references"].([]any) {
			s.parent = r.(map[string]any)["spanID"].(string)
		}
		s.start = v["startTime"].(float64) / 1e3
		s.end = s.start + v["duration"].(float64)/1e3
		for _, tag := range v["tags"].([]any) {
			s.attributes[tag.(map[string]any)["key"].(string)] = tag.(map[string]any)["value"]
		}
		s.failed = s.attributes["error"] == true
	case v["spanId"] != nil:
		s.id = v["spanId"].(string)
		s.parent, _ = v["parentSpanId"].(string)
		s.start, s.end = v["startTimeUnixNano"].(float64)/1e6, v["endTimeUnixNano"].(float64)/1e6
		for _, a := range v["attributes"].([]any) {
			for _, value := range a.(map[string]any)["value"].(map[string]any) {
				s.attributes[a.(map[string]any)["key"].(string)] = value
			}
		}
		s.failed = v["status"].(map[string]any)["code"] == 2.0
	default:
		return s, false
	}
	return s, true
}

func (s plainSpan) text(names ...string) string {
	for _, name := range names {
		if t, ok := s.attributes[name].(string); ok && t != "" {
			return t
		}
	}
	return ""
}

func (s plainSpan) count(names ...string) int {
	for _, name := range names {
		switch n := s.attributes[name].(type) {
		case float64:
			return int(n)
		case string:
			i, _ := strconv.Atoi(n)
			return i
		}
	}
	return 0
}

func (s plainSpan) is(kind string) bool {
	k := strings.ToLower(s.text("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind"))
	return k == kind || kind == "agent" && k == "invoke_agent" || kind == "tool" && k == "execute_tool"
}

// The facts of real recordings, counted straight from the files.
func TestRealSessions(t *testing.T) {
	for _, tt := range []struct {
		file, format  string
		agents, texts int
	}{
		{"otel-genai/k8s.json", "jaeger", 1, 1},
		{"otlp/jaeger-helm.json", "jaeger", 1, 1},
		{"otel-genai/tempo_export_with_batches.json", "otlp", 2, 1},
		{"otlp/flat-genai-openai-agents.json", "flat-spans", 3, 3},
		{"otlp/flat-openinference-smolagents.json", "flat-spans", 1, 2},
		// Two agents of one name work at the same time.
		{"otlp/flat-adot-claude.json", "flat-spans", 3, 2},
	} {
		files, ok := recordingtest.Real("../..", path.Dir(tt.file))
		if !ok {
			return
		}
		t.Run(path.Base(tt.file), func(t *testing.T) {
			text, err := fs.ReadFile(files, path.Base(tt.file))
			require.NoError(t, err)
			plain := plainSpans(t, text)
			byID := map[string]plainSpan{}
			for _, s := range plain {
				byID[s.id] = s
			}
			const in, out = "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.token_count.prompt", "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens llm.token_count.completion"
			above := map[string]bool{} // a descendant has tokens
			for _, s := range plain {
				if s.count(strings.Fields(in)...) > 0 {
					for p := byID[s.parent]; p.id != ""; p = byID[p.parent] {
						above[p.id] = true
					}
				}
			}
			want := map[string]int{}
			first, last := math.MaxFloat64, 0.0
			for _, s := range plain {
				if s.is("agent") || s.is("workflow") {
					want["tasks"]++
					first, last = min(first, s.start), max(last, s.end)
				}
				if s.is("tool") {
					want["calls"]++
					if s.failed {
						want["failures"]++
					}
				}
				if n := s.count(strings.Fields(in)...); !above[s.id] && n > 0 {
					cached := s.count("llm.token_count.prompt_details.cache_read") + s.count("llm.token_count.prompt_details.cache_write")
					if cached > n {
						n += cached
					}
					want["prompt tokens"] += n
					want["completion tokens"] += s.count(strings.Fields(out)...)
				}
			}

			found := formats.Detect(recording.NewSample(tt.file, text, true))
			require.Len(t, found, 1, formats.Describe(found))
			require.Equal(t, tt.format, found[0].Format.Name)
			list, balance := recordingtest.Read(t, found[0].Format, files, path.Base(tt.file), recording.Options{Final: true})
			got, agents := map[string]int{}, map[string]bool{}
			began, ended := math.MaxFloat64, 0.0
			for _, s := range list {
				if id := s.Payload.TextOf("agentId"); id != "" {
					agents[id] = true
				}
				switch s.Type {
				case "task_dispatch":
					got["tasks"]++
					began = min(began, recordingtest.Milliseconds(s))
				case "completion":
					ended = max(ended, recordingtest.Milliseconds(s))
				case "tool_call":
					got["calls"]++
				case "tool_result":
					if !s.Payload.BoolOf("success") {
						got["failures"]++
					}
				case "token_usage":
					got["prompt tokens"] += int(s.Payload.IntOf("promptTokens"))
					got["completion tokens"] += int(s.Payload.IntOf("completionTokens"))
				}
			}
			assert.Equal(t, want, got)
			assert.Len(t, agents, tt.agents)
			assert.Equal(t, tt.texts, recordingtest.Count(list)["text_delta"])
			assert.Equal(t, want["calls"], recordingtest.Count(list)["tool_result"])
			assert.InDelta(t, first, began, 0.001)
			assert.InDelta(t, last, ended, 0.001)
			assert.Equal(t, len(plain), balance.Records)
		})
	}
}

// A valid recording of other programs gives no signals and says why.
func TestRealWithoutAgents(t *testing.T) {
	files, ok := recordingtest.Real("../..", "otlp")
	if !ok {
		return
	}
	f, _ := formats.Named("otlp")
	list, balance := recordingtest.Read(t, f, files, "agento-otlp.json", recording.Options{Final: true})
	assert.Empty(t, list)
	assert.Len(t, balance.Notes, 1)
	assert.Equal(t, map[string]int{"transport": balance.Records}, balance.Skipped)
}

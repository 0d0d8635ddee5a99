package otlp_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
	"github.com/sajou-dev/sajou-go/signal"
)

// plain tells signals without what a live mapping leaves out or has otherwise, and without
// the lines of a file.
func plain(t testing.TB, list []*signal.Signal) string {
	t.Helper()
	var out []byte
	for _, s := range list {
		if s.Type == recording.TypeRecording || s.Type == recording.TypeRemark {
			continue
		}
		c := *s
		c.Source = ""
		var v map[string]any
		require.NoError(t, json.Unmarshal(c.AppendJSON(nil), &v))
		delete(v["metadata"].(map[string]any)["native"].(map[string]any), "line")
		text, err := json.Marshal(v)
		require.NoError(t, err)
		out = append(append(out, text...), '\n')
	}
	return string(out)
}

// The spans of an export give the same signals one by one as in a file, in both encodings
// and in whatever order they arrive.
func TestPartsGiveWhatAFileGives(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		traces := drawTraces(t)
		inJSON, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
		require.NoError(t, err)
		inProto, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
		require.NoError(t, err)
		file, _, err := recordingtest.TryRead(outer, otlp.Format(), recordingtest.File("f", inProto), "f", recording.Options{MaxBad: 1})
		require.NoError(t, err)
		want := plain(outer, file)
		for _, text := range [][]byte{inProto, inJSON} {
			parts, refused, err := otlp.SplitSpans(text, text[0] == '{')
			require.NoError(t, err)
			require.Zero(t, refused)
			require.Len(t, parts, traces.SpanCount())
			for _, p := range parts {
				require.Equal(t, "01000000000000000000000000000000", p.Trace)
				require.True(t, p.Ended)
			}
			live, err := otlp.Live(parts)
			require.NoError(t, err)
			require.Equal(t, want, plain(outer, live))
			for _, s := range live {
				require.Equal(t, "otlp:desk", s.Source)
			}
		}
	})
}

// More parts of a trace keep the ids of the signals that were there.
func TestFurtherPartsKeepIDs(t *testing.T) {
	agent := span("invoke_agent ann", 1)
	tool := span("execute_tool one", 2, message(4, bytes.Repeat([]byte{1}, 8)))
	parts, _, err := otlp.SplitSpans(export(tool, agent), false)
	require.NoError(t, err)
	require.Len(t, parts, 2)
	before, err := otlp.Live(parts[:1])
	require.NoError(t, err)
	after, err := otlp.Live(parts)
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, s := range after {
		ids[s.ID] = true
	}
	require.Greater(t, len(after), len(before))
	for _, s := range before {
		if s.Type == "tool_call" || s.Type == "tool_result" {
			assert.True(t, ids[s.ID], s.Type)
		}
	}
}

// A record that cannot be read is refused, with its place, and costs no other.
func TestRefusedParts(t *testing.T) {
	parts, refused, err := otlp.SplitSpans(export(span("one", 1), append(message(2, []byte("abc")), message(5, []byte("x"))...), span("two", 2)), false)
	require.NoError(t, err)
	assert.Len(t, parts, 2)
	assert.Equal(t, 1, refused.Count)
	assert.Contains(t, refused.First, "/resources/0/scopes/0/records/1: ")
	parts, refused, err = otlp.SplitSpans([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[7,{"traceId":"01","spanId":"0102030405060708"},{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"}]}]}]}`), true)
	require.NoError(t, err)
	assert.Len(t, parts, 1)
	assert.Equal(t, otlp.RefusedParts{Count: 2, First: "/resourceSpans/0/scopeSpans/0/spans/0: it is not an object"}, refused)
	for _, text := range []string{"{", "[]", "7", `{"resourceSpans":{}}`} {
		_, _, err := otlp.SplitSpans([]byte(text), true)
		require.ErrorIs(t, err, otlp.ErrExport, text)
	}
	for _, text := range []string{"\x0a", "\x0a\x02\x0a", "\xff\xff", "\x0a\x03\x12\x02\x12"} {
		_, _, err := otlp.SplitSpans([]byte(text), false)
		require.ErrorIs(t, err, otlp.ErrExport, "%q", text)
	}
	for _, empty := range []string{"", "{}"} {
		parts, refused, err := otlp.SplitSpans([]byte(empty), empty != "")
		require.NoError(t, err)
		assert.Empty(t, parts)
		assert.Zero(t, refused)
	}
}

// Log records are parts if they tell of an agent, whatever their encoding.
func TestSplitLogs(t *testing.T) {
	logs := plog.NewLogs()
	list := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, name := range []string{"claude_code.user_prompt", "heartbeat", "claude_code.tool_result"} {
		r := list.AppendEmpty()
		r.SetEventName(name)
		r.SetTimestamp(1_767_225_600_000_000_000)
		r.Attributes().PutStr("session.id", "s1")
		r.Attributes().PutStr("prompt.id", "p1")
		r.Attributes().PutStr("tool_name", "Bash")
	}
	inJSON, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
	require.NoError(t, err)
	inProto, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	require.NoError(t, err)
	for _, text := range [][]byte{inProto, inJSON} {
		parts, refused, err := otlp.SplitLogs(text, text[0] == '{')
		require.NoError(t, err)
		assert.Zero(t, refused)
		require.Len(t, parts, 2)
		for _, p := range parts {
			assert.True(t, p.Log)
			assert.Equal(t, "s1", p.Session)
			assert.Empty(t, p.Trace)
		}
		live, err := otlp.Live(parts)
		require.NoError(t, err)
		counts := recordingtest.Count(live)
		assert.Equal(t, 1, counts["task_dispatch"])
		assert.Equal(t, 1, counts["tool_result"])
		assert.Equal(t, "otlp", live[0].Source)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(export(span("execute_tool one", 1)), false, false)
	f.Add([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"claude_code.user_prompt"}]}]}]}`), true, true)
	f.Fuzz(func(t *testing.T, text []byte, inJSON, logs bool) {
		split := otlp.SplitSpans
		if logs {
			split = otlp.SplitLogs
		}
		parts, _, err := split(text, inJSON)
		if err != nil {
			return
		}
		for _, p := range parts {
			again, refused, err := split(p.Text, inJSON)
			require.NoError(t, err)
			require.Zero(t, refused)
			require.Len(t, again, 1)
			require.Equal(t, p, again[0])
		}
		_, err = otlp.Live(parts)
		require.NoError(t, err)
	})
}

package otlp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

// message returns a message of one field.
func message(field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
}

// told reads a file and tells its signals without their places.
func told(t testing.TB, text []byte) (string, recording.Balance) {
	list, b, err := recordingtest.TryRead(t, otlp.Format(), recordingtest.File("f", text), "f", recording.Options{Final: true, MaxBad: 1})
	require.NoError(t, err)
	return recordingtest.Tell(list), b
}

// drawValue returns any value of an attribute.
func drawValue(t *rapid.T, to pcommon.Value, depth int) {
	switch rapid.IntRange(0, 6).Draw(t, "value") {
	case 0:
		to.SetBool(rapid.Bool().Draw(t, "bool"))
	case 1:
		to.SetInt(rapid.Int64().Draw(t, "int"))
	case 2:
		to.SetDouble(rapid.Float64Range(-1e9, 1e9).Draw(t, "double"))
	case 3, 4:
		list := to.SetEmptySlice()
		for range rapid.IntRange(0, 3).Draw(t, "length") * (1 - depth/4) {
			drawValue(t, list.AppendEmpty(), depth+1)
		}
	case 5:
		m := to.SetEmptyMap()
		for i := range rapid.IntRange(0, 3).Draw(t, "length") * (1 - depth/4) {
			drawValue(t, m.PutEmpty(fmt.Sprint("k", i)), depth+1)
		}
	default:
		to.SetStr(rapid.StringN(0, 8, -1).Draw(t, "text"))
	}
}

func drawTraces(t *rapid.T) ptrace.Traces {
	traces := ptrace.NewTraces()
	for range rapid.IntRange(1, 3).Draw(t, "resources") {
		r := traces.ResourceSpans().AppendEmpty()
		r.Resource().Attributes().PutStr("service.name", "desk")
		for range rapid.IntRange(1, 2).Draw(t, "scopes") {
			s := r.ScopeSpans().AppendEmpty()
			for range rapid.IntRange(1, 4).Draw(t, "spans") {
				v := s.Spans().AppendEmpty()
				v.SetTraceID([16]byte{1})
				v.SetSpanID([8]byte{1 + byte(rapid.IntRange(0, 9).Draw(t, "id"))})
				v.SetParentSpanID([8]byte{byte(rapid.IntRange(0, 9).Draw(t, "parent"))})
				v.SetName(rapid.SampledFrom([]string{"invoke_agent ann", "execute_tool add", "chat m", "GET"}).Draw(t, "name"))
				// Nanoseconds that a float64 does not hold.
				start := 1_767_225_600_000_000_001 + rapid.Int64Range(0, 1e10).Draw(t, "start")
				v.SetStartTimestamp(pcommon.Timestamp(start))
				v.SetEndTimestamp(pcommon.Timestamp(start + rapid.Int64Range(0, 1e9).Draw(t, "length")))
				v.Status().SetCode(ptrace.StatusCode(rapid.IntRange(0, 2).Draw(t, "status")))
				for _, name := range []string{"gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.usage.input_tokens", "input.value", "other"} {
					if rapid.Bool().Draw(t, name) {
						drawValue(t, v.Attributes().PutEmpty(name), 0)
					}
				}
				if rapid.Bool().Draw(t, "event") {
					e := v.Events().AppendEmpty()
					e.SetName("exception")
					e.Attributes().PutStr("exception.message", "no")
				}
			}
		}
	}
	return traces
}

// What the collector writes in JSON, in protobuf, and in protobuf with lengths gives the same signals.
func TestEncodings(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		traces := drawTraces(t)
		inJSON, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
		require.NoError(t, err)
		inProto, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
		require.NoError(t, err)
		require.NotEmpty(t, otlp.Format().Detect(recording.NewSample("f", inProto, true)))
		require.NotEmpty(t, otlp.Format().Detect(recording.NewSample("f", inJSON, true)))
		want, balance := told(outer, inJSON)
		require.Zero(t, balance.Unreadable)
		got, _ := told(outer, inProto)
		// The places tell the lines apart, which protobuf does not have.
		want = strings.ReplaceAll(want, "\n  1 ", "\n  0 ")
		if rest, ok := strings.CutPrefix(want, "  1 "); ok {
			want = "  0 " + rest
		}
		require.Equal(t, want, got)
		framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(inProto))), inProto...)
		got, _ = told(outer, framed)
		require.Equal(t, want, got)
	})
}

// span returns a span in protobuf with further fields.
func span(name string, id byte, more ...[]byte) []byte {
	b := append(message(1, bytes.Repeat([]byte{1}, 16)), message(2, bytes.Repeat([]byte{id}, 8))...)
	b = append(b, message(5, []byte(name))...)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), 1_767_225_600_000_000_000)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 8, protowire.Fixed64Type), 1_767_225_601_000_000_000)
	return append(b, bytes.Join(more, nil)...)
}

func export(spans ...[]byte) []byte {
	var scope []byte
	for _, s := range spans {
		scope = append(scope, message(2, s)...)
	}
	resource := message(1, append(message(1, []byte("service.name")), message(2, message(1, []byte("desk")))...))
	return message(1, append(message(1, resource), message(2, scope)...))
}

// A span that cannot be read, or whose values would cost more than they may, costs no other.
func TestHostileProtobuf(t *testing.T) {
	deep := message(1, []byte("x"))
	for range 5_000 {
		deep = message(5, message(1, deep))
	}
	bad := map[string][]byte{
		"an id of three bytes": append(message(2, []byte("abc")), message(5, []byte("x"))...),
		"no id":                message(5, []byte("execute_tool x")),
		"nested too deeply":    span("execute_tool deep", 7, message(9, append(message(1, []byte("k")), message(2, deep)...))),
		"too many parts":       span("execute_tool many", 7, bytes.Repeat([]byte{0x4a, 0}, 300_000)),
		"garbage":              []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
		"another kind":         append(protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.VarintType), 1), message(2, bytes.Repeat([]byte{9}, 8))...),
		"a group without end":  protowire.AppendTag(nil, 3, protowire.StartGroupType),
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			text, balance := told(t, export(span("execute_tool one", 1), b, span("execute_tool two", 2)))
			assert.Equal(t, 1, balance.Unreadable)
			assert.Equal(t, 2, balance.Mapped)
			assert.Contains(t, text, `"toolName":"two"`)
		})
	}
	many := span("execute_tool many", 7, bytes.Repeat(message(9, append(message(1, []byte("unknown")), message(2, message(1, []byte("x")))...)), 5_000))
	text, balance := told(t, export(many))
	assert.Zero(t, balance.Unreadable)
	assert.Contains(t, text, `"toolName":"many"`)
}

// At whatever byte a file ends, what is whole is read, and no more than the cut parts are lost.
func TestTruncatedProtobuf(t *testing.T) {
	whole := export(span("execute_tool one", 1), span("execute_tool two", 2))
	for n := range whole {
		require.NotPanics(t, func() {
			_, _, _ = recordingtest.TryRead(t, otlp.Format(), recordingtest.File("f", whole[:n]), "f", recording.Options{Final: true, MaxBad: 1})
		}, "the first %d bytes", n)
	}
	framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(whole))), whole...)
	framed = append(framed, framed[:len(framed)/2]...)
	text, balance := told(t, framed)
	assert.Equal(t, 2, strings.Count(text, "tool_call"))
	assert.Equal(t, 1, balance.Unreadable)
}

// Text that begins with lines of white space is no protobuf.
func TestTextIsNoProtobuf(t *testing.T) {
	for _, text := range []string{"\n\n\n# notes", "\n{\n}", "\n\x0a\x08", "", "\n", "\x00\x00\x00\x02\n"} {
		assert.Empty(t, otlp.Format().Detect(recording.NewSample("f", []byte(text), true)), "%q", text)
	}
}

// The length of an export may be the number of a character that begins JSON.
func TestProtobufLikeText(t *testing.T) {
	for _, begin := range []byte("{[") {
		text := export(span("", 1))
		text = export(span("execute_tool "+strings.Repeat("n", int(begin)+2-len(text)-len("execute_tool ")), 1))
		require.Equal(t, []byte{'\n', begin}, text[:2])
		assert.NotEmpty(t, otlp.Format().Detect(recording.NewSample("f", text, true)), "%q", begin)
		_, balance := told(t, text)
		assert.Equal(t, 1, balance.Mapped, "%q", begin)
	}
}

func FuzzProtobuf(f *testing.F) {
	f.Add(export(span("execute_tool one", 1), span("chat", 2)))
	f.Add(append([]byte{0, 0, 0, 9}, export(span("x", 1))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 0 && (b[0] == '\n' || b[0] == 0) {
			recordingtest.Fuzzed(t, otlp.Format(), "f", b)
		}
		recordingtest.Fuzzed(t, otlp.Format(), "f", export(b))
	})
}

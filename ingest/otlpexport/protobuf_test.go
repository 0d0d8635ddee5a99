package otlpexport_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/sajou-dev/sajou-go/ingest/otlpexport"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestProtobuf: the exports joined are one message that has the spans of all lines.
func TestProtobuf(t *testing.T) {
	signals := func(yield func(*signal.Signal, error) bool) {
		for i := range 300 {
			for _, text := range []string{
				`{"id":"c%d","type":"tool_call","timestamp":1000,"source":"s","payload":{"toolName":"add","agentId":"ann","callId":"k%[1]d"}}`,
				`{"id":"r%d","type":"tool_result","timestamp":2500.5,"source":"s","payload":{"toolName":"add","agentId":"ann","callId":"k%[1]d","success":true}}`,
			} {
				if s, err := signal.Parse(fmt.Appendf(nil, text, i)); !yield(s, err) {
					return
				}
			}
		}
	}
	var all []byte
	n := 0
	for part, err := range otlpexport.Protobuf(otlpexport.Lines("talk", "", signals)) {
		require.NoError(t, err)
		all = append(all, part...)
		n++
	}
	require.Greater(t, n, 2)
	var u ptrace.ProtoUnmarshaler
	traces, err := u.UnmarshalTraces(all)
	require.NoError(t, err)
	assert.Equal(t, 300, traces.SpanCount())
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	assert.Equal(t, "execute_tool add", span.Name())
	assert.EqualValues(t, 2_500_500_000, span.EndTimestamp())

	broken := errors.New("broken")
	for _, err := range otlpexport.Protobuf(func(yield func([]byte, error) bool) { yield(nil, broken) }) {
		require.ErrorIs(t, err, broken)
	}
	for _, err := range otlpexport.Protobuf(func(yield func([]byte, error) bool) { yield([]byte("{"), nil) }) {
		require.Error(t, err)
	}
}

package otlpexport

import (
	"fmt"
	"iter"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Protobuf yields the exports of [Lines] in protobuf. Joined without anything between
// them they are one message of the type TracesData, since its only field is repeated. An
// error of the sequence ends it.
func Protobuf(lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var from ptrace.JSONUnmarshaler
		var to ptrace.ProtoMarshaler
		for line, err := range lines {
			var data []byte
			if err == nil {
				var traces ptrace.Traces
				if traces, err = from.UnmarshalTraces(line); err == nil {
					data, err = to.MarshalTraces(traces)
				}
				if err != nil {
					err = fmt.Errorf("otlpexport: %w", err)
				}
			}
			if !yield(data, err) || err != nil {
				return
			}
		}
	}
}

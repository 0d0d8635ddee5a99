package otlpexport_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/ingest/otlpexport"
	"github.com/sajou-dev/sajou-go/signal"
)

func ExampleLines() {
	signals := func(yield func(*signal.Signal, error) bool) {
		for _, line := range []string{
			`{"id":"1","type":"tool_call","timestamp":1000,"source":"s","payload":{"toolName":"add","agentId":"ann","callId":"c"}}`,
			`{"id":"2","type":"tool_result","timestamp":2500.5,"source":"s","payload":{"toolName":"add","agentId":"ann","callId":"c","success":true}}`,
		} {
			if s, err := signal.Parse([]byte(line)); !yield(s, err) {
				return
			}
		}
	}
	for line, err := range otlpexport.Lines("talk", "", signals) {
		if err != nil {
			fmt.Println(err)
			return
		}
		v, _ := signal.ParseValue(line)
		span, _ := v.Lookup("resourceSpans.0.scopeSpans.0.spans.0")
		fmt.Println(span.TextOf("name"), span.TextOf("startTimeUnixNano"), span.TextOf("endTimeUnixNano"))
	}
	// Output: execute_tool add 1000000000 2500500000
}

package otlp_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"traces.json": {Data: []byte(
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01","spanId":"0a","name":"execute_tool add","startTimeUnixNano":"1767225600000000000","endTimeUnixNano":"1767225601000000000"}]}]}]}`)}}
	for item, err := range otlp.Format().Open(files, "traces.json", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// traces.json:1 /resourceSpans/0/scopeSpans/0/spans/0 import.recording
	// traces.json:1 /resourceSpans/0/scopeSpans/0/spans/0 tool_call
	// traces.json:1 /resourceSpans/0/scopeSpans/0/spans/0 agent_state_change
	// traces.json:1 /resourceSpans/0/scopeSpans/0/spans/0 tool_result
	// traces.json:1 /resourceSpans/0/scopeSpans/0/spans/0 agent_state_change
}

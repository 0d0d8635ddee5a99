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

func ExampleLive() {
	// A span arrives before its parent.
	var arrived []otlp.ExportPart
	for _, export := range []string{
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"eee19b7ec3c1b173","name":"execute_tool add"}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b173","name":"invoke_agent ann"}]}]}]}`,
	} {
		more, _, err := otlp.SplitSpans([]byte(export), true)
		if err != nil {
			fmt.Println(err)
			return
		}
		arrived = append(arrived, more...)
	}
	signals, err := otlp.Live(arrived)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range signals {
		fmt.Println(s.Source, s.Type)
	}
	// Output:
	// otlp task_dispatch
	// otlp agent_state_change
	// otlp tool_call
	// otlp agent_state_change
}

package jaeger_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/jaeger"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"trace.json": {Data: []byte(
		`{"data":[{"spans":[{"traceID":"t","spanID":"a","operationName":"execute_tool add","startTime":1767225600000000,"duration":1000000}]}]}`)}}
	for item, err := range jaeger.Format().Open(files, "trace.json", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// trace.json:1 /data/0/spans/0 import.recording
	// trace.json:1 /data/0/spans/0 tool_call
	// trace.json:1 /data/0/spans/0 agent_state_change
	// trace.json:1 /data/0/spans/0 tool_result
	// trace.json:1 /data/0/spans/0 agent_state_change
}

package flatspans_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/flatspans"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"spans.json": {Data: []byte(
		`[{"trace_id":"t","span_id":"a","name":"execute_tool add","start_time":1767225600000000000,"end_time":1767225601000000000,"attributes":{}}]`)}}
	for item, err := range flatspans.Format().Open(files, "spans.json", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// spans.json:1 /0 import.recording
	// spans.json:1 /0 tool_call
	// spans.json:1 /0 agent_state_change
	// spans.json:1 /0 tool_result
	// spans.json:1 /0 agent_state_change
}

package agentssdk_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/agentssdk"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"trace.json": {Data: []byte(
		`[{"object": "trace.span", "id": "a", "trace_id": "t", "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z", "span_data": {"type": "function", "name": "add"}}]`)}}
	for item, err := range agentssdk.Format().Open(files, "trace.json", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// trace.json:1 /0 import.recording
	// trace.json:1 /0 tool_call
	// trace.json:1 /0 agent_state_change
	// trace.json:1 /0 tool_result
	// trace.json:1 /0 agent_state_change
}

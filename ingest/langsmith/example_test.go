package langsmith_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/langsmith"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"runs.jsonl": {Data: []byte(
		`{"id": "a", "run_type": "tool", "name": "add", "dotted_order": "x", "start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T00:00:01"}`)}}
	for item, err := range langsmith.Format().Open(files, "runs.jsonl", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// runs.jsonl:1 import.recording
	// runs.jsonl:1 tool_call
	// runs.jsonl:1 agent_state_change
	// runs.jsonl:1 tool_result
	// runs.jsonl:1 agent_state_change
}

package langfuse_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/langfuse"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"trace.json": {Data: []byte(
		`{"trace": {"id": "t"}, "observations": [{"id": "a", "type": "TOOL", "name": "add", "startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-01T00:00:01Z"}]}`)}}
	for item, err := range langfuse.Format().Open(files, "trace.json", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// trace.json:1 /observations/0 import.recording
	// trace.json:1 /observations/0 tool_call
	// trace.json:1 /observations/0 agent_state_change
	// trace.json:1 /observations/0 tool_result
	// trace.json:1 /observations/0 agent_state_change
}

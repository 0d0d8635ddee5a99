package copilot_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/copilot"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"events.jsonl": {Data: []byte(
		`{"type":"user.message","data":{"content":"Any tests?","interactionId":"i1"},"id":"e1","timestamp":"2026-04-01T10:00:00Z","parentId":null}
{"type":"assistant.message","data":{"messageId":"m1","content":"None.","toolRequests":[],"interactionId":"i1"},"id":"e2","timestamp":"2026-04-01T10:00:02Z","parentId":"e1"}
{"type":"assistant.turn_end","data":{"turnId":"0"},"id":"e3","timestamp":"2026-04-01T10:00:03Z","parentId":"e2"}
`)}}
	for item, err := range copilot.Format().Open(files, "events.jsonl", recording.Options{Final: true}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// events.jsonl:1 import.recording
	// events.jsonl:1 task_dispatch
	// events.jsonl:1 agent_state_change
	// events.jsonl:2 text_delta
	// events.jsonl:3 completion
	// events.jsonl:3 agent_state_change
	// events.jsonl:3 import.end
}

package hooks_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/hooks"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"hooks.jsonl": {Data: []byte(
		`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"}
{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1","tool_response":{"stdout":""}}
`)}}
	for item, err := range hooks.Format().Open(files, "hooks.jsonl", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type, item.Signal.Timestamp)
	}
	// Output:
	// hooks.jsonl:1 import.recording 0
	// hooks.jsonl:1 tool_call 0
	// hooks.jsonl:1 agent_state_change 0
	// hooks.jsonl:2 tool_result 1000
	// hooks.jsonl:2 agent_state_change 1000
}

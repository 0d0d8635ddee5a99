package codex_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/codex"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"exec.jsonl": {Data: []byte(
		`{"type":"thread.started","thread_id":"th-9"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":3}}
`)}}
	for item, err := range codex.Format().Open(files, "exec.jsonl", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// exec.jsonl:2 import.recording
	// exec.jsonl:2 agent_state_change
	// exec.jsonl:3 text_delta
	// exec.jsonl:4 token_usage
	// exec.jsonl:4 completion
	// exec.jsonl:4 agent_state_change
}

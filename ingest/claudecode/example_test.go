package claudecode_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/claudecode"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"session.jsonl": {Data: []byte(
		`{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-01-05T10:00:00Z","message":{"role":"user","content":"Any tests?"}}
{"type":"assistant","uuid":"a1","sessionId":"s1","timestamp":"2026-01-05T10:00:02Z","message":{"id":"m1","role":"assistant","model":"model-x","content":[{"type":"text","text":"None."}],"usage":{"input_tokens":3,"cache_read_input_tokens":90,"output_tokens":2}}}
`)}}
	reading := claudecode.Format().Open(files, "session.jsonl", recording.Options{Final: true})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// session.jsonl:1 import.recording
	// session.jsonl:1 task_dispatch
	// session.jsonl:1 agent_state_change
	// session.jsonl:2 text_delta
	// session.jsonl:2 token_usage
	// session.jsonl:2 completion
	// session.jsonl:2 agent_state_change
	// session.jsonl:2 import.end
}

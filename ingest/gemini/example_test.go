package gemini_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/gemini"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"session.jsonl": {Data: []byte(
		`{"sessionId":"s","projectHash":"h","kind":"main"}
{"id":"u1","timestamp":"2026-04-01T10:00:00Z","type":"user","content":[{"text":"Any tests?"}]}
{"id":"g1","timestamp":"2026-04-01T10:00:02Z","type":"gemini","content":"None.","tokens":{"input":3,"output":2}}
`)}}
	for item, err := range gemini.Format().Open(files, "session.jsonl", recording.Options{Final: true}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// session.jsonl:2 import.recording
	// session.jsonl:2 task_dispatch
	// session.jsonl:2 agent_state_change
	// session.jsonl:3 text_delta
	// session.jsonl:3 token_usage
	// session.jsonl:3 completion
	// session.jsonl:3 agent_state_change
	// session.jsonl:3 import.end
}

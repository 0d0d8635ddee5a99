package mcp_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/mcp"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"log.jsonl": {Data: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"a"}}}
{"jsonrpc":"2.0","id":1,"result":{"content":[]}}
`)}}
	reading := mcp.Format().Open(files, "log.jsonl", recording.Options{})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// log.jsonl:1 import.recording
	// log.jsonl:1 tool_call
	// log.jsonl:1 agent_state_change
	// log.jsonl:2 tool_result
	// log.jsonl:2 agent_state_change
}

package openhands_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/openhands"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"events.json": {Data: []byte(`[{"id":0,"timestamp":"2025-01-27T22:44:56","source":"user","action":"message","args":{"content":"Fix it."}},
{"id":1,"timestamp":"2025-01-27T22:44:58","source":"agent","action":"run","args":{"command":"make"}}]`)}}
	reading := openhands.Format().Open(files, "events.json", recording.Options{})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// events.json /0 import.recording
	// events.json /0 task_dispatch
	// events.json /0 agent_state_change
	// events.json /1 tool_call
	// events.json /1 agent_state_change
}

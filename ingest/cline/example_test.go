package cline_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/cline"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"session.messages.json": {Data: []byte(`{"agent":"lead","sessionId":"s1","messages":[
{"id":"m1","role":"user","ts":1783376868634,"content":"Hello"},
{"id":"m2","role":"assistant","ts":1783376869000,"content":"Hi."}]}`)}}
	reading := cline.Format().Open(files, "session.messages.json", recording.Options{})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// session.messages.json /messages/0 import.recording
	// session.messages.json /messages/0 task_dispatch
	// session.messages.json /messages/0 agent_state_change
	// session.messages.json /messages/1 text_delta
	// session.messages.json /messages/1 completion
	// session.messages.json /messages/1 agent_state_change
}

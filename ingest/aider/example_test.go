package aider_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/aider"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"history.md": {Data: []byte(`# aider chat started at 2024-08-05 17:12:22

#### Make it faster  

I did.
`)}}
	reading := aider.Format().Open(files, "history.md", recording.Options{})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// history.md:1 import.recording
	// history.md:1 aider.chat
	// history.md:3 task_dispatch
	// history.md:3 agent_state_change
}

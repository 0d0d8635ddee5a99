package atif_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/atif"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"trajectory.json": {Data: []byte(`{"schema_version":"ATIF-v1.6","agent":{"name":"terminus-2"},"steps":[
{"step_id":1,"source":"user","message":"Build it."},
{"step_id":2,"source":"agent","message":"Done."}]}`)}}
	reading := atif.Format().Open(files, "trajectory.json", recording.Options{})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// trajectory.json /steps/0 import.recording
	// trajectory.json /steps/0 task_dispatch
	// trajectory.json /steps/0 agent_state_change
	// trajectory.json /steps/1 text_delta
}

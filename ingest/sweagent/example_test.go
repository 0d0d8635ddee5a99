package sweagent_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/sweagent"
)

func ExampleFormat() {
	files := fstest.MapFS{"run.traj": {Data: []byte(`{"trajectory":[{"action":"ls","observation":"a.go","thought":"Look."}],
"history":[{"role":"user","content":"Solve it."}],"info":{"exit_status":"submitted"}}`)}}
	reading := sweagent.Format().Open(files, "run.traj", recording.Options{})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// run.traj /history/0 import.recording
	// run.traj /history/0 task_dispatch
	// run.traj /history/0 agent_state_change
	// run.traj /trajectory/0 thinking
	// run.traj /trajectory/0 tool_call
	// run.traj /trajectory/0 agent_state_change
	// run.traj /trajectory/0 tool_result
	// run.traj /trajectory/0 agent_state_change
	// run.traj /info completion
	// run.traj /info agent_state_change
}

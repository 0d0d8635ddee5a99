package minisweagent_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/minisweagent"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"run.traj.json": {Data: []byte("[{\"role\":\"user\",\"content\":\"Solve it.\"},\n{\"role\":\"assistant\",\"content\":\"```bash\\nls\\n```\"},\n{\"role\":\"user\",\"content\":\"<returncode>0</returncode>\"}]")}}
	reading := minisweagent.Format().Open(files, "run.traj.json", recording.Options{})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// run.traj.json /0 import.recording
	// run.traj.json /0 task_dispatch
	// run.traj.json /0 agent_state_change
	// run.traj.json /1 text_delta
	// run.traj.json /1 tool_call
	// run.traj.json /1 agent_state_change
	// run.traj.json /2 tool_result
	// run.traj.json /2 agent_state_change
}

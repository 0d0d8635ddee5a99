package rehearsal_test

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
)

// A scenario runs choreographies on a script of signals, without a store.
func ExampleRun() {
	scenarios, diagnostics := rehearsal.Parse("walk.json", []byte(`{"id": "walk", "name": "walk",
		"definitions": [{"on": "task_dispatch", "steps": [{"action": "move", "entity": "signal.to", "to": "desk", "duration": 800}]}],
		"script": [
			{"signal": {"id": "1", "type": "task_dispatch", "timestamp": 0, "source": "example", "payload": {"taskId": "t", "from": "boss", "to": "scout"}}},
			{"advance": 1000}
		]}`))
	if err := diagnostics.Err(definition.ErrInvalid); err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range rehearsal.Run(scenarios[0]) {
		if c.Kind != choreography.CommandUpdate {
			fmt.Println(c.At.Round(time.Millisecond), c.Kind, c.Action, c.EntityRef)
		}
	}
	// Output:
	// 0s start move scout
	// 800ms complete move scout
}

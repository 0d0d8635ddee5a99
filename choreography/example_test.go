package choreography_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

func Example() {
	definitions, diagnostics := language.Parse("walk.json", []byte(`{
		"on": "task_dispatch",
		"steps": [
			{"action": "move", "entity": "signal.to", "at": "signal.from", "duration": 400, "easing": "easeIn"},
			{"action": "onArrive", "steps": [{"action": "playSound", "sound": "bell"}]}
		]
	}`))
	if err := diagnostics.Err(definition.ErrInvalid); err != nil {
		fmt.Println(err)
		return
	}
	var sink choreography.RecordingSink
	scheduler := choreography.NewScheduler()
	scheduler.SetSink(&sink)
	for _, d := range definitions {
		if err := scheduler.Define(d); err != nil {
			fmt.Println(err)
			return
		}
	}
	sig, err := signal.Parse([]byte(`{"id":"1","type":"task_dispatch","timestamp":0,"source":"test","payload":{"taskId":"t","from":"king","to":"scout"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	scheduler.Signal(812, sig)
	scheduler.Advance(200 * time.Millisecond)
	scheduler.Advance(time.Second)
	for _, c := range sink.Commands {
		line, _ := json.Marshal(c)
		fmt.Println(string(line))
	}
	// Output:
	// {"t":0,"kind":"start","performance":"p-812-1","action":"move","entityRef":"scout","params":{"at":"king"},"duration":400,"easing":"easeIn"}
	// {"t":200,"kind":"update","performance":"p-812-1","action":"move","entityRef":"scout","params":{"at":"king"},"progress":0.25,"elapsed":200}
	// {"t":400,"kind":"complete","performance":"p-812-1","action":"move","entityRef":"scout","params":{"at":"king"}}
	// {"t":400,"kind":"execute","performance":"p-812-1","action":"playSound","entityRef":"","params":{"sound":"bell"}}
}

func ExampleParse() {
	_, diagnostics := language.Parse("walk.json", []byte(`{"on": "task_dispatch", "steps": [
  {"action": "move", "entity": "signal.to", "duration": "soon", "easing": "bouncy"}
]}`))
	fmt.Println(diagnostics.Err(definition.ErrInvalid))
	// Output:
	// walk.json:2:57: error: duration must be a number of milliseconds, not a string (/steps/0/duration)
	// walk.json:2:75: error: unknown easing "bouncy": it is one of linear, easeIn, easeOut, easeInOut, arc, or a curve such as spring(1, 100, 10) (/steps/0/easing)
}

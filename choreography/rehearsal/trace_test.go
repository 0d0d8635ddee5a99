package rehearsal_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

// wholeScenario has every member of a scenario.
const wholeScenario = `{"id": "s", "name": "a name", "tags": ["one", "two"], "notes": "some", "quantised": false,
 "scene": {"sajou": "scene", "version": 1, "slots": {"left": {"x": 9, "y": 4}}, "entities": [{"id": "ann", "at": {"x": 1, "y": 2}}]},
 "definitions": [{"sequence": "greet", "params": ["who"], "steps": [{"action": "flash", "entity": "param.who", "duration": 10}]},
  {"easing": "soft", "curve": "steps(2)"},
  {"id": "d", "on": "go", "when": {"signal.n": {"gt": 0}}, "steps": [{"action": "move", "entity": "signal.who", "to": "left", "duration": 20, "easing": "soft"}, {"action": "include", "sequence": "greet", "with": {"who": "ann"}}]},
  {"id": "b", "targetEntityId": "ann", "property": "opacity", "sourceType": "go", "sourceField": "n"}],
 "script": [{"signal": {"id": "1", "type": "go", "timestamp": 5, "source": "s", "correlationId": "c", "payload": {"who": "ann", "n": 0.5}}}, {"advance": 12.5}, {"signal": {"id": "2", "type": "stop", "timestamp": 9, "source": "s", "payload": {}}}, {"advance": 30}],
 "expected": [{"t": 0, "kind": "start", "performance": "p1", "action": "move", "entityRef": "ann", "params": {"to": "left"}, "duration": 20, "easing": "soft"}, {"t": 12.5, "kind": "update", "performance": "p1", "action": "move", "progress": 0.5, "elapsed": 12.5}, {"t": 7, "kind": "interrupt", "performance": "p1", "correlationId": "c", "interruptedBy": "stop"}],
 "values": [{"path": "stage.entities.ann.x", "value": 9}, {"path": "/stage/entities/ann/opacity", "value": 0.5}]}`

// A scenario with some members changed is read, performed and judged as it was.
func TestRecordedScenarios(t *testing.T) {
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		d := golden.NewDice(1)
		for n := range 300 {
			text := wholeScenario
			if n > 0 {
				text = golden.Damage(d, text)
			}
			if d.Once(3) {
				text = "[" + text + ",\n" + golden.Damage(d, wholeScenario) + "]"
			}
			var out strings.Builder
			fmt.Fprintln(&out, text)
			scenarios, diagnostics := rehearsal.Parse("drawn.json", []byte(text))
			fmt.Fprintln(&out, diagnostics, rehearsal.Remarks("drawn.json", []byte(text)))
			for _, s := range scenarios {
				commands, complete := rehearsal.RunAtMost(s, 40)
				told, err := json.Marshal(commands)
				require.NoError(t, err)
				fmt.Fprintf(&out, "%q %q %q %q %v %s\n", s.ID, s.Name, s.Notes, s.Tags, complete, told)
				told, err = json.Marshal(s.Expected)
				require.NoError(t, err)
				fmt.Fprintf(&out, "%v %s %+v\n", s.Judged, told, rehearsal.Compare(commands, s.Expected))
				for i := range commands {
					fmt.Fprintf(&out, "%+v\n", rehearsal.Compare(commands[i:i+1], s.Expected[:min(len(s.Expected), 1)]))
				}
				fmt.Fprintln(&out, rehearsal.CompareValues(s))
			}
			step(fmt.Sprint("scenario ", n), out.String())
		}
	})
}

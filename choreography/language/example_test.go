package language_test

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
)

// Parse reads the declarations of a file. Its diagnostics are for the author; as an error
// they wrap the kind that the caller chooses.
func ExampleParse() {
	declarations, diagnostics := language.Parse("walk.json", []byte(`[
  {"id": "walk", "on": "task_dispatch", "steps": [{"action": "move", "entity": "signal.to", "to": "desk", "duration": 800}]},
  {"easing": "slow", "curve": "cubic-bezier(0.4, 0, 1, 1)"}
]`))
	for _, d := range declarations {
		fmt.Println(d.Word(), d.Name())
	}
	fmt.Println("refused:", diagnostics.Refused())

	_, diagnostics = language.Parse("walk.json", []byte(`{"on": "task_dispatch", "step": []}`))
	err := diagnostics.Err(definition.ErrInvalid)
	fmt.Println(errors.Is(err, definition.ErrInvalid))
	fmt.Println(err)
	// Output:
	// easing slow
	// choreography walk
	// refused: false
	// true
	// walk.json:1:1: error: "steps" is missing
	// walk.json:1:25: error: unknown field "step": a choreography has id, on, when, interrupts, guard and steps, or extends, before and after (/step)
}

package definition_test

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
)

// A definition says which signals it answers to. Authors write it with package
// choreography/language, which also says where a mistake is.
func ExampleCompile() {
	v, err := signal.ParseValue([]byte(`{"on": "tool_result", "when": {"signal.success": {"equals": false}}, "steps": [{"action": "shake", "entity": "signal.agentId", "duration": 200}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := definition.Compile(v)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, success := range []bool{true, false} {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"1","type":"tool_result","timestamp":0,"source":"example","payload":{"toolName":"dig","agentId":"smith","success":%t}}`, success))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("success", success, "matches", d.Matches(sig))
	}
	_, err = definition.Compile(signal.Text("walk"))
	fmt.Println(errors.Is(err, definition.ErrInvalid))
	// Output:
	// success true matches false
	// success false matches true
	// true
}

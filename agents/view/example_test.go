package view_test

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// Policies are written as JSON, or made in Go. A mistake is refused with its place.
func ExampleCompilePolicy() {
	v, err := signal.ParseValue([]byte(`{"policy": "all", "of": [{"policy": "distance", "limit": 10}, {"policy": "channel", "chanels": ["public"]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = view.CompilePolicy(v, nil)
	fmt.Println(errors.Is(err, view.ErrPolicy), err)

	compiled := view.NewCompiledPolicy(view.All(view.Distance(10, false), view.Channels("public")), view.Options{})
	o := view.NewObserver("ann", compiled, 0)
	fmt.Println(o.Agent(), o.ViewSeq())
	// Output:
	// true agents: policy "/of/1/chanels": channel has no such member; it has channels
	// ann 0
}

package jsondoc_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

// A client applies the patches of each delta to the view that it has.
func ExampleApplyPatch() {
	view, err := signal.ParseValue([]byte(`{"visible_entities": {"lamp": {"lit": false}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	view, err = jsondoc.ApplyPatch(view, []jsondoc.Operation{
		{Op: "replace", Path: "/visible_entities/lamp/lit", Value: signal.Bool(true)},
		{Op: "add", Path: "/visible_entities/door", Value: signal.NewObject(1).Text("state", "shut").Value()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", view.AppendJSON(nil))
	_, err = jsondoc.ApplyPatch(view, []jsondoc.Operation{{Op: "remove", Path: "/visible_entities/key"}})
	fmt.Println(err)
	// Output:
	// {"visible_entities":{"lamp":{"lit":true},"door":{"state":"shut"}}}
	// agents: patch operation 0, remove "/visible_entities/key": there is no "key"
}

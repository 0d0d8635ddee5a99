package agents_test

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

// The live side keeps what the core decides, folds it, and hands out what comes
// of it. Here the log is a slice, and a second core folds it.
func ExampleCore() {
	value := func(json string) signal.Value {
		v, err := signal.ParseValue([]byte(json))
		if err != nil {
			panic(err)
		}
		return v
	}
	var log []signal.Record
	core, err := agents.NewCore(agents.Options{})
	if err != nil {
		panic(err)
	}
	core.Bind("village", nil) // this one decides
	keep := func(records []signal.Record, err error) {
		if err != nil {
			panic(err)
		}
		for _, r := range records {
			log = append(log, r)
			out := core.Apply(time.Second, r)
			for _, c := range out.Cancellations {
				fmt.Println("stop", c.ReqID, c.Reason)
			}
			for _, d := range out.Deliveries {
				fmt.Println("tell", d.Agent, d.Delta.ViewSeq, jsondoc.PatchValue(d.Delta.Patches))
			}
		}
	}
	keep(core.Begin(value(`{"entities":{"ada":{},"bob":{}},"spatial_index":{"ada":[0,0],"bob":[2,0]}}`)))
	keep(core.Register(agents.Registration{AgentID: "ada", Policy: value(`{"distance_limit":10,"include_spatial_index":false}`)}))
	keep(core.Register(agents.Registration{AgentID: "bob", Policy: value(`{"distance_limit":2,"include_spatial_index":false}`)}))

	_, records, err := core.Issue(time.Second, agents.TokenRequest{AgentID: "ada", ReqID: "answer-1", Current: true})
	keep(records, err)
	intent := agents.Intent{Kind: "Interact", Payload: value(`{"target_id":"ada"}`), ReqID: "wave", AgentID: "bob"}
	for range 2 {
		outcome, records := core.Submit(time.Second, intent)
		fmt.Println(outcome.Status, outcome.GlobalSeq)
		keep(records, nil)
	}

	replayed, err := agents.NewCore(agents.Options{})
	if err != nil {
		panic(err)
	}
	for _, r := range log {
		replayed.Apply(time.Second, r)
	}
	fmt.Println(string(replayed.AppendState(nil)) == string(core.AppendState(nil)))
	// Output:
	// tell ada 0 [{"op":"replace","path":"/visible_entities","value":{"ada":{},"bob":{}}},{"op":"replace","path":"/visible_relationships","value":{}}]
	// tell bob 0 [{"op":"replace","path":"/visible_entities","value":{"ada":{},"bob":{}}},{"op":"replace","path":"/visible_relationships","value":{}}]
	// accepted 1
	// stop answer-1 stale_due_to_seq_gap_1_threshold_0
	// tell ada 1 [{"op":"add","path":"/visible_relationships/ada","value":["bob"]},{"op":"add","path":"/visible_relationships/bob","value":["ada"]}]
	// tell bob 1 [{"op":"add","path":"/visible_relationships/ada","value":["bob"]},{"op":"add","path":"/visible_relationships/bob","value":["ada"]}]
	// duplicate 1
	// true
}

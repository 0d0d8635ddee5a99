package spans_test

import (
	"fmt"
	"testing/fstest"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
)

// A format of traces reads its spans into a collection, in any order.
func ExampleCollection() {
	format := recording.Format{
		Name: "timings", Agent: "agent",
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			c := spans.NewCollection(m)
			for line, err := range c.Documents(in, in.Name, spans.IsObject) {
				if err != nil {
					return err
				}
				v := line.Value
				s := spans.TraceSpan{
					Record: line, Trace: "t", ID: v.TextOf("id"), Parent: v.TextOf("in"), Name: v.TextOf("what"),
					Attributes: spans.Attributes(v.Member("facts")),
				}
				s.Start, s.Timed = recording.TimeValue(v.Member("from"), time.Second)
				s.End, _ = recording.TimeValue(v.Member("to"), time.Second)
				if err := c.Add(s); err != nil {
					return err
				}
			}
			c.Map()
			return nil
		},
	}
	files := fstest.MapFS{"f": {Data: []byte(`{"id":"b","in":"a","what":"execute_tool add","from":2,"to":3,"facts":{}}
{"id":"a","what":"invoke_agent ann","from":1,"to":4,"facts":{}}
`)}}
	for item, err := range format.Open(files, "f", recording.Options{}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Signal.Timestamp, item.Signal.Type)
	}
	// Output:
	// 1000 import.recording
	// 1000 import.remark
	// 1000 task_dispatch
	// 1000 agent_state_change
	// 2000 tool_call
	// 2000 agent_state_change
	// 3000 tool_result
	// 3000 agent_state_change
	// 4000 completion
	// 4000 agent_state_change
}

package overview_test

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/overview"
)

// The signals of a session, each with its time, give a timeline.
func ExampleOverview_Timeline() {
	var o overview.Overview
	for i, line := range []string{
		`{"id":"1","type":"tool_call","timestamp":0,"source":"a","payload":{"agentId":"ada","toolName":"Bash","callId":"c"}}`,
		`{"id":"2","type":"tool_result","timestamp":2000,"source":"a","payload":{"agentId":"ada","toolName":"Bash","callId":"c","success":true}}`,
	} {
		sig, err := signal.Parse([]byte(line))
		if err != nil {
			fmt.Println(err)
			return
		}
		o.Add(time.Duration(i)*2*time.Second, sig)
	}
	d := o.Timeline(overview.Options{Title: "a short session", Width: 640})
	w, _ := d.Size()
	fmt.Println(w, len(d.AppendSVG(nil)) > 0)
	// Output:
	// 640 true
}

package problem_test

import (
	"encoding/json"
	"fmt"

	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/signal"
)

func Example() {
	_, err := signal.Parse([]byte(`{"id":"1","type":"tool_call","timestamp":0,"source":"s","payload":{}}`))
	doc, _ := json.Marshal(problem.Of(err))
	fmt.Println(string(doc))
	// Output:
	// {"type":"urn:sajou:problem:invalid","title":"The content is refused","status":422,"code":"invalid","detail":"/payload/toolName: is required","pointer":"/payload/toolName"}
}

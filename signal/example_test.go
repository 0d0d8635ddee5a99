package signal_test

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/signal"
)

func Example() {
	line := []byte(`{"id":"s-1","type":"tool_call","timestamp":1738900000000.5,"source":"adapter:demo",
		"payload":{"toolName":"web_search","agentId":"scout","input":{"limit":9007199254740993}}}`)
	s, err := signal.Parse(line)
	if err != nil {
		fmt.Println(err)
		return
	}
	data := s.Append(nil) // what a log keeps

	back, err := signal.Decode(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	limit, _ := back.Payload.Lookup("input.limit")
	fmt.Println(back.Type, back.Timestamp, limit)
	// Output: tool_call 1738900000000.5 9007199254740993
}

func ExampleParse_refused() {
	_, err := signal.Parse([]byte(`{"id":"s-2","type":"tool_call","timestamp":0,"source":"adapter:demo","payload":{"agentId":"scout"}}`))
	fmt.Println(err)
	if e, ok := errors.AsType[*signal.FieldError](err); ok {
		fmt.Println(e.Path)
	}
	// Output:
	// signal: /payload/toolName: is required
	// /payload/toolName
}

func ExampleParseLenient() {
	s, err := signal.ParseLenient([]byte(`{"type":"completion","payload":{"success":true},"channel":"main"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Problem)
	fmt.Println(string(s.AppendJSON(nil)))
	// Output:
	// /id: is required
	// {"type":"completion","payload":{"success":true},"channel":"main"}
}

package formats_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleDetect() {
	head := []byte(`{"id":"1","type":"thinking","timestamp":1,"source":"a","payload":{"agentId":"ann","content":"hm"}}`)
	for _, c := range formats.Detect(recording.NewSample("session.jsonl", head, true)) {
		fmt.Printf("%s: %s\n", c.Format.Name, c.Reason)
	}
	// Output: sajou: a line has type, timestamp, source and payload
}

package cloudevents_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/cloudevents"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func ExampleFormat() {
	files := fstest.MapFS{"events.jsonl": {Data: []byte(
		`{"specversion":"1.0","id":"1","source":"/bus","type":"dev.sajou.signal","time":"2026-03-01T10:00:00Z","data":{"type":"thinking","payload":{"agentId":"ann","content":"Hm"}}}
{"specversion":"1.0","id":"2","source":"/bus","type":"com.example.order","time":"2026-03-01T10:00:01Z","data":{"order":7}}
`)}}
	for item, err := range cloudevents.Format().Open(files, "events.jsonl", recording.Options{Final: true}).Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	// Output:
	// events.jsonl:1 import.recording
	// events.jsonl:1 thinking
	// events.jsonl:2 cloudevents.com.example.order
	// events.jsonl:2 import.end
}

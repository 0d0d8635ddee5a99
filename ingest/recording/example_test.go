package recording_test

import (
	"fmt"
	"testing/fstest"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// A format says what each of its records means; the mapping does the rest.
func ExampleFormat() {
	notes := recording.Format{
		Name: "notes", Title: "Notes", Agent: "writer", Grows: true,
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			for rec, err := range in.Lines(in.Name) {
				if err != nil {
					return err
				}
				m.SetTime(recording.TimeValue(rec.Value.Member("at"), time.Second))
				switch {
				case rec.Value.TextOf("ask") != "":
					m.Dispatch("turn", "turn", recording.User, "writer", rec.Value.TextOf("ask"))
				case rec.Value.TextOf("say") != "":
					m.Text("turn", "writer", rec.Value.TextOf("say"))
				}
			}
			return nil
		},
	}
	files := fstest.MapFS{"monday.jsonl": {Data: []byte(`{"at":1,"ask":"a title?"}
{"at":2,"say":"On time"}
{"at":2,"type":"mood","value":"good"}
`)}}
	reading := notes.Open(files, "monday.jsonl", recording.Options{})
	for item, err := range reading.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Place, item.Signal.Type)
	}
	b := reading.Balance()
	fmt.Println(b.Records, "records:", b.Mapped, "mapped,", b.Kept, "kept")
	// Output:
	// monday.jsonl:1 import.recording
	// monday.jsonl:1 task_dispatch
	// monday.jsonl:1 agent_state_change
	// monday.jsonl:2 text_delta
	// monday.jsonl:3 notes.mood
	// 3 records: 2 mapped, 1 kept
}

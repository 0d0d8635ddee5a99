package record_test

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/server/record"
)

func ExampleEnvelope() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	sig, err := record.Envelope([]byte(`{"hello":"world"}`), now, func() string { return "id-1" })
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", sig.AppendJSON(nil))
	fmt.Println(partition.SplitSource.Part("live", sig, now))
	// Output:
	// {"id":"id-1","type":"event","timestamp":1772366400000,"source":"http","payload":{"hello":"world"}}
	// live.http
}

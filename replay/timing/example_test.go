package timing_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/replay/timing"
	"github.com/sajou-dev/sajou-go/signal"
)

// A performance that waits before its first action has a latency.
func ExampleMeasure() {
	ctx := context.Background()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		fmt.Println(err)
		return
	}
	definitions, _ := language.Parse("bell.json", []byte(`{"id":"bell","on":"note","steps":[{"action":"wait","duration":250},{"action":"playSound","entity":"bell"}]}`))
	if _, err := ses.Define(ctx, definitions...); err != nil {
		fmt.Println(err)
		return
	}
	sig, _ := signal.Parse([]byte(`{"id":"1","type":"note","timestamp":1000,"source":"s","payload":{}}`))
	if _, err := ses.Signal(ctx, sig); err != nil {
		fmt.Println(err)
		return
	}
	past, err := eng.Replay("a")
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := timing.Measure(ctx, past)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Performances[0].Name, b.Performances[0].Latency.P50, b.Busy)
	// Output: bell 250ms 250ms
}

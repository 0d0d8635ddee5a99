package fork_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// What would have happened without the second signal?
func Example() {
	if err := withoutSecond(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// fork of "night" at 3
	// 1 session
	// 2 signal
	// 3 session
	// 4 signal
}

func withoutSecond(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Begin(ctx, "night", session.TimeManual)
	if err != nil {
		return err
	}
	for i := range 3 {
		sig := signal.Signal{ID: fmt.Sprint(i), Type: "lamp", Source: "test", Timestamp: signal.Int(int64(i) * 100), Payload: signal.NewObject(0).Value()}
		if _, err := ses.Signal(ctx, &sig); err != nil {
			return err
		}
	}
	made, _, err := eng.Fork(ctx, "night", "dark", fork.Config{Edits: variant.Edits{Drop: []eventlog.Seq{3}}})
	if err != nil {
		return err
	}
	label := made.Label()
	fmt.Println(label.Title())
	log, err := eng.Log().Session("dark")
	if err != nil {
		return err
	}
	for e, err := range log.Entries(ctx, 1) {
		if err != nil {
			return err
		}
		fmt.Println(e.Seq, e.Kind)
	}
	return nil
}

package sajou_test

import (
	"context"
	"fmt"
	"os"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// An engine in a directory: a choreography comes into force, a signal is
// recorded, and the state at that moment is asked for.
func Example() {
	if err := record(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// entry 3 is durable
	// p-3-1 of task_dispatch
}

func record() error {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sajou")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	definitions, diagnostics := language.Parse("walk.json", []byte(
		`{"on":"task_dispatch","steps":[{"action":"move","entity":"signal.to","to":"desk","duration":800}]}`))
	if err := diagnostics.Err(definition.ErrInvalid); err != nil {
		return err
	}
	sig, err := signal.Parse([]byte(`{"id":"1","type":"task_dispatch","timestamp":1700000000000,"source":"example",` +
		`"payload":{"taskId":"t-1","from":"boss","to":"scout"}}`))
	if err != nil {
		return err
	}

	eng, err := sajou.Open(dir, sajou.Config{})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "release-42")
	if err != nil {
		return err
	}
	if _, err := ses.Define(ctx, definitions...); err != nil {
		return err
	}
	var sink choreography.RecordingSink
	live := ses.Attach(ctx, &sink, 60) // commands, as they happen
	head, err := ses.Signal(ctx, sig)  // durable when it returns
	if err != nil {
		return err
	}
	if err := live.Close(); err != nil {
		return err
	}

	fmt.Printf("entry %d is durable\n", head.Seq)
	past, err := eng.Replay("release-42")
	if err != nil {
		return err
	}
	state, err := past.At(ctx, replay.Moment{Seq: head.Seq})
	if err != nil {
		return err
	}
	performances, _ := state.View()[session.ProjectionPerformances].(map[string]any)
	for id, p := range performances {
		view, _ := p.(map[string]any)
		fmt.Println(id, "of", view["on"])
	}
	return nil
}

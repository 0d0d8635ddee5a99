package debugger_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/debugger"
)

// A program passes keys, does the work that they ask for, and shows the view.
func Example() {
	if err := look(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ────────────────────────────●
	// ■ night  2  00:00.000  x1
	// ? help
}

func look(ctx context.Context) error {
	engine, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer engine.Close()
	session, err := engine.Session(ctx, "night")
	if err != nil {
		return err
	}
	sig, err := signal.Parse([]byte(`{"id":"1","type":"agent_state_change","timestamp":1,"source":"s","payload":{"agentId":"oak","from":"idle","to":"idle"}}`))
	if err != nil {
		return err
	}
	if _, err := session.Signal(ctx, sig); err != nil {
		return err
	}
	travel, err := engine.Replay("night")
	if err != nil {
		return err
	}
	d, err := debugger.New(ctx, travel, debugger.Config{To: replay.Moment{Seq: 2}, Rate: 1, Frame: time.Second / 30})
	if err != nil {
		return err
	}
	d.Resize(29, 5)
	if work := d.Key("end"); work != nil {
		d.Done(d.Run(ctx, work, nil))
	}
	lines := strings.Split(d.View(), "\n")
	fmt.Println(strings.Join(lines[2:], "\n")) // the first two have the stage
	return nil
}

package replay_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// screen is a sink that prints its calls.
type screen struct{}

func (screen) OnActionStart(c choreography.ActionStart) {
	fmt.Printf("  %v %s begins\n", c.At, c.Action)
}

func (screen) OnActionUpdate(c choreography.ActionUpdate) {
	fmt.Printf("  %v %s at %.0f %%\n", c.At, c.Action, 100*c.Progress)
}

func (screen) OnActionComplete(c choreography.ActionComplete) {
	fmt.Printf("  %v %s ends\n", c.At, c.Action)
}

func (screen) OnActionExecute(c choreography.ActionExecute) { fmt.Printf("  %v %s\n", c.At, c.Action) }

func (screen) OnInterrupt(c choreography.Interrupt) { fmt.Printf("  %v interrupted\n", c.At) }

// A player drives the sink of a live session from a recording. The caller's clock moves
// it, at any rate. After a jump it reports the running actions to the sink.
func ExamplePlayer() {
	if err := play(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the beginning:
	//   0s move begins
	//   0s move at 0 %
	// play one second of the clock, at half speed:
	//   0s move at 0 %
	//   500ms move at 62 %
	// jump to 200 ms after entry 3:
	//   500ms interrupted
	//   0s move begins
	//   200ms move at 25 %
	// step to the next entry, and to the end:
	//   800ms move ends
	// at entry 4, ended: true
}

func play(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		return err
	}
	walk, diagnostics := language.Parse("walk.json", []byte(
		`{"on": "task_dispatch", "steps": [{"action": "move", "entity": "signal.to", "to": "desk", "duration": 800}]}`))
	if err := diagnostics.Err(definition.ErrInvalid); err != nil {
		return err
	}
	if _, err := ses.Define(ctx, walk...); err != nil {
		return err
	}
	for _, text := range []string{
		`{"id":"1","type":"task_dispatch","timestamp":1700000000000,"source":"example","payload":{"taskId":"t","from":"boss","to":"scout"}}`,
		`{"id":"2","type":"thinking","timestamp":1700000001000,"source":"example","payload":{"agentId":"scout","content":"Done."}}`,
	} {
		sig, err := signal.Parse([]byte(text))
		if err != nil {
			return err
		}
		if _, err := ses.Signal(ctx, sig); err != nil {
			return err
		}
	}

	past, err := eng.Replay("a")
	if err != nil {
		return err
	}
	fmt.Println("the beginning:")
	player, err := replay.NewPlayer(ctx, past, replay.PlayerConfig{
		From: replay.Moment{Seq: 3}, Rate: 0.5, Commands: screen{},
	})
	if err != nil {
		return err
	}
	fmt.Println("play one second of the clock, at half speed:")
	player.Play()
	for _, now := range []time.Duration{0, time.Second} { // [replay.Player.Run] ticks with a clock
		if err := player.Tick(ctx, now); err != nil {
			return err
		}
	}
	fmt.Println("jump to 200 ms after entry 3:")
	if err := player.Seek(ctx, replay.Moment{Seq: 3, Offset: 200 * time.Millisecond}); err != nil {
		return err
	}
	fmt.Println("step to the next entry, and to the end:")
	if err := player.Step(ctx, 1); err != nil {
		return err
	}
	state := player.State()
	fmt.Printf("at entry %v, ended: %t\n", state.Moment, state.Ended)
	return nil
}

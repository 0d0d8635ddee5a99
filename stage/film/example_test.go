package film_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// A reel draws a recorded session: a picture of each entry, or a film of it.
func ExampleReel() {
	if err := draw(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// entry 2 at 0s: 1 figures, drawn: true
	// entry 3 at 500ms: 2 figures, drawn: true
}

func draw(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	if err != nil {
		return err
	}
	for i, agent := range []string{"ada", "bob"} {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"%d","type":"thinking","timestamp":%d,"source":"example","payload":{"agentId":%q,"content":"Hm."}}`, i, i*500, agent))
		if err != nil {
			return err
		}
		if _, err := ses.Signal(ctx, sig); err != nil {
			return err
		}
	}
	log, err := eng.Log().Session("a")
	if err != nil {
		return err
	}
	past, err := eng.Replay("a")
	if err != nil {
		return err
	}
	reel := film.Open(log, past)
	whole, err := reel.Interval(ctx, replay.Moment{Seq: 2}, replay.Moment{Seq: ses.Head().Seq})
	if err != nil {
		return err
	}
	for shot, err := range reel.Entries(ctx, whole) {
		if err != nil {
			return err
		}
		svg := reel.Draw(shot, film.Style{Width: 480}).AppendSVG(nil)
		fmt.Printf("entry %v at %v: %d figures, drawn: %t\n", shot.Moment, shot.At, len(shot.Frame.Figures), len(svg) > 0)
	}
	return nil
}

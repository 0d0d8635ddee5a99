package live_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// window is a sink of frames. It does not draw, and passes them on.
type window struct{ frames chan *stage.Frame }

func (w window) Frame(f *stage.Frame) { w.frames <- f }

// A sink that is attached to a session receives its commands and frames. It has its own
// goroutine, so a slow sink does not delay the session.
func ExampleAttachment() {
	if err := watch(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// on the stage: ada
}

func watch(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	if err != nil {
		return err
	}
	sig, err := signal.Parse([]byte(`{"id":"1","type":"thinking","timestamp":0,"source":"example","payload":{"agentId":"ada","content":"Hm."}}`))
	if err != nil {
		return err
	}
	w := window{make(chan *stage.Frame)}
	shown := ses.Show(ctx, w, 30)
	if _, err := ses.Signal(ctx, sig); err != nil { // does not wait for the window
		return err
	}
	for {
		select {
		case f := <-w.frames:
			if len(f.Figures) > 0 {
				fmt.Println("on the stage:", f.Figures[0].ID)
				go func() {
					for range w.frames { // Close waits for the call under way
					}
				}()
				err := shown.Close()
				close(w.frames)
				return err
			}
		case <-shown.Done():
			return shown.Err()
		}
	}
}

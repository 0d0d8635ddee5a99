package asciicast_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/export/asciicast"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// A session becomes a cast of its stage.
func ExampleWrite() {
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
	sig, _ := signal.Parse([]byte(`{"id":"1","type":"thinking","timestamp":1000,"source":"s","payload":{"agentId":"ann","content":"Hm."}}`))
	head, err := ses.Signal(ctx, sig)
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := eng.Log().Session("a")
	if err != nil {
		fmt.Println(err)
		return
	}
	past, err := eng.Replay("a")
	if err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	frames, err := asciicast.Write(ctx, &out, film.Open(log, past), replay.Moment{}, replay.Moment{Seq: head.Seq}, asciicast.Options{})
	fmt.Println(frames > 1, out.Len() > 0, err)
	// Output: true true <nil>
}

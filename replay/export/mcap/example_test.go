package mcap_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay/export/mcap"
	"github.com/sajou-dev/sajou-go/signal"
)

// A session becomes a file that Foxglove opens.
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
	past, err := eng.Replay("a")
	if err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	err = mcap.Write(ctx, &out, past, 1, head.Seq)
	fmt.Printf("%.5s %v\n", out.String()[1:], err)
	// Output: MCAP0 <nil>
}

package perfetto_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/replay/export/perfetto"
	"github.com/sajou-dev/sajou-go/signal"
)

// A session becomes a trace that ui.perfetto.dev opens.
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
	if _, err := ses.Signal(ctx, sig); err != nil {
		fmt.Println(err)
		return
	}
	past, err := eng.Replay("a")
	if err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	err = perfetto.Write(ctx, &out, past, course.Passage{From: 2})
	fmt.Println(json.Valid(out.Bytes()), err)
	// Output: true <nil>
}

package source_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/source"
)

func Example() {
	in := strings.NewReader(`{"id":"1","type":"thinking","timestamp":1,"source":"a","payload":{"agentId":"ann","content":"hm"}}`)
	list, err := source.Read(context.Background(), "stdin", in, source.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer list.Close()
	for _, r := range list.Recordings {
		if err := r.Problem(); err != nil {
			fmt.Println(err)
			continue
		}
		// r.Format.Open(r.FS, r.Name, options) reads it.
		fmt.Printf("%s is %q of the format %s: %s\n", r.Path, r.Session, r.Format.Name, r.Reason)
	}
	// Output: stdin is "stdin" of the format sajou: a line has type, timestamp, source and payload
}

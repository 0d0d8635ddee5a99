package stream_test

import (
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/sajou-dev/sajou-go/server/stream"
)

func Example() {
	w := httptest.NewRecorder()
	s := stream.NewSSE(w, stream.SSEConfig{AfterFunc: func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }})
	_ = s.Event("7", []byte(`{"type":"note"}`))
	_ = s.Close()
	fmt.Print(w.Body)
	// Output:
	// : connected
	//
	// id: 7
	// data: {"type":"note"}
}

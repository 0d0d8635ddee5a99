package watch_test

import (
	"fmt"
	"os"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/watch"
)

func Example() {
	dir, _ := os.MkdirTemp("", "store")
	defer func() { _ = os.RemoveAll(dir) }()
	engine, err := sajou.Open(dir, sajou.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = engine.Close() }()
	for _, e := range watch.New(engine, watch.Config{}).Routes() {
		fmt.Println(e.Pattern)
	}
	// Output:
	// GET /api/v1/sessions/{session}/live
	// GET /api/v1/sessions/{session}/live/ws
}

package ingest_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/ingest"
)

// A program records a JSONL text into a session of its store.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sajou")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	engine, err := sajou.Open(dir, sajou.Config{})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	session, err := engine.Session(ctx, "night")
	if err != nil {
		panic(err)
	}
	r, err := ingest.NewRecorder(ctx, session, ingest.Config{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	text := `{"id":"1","type":"note","timestamp":1000,"source":"agent:scout","payload":{"text":"Quiet."}}
{"id":"2","type":"note","timestamp":1500,"source":"agent:scout","payload":{"text":"A light!"}}
{"id":"3","type":"note",`
	err = r.All(ctx, ingest.JSONL(strings.NewReader(text), "night.jsonl", false))
	fmt.Println(r.Tally().Signals, "signals")
	fmt.Println(err)
	// Output:
	// 2 signals
	// night.jsonl:3: signal: byte 24: the text ends where a key should be
}

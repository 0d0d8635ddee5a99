package read_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/cockroachdb/pebble/v2/vfs"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/read"
	"github.com/sajou-dev/sajou-go/signal"
)

func Example() {
	engine, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		panic(err)
	}
	defer func() { _ = engine.Close() }()
	ses, _ := engine.Session(context.Background(), "a")
	sig, _ := signal.Parse([]byte(`{"id":"1","type":"note","timestamp":1000,"source":"s","payload":{"n":9007199254740993}}`))
	if _, err = ses.Signal(context.Background(), sig); err != nil {
		panic(err)
	}
	// Package server mounts the routes behind its middleware.
	mux := http.NewServeMux()
	for _, e := range read.New(engine, read.Config{}).Routes() {
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) { _ = e.Handler(w, r) })
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/a/entries/2", nil))
	fmt.Println(w.Header().Get("Cache-Control"))
	fmt.Printf("%.10s… %s", w.Body, w.Body.String()[w.Body.Len()-34:])
	// Output:
	// private, immutable, max-age=31536000
	// {"seq":2,"… "payload":{"n":9007199254740993}}
}

package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server"
)

func Example() {
	dir, _ := os.MkdirTemp("", "store")
	defer func() { _ = os.RemoveAll(dir) }()
	engine, err := sajou.Open(dir, sajou.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = engine.Close() }()
	s, err := server.New(engine, server.Config{})
	if err != nil {
		panic(err)
	}
	// A program listens and calls s.Serve(ctx, listener).
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://localhost/readyz", nil)
	s.ServeHTTP(w, r)
	fmt.Print(w.Code, " ", w.Body)
	// Output: 200 ok
}

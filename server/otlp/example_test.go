package otlp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/otlp"
)

func Example() {
	dir, _ := os.MkdirTemp("", "store")
	defer func() { _ = os.RemoveAll(dir) }()
	engine, err := sajou.Open(dir, sajou.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = engine.Close() }()
	s, err := server.New(engine, server.Config{Dir: dir, Traces: otlp.Config{Wait: 10 * time.Second}})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/traces", strings.NewReader(
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"execute_tool add","endTimeUnixNano":"1767225601000000000"}]}]}]}`))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	_ = s.Traces().Close(r.Context()) // Serve does it
	names, _ := engine.Sessions()
	fmt.Println(names)
	// Output:
	// 200 {}
	// [live]
}

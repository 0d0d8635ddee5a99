package agentwire_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/coder/websocket"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/agentwire"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

func Example() {
	ctx := context.Background()
	engine, _ := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	defer func() { _ = engine.Close() }()
	ses, _ := engine.Begin(ctx, "play", session.TimeManual)
	empty, _ := signal.ParseValue([]byte(`{}`))
	reader, _ := ses.Agents().Register(ctx, "alice", empty)
	reader.Close()

	// The gate of a server recognizes tokens. This program knows one.
	room := agentwire.New(engine, agentwire.Config{
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Recognize: func(_ *http.Request, token string) (*access.Caller, error) {
			if token != "secret" {
				return nil, access.ErrUnauthenticated
			}
			return &access.Caller{Name: "token:alice", Grants: []access.Grant{{Scope: access.ScopeAct, Sessions: []string{"play"}, Agent: "alice"}}}, nil
		},
		Guard: func(ctx context.Context, _ *access.Caller) (context.Context, func()) { return ctx, func() {} },
	})
	mux := http.NewServeMux()
	for _, e := range room.Routes() {
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) { _ = e.Handler(w, r) })
	}
	server := httptest.NewServer(mux)
	defer server.Close()

	conn, _, err := websocket.Dial(ctx, server.URL+"/api/v1/sessions/play/agents/alice/ws", &websocket.DialOptions{Subprotocols: []string{agentwire.SubprotocolAgent}})
	if err != nil {
		panic(err)
	}
	_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"hello","token":"secret"}`))
	for range 2 {
		_, message, _ := conn.Read(ctx)
		fmt.Println(string(message))
	}
	_ = conn.Close(websocket.StatusNormalClosure, "")
	// Output:
	// {"type":"welcome","protocol":1,"session":"play","agent":"alice","resumed":false,"window":64,"heartbeat_ms":15000,"max_message":1048576}
	// {"type":"observation","view_seq":0,"patches":[{"op":"replace","path":"/visible_entities","value":{}},{"op":"replace","path":"/visible_relationships","value":{}}],"context_digest":"5812e860149452a1b4fd631cdcf123b40517667e97706d3d5ec4783a84ab1845","schema_version":"1.0.0","full":true,"at_ms":0}
}

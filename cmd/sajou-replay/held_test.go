package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/local"
	"github.com/sajou-dev/sajou-go/server/otlp"
	"github.com/sajou-dev/sajou-go/signal"
)

// holding is a server in the process of the test, which holds a store while the commands
// of a script run in processes of their own.
type holding struct {
	engine *sajou.Engine
	stop   func() error
}

type holdingKey struct{}

// serverCommands are the commands of scripts about a store that a server holds:
//
//	hold DIR                    starts a server, also at the address in $URL
//	record SESSION FROM TO      records signals through it
//	post PATH TYPE FILE ANSWER  posts a file, and writes the status and the answer to a file
//	release                     stops it
var serverCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"hold": func(ts *testscript.TestScript, _ bool, args []string) {
		h := ts.Value(holdingKey{}).(*holding)
		dir := filepath.Join(ts.Getenv("WORK"), args[0])
		engine, err := sajou.Open(dir, sajou.Config{})
		ts.Check(err)
		s, err := server.New(engine, server.Config{Traces: otlp.Config{Dir: filepath.Join(dir, "otlp")}})
		ts.Check(err)
		l, remove, err := local.Listen(dir)
		ts.Check(err)
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		ts.Setenv("URL", "http://"+tcp.Addr().String())
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, l, tcp) }()
		h.engine = engine
		h.stop = func() error {
			cancel()
			h.stop = nil
			return errors.Join(<-done, remove(), engine.Close())
		}
	},
	"record": func(ts *testscript.TestScript, _ bool, args []string) {
		h := ts.Value(holdingKey{}).(*holding)
		ses, err := h.engine.Session(context.Background(), args[0])
		ts.Check(err)
		from, err := strconv.Atoi(args[1])
		ts.Check(err)
		to, err := strconv.Atoi(args[2])
		ts.Check(err)
		ts.Check(recordNotes(ses, from, to))
	},
	"post": func(ts *testscript.TestScript, _ bool, args []string) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, ts.Getenv("URL")+args[0], strings.NewReader(ts.ReadFile(args[2])))
		ts.Check(err)
		req.Header.Set("Content-Type", args[1])
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		ts.Check(err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[3]), fmt.Appendf(nil, "%d %s\n", res.StatusCode, body), 0o600))
	},
	"release": func(ts *testscript.TestScript, _ bool, _ []string) {
		h := ts.Value(holdingKey{}).(*holding)
		ts.Check(h.stop())
	},
}

// setupHolding lets a script hold a store until its end.
func setupHolding(env *testscript.Env) {
	h := &holding{}
	env.Values[holdingKey{}] = h
	env.Defer(func() {
		if h.stop != nil {
			if err := h.stop(); err != nil && !strings.Contains(err.Error(), "closed") {
				env.T().Fatal(err)
			}
		}
	})
}

// recordNotes records signals, each in a batch.
func recordNotes(ses *sajou.Session, from, to int) error {
	for n := from; n <= to; n++ {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"s-%d","type":"note","timestamp":%d,"source":"test","payload":{"n":%d}}`, n, 1000*n, n))
		if err != nil {
			return err
		}
		if _, err := ses.Signal(context.Background(), sig); err != nil {
			return err
		}
	}
	return nil
}

// Tail -f shows what a server records, over the socket beside the store and over HTTP, goes
// on when the server stops and another one starts, and shows each entry once.
func TestTailFollowsAServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var engine *sajou.Engine
	var stop func()
	start := func(address string) string {
		var err error
		engine, err = sajou.Open(dir, sajou.Config{LockWait: 10 * time.Second}) // tail may look at the store
		require.NoError(t, err)
		s, err := server.New(engine, server.Config{})
		require.NoError(t, err)
		l, remove, err := local.Listen(dir)
		require.NoError(t, err)
		tcp, err := net.Listen("tcp", address)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, l, tcp) }()
		stop = func() {
			cancel()
			assert.NoError(t, errors.Join(<-done, remove(), engine.Close()))
		}
		return tcp.Addr().String()
	}
	record := func(from, to int) {
		ses, err := engine.Session(context.Background(), "talk")
		require.NoError(t, err)
		require.NoError(t, recordNotes(ses, from, to))
	}
	address := start("127.0.0.1:0")
	record(1, 3)
	type tail struct {
		out  *bufio.Scanner
		done chan error
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var tails []tail
	for _, from := range [][]string{{"-C", dir}, {"--server", "http://" + address}, {"-C", dir, "--where", "entry.payload.n > 0"}} {
		read, write := io.Pipe()
		one := tail{bufio.NewScanner(read), make(chan error, 1)}
		go func() {
			err := run(ctx, append([]string{"tail", "-f", "talk", "-n", "3", "-o", "jsonl", "--interval", "1ms"}, from...), strings.NewReader(""), write, io.Discard)
			_ = write.CloseWithError(err)
			one.done <- err
		}()
		tails = append(tails, one)
	}
	expect := func(from, to int) {
		t.Helper()
		for i := range tails {
			for n := from; n <= to; n++ {
				require.True(t, tails[i].out.Scan(), "tail %d: %v", i, tails[i].out.Err())
				require.Contains(t, tails[i].out.Text(), fmt.Sprintf(`"n":%d}`, n), "tail %d", i)
			}
		}
	}
	expect(1, 3)
	record(4, 5)
	expect(4, 5)
	stop()
	start(address)
	record(6, 8)
	expect(6, 8)
	interrupt()
	for _, one := range tails {
		require.ErrorIs(t, <-one.done, context.Canceled)
	}
	stop()
}

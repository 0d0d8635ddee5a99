package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/coder/websocket"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/limit"
	serverrecord "github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/signal"
)

// recorders is the number of clients that record at one time.
const recorders = 64

// The pace at which acknowledgements are timed.
const (
	ackPeriod = 50 * time.Millisecond // from one signal of a client to its next
	ackTurns  = 5                     // a twentieth of the paced turns of agents
)

// recording measures what the door costs: signals that are recorded over HTTP and WebSocket
// by 64 clients in this process, beside what the processor time of a handler that does
// nothing and that of the engine predict together, with both processors at work.
func (b *bench) recording() error {
	signals, err := makeSignals(b.scale.writers)
	if err != nil {
		return err
	}
	texts := make([][]byte, len(signals))
	for i, sig := range signals {
		texts[i] = sig.AppendJSON(nil)
	}
	// As the command serve does, for all sides: see docs/benchmarks.md.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
	for _, run := range []func([]*signal.Signal, [][]byte) error{b.singles, b.frames, b.lineStream, b.acknowledgements} {
		if err := run(signals, texts); err != nil {
			return err
		}
	}
	return nil
}

// engineAlone records each signal by itself, from 64 writers.
func (b *bench) engineAlone(signals []*signal.Signal) side {
	return side{"engine", func() (measurement, error) {
		return b.onEngine(b.path("record-", b.fresh()), func(ses *sajou.Session) (measurement, error) {
			return timed(len(signals), func() error {
				return spread(recorders, len(signals), func(i int) error {
					_, err := ses.Signal(b.ctx, signals[i])
					return err
				})
			}, b.folded(ses))
		})
	}}
}

// onServer measures on a fresh store behind a server.
func (b *bench) onServer(f func(address string, ses *sajou.Session) (measurement, error)) (measurement, error) {
	return b.onEngineOf(b.path("record-", b.fresh()), func(eng *sajou.Engine, ses *sajou.Session) (measurement, error) {
		s, err := server.New(eng, server.Config{Limits: limit.Config{Rate: 1 << 30}})
		if err != nil {
			return measurement{}, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return measurement{}, err
		}
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, l) }()
		m, err := f(l.Addr().String(), ses)
		cancel()
		return m, errors.Join(err, <-done)
	})
}

// onEngineOf is onEngine with the engine.
func (b *bench) onEngineOf(dir string, f func(*sajou.Engine, *sajou.Session) (measurement, error)) (measurement, error) {
	eng, ses, err := b.engine(dir)
	if err != nil {
		return measurement{}, err
	}
	m, err := f(eng, ses)
	return m, errors.Join(err, eng.Close())
}

// onHandler measures on a server of the standard library with one handler.
func (b *bench) onHandler(h http.Handler, f func(address string) (measurement, error)) (measurement, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return measurement{}, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	m, err := f(l.Addr().String())
	err = errors.Join(err, srv.Close())
	if ended := <-done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return m, err
}

// predicted returns the rate at which two kinds of work leave no processor idle.
func predicted(empty, engine series) series {
	work := empty.work() + engine.work()
	return series{{rate: float64(runtime.NumCPU()) * 1e6 / work, work: work, steal: max(empty.steal(), engine.steal())}}
}

const predictedName = "predicted by an empty handler and the engine"

// post sends one request and reads its answer.
func (b *bench) post(client *http.Client, url, media string, body []byte) error {
	req, err := http.NewRequestWithContext(b.ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", media)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return err
}

// singles measures requests of one signal.
func (b *bench) singles(signals []*signal.Signal, texts [][]byte) error {
	posted := func(address string, settle func() error) (measurement, error) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: recorders}}
		defer client.CloseIdleConnections()
		return timed(len(texts), func() error {
			return spread(recorders, len(texts), func(i int) error {
				return b.post(client, "http://"+address+"/api/v1/sessions/bench/signals", "application/json", texts[i])
			})
		}, settle)
	}
	all, err := b.interleave("single signals over HTTP",
		side{"empty handler", func() (measurement, error) {
			return b.onHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = w.Write(emptyReceipt)
			}), func(address string) (measurement, error) { return posted(address, nil) })
		}},
		b.engineAlone(signals),
		side{"server", func() (measurement, error) {
			return b.onServer(func(address string, ses *sajou.Session) (measurement, error) { return posted(address, b.folded(ses)) })
		}})
	if err != nil {
		return err
	}
	b.beside("single signals over HTTP, 64 clients", "signals", all[2], predictedName, predicted(all[0], all[1]), 0.8)
	b.workBeside("  processor time", all[2], predictedName, predicted(all[0], all[1]), 0)
	return nil
}

// emptyReceipt is as long as a receipt.
var emptyReceipt = []byte(`{"session":"bench","first":12345,"head":{"seq":12345,"hash":"0000000000000000000000000000000000000000000000000000000000000000"},"signals":1,"flagged":0,"out_of_order":0,"repeat":false}`)

// frames measures messages of one signal, of which each client sends the next one when the
// last is acknowledged.
func (b *bench) frames(signals []*signal.Signal, texts [][]byte) error {
	messages := make([][]byte, len(texts))
	for i, text := range texts {
		messages[i] = fmt.Appendf(nil, `{"n":%d,"signal":%s}`, i, text)
	}
	sent := func(path string, ses *sajou.Session) func(address string) (measurement, error) {
		var settle func() error
		if ses != nil {
			settle = b.folded(ses)
		}
		return func(address string) (measurement, error) {
			free := make(chan *websocket.Conn, recorders) // all of them fit
			for range recorders {
				conn, _, err := websocket.Dial(b.ctx, "ws://"+address+path, &websocket.DialOptions{Subprotocols: []string{serverrecord.Subprotocol}})
				if err != nil {
					return measurement{}, err
				}
				defer func() { _ = conn.CloseNow() }()
				if ses != nil { // the server says that it is ready
					if _, _, err := conn.Read(b.ctx); err != nil {
						return measurement{}, err
					}
				}
				free <- conn
			}
			return timed(len(messages), func() error {
				return spread(recorders, len(messages), func(i int) error {
					conn := <-free
					defer func() { free <- conn }()
					if err := conn.Write(b.ctx, websocket.MessageText, messages[i]); err != nil {
						return err
					}
					_, answer, err := conn.Read(b.ctx)
					if err == nil && !bytes.Contains(answer, []byte(`"ack"`)) {
						err = fmt.Errorf("%s", answer)
					}
					return err
				})
			}, settle)
		}
	}
	all, err := b.interleave("single signals over WebSocket",
		side{"empty handler", func() (measurement, error) {
			return b.onHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{serverrecord.Subprotocol}})
				if err != nil {
					return
				}
				defer func() { _ = conn.CloseNow() }()
				for {
					if _, _, err := conn.Read(r.Context()); err != nil {
						return
					}
					if err := conn.Write(r.Context(), websocket.MessageText, emptyAck); err != nil {
						return
					}
				}
			}), sent("/", nil))
		}},
		b.engineAlone(signals),
		side{"server", func() (measurement, error) {
			return b.onServer(func(address string, ses *sajou.Session) (measurement, error) {
				return sent("/api/v1/sessions/bench/signals/ws", ses)(address)
			})
		}})
	if err != nil {
		return err
	}
	b.beside("single signals over WebSocket, 64 clients", "signals", all[2], predictedName, predicted(all[0], all[1]), 0.8)
	b.workBeside("  processor time", all[2], predictedName, predicted(all[0], all[1]), 0)
	return nil
}

// emptyAck is as long as an acknowledgement.
var emptyAck = []byte(`{"type":"ack","acks":[{"n":12345,"seq":12345,"hash":"0000000000000000000000000000000000000000000000000000000000000000"}]}`)

// lineStream measures a stream of lines beside the engine, which is given the same signals in
// batches and need not read them from text.
func (b *bench) lineStream(signals []*signal.Signal, texts [][]byte) error {
	body := append(bytes.Join(texts, []byte("\n")), '\n')
	all, err := b.interleave("NDJSON over HTTP",
		side{"engine", func() (measurement, error) {
			return b.onEngine(b.path("record-", b.fresh()), func(ses *sajou.Session) (measurement, error) {
				return timed(len(signals), func() error { return record(b.ctx, ses, len(signals), 1000, signals) }, b.folded(ses))
			})
		}},
		side{"server", func() (measurement, error) {
			return b.onServer(func(address string, ses *sajou.Session) (measurement, error) {
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				return timed(len(signals), func() error {
					return b.post(client, "http://"+address+"/api/v1/sessions/bench/signals", "application/x-ndjson", body)
				}, b.folded(ses))
			})
		}})
	if err != nil {
		return err
	}
	b.beside("NDJSON over HTTP, 1 client", "signals", all[1], "engine, in batches of 1000", all[0], 0.5)
	return nil
}

// acknowledgements measures how long a client waits for the answer, at a pace at which the
// machine is mostly idle.
func (b *bench) acknowledgements(signals []*signal.Signal, texts [][]byte) error {
	turns := max(b.scale.paced/ackTurns, 1)
	all, err := b.interleave("acknowledgements at a pace",
		side{"engine", func() (measurement, error) {
			return b.onEngine(b.path("record-", b.fresh()), func(ses *sajou.Session) (measurement, error) {
				return pacedBy(recorders, turns, ackPeriod, func(i, k int) error {
					_, err := ses.Signal(b.ctx, signals[(i*turns+k)%len(signals)])
					return err
				})
			})
		}},
		side{"server", func() (measurement, error) {
			return b.onServer(func(address string, _ *sajou.Session) (measurement, error) {
				client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: recorders}}
				defer client.CloseIdleConnections()
				return pacedBy(recorders, turns, ackPeriod, func(i, k int) error {
					return b.post(client, "http://"+address+"/api/v1/sessions/bench/signals", "application/json", texts[(i*turns+k)%len(texts)])
				})
			})
		}})
	if err != nil {
		return err
	}
	for _, p := range []struct{ at, goal float64 }{{0.5, 0}, {0.99, 3}} {
		r := result{
			Name: fmt.Sprintf("acknowledgement over HTTP, 64 clients, 20 signals/s each, p%g", 100*p.at), Value: all[1].percentile(p.at), Unit: "ms",
			Peer: "engine in process", peer: all[0].percentile(p.at), Ratio: ptr(all[1].percentile(p.at) / all[0].percentile(p.at)), lower: true,
		}
		if p.goal > 0 {
			r.Goal = ptr(p.goal)
		}
		b.add(r, all[1], all[0])
	}
	return nil
}

// pacedBy calls f for each of several actors and each of its turns, at their pace, and takes
// the time of each call.
func pacedBy(actors, turns int, period time.Duration, f func(actor, turn int) error) (measurement, error) {
	times := make([]float64, actors*turns)
	m, err := timed(len(times), func() error {
		start := time.Now()
		return spread(actors, actors, func(i int) error {
			for k := range turns {
				due := time.Duration(k)*period + time.Duration(i)*period/time.Duration(actors)
				<-time.After(due - time.Since(start))
				from := time.Now()
				if err := f(i, k); err != nil {
					return err
				}
				times[i*turns+k] = milliseconds(time.Since(from))
			}
			return nil
		})
	}, nil)
	slices.Sort(times)
	m.times = times
	return m, err
}

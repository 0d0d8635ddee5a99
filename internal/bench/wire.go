package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/coder/websocket"

	"github.com/sajou-dev/sajou-go/agents"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/agentwire"
)

// wire measures how long after the reason an agent's client on a WebSocket receives the order to
// stop its generation: after the request to cancel it leaves the client, and after an
// effect that makes its context stale is submitted. Both are recorded durably before.
func (b *bench) wire() error {
	eng, world, list, err := b.people(rowLength)
	if err != nil {
		return err
	}
	caller := &access.Caller{Name: "bench", Grants: []access.Grant{{Scope: access.ScopeAct, Sessions: []string{"*"}, Agent: "*"}}}
	room := agentwire.New(eng, agentwire.Config{
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Recognize: func(*http.Request, string) (*access.Caller, error) { return caller, nil },
		Guard:     func(ctx context.Context, _ *access.Caller) (context.Context, func()) { return ctx, func() {} },
	})
	mux := http.NewServeMux()
	for _, e := range room.Routes() {
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) { _ = e.Handler(w, r) })
	}
	server := httptest.NewServer(mux)
	// The rules of the other benchmarks make no context stale.
	alert, err := world.Register(b.ctx, list[0].ID(), jsonValue(`{"distance_limit":20,"staleness_threshold":0,"debounce_ms":0}`))
	if err != nil {
		server.Close()
		return errors.Join(err, eng.Close())
	}
	alert.Close()
	client, err := dialAgent(b.ctx, server.URL, list[0].ID())
	for _, side := range []struct {
		name string
		why  func(reqID string) error
	}{
		{"cancel over the wire to stop", func(reqID string) error { return client.send(map[string]any{"type": "cancel", "req_id": reqID}) }},
		{"effect to stop over the wire of a stale generation", func(string) error {
			_, err := world.Broadcast(b.ctx, agents.EffectDraft{Kind: agentworld.KindSpeak, SourceID: list[1].ID(), Payload: spoken})
			return err
		}},
	} {
		if err != nil {
			break
		}
		err = b.stops(side.name, client, side.why)
	}
	if client != nil {
		_ = client.conn.CloseNow()
	}
	server.Close()
	return errors.Join(err, eng.Close())
}

// stops measures the time from a reason to the message that tells a generation to stop.
func (b *bench) stops(name string, client *wireClient, why func(reqID string) error) error {
	fmt.Fprintln(b.notes, name)
	attempt := 0
	m, err := quiet(func() (measurement, error) {
		attempt++
		times := make([]float64, b.scale.halts)
		m, err := timed(b.scale.halts, func() error {
			for i := range times {
				reqID := fmt.Sprint(name, " ", attempt, " ", i)
				if err := client.send(map[string]any{"type": "begin", "req_id": reqID, "deadline_ms": 60_000}); err != nil {
					return err
				}
				if err := client.until("begun", reqID); err != nil {
					return err
				}
				from := time.Now()
				if err := why(reqID); err != nil {
					return err
				}
				if err := client.until("stop", reqID); err != nil {
					return err
				}
				times[i] = milliseconds(time.Since(from))
			}
			return nil
		}, nil)
		slices.Sort(times)
		m.times = times
		return m, err
	})
	if err != nil {
		return err
	}
	b.add(result{Name: name + ", p50", Value: percentile(m.times, 0.5), Unit: "ms"}, series{m})
	b.add(result{Name: name + ", p99", Value: percentile(m.times, 0.99), Unit: "ms", Goal: ptr(100), lower: true, onUnit: true}, series{m})
	return nil
}

// wireClient is a client of the socket of an agent.
type wireClient struct {
	ctx  context.Context
	conn *websocket.Conn
}

func dialAgent(ctx context.Context, url, id string) (*wireClient, error) {
	conn, _, err := websocket.Dial(ctx, url+"/api/v1/sessions/bench/agents/"+id+"/ws", &websocket.DialOptions{Subprotocols: []string{agentwire.SubprotocolAgent}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 24)
	c := &wireClient{ctx, conn}
	return c, c.send(map[string]any{"type": "hello", "token": "bench"})
}

func (c *wireClient) send(m map[string]any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return c.conn.Write(c.ctx, websocket.MessageText, text)
}

// until reads messages up to one about a request, and acknowledges observations.
func (c *wireClient) until(typ, reqID string) error {
	for {
		_, text, err := c.conn.Read(c.ctx)
		if err != nil {
			return err
		}
		var m struct {
			Type    string `json:"type"`
			ReqID   string `json:"req_id"`
			ViewSeq uint64 `json:"view_seq"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		switch {
		case m.Type == typ && m.ReqID == reqID:
			return nil
		case m.Type == "observation":
			err = c.send(map[string]any{"type": "ack", "view_seq": m.ViewSeq})
		case m.Type == "error" || m.Type == "outcome":
			err = fmt.Errorf("wanted %s of %q, got %s", typ, reqID, text)
		}
		if err != nil {
			return err
		}
	}
}

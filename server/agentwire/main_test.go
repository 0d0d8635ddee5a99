package agentwire

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/schematest"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parsed returns the value of a JSON text of a test.
func parsed(text string) signal.Value {
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

// house is a room with a session "play", whose time is manual, behind a server.
type house struct {
	t      *testing.T
	engine *sajou.Engine
	room   *AgentDoor
	world  *agentslive.Agents
	url    string

	events   *access.Events
	stopping chan struct{}
	timers   *timers
}

// timers are the timers of a room that only fire by hand.
type timers struct {
	mu    sync.Mutex
	armed map[*func()]time.Duration
}

func (s *timers) after(d time.Duration, f func()) func() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed[&f] = d
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, was := s.armed[&f]
		delete(s.armed, &f)
		return was
	}
}

// fire fires all timers of a duration, and reports whether there was one.
func (s *timers) fire(d time.Duration) bool {
	s.mu.Lock()
	var due []func()
	for f, at := range s.armed {
		if at == d {
			due = append(due, *f)
			delete(s.armed, f)
		}
	}
	s.mu.Unlock()
	for _, f := range due {
		f()
	}
	return len(due) > 0
}

const everything = `{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1}`

// newHouse begins a house. The tokens of callers are the names of their agents, or
// "sim", "define" and "nobody".
func newHouse(t *testing.T, authority session.TimeAuthority, config string, change func(*Config)) *house {
	t.Helper()
	engine, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	ses, err := engine.Begin(t.Context(), "play", authority)
	require.NoError(t, err)
	h := &house{t: t, engine: engine, world: ses.Agents(), stopping: make(chan struct{}), timers: &timers{armed: map[*func()]time.Duration{}}}
	require.NoError(t, h.world.Configure(t.Context(), parsed(config)))
	cfg := Config{Recognize: recognized, Guard: unguarded, Now: func() time.Time { return time.Unix(1000, 0) }, AfterFunc: h.timers.after, Logger: slog.New(slog.DiscardHandler)}
	h.events, err = access.NewEvents(access.EventsConfig{})
	require.NoError(t, err)
	if change != nil {
		change(&cfg)
	}
	h.room = New(engine, cfg)
	mux := http.NewServeMux()
	for _, e := range h.room.Routes() {
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) {
			caller, err := callerOf(r)
			ctx := route.WithStopping(access.WithEvents(access.With(r.Context(), caller), h.events, r), h.stopping)
			if err == nil {
				err = access.Check(ctx, e.Scope, route.Session(r))
			}
			r = r.WithContext(ctx)
			if err == nil {
				if e.MaxBody >= 0 {
					r.Body = http.MaxBytesReader(w, r.Body, e.MaxBody)
				}
				err = e.Handler(w, r)
			}
			if err != nil {
				_ = problem.Write(w, r, err)
			}
		})
	}
	server := httptest.NewServer(mux)
	h.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		require.NoError(t, engine.Close())
	})
	return h
}

// unguarded is the guard of callers whose tokens do not end.
func unguarded(ctx context.Context, _ *access.Caller) (context.Context, func()) {
	return ctx, func() {}
}

func recognized(_ *http.Request, token string) (*access.Caller, error) {
	return callerOf(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
}

func callerOf(r *http.Request) (*access.Caller, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return nil, nil
	case token == "wrong":
		return nil, access.ErrUnauthenticated
	}
	c := &access.Caller{Name: "token:" + token}
	g := access.Grant{Scope: access.ScopeAct, Sessions: []string{"*"}, Agent: token}
	switch token {
	case "sim":
		g.Scope = access.ScopeTick
		c.Grants = []access.Grant{{Scope: access.ScopeAct, Sessions: []string{"*"}, Agent: "npc"}}
	case "define":
		g.Scope = access.ScopeDefine
	}
	c.Grants = append(c.Grants, g)
	return c, nil
}

// join registers an agent that stands at a place, with a policy that shows everything.
func (h *house) join(id string, at string) {
	h.t.Helper()
	_, err := h.world.Broadcast(h.t.Context(), agents.EffectDraft{
		Kind: agentworld.KindEntityCreated, SourceID: "world",
		Payload: parsed(`{"entity_id":"` + id + `","entity_data":{"type":"agent"},"position":` + at + `}`),
	})
	require.NoError(h.t, err)
	h.register(id, `{"distance_limit":50}`)
}

func (h *house) register(id, policy string) {
	h.t.Helper()
	g, err := h.world.Register(h.t.Context(), id, parsed(policy))
	require.NoError(h.t, err)
	g.Close()
}

// bobSays makes an effect that those near bob see.
func (h *house) bobSays(text string) {
	h.t.Helper()
	_, err := h.world.Broadcast(h.t.Context(), agents.EffectDraft{Kind: agentworld.KindSpeak, SourceID: "bob", Payload: parsed(`{"text":"` + text + `"}`)})
	require.NoError(h.t, err)
	require.NoError(h.t, h.world.Settle(h.t.Context()))
}

// client is a client of a socket.
type client struct {
	t      *testing.T
	conn   *websocket.Conn
	schema string // of what it gets
}

// dial connects without a hello.
func (h *house) dial(path, subprotocol string, header http.Header) *client {
	h.t.Helper()
	conn, res, err := websocket.Dial(h.t.Context(), h.url+path, &websocket.DialOptions{Subprotocols: []string{subprotocol}, HTTPHeader: header})
	require.NoError(h.t, err)
	if res.Body != nil {
		_ = res.Body.Close()
	}
	conn.SetReadLimit(1 << 24)
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	schema := "server_to_agent"
	if subprotocol == SubprotocolSim {
		schema = "server_to_sim"
	}
	return &client{h.t, conn, schema}
}

// agent connects as an agent and says hello with its token and more members.
func (h *house) agent(id, more string) *client {
	h.t.Helper()
	c := h.dial("/api/v1/sessions/play/agents/"+id+"/ws", SubprotocolAgent, nil)
	c.send(`{"type":"hello","token":"` + id + `"` + more + `}`)
	return c
}

func (c *client) send(message string) {
	c.t.Helper()
	require.NoError(c.t, c.conn.Write(c.t.Context(), websocket.MessageText, []byte(message)))
}

// got is a message that a client got.
type got map[string]any

// next returns the next message, whatever it is.
func (c *client) next() got {
	c.t.Helper()
	m, err := c.read()
	require.NoError(c.t, err)
	return m
}

func (c *client) read() (got, error) {
	_, frame, err := c.conn.Read(c.t.Context())
	if err != nil {
		return nil, err
	}
	if err := validate(c.schema, frame); err != nil {
		return nil, errors.Join(errors.New(string(frame)), err)
	}
	var m got
	return m, json.Unmarshal(frame, &m)
}

// await returns the next message of a type, and drops others.
func (c *client) await(typ string) got {
	c.t.Helper()
	for {
		if m := c.next(); m["type"] == typ {
			return m
		}
	}
}

// closed reads until the server closes, and returns the code.
func (c *client) closed() int {
	c.t.Helper()
	for {
		_, err := c.read()
		if err == nil {
			continue
		}
		code := int(websocket.CloseStatus(err))
		require.Positive(c.t, code, "%v", err)
		return code
	}
}

// validate compares a message with the schema of a direction.
func validate(direction string, frame []byte) error {
	schema := strings.Replace(protocolSchema, `"anyOf": [`, `"$ref": "#/$defs/`+direction+`", "examples": [`, 1)
	return schematest.Validate([]byte(schema), frame)
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

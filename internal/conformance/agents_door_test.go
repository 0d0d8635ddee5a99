package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/agentwire"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// door repeats what a scenario does in process through the sockets of a server, and
// requires the same results: each outcome, each delta of each agent, and each
// cancellation.
type door struct {
	name   string // of the session
	engine *sajou.Engine
	world  *agentslive.Agents
	server *httptest.Server
	agents map[string]*wire
	sim    *wire

	compared int
	deltas   []agents.Delivery     // that the scenario got and the sockets still have to
	stops    []agents.Cancellation // that the scenario got and the sockets still have to
	begun    map[[2]string]bool    // generations of the scenario
}

// wire is one socket.
type wire struct {
	conn    *websocket.Conn
	waiting []map[string]any // messages that came before they were awaited
}

// doorOf, unless nil, gives each simulated world a door.
var doorOf func(world string) (*door, error)

func openDoor(world string) (*door, error) {
	engine, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return nil, err
	}
	ses, err := engine.Begin(context.Background(), world, session.TimeManual)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	all := &access.Caller{Name: "scenario", Grants: []access.Grant{
		{Scope: access.ScopeTick, Sessions: []string{"*"}}, {Scope: access.ScopeAct, Sessions: []string{"*"}, Agent: "*"},
	}}
	room := agentwire.New(engine, agentwire.Config{
		Now: time.Now, Logger: slog.New(slog.DiscardHandler), Quarantine: agentwire.Quarantine{Refusals: 1 << 20},
		Recognize: func(*http.Request, string) (*access.Caller, error) { return all, nil },
		Guard:     func(ctx context.Context, _ *access.Caller) (context.Context, func()) { return ctx, func() {} },
	})
	mux := http.NewServeMux()
	for _, e := range room.Routes() {
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) { _ = e.Handler(w, r) })
	}
	return &door{
		name: world, engine: engine, world: ses.Agents(), server: httptest.NewServer(mux), agents: map[string]*wire{}, begun: map[[2]string]bool{},
	}, nil
}

func (d *door) close() error {
	for _, w := range d.agents {
		_ = w.conn.CloseNow()
	}
	if d.sim != nil {
		_ = d.sim.conn.CloseNow()
	}
	d.server.CloseClientConnections()
	d.server.Close()
	return d.engine.Close()
}

func (d *door) dial(path, subprotocol string) (*wire, error) {
	conn, _, err := websocket.Dial(context.Background(), d.server.URL+path, &websocket.DialOptions{Subprotocols: []string{subprotocol}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 24)
	w := &wire{conn: conn}
	return w, w.send(map[string]any{"type": "hello", "token": "scenario"})
}

func (w *wire) send(m map[string]any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return w.conn.Write(context.Background(), websocket.MessageText, text)
}

// await returns the first message that matches, and keeps the others.
func (w *wire) await(is func(m map[string]any) bool) (map[string]any, error) {
	for i, m := range w.waiting {
		if is(m) {
			w.waiting = append(w.waiting[:i:i], w.waiting[i+1:]...)
			return m, nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		_, text, err := w.conn.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w; it got %v", err, w.waiting)
		}
		v, err := signal.ParseValue(text)
		if err != nil {
			return nil, err
		}
		m := map[string]any{"text": v}
		for name, member := range v.Members() {
			m[name] = string(jsondoc.AppendCanonical(nil, member))
		}
		if is(m) {
			return m, nil
		}
		w.waiting = append(w.waiting, m)
	}
}

func quoted(s string) string { return string(jsondoc.AppendText(nil, s)) }

func about(typ, req string) func(map[string]any) bool {
	return func(m map[string]any) bool {
		return m["type"] == quoted(typ) && (req == "" || m["req_id"] == quoted(req))
	}
}

// setUp repeats a record that sets up a world or registers an agent.
func (d *door) setUp(r signal.Record) error {
	ctx := context.Background()
	switch r.Word {
	case agents.WordConfig:
		return d.world.Configure(ctx, r.Value)
	case agents.WordWorld:
		return d.world.Begin(ctx, r.Value)
	case agents.WordAgent:
		id := r.Value.TextOf("agent_id")
		reg := agents.Registration{AgentID: id, Policy: r.Value.Member("policy"), Class: r.Value.TextOf("class"), Permissions: []string{}}
		for p := range r.Value.Member("permissions").Elements() {
			name, _ := p.Text()
			reg.Permissions = append(reg.Permissions, name)
		}
		g, err := d.world.RegisterAs(ctx, reg)
		if err != nil {
			return err
		}
		g.Close()
		if d.agents[id] == nil {
			d.agents[id], err = d.dial("/api/v1/sessions/"+d.name+"/agents/"+id+"/ws", agentwire.SubprotocolAgent)
		}
		return err
	}
	return nil
}

// plain returns an outcome without the numbers of effects, which an agent does not get.
func plain(v signal.Value) string {
	var o map[string]any
	if err := json.Unmarshal(v.AppendJSON(nil), &o); err != nil {
		return err.Error()
	}
	delete(o, "global_seq")
	delete(o, "number")
	if e, ok := o["effect"].(map[string]any); ok {
		delete(e, "global_seq")
	}
	if r, ok := o["rejection"].(map[string]any); ok {
		delete(r, "expected_seq")
		delete(r, "actual_seq")
	}
	text, _ := json.Marshal(o)
	return string(text)
}

func (d *door) same(what, got, want string) error {
	d.compared++
	if got != want {
		return fmt.Errorf("through the door %s is\n%s\nand in process\n%s", what, got, want)
	}
	return nil
}

// submit repeats an intent or a draft, and compares its outcome. seq is the intent's
// context in the agent's own numbers.
func (d *door) submit(s agents.Submission, seq uint64, want agents.Outcome) error {
	var m map[string]any
	var w *wire
	var err error
	if in := s.Intent; in != nil {
		if w = d.agents[in.AgentID]; w == nil || in.ReqID == "" || in.Kind == "" {
			return nil // only one of those who are registered has a socket, and a message names its request
		}
		m = map[string]any{"type": "intent", "req_id": in.ReqID, "kind": in.Kind, "context_seq": seq}
		if in.Payload != nil {
			m["payload"] = in.Payload
		}
		if !in.Unprioritized {
			m["priority"] = in.Priority
		}
		if in.SchemaVersion != "" {
			m["schema_version"] = in.SchemaVersion
		}
	} else {
		if d.sim == nil {
			if d.sim, err = d.dial("/api/v1/sessions/"+d.name+"/sim/ws", agentwire.SubprotocolSim); err != nil {
				return err
			}
		}
		w = d.sim
		m = map[string]any{"type": "draft", "req_id": "draft", "kind": s.Draft.Kind, "source_id": s.Draft.SourceID, "payload": s.Draft.Payload, "priority": s.Priority}
		if s.Draft.SchemaVersion != "" {
			m["schema_version"] = s.Draft.SchemaVersion
		}
		if s.UUID != "" {
			m["uuid"] = s.UUID
		}
		if s.Timed {
			m["sim_time"] = s.SimTime
		}
	}
	if err := w.send(m); err != nil {
		return err
	}
	o, err := w.await(about("outcome", m["req_id"].(string)))
	if err != nil {
		return err
	}
	return d.same("the outcome", plain(o["text"].(signal.Value).Member("outcome")), plain(want.Value()))
}

// issue repeats the begin of a generation.
func (d *door) issue(r agents.TokenRequest, seq uint64, token agents.Token, failed error) error {
	w := d.agents[r.AgentID]
	m := map[string]any{"type": "begin", "req_id": r.ReqID, "classes": r.Classes}
	if !r.Current {
		m["context_seq"] = seq
	}
	if r.Deadline > 0 {
		m["deadline_ms"] = float64(r.Deadline) / float64(time.Millisecond)
	}
	if err := w.send(m); err != nil {
		return err
	}
	if failed != nil {
		_, err := w.await(about("outcome", r.ReqID))
		return err
	}
	b, err := w.await(about("begun", r.ReqID))
	if err != nil {
		return err
	}
	d.begun[[2]string{r.AgentID, r.ReqID}] = true
	return d.same("the context", b["context_digest"].(string), quoted(token.ContextDigest))
}

// cancel repeats a cancel of the user.
func (d *door) cancel(agent, req string, found bool) error {
	w := d.agents[agent]
	if w == nil {
		return nil
	}
	if err := w.send(map[string]any{"type": "cancel", "req_id": req}); err != nil {
		return err
	}
	c, err := w.await(about("cancelled", req))
	if err != nil {
		return err
	}
	return d.same("the cancel", c["found"].(string), fmt.Sprint(found))
}

// settle compares the deltas and the cancellations that the scenario got.
func (d *door) settle(now time.Duration) error {
	if err := d.world.Settle(context.Background()); err != nil {
		return err
	}
	for _, c := range d.stops {
		if !d.begun[[2]string{c.Agent, c.ReqID}] {
			continue
		}
		m, err := d.agents[c.Agent].await(about("stop", c.ReqID))
		if err != nil {
			return err
		}
		if err := d.same("the reason", m["reason"].(string), quoted(c.Reason)); err != nil {
			return err
		}
	}
	for _, x := range d.deltas {
		w := d.agents[x.Agent]
		if w == nil || x.At > now {
			continue
		}
		m, err := w.await(about("observation", ""))
		if err != nil {
			return err
		}
		got := m["patches"].(string) + m["context_digest"].(string)
		want := string(jsondoc.AppendCanonical(nil, jsondoc.PatchValue(x.Delta.Patches))) + quoted(x.Delta.ContextDigest())
		if err := d.same("the delta of "+x.Agent, got, want); err != nil {
			return err
		}
	}
	d.stops, d.deltas = nil, nil
	return nil
}

// throughDoor are the kinds of scenario that are about agents that connect.
var throughDoor = map[string]bool{
	"submit": true, "submit_worlds": true, "interruption": true, "visibility": true, "field_visibility": true, "event_visibility": true, "view_seq": true,
}

// TestAgentsThroughTheDoor runs the scenarios about agents in process and, step by step,
// through the sockets of a server: the results are the same.
func TestAgentsThroughTheDoor(t *testing.T) {
	files, err := filepath.Glob("../../testdata/agents/*.json")
	require.NoError(t, err)
	more, err := filepath.Glob("../../../shared/conformance/agents/*.json")
	require.NoError(t, err)
	cases, compared := 0, 0
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var head struct {
			Kind  string
			Input struct{ Processing string }
		}
		require.NoError(t, json.Unmarshal(text, &head))
		if !throughDoor[head.Kind] || head.Input.Processing != "" { // a paused engine has no door
			continue
		}
		c, err := readAgent(text)
		require.NoError(t, err)
		if c.Inapplicable != "" || c.Apart != "" {
			continue
		}
		var opened []*door
		doorOf = func(world string) (*door, error) {
			d, err := openDoor(world)
			if err == nil {
				opened = append(opened, d)
			}
			return d, err
		}
		err = c.Judge()
		doorOf = nil
		assert.NoError(t, err, filepath.Base(file))
		cases++
		for _, d := range opened {
			compared += d.compared
			assert.NoError(t, d.close())
		}
	}
	t.Log(cases, "scenarios,", compared, "results are the same")
	assert.Greater(t, cases, 20)
	assert.Greater(t, compared, 5*cases)
}

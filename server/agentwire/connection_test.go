package agentwire

import (
	"context"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/session"
)

func TestAgentActsAndSees(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	h.join("alice", "[0,0]")
	h.join("bob", "[1,0]")
	alice, bob := h.agent("alice", ""), h.agent("bob", "")
	w := alice.next()
	assert.Equal(t, "welcome", w["type"])
	assert.Equal(t, false, w["resumed"])
	first := alice.next()
	assert.Equal(t, true, first["full"])
	bob.await("observation")
	alice.send(`{"type":"intent","req_id":"r1","kind":"Speak","payload":{"text":"hello"},"context_seq":` + encoded(first["view_seq"]) + `}`)
	o := alice.await("outcome")
	assert.Equal(t, "accepted", o["outcome"].(map[string]any)["status"], "%v", o)
	seen := bob.await("observation")
	assert.Contains(t, encoded(seen["patches"]), "hello")
	alice.send(`{"type":"intent","req_id":"r1","kind":"Speak","payload":{"text":"hello"},"context_seq":0}`)
	again := alice.await("outcome")["outcome"].(map[string]any)
	assert.Equal(t, "duplicate", again["status"])
	assert.Equal(t, o["outcome"].(map[string]any)["uuid"], again["uuid"])
	require.NoError(t, alice.conn.Close(websocket.StatusNormalClosure, ""))
}

func TestGenerationStopsWhenItsContextIsStale(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	h.join("alice", "[0,0]")
	h.join("bob", "[1,0]")
	alice := h.agent("alice", "")
	alice.await("observation")
	alice.send(`{"type":"begin","req_id":"g1"}`)
	b := alice.await("begun")
	assert.NotEmpty(t, b["context_digest"])
	alice.send(`{"type":"tokens","req_id":"g1","text":"Well, "}`)
	h.bobSays("wait!")
	s := alice.await("stop")
	assert.Equal(t, "GENERATION_CANCELLED", s["code"])
	assert.Contains(t, s["reason"], "stale_due_to")
	alice.send(`{"type":"tokens","req_id":"g1","text":"never read"}`) // it was on its way
	alice.send(`{"type":"begin","req_id":"g1"}`)
	alice.await("begun")
	alice.send(`{"type":"tokens","req_id":"g1","text":"I agree."}`)
	alice.send(`{"type":"end","req_id":"g1"}`)
	e := alice.await("ended")
	assert.Equal(t, "stop", e["finish"])
	alice.send(`{"type":"tokens","req_id":"other","text":"x"}`)
	assert.Equal(t, "no_generation", alice.await("error")["code"])
}

func TestDeadlineBudgetAndCancel(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	h.join("alice", "[0,0]")
	alice := h.agent("alice", "")
	alice.await("observation")
	alice.send(`{"type":"begin","req_id":"slow","deadline_ms":500}`)
	assert.InDelta(t, 500, alice.await("begun")["deadline_ms"], 0)
	alice.send(`{"type":"begin","req_id":"slow","deadline_ms":500}`)
	assert.Equal(t, "replaced_by_new_token", alice.next()["reason"])
	assert.Equal(t, "begun", alice.next()["type"])
	require.NoError(t, h.world.Advance(t.Context(), time.Second))
	s := alice.await("stop")
	assert.Equal(t, "TIMEOUT", s["code"])
	alice.send(`{"type":"begin","req_id":"slow"}`) // its outcome is final
	assert.Equal(t, "slow", alice.await("outcome")["req_id"])

	alice.send(`{"type":"begin","req_id":"long","token_budget":3}`)
	alice.await("begun")
	alice.send(`{"type":"tokens","req_id":"long","text":"one two three","count":3}`)
	assert.Equal(t, "token_budget", alice.await("ended")["finish"])

	alice.send(`{"type":"begin","req_id":"unwanted"}`)
	alice.await("begun")
	alice.send(`{"type":"cancel","req_id":"unwanted"}`)
	kinds := []any{alice.next(), alice.next()}
	for _, m := range kinds {
		switch m := m.(got); m["type"] {
		case "cancelled":
			assert.Equal(t, true, m["found"])
		case "stop":
			assert.Equal(t, "user_requested", m["reason"])
		default:
			t.Error(m)
		}
	}
	alice.send(`{"type":"cancel","req_id":"unknown"}`)
	assert.Equal(t, false, alice.await("cancelled")["found"])
}

func TestResume(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	h.join("alice", "[0,0]")
	h.join("bob", "[1,0]")
	alice := h.agent("alice", "")
	first := alice.await("observation")
	require.NoError(t, alice.conn.Close(websocket.StatusNormalClosure, ""))
	h.bobSays("one")
	h.bobSays("two")
	alice = h.agent("alice", `,"view_seq":`+encoded(first["view_seq"]))
	assert.Equal(t, true, alice.await("welcome")["resumed"])
	one, two := alice.next(), alice.next()
	assert.Nil(t, one["full"])
	assert.Contains(t, encoded(one["patches"]), "one")
	assert.Contains(t, encoded(two["patches"]), "two")

	lie := h.agent("alice", `,"view_seq":4711`)
	assert.Equal(t, false, lie.await("welcome")["resumed"], "a view_seq that was never sent")
	o := lie.await("observation")
	assert.Equal(t, true, o["full"], "a view_seq that was never sent gets the full view")
	assert.Equal(t, closeReplaced.code, alice.closed())
	lie.send(`{"type":"resync"}`)
	o = lie.await("observation")
	assert.Equal(t, true, o["full"])
	lie.send(`{"type":"ack","view_seq":4711}`)
	assert.Equal(t, "bad_view_seq", lie.await("error")["code"])
	lie.send(`{"type":"intent","req_id":"x","kind":"Speak","payload":{"text":"hi"},"context_seq":4711}`)
	assert.Contains(t, encoded(lie.await("outcome")), "INVALID_INTENT")
}

func TestSlowClientGetsAGap(t *testing.T) {
	h := newHouse(t, session.TimeManual, `{"cooldowns":"off","max_queue_depth":3}`, func(c *Config) { c.Window = 1 })
	h.join("alice", "[0,0]")
	h.join("bob", "[1,0]")
	alice := h.agent("alice", "")
	first := alice.await("observation")
	for _, text := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		h.bobSays(text)
	}
	alice.send(`{"type":"ack","view_seq":` + encoded(first["view_seq"]) + `}`)
	missed := 0.0
	for o := (got{}); o["full"] != true; {
		o = alice.await("observation")
		if n, ok := o["missed"].(float64); ok {
			missed = n
		}
		alice.send(`{"type":"ack","view_seq":` + encoded(o["view_seq"]) + `}`)
	}
	assert.Positive(t, missed)
}

func TestHandshakes(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	h.join("alice", "[0,0]")
	path := "/api/v1/sessions/play/agents/alice/ws"
	for _, c := range []struct {
		name, path, first string
		code              int
	}{
		{"no token", path, `{"type":"hello"}`, closeToken.code},
		{"a wrong token", path, `{"type":"hello","token":"wrong"}`, closeToken.code},
		{"the token of another", path, `{"type":"hello","token":"bob"}`, closeForbidden.code},
		{"no such agent", "/api/v1/sessions/play/agents/carol/ws", `{"type":"hello","token":"carol"}`, closeAbsent.code},
		{"no such session", "/api/v1/sessions/none/agents/alice/ws", `{"type":"hello","token":"alice"}`, closeAbsent.code},
		{"no such name", "/api/v1/sessions/%00/agents/alice/ws", `{"type":"hello","token":"alice"}`, closeAbsent.code},
		{"no hello", path, `{"type":"ack","view_seq":0}`, closeProtocol.code},
		{"no JSON", path, `hello`, closeProtocol.code},
		{"a view_seq below zero", path, `{"type":"hello","token":"alice","view_seq":-1}`, closeProtocol.code},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			k := h.dial(c.path, SubprotocolAgent, nil)
			k.send(c.first)
			assert.Equal(t, c.code, k.closed())
		})
	}
	t.Run("no hello in time", func(t *testing.T) {
		h.t = t
		k := h.dial(path, SubprotocolAgent, nil)
		require.Eventually(t, func() bool { return h.timers.fire(10 * time.Second) }, 5*time.Second, time.Millisecond)
		assert.Equal(t, closeHello.code, k.closed())
	})
	t.Run("another subprotocol", func(t *testing.T) {
		h.t = t
		_, res, err := websocket.Dial(t.Context(), h.url+path, &websocket.DialOptions{Subprotocols: []string{"mqtt"}})
		require.Error(t, err)
		assert.Equal(t, 400, res.StatusCode)
	})
	t.Run("the token in the header", func(t *testing.T) {
		h.t = t
		k := h.dial(path, SubprotocolAgent, map[string][]string{"Authorization": {"Bearer alice"}})
		k.send(`{"type":"hello"}`)
		k.await("observation")
		require.NoError(t, h.leave("alice"))
		assert.Equal(t, closeLeft.code, k.closed())
	})
}

func (h *house) leave(id string) error {
	g, err := h.world.Agent(context.Background(), id)
	if err != nil {
		return err
	}
	return g.Leave(context.Background())
}

func TestHostileClients(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, func(c *Config) { c.MaxMessage = 1 << 12 })
	h.join("alice", "[0,0]")
	t.Run("nonsense", func(t *testing.T) {
		h.t = t
		k := h.agent("alice", "")
		for range maxBad {
			k.send(`{"type":"mystery","req_id":"r"}`)
		}
		assert.Equal(t, "bad_message", k.await("error")["code"])
		assert.Equal(t, closeProtocol.code, k.closed())
	})
	t.Run("binary", func(t *testing.T) {
		h.t = t
		k := h.agent("alice", "")
		require.NoError(t, k.conn.Write(t.Context(), websocket.MessageBinary, []byte("{}")))
		assert.Equal(t, closeBinary.code, k.closed())
	})
	t.Run("oversize", func(t *testing.T) {
		h.t = t
		k := h.agent("alice", "")
		k.await("observation")
		_ = k.conn.Write(t.Context(), websocket.MessageText, make([]byte, 1<<13))
		assert.Equal(t, closeTooBig.code, k.closed())
	})
	t.Run("no answer to a heartbeat", func(t *testing.T) {
		h.t = t
		k := h.agent("alice", "")
		k.await("observation")
		require.Eventually(t, func() bool { return h.timers.fire(15 * time.Second) }, 5*time.Second, time.Millisecond)
		assert.Equal(t, "heartbeat", k.await("heartbeat")["type"]) // and does not read any more, so it answers no ping
		require.Eventually(t, func() bool {
			h.timers.fire(15 * time.Second)
			return h.room.connection(place{"play", "alice"}) == nil
		}, 5*time.Second, time.Millisecond)
	})
	t.Run("the server stops", func(t *testing.T) {
		h.t = t
		k := h.agent("alice", "")
		k.await("observation")
		k.send(`{"type":"begin","req_id":"g"}`)
		k.await("begun")
		close(h.stopping)
		assert.Equal(t, closeStopping.code, k.closed())
	})
}

func TestQuarantine(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, func(c *Config) {
		c.Quarantine = Quarantine{Refusals: 3}
	})
	h.join("alice", "[0,0]")
	k := h.agent("alice", "")
	for _, id := range []string{"a", "b", "c"} {
		k.send(`{"type":"intent","req_id":"` + id + `","kind":"Speak","payload":{"text":""},"context_seq":0}`)
		assert.Contains(t, encoded(k.await("outcome")), "INTENT_VALIDATION_FAILED")
	}
	noted := h.events.After(0, access.AgentQuarantined, 10)
	require.Len(t, noted, 1)
	assert.Equal(t, "alice", noted[0].Agent)
	k.send(`{"type":"intent","req_id":"d","kind":"Speak","payload":{"text":"hi"},"context_seq":0}`)
	assert.Contains(t, encoded(k.await("outcome")), "AGENT_QUARANTINED")
	k.send(`{"type":"begin","req_id":"e"}`)
	assert.Contains(t, encoded(k.await("outcome")), "AGENT_QUARANTINED")
}

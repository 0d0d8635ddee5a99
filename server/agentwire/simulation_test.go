package agentwire

import (
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/session"
)

const ticking = `{"authority":"sim","cooldowns":"off"}`

// sim connects as the holder of the authority.
func (h *house) sim(more string) *client {
	h.t.Helper()
	c := h.dial("/api/v1/sessions/play/sim/ws", SubprotocolSim, nil)
	c.send(`{"type":"hello","token":"sim"` + more + `}`)
	return c
}

func TestSimulationDecidesAtTicks(t *testing.T) {
	h := newHouse(t, session.TimeSim, ticking, nil)
	h.register("alice", `{"distance_limit":50}`)
	h.register("npc", `{}`)
	sim, alice := h.sim(""), h.agent("alice", "")
	w := sim.await("welcome")
	assert.Equal(t, "sim", w["time"])
	alice.await("observation")
	sim.send(`{"type":"draft","req_id":"make","kind":"EntityCreated","payload":{"entity_id":"alice","entity_data":{"type":"agent"},"position":[0,0]},"source_id":"engine"}`)
	sim.send(`{"type":"draft","req_id":"npc","kind":"EntityCreated","payload":{"entity_id":"npc","entity_data":{"type":"agent"}},"source_id":"engine"}`)
	sim.send(`{"type":"draft","req_id":"bad","kind":"EntityRemoved","payload":{"entity_id":"nobody"},"source_id":"engine","priority":-5}`)
	sim.send(`{"type":"intent","req_id":"n1","agent_id":"npc","kind":"Speak","payload":{"text":"hello"},"context_seq":0,"priority":-9}`)
	sim.send(`{"type":"intent","req_id":"n2","agent_id":"alice","kind":"Speak","payload":{"text":"hello"},"context_seq":0}`)
	assert.Contains(t, encoded(sim.await("outcome")), "FORBIDDEN", "the simulation may not act as alice")
	sim.send(`{"type":"tick","sim_time":0.02,"delta_time":0.02,"frame_number":1}`)
	var effects, outcomes []got
	for done := false; !done; {
		switch m := sim.next(); m["type"] {
		case "effect":
			effects = append(effects, m)
		case "outcome":
			outcomes = append(outcomes, m)
		case "ticked":
			assert.InDelta(t, 4, m["decided"], 0)
			assert.NotEmpty(t, effects, "effects come before the answer to their tick")
			assert.LessOrEqual(t, effects[len(effects)-1]["seq"], m["seq"])
			done = true
		}
	}
	for len(outcomes) < 4 {
		outcomes = append(outcomes, sim.await("outcome"))
	}
	byID := map[any]any{}
	for _, o := range outcomes {
		byID[o["req_id"]] = o["outcome"].(map[string]any)["status"]
	}
	assert.Equal(t, map[any]any{"make": "accepted", "npc": "accepted", "bad": "rejected", "n1": "accepted"}, byID)
	assert.Contains(t, encoded(alice.await("observation")), "alice")

	sim.send(`{"type":"tick","sim_time":1e18}`)
	assert.Equal(t, "bad_tick", sim.await("error")["code"])
}

func TestOneHolder(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	first := h.sim("")
	first.await("welcome")
	assert.Equal(t, closeHeld.code, h.sim("").closed())
	first.send(`{"type":"tick","sim_time":3}`)
	seq := first.await("ticked")["seq"]
	first.send(`{"type":"tick","sim_time":1}`)
	assert.InDelta(t, 3, first.await("ticked")["sim_time"], 0, "the time does not go back")
	first.send(`{"type":"draft","req_id":"d","kind":"Noise","source_id":"engine"}`)
	first.await("outcome")
	require.NoError(t, first.conn.Close(websocket.StatusNormalClosure, ""))
	var next *client
	require.Eventually(t, func() bool { // the place is free once the server has seen the end
		next = h.sim(`,"seq":` + encoded(seq))
		m, err := next.read()
		return err == nil && assert.InDelta(t, 3, m["sim_time"], 0)
	}, 5e9, 1e6)
	assert.Equal(t, "Noise", next.await("effect")["effect"].(map[string]any)["kind"], "the effect after seq is sent again")

	other := h.dial("/api/v1/sessions/play/sim/ws", SubprotocolSim, nil)
	other.send(`{"type":"hello","token":"alice"}`)
	assert.Equal(t, closeForbidden.code, other.closed())
	assert.NotEmpty(t, h.events.After(0, access.ActForbidden, 10))
}

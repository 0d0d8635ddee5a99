package otel

import (
	"context"
	"sync"
)

// members are the registered agents of the open worlds.
type members struct {
	mu      sync.Mutex
	byWorld map[string]map[string]bool // guarded by mu
}

// WorldOpened begins to count the agents of a world.
func (t *Telemetry) WorldOpened(world string) {
	t.worlds.mu.Lock()
	defer t.worlds.mu.Unlock()
	if t.worlds.byWorld[world] == nil {
		t.worlds.byWorld[world] = map[string]bool{}
	}
}

// WorldClosed takes the agents of a world from their number.
func (t *Telemetry) WorldClosed(world string) {
	t.worlds.mu.Lock()
	defer t.worlds.mu.Unlock()
	t.members.Add(context.Background(), -int64(len(t.worlds.byWorld[world])))
	delete(t.worlds.byWorld, world)
}

// AgentJoined counts an agent, once.
func (t *Telemetry) AgentJoined(world, agent string) {
	t.worlds.mu.Lock()
	defer t.worlds.mu.Unlock()
	if w := t.worlds.byWorld[world]; w != nil && !w[agent] {
		w[agent] = true
		t.members.Add(context.Background(), 1)
	}
}

// AgentLeft takes an agent from their number.
func (t *Telemetry) AgentLeft(world, agent string) {
	t.worlds.mu.Lock()
	defer t.worlds.mu.Unlock()
	if w := t.worlds.byWorld[world]; w[agent] {
		delete(w, agent)
		t.members.Add(context.Background(), -1)
	}
}

package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
)

// A generator is not called for an agent while their breaker is open, and not for other
// agents' or generators' failures. A breaker without failures takes no memory.
func TestBreakersByAgentAndGenerator(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	world := &Agents{breakers: newBreakers(), cfg: Config{Now: func() time.Time { return now }}}
	a, b := Driver{&Agent{world: world, id: "a"}}, Driver{&Agent{world: world, id: "b"}}
	cfg := flow.BreakerConfig{Failures: 2, Recovery: time.Second}
	admits := func(d Driver, generator string, code agents.Code, after time.Duration) {
		t.Helper()
		gotCode, gotAfter := d.Admit(generator, cfg)
		assert.Equal(t, code, gotCode)
		assert.Equal(t, after, gotAfter)
	}
	admits(a, "x", "", 0)
	assert.Empty(t, world.breakers.byKey)
	a.Report("x", cfg, CallFailed)
	admits(a, "x", "", 0)
	a.Report("x", cfg, CallSucceeded)
	assert.Empty(t, world.breakers.byKey, "it is as new")
	a.Report("x", cfg, CallFailed)
	a.Report("x", cfg, CallAbandoned)
	now = now.Add(time.Hour)
	a.Report("x", cfg, CallFailed)
	admits(a, "x", agents.ErrBreakerOpen, time.Second)
	admits(b, "x", "", 0)
	admits(a, "y", "", 0)
	now = now.Add(time.Second)
	admits(a, "x", agents.ErrBreakerOpen, 0)
	now = now.Add(1)
	admits(a, "x", "", 0)
	a.Report("x", cfg, CallAbandoned)
	assert.Len(t, world.breakers.byKey, 1, "it is half open")
	admits(a, "x", "", 0)
	a.Report("x", cfg, CallSucceeded)
	assert.Empty(t, world.breakers.byKey)
}

// An agent whose abandoned streams do not end gets no more of them.
func TestAbandonedStreams(t *testing.T) {
	world := &Agents{breakers: newBreakers(), cfg: Config{Now: time.Now}}
	a, b := Driver{&Agent{world: world, id: "a"}}, Driver{&Agent{world: world, id: "b"}}
	for range 16 {
		code, _ := a.Admit("x", flow.BreakerConfig{})
		assert.Empty(t, code)
		a.Abandoned(1)
	}
	code, after := a.Admit("x", flow.BreakerConfig{})
	assert.Equal(t, agents.ErrQueueFull, code)
	assert.Zero(t, after)
	code, _ = b.Admit("x", flow.BreakerConfig{})
	assert.Empty(t, code)
	a.Abandoned(-1)
	code, _ = a.Admit("x", flow.BreakerConfig{})
	assert.Empty(t, code)
	for range 15 {
		assert.Contains(t, world.breakers.abandoned, "a")
		a.Abandoned(-1)
	}
	assert.Empty(t, world.breakers.abandoned)
}

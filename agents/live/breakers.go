package live

import (
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
)

// maxAbandoned bounds the abandoned streams of one agent that have not ended.
const maxAbandoned = 16

// breakers decides whether a generator may be called for an agent, by the circuit
// breaker of the two and the number of the agent's abandoned streams.
type breakers struct {
	mu        sync.Mutex
	begin     time.Time                   // zero of the breakers' time, set on first use; guarded by mu
	byKey     map[[2]string]*flow.Breaker // by agent and generator, only those with failures; guarded by mu
	abandoned map[string]int              // abandoned streams that have not ended, by agent; guarded by mu
}

func newBreakers() breakers {
	return breakers{byKey: map[[2]string]*flow.Breaker{}, abandoned: map[string]int{}}
}

// elapsed returns the breakers' time. The caller holds mu.
func (b *breakers) elapsed(now time.Time) time.Duration {
	if b.begin.IsZero() {
		b.begin = now
	}
	return now.Sub(b.begin)
}

// Admit reports whether a generator may be called for the agent. If code is empty,
// it may, and the caller must report the result by [Driver.Report]. Otherwise code
// is [agents.ErrQueueFull], if too many abandoned streams have not ended, or
// [agents.ErrBreakerOpen], for at least the returned time.
func (d Driver) Admit(generator string, cfg flow.BreakerConfig) (code agents.Code, after time.Duration) {
	b := &d.agent.world.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.abandoned[d.agent.id] >= maxAbandoned {
		return agents.ErrQueueFull, 0
	}
	breaker, ok := b.byKey[[2]string{d.agent.id, generator}]
	if !ok {
		return "", 0
	}
	breaker.Config = cfg
	at, before := b.elapsed(d.agent.world.cfg.Now()), breaker.State()
	allowed := breaker.Allow(at)
	d.agent.reportBreaker(before, breaker.State())
	if !allowed {
		return agents.ErrBreakerOpen, breaker.Wait(at)
	}
	return "", 0
}

// CallResult is the result of one call of a generator.
type CallResult int

// The results.
const (
	CallAbandoned CallResult = iota // the caller abandoned the call: it counts neither way
	CallSucceeded
	CallFailed
)

// Report reports the result of a call that [Driver.Admit] admitted.
func (d Driver) Report(generator string, cfg flow.BreakerConfig, v CallResult) {
	b := &d.agent.world.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{d.agent.id, generator}
	breaker, ok := b.byKey[key]
	if !ok {
		breaker = &flow.Breaker{}
	}
	breaker.Config = cfg
	before := breaker.State()
	if v == CallAbandoned {
		breaker.Abandon()
	} else {
		breaker.Done(b.elapsed(d.agent.world.cfg.Now()), v == CallSucceeded)
	}
	d.agent.reportBreaker(before, breaker.State())
	if breaker.State() == flow.BreakerClosed && breaker.Failures() == 0 {
		delete(b.byKey, key) // equal to a new breaker
	} else {
		b.byKey[key] = breaker
	}
}

func (g *Agent) reportBreaker(before, after flow.BreakerState) {
	if m := g.world.cfg.Metrics.Generations; m != nil && before != after {
		m.BreakerChanged(g.world.w.Name(), g.id, after)
	}
}

// Abandoned changes the number of the agent's abandoned streams by n: 1 when a
// stream is abandoned, -1 when it has ended.
func (d Driver) Abandoned(n int) {
	b := &d.agent.world.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.abandoned[d.agent.id] += n; b.abandoned[d.agent.id] == 0 {
		delete(b.abandoned, d.agent.id)
	}
}

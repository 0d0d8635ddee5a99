// Package prometheus shows the worlds of a sajou engine to Prometheus. A
// [Collector] is both: the [sajou.Metrics] that the engine reports to, and what a
// program registers on a registry of its own.
//
//	metrics := prometheus.New(prometheus.Config{})
//	registry.MustRegister(metrics)
//	eng, err := sajou.Open(dir, sajou.Config{Metrics: metrics})
//
// # Metrics
//
// All have the label world, the session's name. Those of an agent have the label
// agent as well, its id.
//
//	sajou_world_global_seq                gauge      the number of the newest durable effect
//	sajou_agents                          gauge      registered agents
//
//	sajou_intents_total                   counter    agent, outcome, code
//	sajou_intent_duration_seconds         histogram  agent
//	sajou_intent_stage_duration_seconds   histogram  stage: wait, decide, apply, sync
//	sajou_intents_waiting                 gauge      agent
//
//	sajou_observations_total              counter    agent, fate: delivered, shed, dropped, deferred, replaced
//	sajou_observation_delay_seconds       histogram  agent
//	sajou_observations_waiting            gauge      agent
//
//	sajou_cancellations_total             counter    agent, reason: stale, user, replaced, deadline, left, other
//	sajou_cancellation_halt_seconds       histogram  agent
//	sajou_generations_total               counter    agent, end: done, cut, cancelled, failed
//	sajou_generation_duration_seconds     histogram
//	sajou_generation_tokens_total         counter    agent
//	sajou_breaker_changes_total           counter    agent, state: closed, open, half_open
//	sajou_breakers                        gauge      agent, state: open, half_open
//
// The outcome of an intent is accepted, duplicate or rejected; its code is the
// one of the table of codes, as STALE_CONTEXT, INTENT_CONFLICT or QUOTA_EXCEEDED,
// and empty if it was accepted. Rates follow:
//
//	sum by (world) (rate(sajou_intents_total{code="STALE_CONTEXT"}[5m]))
//	  / sum by (world) (rate(sajou_intents_total[5m]))
//
// Buckets have bounds at the goals, 20 ms for an observation and 100 ms for a halt,
// so that the share of what met them is exact:
//
//	sum(rate(sajou_observation_delay_seconds_bucket{le="0.02"}[5m]))
//	  / sum(rate(sajou_observation_delay_seconds_count[5m]))
//
// # Cardinality
//
// The first [Config.MaxWorlds] worlds have their names for a label, and the first
// [Config.MaxAgents] agents of these their ids. All the others share the label
// "other", and so does what is reported of somebody who is not registered. There a
// gauge is the sum over all who share it. Who once shares it goes on to do so
// when room is made. When an agent leaves, its series are deleted; when a world
// closes, all of its.
package prometheus

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
)

// Other is the label of all worlds and agents that have none of their own.
const Other = "other"

// Config tells how much a [Collector] may show. The zero value is a good
// default.
type Config struct {
	// MaxWorlds is how many worlds at a time have labels of their own. Zero
	// means 20, less than zero none.
	MaxWorlds int

	// MaxAgents is how many agents at a time, of all worlds together, have labels
	// of their own. Zero means 100, less than zero none. One comes to some 100
	// series.
	MaxAgents int
}

// Collector keeps what an engine reports until it is asked for it. One can be
// given to several engines if their sessions have different names. Its
// methods may be called from many goroutines.
type Collector struct {
	cfg Config // immutable after New
	families

	mu     sync.RWMutex      // held for reading by whoever adds to a series, so that none comes back once deleted
	worlds map[string]*world // those that are open; guarded by mu
	own    struct {          // how many have labels of their own; guarded by mu
		worlds, agents int
	}
}

// world is an open world.
type world struct {
	label  string            // immutable
	others *agent            // whoever is not registered; immutable
	agents map[string]*agent // registered ones; guarded by the collector's mu
}

// agent is a registered agent: its labels, and what it adds to gauges that it may
// have to share.
type agent struct {
	world, label          string // immutable
	intents, observations atomic.Int64
	breaker               string // "" while it is closed; guarded by the collector's mu
}

// stranger is whoever is not registered, in a world that is not open.
var stranger = &agent{world: Other, label: Other}

var (
	_ sajou.Metrics  = (*Collector)(nil)
	_ prom.Collector = (*Collector)(nil)
)

// New returns a collector to which nothing was reported yet.
func New(cfg Config) *Collector {
	if cfg.MaxWorlds == 0 {
		cfg.MaxWorlds = 20
	}
	if cfg.MaxAgents == 0 {
		cfg.MaxAgents = 100
	}
	return &Collector{cfg: cfg, families: newFamilies(), worlds: map[string]*world{}}
}

// Opened gives a world its label.
func (c *Collector) Opened(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.worlds[name]; ok {
		return
	}
	w := &world{label: Other, agents: map[string]*agent{}}
	if c.own.worlds < c.cfg.MaxWorlds && fit(name) {
		w.label = strings.Clone(name)
		c.own.worlds++
		c.globalSeq.WithLabelValues(w.label).Set(0)
	}
	w.others = &agent{world: w.label, label: Other}
	c.agents.WithLabelValues(w.label).Add(0)
	c.worlds[strings.Clone(name)] = w
}

// Closed deletes the series of a world and of its agents.
func (c *Collector) Closed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.worlds[name]
	if !ok {
		return
	}
	for _, a := range w.agents {
		c.leave(a)
	}
	delete(c.worlds, name)
	if w.label != Other {
		c.own.worlds--
		c.forget(prom.Labels{"world": w.label}, c.ofWorlds, c.ofAgents)
	}
}

// fit reports whether a name can be a label that stands for nothing else.
func fit(name string) bool { return name != Other && name != "" && utf8.ValidString(name) }

// Joined gives an agent its label.
func (c *Collector) Joined(world, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.worlds[world]
	if !ok {
		return
	}
	if _, ok := w.agents[id]; ok {
		return
	}
	a := &agent{world: w.label, label: Other}
	if w.label != Other && c.own.agents < c.cfg.MaxAgents && fit(id) {
		a.label = strings.Clone(id)
		c.own.agents++
	}
	c.agents.WithLabelValues(a.world).Inc()
	c.intentsWaiting.WithLabelValues(a.world, a.label).Add(0)
	c.observationsWaiting.WithLabelValues(a.world, a.label).Add(0)
	w.agents[strings.Clone(id)] = a
}

// Left deletes the series of an agent.
func (c *Collector) Left(world, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.worlds[world]
	if !ok {
		return
	}
	if a, ok := w.agents[id]; ok {
		c.leave(a)
		delete(w.agents, id)
	}
}

// leave takes an agent out of what is shown, with mu held.
func (c *Collector) leave(a *agent) {
	c.agents.WithLabelValues(a.world).Dec()
	c.waiting(c.intentsWaiting, a, &a.intents, 0)
	c.waiting(c.observationsWaiting, a, &a.observations, 0)
	c.changed(a, "")
	if a.label != Other {
		c.own.agents--
		c.forget(prom.Labels{"world": a.world, "agent": a.label}, c.ofAgents)
	}
}

// find returns an agent, with mu held for reading, and whether it is a
// registered one, whose state may be changed.
func (c *Collector) find(world, id string) (a *agent, known bool) {
	w, ok := c.worlds[world]
	if !ok {
		return stranger, false
	}
	if a, ok := w.agents[id]; ok {
		return a, true
	}
	return w.others, false
}

// Reached sets a world's number. Worlds without a label of their own show none.
func (c *Collector) Reached(world string, globalSeq uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if w, ok := c.worlds[world]; ok && w.label != Other {
		c.globalSeq.WithLabelValues(w.label).Set(float64(globalSeq))
	}
}

// Intent counts a request, and where its time went.
func (c *Collector) Intent(world, id string, status agents.Status, code agents.Code, took sajou.IntentTiming) {
	if _, ok := code.Failure(); !ok && code != "" {
		code = Other
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.intents.WithLabelValues(a.world, a.label, status.String(), string(code)).Inc()
	c.intentDuration.WithLabelValues(a.world, a.label).Observe(took.Total.Seconds())
	c.stage(a, "wait", took.Wait)
	c.stage(a, "decide", took.Decide)
	c.stage(a, "apply", took.Apply)
	c.stage(a, "sync", took.Sync)
}

func (c *Collector) stage(a *agent, name string, took time.Duration) {
	if took > 0 {
		c.stageDuration.WithLabelValues(a.world, name).Observe(took.Seconds())
	}
}

// IntentsWaiting sets how many requests of an agent wait.
func (c *Collector) IntentsWaiting(world, id string, n int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if a, ok := c.find(world, id); ok {
		c.waiting(c.intentsWaiting, a, &a.intents, n)
	}
}

// waiting moves a gauge by what has changed, since others may share it.
func (c *Collector) waiting(gauge *prom.GaugeVec, a *agent, last *atomic.Int64, n int) {
	gauge.WithLabelValues(a.world, a.label).Add(float64(int64(n) - last.Swap(int64(n))))
}

// Delivered counts an observation that was handed over, and how long it took.
func (c *Collector) Delivered(world, id string, after time.Duration) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.observations.WithLabelValues(a.world, a.label, "delivered").Inc()
	c.delay.WithLabelValues(a.world, a.label).Observe(after.Seconds())
}

// Undelivered counts observations that were not handed over.
func (c *Collector) Undelivered(world, id string, fate sajou.DeltaFate, n int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.observations.WithLabelValues(a.world, a.label, fate.String()).Add(float64(max(n, 0)))
}

// ObservationsWaiting sets how many observations wait for an agent.
func (c *Collector) ObservationsWaiting(world, id string, n int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if a, ok := c.find(world, id); ok {
		c.waiting(c.observationsWaiting, a, &a.observations, n)
	}
}

// Cancelled counts a cancellation.
func (c *Collector) Cancelled(world, id string, why sajou.CancelKind) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.cancellations.WithLabelValues(a.world, a.label, why.String()).Inc()
}

// Halted measures how long a generation ran on after it was cancelled.
func (c *Collector) Halted(world, id string, after time.Duration) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.halt.WithLabelValues(a.world, a.label).Observe(after.Seconds())
}

// Generated counts a generation, its time and its tokens.
func (c *Collector) Generated(world, id string, end sajou.GenerationEnd, took time.Duration, tokens int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.generations.WithLabelValues(a.world, a.label, end.String()).Inc()
	c.generationDuration.WithLabelValues(a.world).Observe(took.Seconds())
	c.tokens.WithLabelValues(a.world, a.label).Add(float64(max(tokens, 0)))
}

// Breaker counts a change of an agent's circuit breaker.
func (c *Collector) Breaker(world, id string, to agents.BreakerState) {
	state, ok := breakerStates[to]
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, known := c.find(world, id)
	c.breakerChanges.WithLabelValues(a.world, a.label, state).Inc()
	if !known {
		return
	}
	if to == agents.BreakerClosed {
		state = ""
	}
	c.changed(a, state)
}

var breakerStates = map[agents.BreakerState]string{
	agents.BreakerClosed:   "closed",
	agents.BreakerIsOpen:   "open",
	agents.BreakerHalfOpen: "half_open",
}

// changed moves the gauges of breakers that are not closed, with mu held.
func (c *Collector) changed(a *agent, state string) {
	if a.breaker != "" {
		c.breakers.WithLabelValues(a.world, a.label, a.breaker).Dec()
	}
	if a.breaker = state; state != "" {
		c.breakers.WithLabelValues(a.world, a.label, state).Inc()
	}
}

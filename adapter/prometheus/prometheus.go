// Package prometheus exports the metrics of a sajou engine to Prometheus. The engine
// reports to a [Collector] through its [sajou.Metrics], and the program registers the
// same Collector on a Prometheus registry.
//
//	collector := prometheus.New(prometheus.Config{})
//	registry.MustRegister(collector)
//	eng, err := sajou.Open(dir, sajou.Config{Metrics: collector.Metrics()})
//
// # Metrics of the engine
//
// They are sums over all sessions. A round is one write to the store: the batches that
// writers of one session appended together. The label sink is the Go type of a sink.
//
//	sajou_log_rounds_total                counter    outcome: durable, failed
//	sajou_log_batches_total               counter    of durable rounds
//	sajou_log_entries_total               counter    of durable rounds
//	sajou_log_bytes_total                 counter    of durable rounds
//	sajou_log_round_duration_seconds      histogram  from the write to its durability
//	sajou_log_sync_duration_seconds       histogram  file: wal, heads, table, manifest, other
//	sajou_log_failed                      gauge      1 once a write has failed: the log is read-only
//
//	sajou_fold_load_duration_seconds      histogram  from an image and the entries behind it
//	sajou_folded_entries_total            counter
//	sajou_fold_duration_seconds           histogram  of one step
//	sajou_fold_behind_entries             histogram  entries not folded yet, after a step
//	sajou_folds_failed_total              counter    sessions that record nothing more
//
//	sajou_snapshots_total                 counter    outcome: stored, failed, dropped
//	sajou_snapshot_bytes_total            counter    before compression
//	sajou_snapshot_store_duration_seconds histogram
//
//	sajou_sinks                           gauge      sink; attached
//	sajou_sink_call_duration_seconds      histogram  sink, call: the method
//	sajou_sinks_detached_total            counter    sink, reason: asked, panic, stuck, deleted, error
//
//	sajou_director_call_duration_seconds  histogram  call: start, revise, guide, respond, choose; outcome: ok, error
//	sajou_judge_calls_total               counter    outcome: answered, failed, late, not_called
//	sajou_judge_call_duration_seconds     histogram
//	sajou_questions_given_up_total        counter    recorded as unclear without an answer
//
// # Metrics of a server
//
// A server of package server reports to the collector as its Requests, and as the Metrics of
// its traces. The label route is the pattern of a route, such as "POST /api/signal", or "other".
//
//	sajou_http_requests_total             counter    route, status; streams count when they end
//	sajou_http_request_duration_seconds   histogram  route; without streams
//	sajou_http_streams                    gauge      route; open
//	sajou_limit_in_use                    gauge      limit: connections, streams, jobs, memory (bytes of bodies)
//	sajou_limit_bound                     gauge      limit; of all callers together
//	sajou_security_events_total           counter    kind, such as AUTH_FAILED or LIMIT_EXCEEDED
//	sajou_spool_traces                    gauge      traces of OpenTelemetry in the spool
//	sajou_spool_traces_waiting            gauge      those that are not recorded
//	sajou_spool_bytes                     gauge      bytes that count against the bound
//	sajou_spool_bound_bytes               gauge      the bound
//
// # Metrics of agents
//
// All have the label world, the session's name. Those of an agent also have the label
// agent, its id.
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
// The outcome of an intent is accepted, duplicate or rejected. Its code is one of the
// codes of package agents, for example STALE_CONTEXT, INTENT_CONFLICT or
// QUOTA_EXCEEDED, and empty if the intent was accepted. A rate of refusals:
//
//	sum by (world) (rate(sajou_intents_total{code="STALE_CONTEXT"}[5m]))
//	  / sum by (world) (rate(sajou_intents_total[5m]))
//
// Buckets have bounds at the goals, 20 ms for an observation and 100 ms for a halt,
// so that the share of values that meet a goal is exact:
//
//	sum(rate(sajou_observation_delay_seconds_bucket{le="0.02"}[5m]))
//	  / sum(rate(sajou_observation_delay_seconds_count[5m]))
//
// # Cardinality
//
// The first [Config.MaxWorlds] worlds have labels of their own, their names, and so
// have the first [Config.MaxAgents] agents of these worlds, their ids. All others
// share the label "other", and so do reports about agents that are not registered. A
// gauge with that label is the sum over all that share it. An agent keeps the shared
// label even when another label becomes free. When an agent leaves, its series are
// deleted; when a world closes, its own and those of all its agents are.
package prometheus

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents/flow"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
)

// Other is the shared label of all worlds and agents without one of their own.
const Other = "other"

// Config bounds the labels of a [Collector]. The zero value is a good default.
type Config struct {
	// MaxWorlds bounds the worlds with labels of their own at any time. Zero means
	// 20; a negative number means none.
	MaxWorlds int

	// MaxAgents bounds the agents of all worlds with labels of their own at any time.
	// Zero means 100; a negative number means none. One agent has some 100 series.
	MaxAgents int
}

// Collector accumulates an engine's reports for a Prometheus registry. Several engines
// can share one if their sessions have different names. It is safe for concurrent
// use.
type Collector struct {
	cfg Config // immutable after New
	families
	engine engineFamilies
	server requestFamilies

	mu     sync.RWMutex      // read-locked while a series is updated, so that no deleted series reappears
	worlds map[string]*world // the open worlds; guarded by mu
	own    struct {          // numbers of labels of their own; guarded by mu
		worlds, agents int
	}
}

// world is an open world.
type world struct {
	label  string            // immutable
	others *agent            // for ids that are not registered; immutable
	agents map[string]*agent // registered ones; guarded by the collector's mu
}

// agent is a registered agent: its labels, and its part of gauges that others may
// share.
type agent struct {
	world, label          string // immutable
	intents, observations atomic.Int64
	breaker               string // "" while it is closed; guarded by the collector's mu
}

// stranger is the agent of every report about a world that is not open.
var stranger = &agent{world: Other, label: Other}

var _ prom.Collector = (*Collector)(nil)

// New returns an empty collector.
func New(cfg Config) *Collector {
	if cfg.MaxWorlds == 0 {
		cfg.MaxWorlds = 20
	}
	if cfg.MaxAgents == 0 {
		cfg.MaxAgents = 100
	}
	return &Collector{cfg: cfg, families: newFamilies(), engine: newEngineFamilies(), server: newRequestFamilies(), worlds: map[string]*world{}}
}

// Metrics returns the collector as the value of [sajou.Config].Metrics.
func (c *Collector) Metrics() sajou.Metrics {
	return sajou.Metrics{
		Log: c, Folds: c, Snapshots: c, Sinks: c, Director: c,
		Agents: agentslive.AgentMetrics{Worlds: c, Intents: c, Observations: c, Generations: c},
	}
}

// Describe sends the descriptors of all metrics.
func (c *Collector) Describe(ch chan<- *prom.Desc) {
	c.each(func(m prom.Collector) { m.Describe(ch) })
}

// Collect sends all series.
func (c *Collector) Collect(ch chan<- prom.Metric) {
	c.each(func(m prom.Collector) { m.Collect(ch) })
}

func (c *Collector) each(f func(prom.Collector)) {
	for _, m := range c.engine.all {
		f(m)
	}
	for _, m := range c.server.all() {
		f(m)
	}
	for _, list := range [][]family{c.ofWorlds, c.ofAgents} {
		for _, m := range list {
			f(m)
		}
	}
}

// WorldOpened gives a world its label.
func (c *Collector) WorldOpened(name string) {
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

// WorldClosed deletes the series of a world and of its agents.
func (c *Collector) WorldClosed(name string) {
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

// fit reports whether a name can be a label of its own: it is valid, and distinct
// from the shared one.
func fit(name string) bool { return name != Other && name != "" && utf8.ValidString(name) }

// AgentJoined gives an agent its label.
func (c *Collector) AgentJoined(world, id string) {
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

// AgentLeft deletes the series of an agent.
func (c *Collector) AgentLeft(world, id string) {
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

// leave removes an agent's part of the gauges and its own series. The caller holds mu.
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

// find returns an agent, and whether it is registered. An agent that is not is shared:
// its state must not be changed. The caller holds mu, at least for reading.
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

// WorldReached sets a world's global_seq. Worlds that share a label export none, since a
// sum of numbers means nothing.
func (c *Collector) WorldReached(world string, globalSeq uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if w, ok := c.worlds[world]; ok && w.label != Other {
		c.globalSeq.WithLabelValues(w.label).Set(float64(globalSeq))
	}
}

// IntentDecided counts a request, and observes its duration and that of its stages.
func (c *Collector) IntentDecided(_ context.Context, d agentslive.DecidedIntent) {
	code, took := d.Code, d.Took
	if _, ok := code.Failure(); !ok && code != "" {
		code = Other
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(d.World, d.Agent)
	c.intents.WithLabelValues(a.world, a.label, d.Status.String(), string(code)).Inc()
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

// waiting adds the change since the last report to a gauge, since others may share it.
func (c *Collector) waiting(gauge *prom.GaugeVec, a *agent, last *atomic.Int64, n int) {
	gauge.WithLabelValues(a.world, a.label).Add(float64(int64(n) - last.Swap(int64(n))))
}

// Delivered counts an observation that was delivered, and observes its delay.
func (c *Collector) Delivered(world, id string, after time.Duration) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.observations.WithLabelValues(a.world, a.label, "delivered").Inc()
	c.delay.WithLabelValues(a.world, a.label).Observe(after.Seconds())
}

// Undelivered counts observations that were not delivered.
func (c *Collector) Undelivered(world, id string, fate agentslive.DropReason, n int) {
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
func (c *Collector) Cancelled(world, id string, why agentslive.CancelKind) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.cancellations.WithLabelValues(a.world, a.label, why.String()).Inc()
}

// Halted observes the time from a cancellation to the end of its generation.
func (c *Collector) Halted(world, id string, after time.Duration) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(world, id)
	c.halt.WithLabelValues(a.world, a.label).Observe(after.Seconds())
}

// StreamEnded counts a generation, its time and its tokens.
func (c *Collector) StreamEnded(_ context.Context, s agentslive.EndedStream) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, _ := c.find(s.World, s.Agent)
	c.generations.WithLabelValues(a.world, a.label, s.End.String()).Inc()
	c.generationDuration.WithLabelValues(a.world).Observe(s.Took.Seconds())
	c.tokens.WithLabelValues(a.world, a.label).Add(float64(max(s.Tokens, 0)))
}

// BreakerChanged counts a change of an agent's circuit breaker.
func (c *Collector) BreakerChanged(world, id string, to flow.BreakerState) {
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
	if to == flow.BreakerClosed {
		state = ""
	}
	c.changed(a, state)
}

var breakerStates = map[flow.BreakerState]string{
	flow.BreakerClosed:   "closed",
	flow.BreakerIsOpen:   "open",
	flow.BreakerHalfOpen: "half_open",
}

// changed updates the gauges of breakers that are not closed; state is "" for a closed
// one. The caller holds mu.
func (c *Collector) changed(a *agent, state string) {
	if a.breaker != "" {
		c.breakers.WithLabelValues(a.world, a.label, a.breaker).Dec()
	}
	if a.breaker = state; state != "" {
		c.breakers.WithLabelValues(a.world, a.label, state).Inc()
	}
}

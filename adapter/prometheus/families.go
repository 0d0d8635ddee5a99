package prometheus

import prom "github.com/prometheus/client_golang/prometheus"

// latencies are the bounds of buckets, in seconds. They are denser around the goals,
// 20 ms and 100 ms, which are bounds themselves: so the share of values that meet a
// goal is exact.
var latencies = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .015, .02, .03, .05, .075, .1, .15, .25, .5, 1, 2.5,
}

// generations are the bounds of buckets for the durations of generations, in seconds.
var generations = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120}

// families are all metrics; immutable after newFamilies.
type families struct {
	globalSeq, agents                   *prom.GaugeVec
	stageDuration, generationDuration   *prom.HistogramVec
	intents                             *prom.CounterVec
	intentDuration, delay, halt         *prom.HistogramVec
	intentsWaiting, observationsWaiting *prom.GaugeVec
	observations                        *prom.CounterVec
	cancellations, generations, tokens  *prom.CounterVec
	breakerChanges                      *prom.CounterVec
	breakers                            *prom.GaugeVec

	ofWorlds []family // with the label world, and not agent
	ofAgents []family // with the labels world and agent, and maybe others
}

// family is one metric with all its series.
type family interface {
	prom.Collector
	DeletePartialMatch(labels prom.Labels) int
}

func newFamilies() families {
	var f families
	world := func(labels ...string) []string { return append([]string{"world"}, labels...) }
	agent := func(labels ...string) []string { return append([]string{"world", "agent"}, labels...) }
	f.globalSeq = gauge("world_global_seq", "Number of the newest durable effect of the world.", world())
	f.agents = gauge("agents", "Registered agents.", world())
	f.stageDuration = histogram("intent_stage_duration_seconds",
		"Time that requests of agents spent in a stage: wait for the turn, decide, apply, sync.", latencies, world("stage"))
	f.generationDuration = histogram("generation_duration_seconds",
		"Time that generations took, however they ended.", generations, world())
	f.ofWorlds = []family{f.globalSeq, f.agents, f.stageDuration, f.generationDuration}

	f.intents = counter("intents_total", "Requests of agents that were answered, by outcome and code of the refusal.", agent("outcome", "code"))
	f.intentDuration = histogram("intent_duration_seconds", "Time from a request to its durable outcome.", latencies, agent())
	f.intentsWaiting = gauge("intents_waiting", "Requests that wait for their turn.", agent())
	f.observations = counter("observations_total", "Observations by fate.", agent("fate"))
	f.delay = histogram("observation_delay_seconds",
		"Time from an effect to the observation of it, without the delay of a latency model.", latencies, agent())
	f.observationsWaiting = gauge("observations_waiting", "Observations that wait to be taken.", agent())
	f.cancellations = counter("cancellations_total", "Cancelled generations by reason.", agent("reason"))
	f.halt = histogram("cancellation_halt_seconds", "Time from a cancellation to the halt of the generation.", latencies, agent())
	f.generations = counter("generations_total", "Generations by how they ended.", agent("end"))
	f.tokens = counter("generation_tokens_total", "Tokens that generations brought.", agent())
	f.breakerChanges = counter("breaker_changes_total", "Changes of circuit breakers by the state they went to.", agent("state"))
	f.breakers = gauge("breakers", "Circuit breakers that are not closed, by state.", agent("state"))
	f.ofAgents = []family{
		f.intents, f.intentDuration, f.intentsWaiting, f.observations, f.delay, f.observationsWaiting,
		f.cancellations, f.halt, f.generations, f.tokens, f.breakerChanges, f.breakers,
	}
	return f
}

const namespace = "sajou"

func counter(name, help string, labels []string) *prom.CounterVec {
	return prom.NewCounterVec(prom.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauge(name, help string, labels []string) *prom.GaugeVec {
	return prom.NewGaugeVec(prom.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels []string) *prom.HistogramVec {
	return prom.NewHistogramVec(prom.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// forget deletes the series that have these labels.
func (f *families) forget(labels prom.Labels, lists ...[]family) {
	for _, list := range lists {
		for _, m := range list {
			m.DeletePartialMatch(labels)
		}
	}
}

package prometheus

import (
	"sync/atomic"

	prom "github.com/prometheus/client_golang/prometheus"
)

// watched are the metrics of a server that are read when they are asked for.
type watched struct {
	used, bound, events *prom.Desc
	source              atomic.Pointer[watchedSource] // nil before there is a server
}

// watchedSource is where the values come from.
type watchedSource struct {
	used, bounds func() map[string]int64
	events       func() map[string]uint64
}

func newWatched() *watched {
	desc := func(name, help, label string) *prom.Desc {
		return prom.NewDesc(prom.BuildFQName(namespace, "", name), help, []string{label}, nil)
	}
	return &watched{
		used:   desc("limit_in_use", "What all callers use of a limit of the server.", "limit"),
		bound:  desc("limit_bound", "What all callers together may use of a limit of the server.", "limit"),
		events: desc("security_events_total", "Refusals and quarantines by kind.", "kind"),
	}
}

// Watch takes the functions that return what the callers of a server use of each limit, its
// bounds, and the number of its security events by kind. Those of a later server replace
// them.
func (c *Collector) Watch(used, bounds func() map[string]int64, events func() map[string]uint64) {
	c.server.watched.source.Store(&watchedSource{used, bounds, events})
}

func (w *watched) Describe(ch chan<- *prom.Desc) {
	for _, d := range []*prom.Desc{w.used, w.bound, w.events} {
		ch <- d
	}
}

func (w *watched) Collect(ch chan<- prom.Metric) {
	s := w.source.Load()
	if s == nil {
		return
	}
	for name, n := range s.used() {
		ch <- prom.MustNewConstMetric(w.used, prom.GaugeValue, float64(n), name)
	}
	for name, n := range s.bounds() {
		ch <- prom.MustNewConstMetric(w.bound, prom.GaugeValue, float64(n), name)
	}
	for kind, n := range s.events() {
		ch <- prom.MustNewConstMetric(w.events, prom.CounterValue, float64(n), kind)
	}
}

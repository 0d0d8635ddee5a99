package prometheus

import (
	"strconv"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
)

// requestFamilies are the metrics of a server; immutable after newRequestFamilies. The
// label route is the pattern of a route, never a path that a client chose.
type requestFamilies struct {
	requests *prom.CounterVec
	duration *prom.HistogramVec
	streams  *prom.GaugeVec

	traces        prom.Gauge
	tracesWaiting prom.Gauge
	spoolBytes    prom.Gauge
	spoolBound    prom.Gauge

	watched *watched
}

func newRequestFamilies() requestFamilies {
	return requestFamilies{
		requests: counter("http_requests_total", "Requests by route and status.", []string{"route", "status"}),
		duration: histogram("http_request_duration_seconds", "Time from the header of a request to the end of its answer, without streams.", latencies, []string{"route"}),
		streams:  gauge("http_streams", "Open streams by route.", []string{"route"}),

		traces:        single("spool_traces", "Traces of OpenTelemetry in the spool."),
		tracesWaiting: single("spool_traces_waiting", "Traces in the spool with spans that are not recorded."),
		spoolBytes:    single("spool_bytes", "Bytes that count against the bound of the spool."),
		spoolBound:    single("spool_bound_bytes", "The bound of the spool."),

		watched: newWatched(),
	}
}

func (f *requestFamilies) all() []prom.Collector {
	return []prom.Collector{f.requests, f.duration, f.streams, f.traces, f.tracesWaiting, f.spoolBytes, f.spoolBound, f.watched}
}

// single returns a gauge without labels.
func single(name, help string) prom.Gauge {
	return prom.NewGauge(prom.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

// SpoolChanged sets what the spool of a server holds, and its bound.
func (c *Collector) SpoolChanged(traces, waiting int, bytes, bound int64) {
	c.server.traces.Set(float64(traces))
	c.server.tracesWaiting.Set(float64(waiting))
	c.server.spoolBytes.Set(float64(bytes))
	c.server.spoolBound.Set(float64(bound))
}

// RequestDone counts a request of a server that is not a stream.
func (c *Collector) RequestDone(pattern string, status int, took time.Duration) {
	name := routeLabel(pattern)
	c.server.requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
	c.server.duration.WithLabelValues(name).Observe(took.Seconds())
}

// StreamOpened counts a stream of a server that has begun.
func (c *Collector) StreamOpened(pattern string) {
	c.server.streams.WithLabelValues(routeLabel(pattern)).Inc()
}

// StreamClosed counts a stream of a server that has ended.
func (c *Collector) StreamClosed(pattern string, status int) {
	name := routeLabel(pattern)
	c.server.streams.WithLabelValues(name).Dec()
	c.server.requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
}

// routeLabel returns the label of a pattern, "METHOD PATH".
func routeLabel(pattern string) string {
	if pattern == "" {
		return Other
	}
	return pattern
}

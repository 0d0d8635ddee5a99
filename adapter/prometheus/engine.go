package prometheus

import (
	"context"
	"errors"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"

	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// engineFamilies are the metrics of the engine; immutable after newEngineFamilies. None
// has a label whose values a client of the program can choose.
type engineFamilies struct {
	rounds                  *prom.CounterVec
	batches, entries, bytes prom.Counter
	round                   prom.Histogram
	sync                    *prom.HistogramVec
	failed                  prom.Gauge

	loading             prom.Histogram
	folded, foldsFailed prom.Counter
	fold, behind        prom.Histogram
	snapshots           *prom.CounterVec
	snapshotBytes       prom.Counter
	snapshotStore       prom.Histogram
	sinks               *prom.GaugeVec
	sinkCall            *prom.HistogramVec
	sinksDetached       *prom.CounterVec
	directorCall        *prom.HistogramVec
	judgeCalls          *prom.CounterVec
	judgeCall           prom.Histogram
	questionsGivenUp    prom.Counter

	all []prom.Collector
}

// behinds are the bounds of buckets for numbers of entries.
var behinds = []float64{0, 1, 10, 100, 1000, 10_000, 100_000}

func newEngineFamilies() engineFamilies {
	var f engineFamilies
	f.rounds = added(&f, counter("log_rounds_total", "Rounds of appends by outcome.", []string{"outcome"}))
	f.batches = added(&f, sum("log_batches_total", "Batches that became durable."))
	f.entries = added(&f, sum("log_entries_total", "Entries that became durable."))
	f.bytes = added(&f, sum("log_bytes_total", "Bytes of sealed batches that became durable."))
	f.round = added(&f, distribution("log_round_duration_seconds", "Time from the write of a round to its durability.", latencies))
	f.sync = added(&f, histogram("log_sync_duration_seconds", "Time of syncs by the role of the file.", latencies, []string{"file"}))
	f.failed = added(&f, prom.NewGauge(prom.GaugeOpts{Namespace: namespace, Name: "log_failed", Help: "1 once a write has failed and the log is read-only."}))

	f.loading = added(&f, distribution("fold_load_duration_seconds", "Time that making the state of a session took.", latencies))
	f.folded = added(&f, sum("folded_entries_total", "Entries that were folded into the states of running sessions."))
	f.fold = added(&f, distribution("fold_duration_seconds", "Time that one step of folding took.", latencies))
	f.behind = added(&f, distribution("fold_behind_entries", "Entries that were appended and not folded yet, after a step of folding.", behinds))
	f.foldsFailed = added(&f, sum("folds_failed_total", "Sessions whose state refused an entry."))

	f.snapshots = added(&f, counter("snapshots_total", "Snapshots by outcome.", []string{"outcome"}))
	f.snapshotBytes = added(&f, sum("snapshot_bytes_total", "Bytes of stored snapshots, before compression."))
	f.snapshotStore = added(&f, distribution("snapshot_store_duration_seconds", "Time that storing a snapshot took.", latencies))

	f.sinks = added(&f, gauge("sinks", "Attached sinks by type.", []string{"sink"}))
	f.sinkCall = added(&f, histogram("sink_call_duration_seconds", "Time of calls of sinks by type and method.", latencies, []string{"sink", "call"}))
	f.sinksDetached = added(&f, counter("sinks_detached_total", "Detached sinks by type and reason.", []string{"sink", "reason"}))

	f.directorCall = added(&f, histogram("director_call_duration_seconds", "Time of calls of directors by call and outcome.", generations, []string{"call", "outcome"}))
	f.judgeCalls = added(&f, counter("judge_calls_total", "Calls of judges by outcome.", []string{"outcome"}))
	f.judgeCall = added(&f, distribution("judge_call_duration_seconds", "Time of calls of judges.", generations))
	f.questionsGivenUp = added(&f, sum("questions_given_up_total", "Questions that were recorded as unclear without an answer."))
	return f
}

// added adds a metric to the list of all and returns it.
func added[M prom.Collector](f *engineFamilies, m M) M {
	f.all = append(f.all, m)
	return m
}

func sum(name, help string) prom.Counter {
	return prom.NewCounter(prom.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func distribution(name, help string, buckets []float64) prom.Histogram {
	return prom.NewHistogram(prom.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
}

// Committed counts a round and what it made durable.
func (c *Collector) Committed(r eventlog.CommittedRound) {
	if r.Err != nil {
		c.engine.rounds.WithLabelValues("failed").Inc()
		return
	}
	c.engine.rounds.WithLabelValues("durable").Inc()
	c.engine.batches.Add(float64(r.Batches))
	c.engine.entries.Add(float64(r.Entries))
	c.engine.bytes.Add(float64(r.Bytes))
	c.engine.round.Observe(r.Took.Seconds())
}

// FileSynced observes the duration of a sync. A failed one ends the writing of the log,
// which [Collector.LogFailed] reports.
func (c *Collector) FileSynced(role string, took time.Duration, err error) {
	if err == nil {
		c.engine.sync.WithLabelValues(role).Observe(took.Seconds())
	}
}

// LogFailed sets sajou_log_failed.
func (c *Collector) LogFailed(error) { c.engine.failed.Set(1) }

// FoldLoaded observes the time of making the state of a session.
func (c *Collector) FoldLoaded(_ string, _ eventlog.Seq, took time.Duration) {
	c.engine.loading.Observe(took.Seconds())
}

// Folded counts folded entries, and observes the time and how far the fold is behind.
func (c *Collector) Folded(_ string, entries, behind int, took time.Duration) {
	c.engine.folded.Add(float64(entries))
	c.engine.fold.Observe(took.Seconds())
	c.engine.behind.Observe(float64(behind))
}

// FoldFailed counts a session whose state refused an entry.
func (c *Collector) FoldFailed(string, error) { c.engine.foldsFailed.Inc() }

// ImageStored counts a snapshot, and observes the time of storing it.
func (c *Collector) ImageStored(_ string, bytes int, took time.Duration, err error) {
	if err != nil {
		c.engine.snapshots.WithLabelValues("failed").Inc()
		return
	}
	c.engine.snapshots.WithLabelValues("stored").Inc()
	c.engine.snapshotBytes.Add(float64(bytes))
	c.engine.snapshotStore.Observe(took.Seconds())
}

// ImageDropped counts a snapshot that was dropped.
func (c *Collector) ImageDropped(string) { c.engine.snapshots.WithLabelValues("dropped").Inc() }

// SinkAttached counts an attached sink.
func (c *Collector) SinkAttached(_, sink string) { c.engine.sinks.WithLabelValues(sink).Inc() }

// SinkCalled observes the time of a sink's call.
func (c *Collector) SinkCalled(_, sink, call string, took time.Duration) {
	c.engine.sinkCall.WithLabelValues(sink, call).Observe(took.Seconds())
}

// SinkDetached counts the end of an attachment, by its reason.
func (c *Collector) SinkDetached(_, sink string, err error) {
	reason := "error"
	switch {
	case err == nil:
		reason = "asked"
	case errors.Is(err, stagelive.ErrSinkPanic):
		reason = "panic"
	case errors.Is(err, stagelive.ErrSinkStuck):
		reason = "stuck"
	case errors.Is(err, eventlog.ErrDeleted):
		reason = "deleted"
	}
	c.engine.sinks.WithLabelValues(sink).Dec()
	c.engine.sinksDetached.WithLabelValues(sink, reason).Inc()
}

// DirectorCalled observes the time of a call of a director.
func (c *Collector) DirectorCalled(_ context.Context, _, call string, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	c.engine.directorCall.WithLabelValues(call, outcome).Observe(took.Seconds())
}

// JudgeCalled counts a call of a judge, and observes its time.
func (c *Collector) JudgeCalled(_ context.Context, j directorlive.JudgeCall) {
	c.engine.judgeCalls.WithLabelValues(j.Outcome.String()).Inc()
	if j.Outcome != directorlive.JudgeNotCalled {
		c.engine.judgeCall.Observe(j.Took.Seconds())
	}
}

// QuestionsGivenUp counts questions without an answer.
func (c *Collector) QuestionsGivenUp(_ string, questions int) {
	c.engine.questionsGivenUp.Add(float64(questions))
}

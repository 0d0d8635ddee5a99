// Package otel exports the measurements of a sajou engine to OpenTelemetry: as metrics,
// and as spans of intents, generations, and calls of directors and judges. It uses the
// API of OpenTelemetry alone; the program brings the SDK and its exporters.
//
//	telemetry, err := otel.New(otel.Config{})
//	eng, err := sajou.Open(dir, sajou.Config{Metrics: telemetry.Metrics()})
//
// # Metrics
//
// Durations are histograms in seconds.
//
//	sajou.log.batches                   counter    {batch}, durable
//	sajou.log.entries                   counter    {entry}, durable
//	sajou.log.size                      counter    By, of durable batches
//	sajou.log.round.duration            histogram  s; outcome: durable, failed
//	sajou.log.sync.duration             histogram  s; file: wal, heads, table, manifest, other; outcome: ok, error
//	sajou.log.failures                  counter    {failure}; the log is read-only after one
//	sajou.fold.entries                  counter    {entry}
//	sajou.fold.duration                 histogram  s
//	sajou.fold.load.duration            histogram  s
//	sajou.fold.failures                 counter    {failure}
//	sajou.snapshot.duration             histogram  s; outcome: ok, error
//	sajou.snapshot.dropped              counter    {snapshot}
//	sajou.sink.attached                 updowncounter  {sink}; sink
//	sajou.sink.call.duration            histogram  s; sink, call
//	sajou.sink.detached                 counter    {sink}; sink, outcome: ok, error
//	sajou.director.call.duration        histogram  s; call, outcome: ok, error
//	sajou.judge.call.duration           histogram  s; outcome: answered, failed, late, not_called
//	sajou.judge.given_up                counter    {question}
//	sajou.agents                        updowncounter  {agent}
//	sajou.intent.duration               histogram  s; outcome, code
//	sajou.intent.stage.duration         histogram  s; stage: wait, decide, apply, sync
//	sajou.observation.delay             histogram  s
//	sajou.observation.undelivered       counter    {observation}; reason
//	sajou.generation.duration           histogram  s; end
//	sajou.generation.tokens             counter    {token}
//	sajou.generation.cancelled          counter    {generation}; reason
//	sajou.generation.halt               histogram  s
//	sajou.breaker.changes               counter    {change}; state
//
// No metric has an attribute whose values a client of the program can choose: neither
// sessions nor agents are told apart. Spans do have them.
//
// # Spans
//
// A span is a child of the span in the context of the call that it is about. It is made
// when its work has ended, with the times of its beginning and end.
//
//	sajou.intent      sajou.world, sajou.agent, sajou.req_id, sajou.kind, sajou.outcome, sajou.code;
//	                  an event for the end of each stage
//	sajou.generation  sajou.world, sajou.agent, sajou.req_id, sajou.generator, sajou.end, sajou.tokens
//	sajou.director    sajou.session, sajou.call
//	sajou.judge       sajou.session, sajou.model, sajou.turn, sajou.try, sajou.outcome
//
// [Telemetry.BeginRequest] makes the spans of requests to a server, named after their
// routes: http.request.method, http.route, http.response.status_code, sajou.session.
package otel

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// scope names the instrumentation.
const scope = "github.com/sajou-dev/sajou-go/adapter/otel"

// Config holds the providers of a [Telemetry]. The zero value uses the global ones.
type Config struct {
	MeterProvider  metric.MeterProvider // nil means that of [otel.GetMeterProvider]
	TracerProvider trace.TracerProvider // nil means that of [otel.GetTracerProvider]

	// Now is the clock of the ends of spans, that of [sajou.Config].Now. Nil means
	// [time.Now].
	Now func() time.Time
}

// Telemetry passes an engine's measurements to OpenTelemetry. It is safe for concurrent
// use, and several engines can share one.
type Telemetry struct {
	tracer trace.Tracer
	now    func() time.Time

	batches, entries, bytes, logFailures     metric.Int64Counter
	round, sync                              metric.Float64Histogram
	folded, foldFailures                     metric.Int64Counter
	fold, load, image                        metric.Float64Histogram
	imagesDropped                            metric.Int64Counter
	sinks, members                           metric.Int64UpDownCounter
	sinkCall, directorCall, judgeCall        metric.Float64Histogram
	sinksDetached, givenUp                   metric.Int64Counter
	intent, stage, delay, generation, halted metric.Float64Histogram
	undelivered, tokens, cancelled, breakers metric.Int64Counter

	worlds members // registered agents, so that each is counted once
}

// New creates the instruments. The error is that of the meter provider.
func New(cfg Config) (*Telemetry, error) {
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	t := &Telemetry{tracer: cfg.TracerProvider.Tracer(scope), now: cfg.Now, worlds: members{byWorld: map[string]map[string]bool{}}}
	m := cfg.MeterProvider.Meter(scope)
	var errs []error
	count := func(name, unit, help string) metric.Int64Counter {
		c, err := m.Int64Counter("sajou."+name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return c
	}
	number := func(name, unit, help string) metric.Int64UpDownCounter {
		c, err := m.Int64UpDownCounter("sajou."+name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return c
	}
	seconds := func(name, help string) metric.Float64Histogram {
		h, err := m.Float64Histogram("sajou."+name, metric.WithUnit("s"), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	t.batches = count("log.batches", "{batch}", "Batches that became durable.")
	t.entries = count("log.entries", "{entry}", "Entries that became durable.")
	t.bytes = count("log.size", "By", "Bytes of sealed batches that became durable.")
	t.round = seconds("log.round.duration", "Time from the write of a round to its durability.")
	t.sync = seconds("log.sync.duration", "Time of syncs by the role of the file.")
	t.logFailures = count("log.failures", "{failure}", "Logs that became read-only after a failed write.")
	t.folded = count("fold.entries", "{entry}", "Entries that were folded into the states of running sessions.")
	t.fold = seconds("fold.duration", "Time that one step of folding took.")
	t.load = seconds("fold.load.duration", "Time that making the state of a session took.")
	t.foldFailures = count("fold.failures", "{failure}", "Sessions whose state refused an entry.")
	t.image = seconds("snapshot.duration", "Time that storing a snapshot took.")
	t.imagesDropped = count("snapshot.dropped", "{snapshot}", "Snapshots that were dropped.")
	t.sinks = number("sink.attached", "{sink}", "Attached sinks by type.")
	t.sinkCall = seconds("sink.call.duration", "Time of calls of sinks by type and method.")
	t.sinksDetached = count("sink.detached", "{sink}", "Detached sinks by type and outcome.")
	t.directorCall = seconds("director.call.duration", "Time of calls of directors.")
	t.judgeCall = seconds("judge.call.duration", "Time of calls of judges.")
	t.givenUp = count("judge.given_up", "{question}", "Questions that were recorded as unclear without an answer.")
	t.members = number("agents", "{agent}", "Registered agents.")
	t.intent = seconds("intent.duration", "Time from a request to its durable outcome.")
	t.stage = seconds("intent.stage.duration", "Time that requests spent in a stage.")
	t.delay = seconds("observation.delay", "Time from an effect to the observation of it.")
	t.undelivered = count("observation.undelivered", "{observation}", "Observations that were not delivered as such.")
	t.generation = seconds("generation.duration", "Time that generations took.")
	t.tokens = count("generation.tokens", "{token}", "Tokens that generations brought.")
	t.cancelled = count("generation.cancelled", "{generation}", "Cancelled generations by reason.")
	t.halted = seconds("generation.halt", "Time from a cancellation to the halt of the generation.")
	t.breakers = count("breaker.changes", "{change}", "Changes of circuit breakers by the state they went to.")
	return t, errors.Join(errs...)
}

// bounds are the bounds of buckets, in seconds: from a cached write to a slow model.
var bounds = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60,
}

// Metrics returns the telemetry as the value of [sajou.Config].Metrics.
func (t *Telemetry) Metrics() sajou.Metrics {
	return sajou.Metrics{
		Log: t, Folds: t, Snapshots: t, Sinks: t, Director: t,
		Agents: agentslive.AgentMetrics{Worlds: t, Intents: t, Observations: t, Generations: t},
	}
}

// with returns the attributes of a measurement.
func with(list ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(list...))
}

func outcome(err error) attribute.KeyValue {
	if err != nil {
		return attribute.String("outcome", "error")
	}
	return attribute.String("outcome", "ok")
}

// span makes the span of work that has ended now and took this long.
func (t *Telemetry) span(ctx context.Context, name string, took time.Duration, end time.Time, list ...attribute.KeyValue) trace.Span {
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(end.Add(-took)), trace.WithAttributes(list...))
	return span
}

// Committed counts what a round made durable, and records its time.
func (t *Telemetry) Committed(r eventlog.CommittedRound) {
	ctx, how := context.Background(), "failed"
	if r.Err == nil {
		how = "durable"
		t.batches.Add(ctx, int64(r.Batches))
		t.entries.Add(ctx, int64(r.Entries))
		t.bytes.Add(ctx, int64(r.Bytes))
	}
	t.round.Record(ctx, r.Took.Seconds(), with(attribute.String("outcome", how)))
}

// FileSynced records the time of a sync.
func (t *Telemetry) FileSynced(role string, took time.Duration, err error) {
	t.sync.Record(context.Background(), took.Seconds(), with(attribute.String("file", role), outcome(err)))
}

// LogFailed counts a log that has failed.
func (t *Telemetry) LogFailed(error) { t.logFailures.Add(context.Background(), 1) }

// FoldLoaded records the time of making the state of a session.
func (t *Telemetry) FoldLoaded(_ string, _ eventlog.Seq, took time.Duration) {
	t.load.Record(context.Background(), took.Seconds())
}

// Folded counts folded entries, and records the time.
func (t *Telemetry) Folded(_ string, entries, _ int, took time.Duration) {
	t.folded.Add(context.Background(), int64(entries))
	t.fold.Record(context.Background(), took.Seconds())
}

// FoldFailed counts a session whose state refused an entry.
func (t *Telemetry) FoldFailed(string, error) { t.foldFailures.Add(context.Background(), 1) }

// ImageStored records the time of storing a snapshot.
func (t *Telemetry) ImageStored(_ string, _ int, took time.Duration, err error) {
	t.image.Record(context.Background(), took.Seconds(), with(outcome(err)))
}

// ImageDropped counts a snapshot that was dropped.
func (t *Telemetry) ImageDropped(string) { t.imagesDropped.Add(context.Background(), 1) }

// SinkAttached counts an attached sink.
func (t *Telemetry) SinkAttached(_, sink string) {
	t.sinks.Add(context.Background(), 1, with(attribute.String("sink", sink)))
}

// SinkCalled records the time of a sink's call.
func (t *Telemetry) SinkCalled(_, sink, call string, took time.Duration) {
	t.sinkCall.Record(context.Background(), took.Seconds(), with(attribute.String("sink", sink), attribute.String("call", call)))
}

// SinkDetached counts the end of an attachment.
func (t *Telemetry) SinkDetached(_, sink string, err error) {
	t.sinks.Add(context.Background(), -1, with(attribute.String("sink", sink)))
	t.sinksDetached.Add(context.Background(), 1, with(attribute.String("sink", sink), outcome(err)))
}

// DirectorCalled records the time of a call of a director, and its span.
func (t *Telemetry) DirectorCalled(ctx context.Context, session, call string, took time.Duration, err error) {
	t.directorCall.Record(ctx, took.Seconds(), with(attribute.String("call", call), outcome(err)))
	end := t.now()
	span := t.span(ctx, "sajou.director", took, end, attribute.String("sajou.session", session), attribute.String("sajou.call", call))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(end))
}

// JudgeCalled records the time of a call of a judge, and its span.
func (t *Telemetry) JudgeCalled(ctx context.Context, c directorlive.JudgeCall) {
	t.judgeCall.Record(ctx, c.Took.Seconds(), with(attribute.String("outcome", c.Outcome.String())))
	end := t.now()
	span := t.span(ctx, "sajou.judge", c.Took, end, attribute.String("sajou.session", c.Session), attribute.String("sajou.model", c.Model),
		attribute.Int("sajou.turn", c.Turn), attribute.Int("sajou.try", c.Try), attribute.String("sajou.outcome", c.Outcome.String()))
	if c.Outcome != directorlive.JudgeAnswered {
		span.SetStatus(codes.Error, c.Outcome.String())
	}
	span.End(trace.WithTimestamp(end))
}

// QuestionsGivenUp counts questions without an answer.
func (t *Telemetry) QuestionsGivenUp(_ string, questions int) {
	t.givenUp.Add(context.Background(), int64(questions))
}

// IntentDecided records the time of a request and of its stages, and its span.
func (t *Telemetry) IntentDecided(ctx context.Context, d agentslive.DecidedIntent) {
	code := d.Code
	if _, known := code.Failure(); !known && code != "" {
		code = "other" // a code of the program's own
	}
	t.intent.Record(ctx, d.Took.Total.Seconds(), with(attribute.String("outcome", d.Status.String()), attribute.String("code", string(code))))
	end := t.now()
	span := t.span(ctx, "sajou.intent", d.Took.Total, end, attribute.String("sajou.world", d.World), attribute.String("sajou.agent", d.Agent),
		attribute.String("sajou.req_id", d.ReqID), attribute.String("sajou.kind", d.Kind),
		attribute.String("sajou.outcome", d.Status.String()), attribute.String("sajou.code", string(d.Code)))
	at := end.Add(-d.Took.Total)
	for _, s := range []struct {
		name string
		took time.Duration
	}{{"wait", d.Took.Wait}, {"decide", d.Took.Decide}, {"apply", d.Took.Apply}, {"sync", d.Took.Sync}} {
		if s.took <= 0 {
			continue
		}
		t.stage.Record(ctx, s.took.Seconds(), with(attribute.String("stage", s.name)))
		at = at.Add(s.took)
		span.AddEvent(s.name, trace.WithTimestamp(at))
	}
	if d.Status == agents.Rejected {
		span.SetStatus(codes.Error, string(d.Code))
	}
	span.End(trace.WithTimestamp(end))
}

// IntentsWaiting does nothing: numbers of one agent are not exported.
func (t *Telemetry) IntentsWaiting(string, string, int) {}

// Delivered records the delay of an observation.
func (t *Telemetry) Delivered(_, _ string, after time.Duration) {
	t.delay.Record(context.Background(), after.Seconds())
}

// Undelivered counts observations that were not delivered as such.
func (t *Telemetry) Undelivered(_, _ string, reason agentslive.DropReason, n int) {
	t.undelivered.Add(context.Background(), int64(max(n, 0)), with(attribute.String("reason", reason.String())))
}

// ObservationsWaiting does nothing: numbers of one agent are not exported.
func (t *Telemetry) ObservationsWaiting(string, string, int) {}

// Cancelled counts a cancellation.
func (t *Telemetry) Cancelled(_, _ string, why agentslive.CancelKind) {
	t.cancelled.Add(context.Background(), 1, with(attribute.String("reason", why.String())))
}

// Halted records the time from a cancellation to the end of its generation.
func (t *Telemetry) Halted(_, _ string, after time.Duration) {
	t.halted.Record(context.Background(), after.Seconds())
}

// StreamEnded records the time and the tokens of a generation, and its span.
func (t *Telemetry) StreamEnded(ctx context.Context, s agentslive.EndedStream) {
	t.generation.Record(ctx, s.Took.Seconds(), with(attribute.String("end", s.End.String())))
	t.tokens.Add(ctx, max(s.Tokens, 0))
	end := t.now()
	span := t.span(ctx, "sajou.generation", s.Took, end, attribute.String("sajou.world", s.World), attribute.String("sajou.agent", s.Agent),
		attribute.String("sajou.req_id", s.ReqID), attribute.String("sajou.generator", s.Generator),
		attribute.String("sajou.end", s.End.String()), attribute.Int64("sajou.tokens", s.Tokens))
	if s.End == agentslive.StreamFailed || s.End == agentslive.StreamCancelled {
		span.SetStatus(codes.Error, s.End.String())
	}
	span.End(trace.WithTimestamp(end))
}

// BreakerChanged counts a change of a circuit breaker.
func (t *Telemetry) BreakerChanged(_, _ string, to flow.BreakerState) {
	t.breakers.Add(context.Background(), 1, with(attribute.String("state", strings.ToLower(string(to)))))
}

// WorldReached does nothing: numbers of one world are not exported.
func (t *Telemetry) WorldReached(string, uint64) {}

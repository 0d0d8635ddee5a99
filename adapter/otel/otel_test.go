package otel_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/otel"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// end is when the work of every test ends.
var end = time.Unix(1_700_000_000, 0)

func telemetry(t *testing.T) (*otel.Telemetry, *sdkmetric.ManualReader, *tracetest.SpanRecorder) {
	t.Helper()
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	tel, err := otel.New(otel.Config{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		Now:            func() time.Time { return end },
	})
	require.NoError(t, err)
	return tel, reader, spans
}

// lines returns every series as a line: name, attributes, and the sum, or the count and
// the sum of a histogram.
func lines(t *testing.T, reader sdkmetric.Reader) (all []string) {
	t.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					all = append(all, fmt.Sprint(m.Name, p.Attributes.ToSlice(), " ", p.Value, m.Unit))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					all = append(all, fmt.Sprint(m.Name, p.Attributes.ToSlice(), " ", p.Count, " ", p.Sum, m.Unit))
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Every report reaches its instrument. Names of sessions and agents, and codes of the
// program's own, are no attributes.
func TestReports(t *testing.T) {
	tel, reader, _ := telemetry(t)
	ctx, errBroken := t.Context(), errors.New("broken")
	tel.Committed(eventlog.CommittedRound{Session: "dungeon", Batches: 3, Entries: 7, Bytes: 2100, Took: time.Second})
	tel.Committed(eventlog.CommittedRound{Session: "cellar", Batches: 9, Entries: 9, Bytes: 900, Took: time.Second, Err: errBroken})
	tel.FileSynced("wal", time.Second, nil)
	tel.LogFailed(errBroken)
	tel.FoldLoaded("dungeon", 811, time.Second)
	tel.Folded("dungeon", 7, 12, time.Second)
	tel.FoldFailed("cellar", errBroken)
	tel.ImageStored("dungeon", 4096, time.Second, nil)
	tel.ImageDropped("cellar")
	tel.SinkAttached("dungeon", "*main.wall")
	tel.SinkAttached("cellar", "*main.wall")
	tel.SinkCalled("dungeon", "*main.wall", "Frame", time.Second)
	tel.SinkDetached("dungeon", "*main.wall", errBroken)
	tel.DirectorCalled(ctx, "dungeon", "guide", time.Second, nil)
	tel.JudgeCalled(ctx, directorlive.JudgeCall{Outcome: directorlive.JudgeLate, Took: time.Second})
	tel.QuestionsGivenUp("dungeon", 2)
	tel.AgentJoined("dungeon", "early") // the world is not open yet
	tel.WorldOpened("dungeon")
	for _, id := range []string{"scout", "scout", "guard", "troll"} {
		tel.AgentJoined("dungeon", id)
	}
	tel.AgentLeft("dungeon", "troll")
	tel.AgentLeft("dungeon", "nobody")
	tel.IntentDecided(ctx, agentslive.DecidedIntent{Agent: "x", Status: agents.Rejected, Code: "MADE_UP", Took: agentslive.IntentTiming{Total: time.Second, Wait: time.Second}})
	tel.Delivered("dungeon", "scout", time.Second)
	tel.Undelivered("dungeon", "scout", agentslive.DeltaShed, 4)
	tel.Cancelled("dungeon", "scout", agentslive.CancelStale)
	tel.Halted("dungeon", "scout", time.Second)
	tel.StreamEnded(ctx, agentslive.EndedStream{Agent: "x", End: agentslive.StreamDone, Took: time.Second, Tokens: 41})
	tel.BreakerChanged("dungeon", "scout", flow.BreakerIsOpen)
	got := strings.Join(lines(t, reader), "\n")
	assert.Equal(t, strings.TrimSpace(want), got)
	tel.WorldClosed("dungeon")
	tel.WorldClosed("dungeon")
	assert.Contains(t, lines(t, reader), "sajou.agents[] 0{agent}")
}

const want = `
sajou.agents[] 2{agent}
sajou.breaker.changes[{"state":"open"}] 1{change}
sajou.director.call.duration[{"call":"guide"} {"outcome":"ok"}] 1 1s
sajou.fold.duration[] 1 1s
sajou.fold.entries[] 7{entry}
sajou.fold.failures[] 1{failure}
sajou.fold.load.duration[] 1 1s
sajou.generation.cancelled[{"reason":"stale"}] 1{generation}
sajou.generation.duration[{"end":"done"}] 1 1s
sajou.generation.halt[] 1 1s
sajou.generation.tokens[] 41{token}
sajou.intent.duration[{"code":"other"} {"outcome":"rejected"}] 1 1s
sajou.intent.stage.duration[{"stage":"wait"}] 1 1s
sajou.judge.call.duration[{"outcome":"late"}] 1 1s
sajou.judge.given_up[] 2{question}
sajou.log.batches[] 3{batch}
sajou.log.entries[] 7{entry}
sajou.log.failures[] 1{failure}
sajou.log.round.duration[{"outcome":"durable"}] 1 1s
sajou.log.round.duration[{"outcome":"failed"}] 1 1s
sajou.log.size[] 2100By
sajou.log.sync.duration[{"file":"wal"} {"outcome":"ok"}] 1 1s
sajou.observation.delay[] 1 1s
sajou.observation.undelivered[{"reason":"shed"}] 4{observation}
sajou.sink.attached[{"sink":"*main.wall"}] 1{sink}
sajou.sink.call.duration[{"call":"Frame"} {"sink":"*main.wall"}] 1 1s
sajou.sink.detached[{"outcome":"error"} {"sink":"*main.wall"}] 1{sink}
sajou.snapshot.dropped[] 1{snapshot}
sajou.snapshot.duration[{"outcome":"ok"}] 1 1s
`

// A Telemetry takes every report that an engine makes.
func TestMetricsComplete(t *testing.T) {
	tel, _, _ := telemetry(t)
	var empty func(v reflect.Value, path string)
	empty = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			switch f, name := v.Field(i), path+"."+v.Type().Field(i).Name; f.Kind() {
			case reflect.Struct:
				empty(f, name)
			default:
				assert.False(t, f.IsNil(), name)
			}
		}
	}
	empty(reflect.ValueOf(tel.Metrics()), "Metrics")
}

// The span of an intent is a child of its caller's, with the times of its stages.
func TestSpans(t *testing.T) {
	tel, _, spans := telemetry(t)
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Metrics: tel.Metrics()})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	ses, err := eng.Begin(t.Context(), "dungeon", session.TimeManual)
	require.NoError(t, err)
	scout := enginetest.Register(t, ses.Agents(), "scout", nil)
	tracer := sdktrace.NewTracerProvider().Tracer("caller")
	ctx, parent := tracer.Start(t.Context(), "request")
	_, err = scout.Submit(ctx, enginetest.Interact("door"))
	require.Error(t, err, "there is no door")
	parent.End()
	tel.IntentDecided(ctx, agentslive.DecidedIntent{
		World: "w", Agent: "a", ReqID: "r", Kind: "Move", Took: agentslive.IntentTiming{Total: 9 * time.Second, Wait: 2 * time.Second, Sync: 7 * time.Second},
	})
	ended := spans.Ended()
	require.Len(t, ended, 2)
	for _, s := range ended {
		assert.Equal(t, "sajou.intent", s.Name())
		assert.Equal(t, parent.SpanContext().SpanID(), s.Parent().SpanID())
	}
	s := ended[1]
	assert.Equal(t, end, s.EndTime())
	assert.Equal(t, end.Add(-9*time.Second), s.StartTime())
	require.Len(t, s.Events(), 2)
	assert.Equal(t, "wait", s.Events()[0].Name)
	assert.Equal(t, end.Add(-7*time.Second), s.Events()[0].Time)
	assert.Equal(t, end, s.Events()[1].Time)
}

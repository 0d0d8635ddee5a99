package prometheus_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/adapter/prometheus"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// dungeon makes every kind of report to a collector with two free labels of agents:
// the guard shares the label "other" with an agent that is not registered, and the
// troll gets the label of an agent that left.
func dungeon(ctx context.Context, m *prometheus.Collector) {
	const ms = time.Millisecond
	m.WorldOpened("dungeon")
	for _, id := range []string{"scout", "gone", "guard"} {
		m.AgentJoined("dungeon", id)
	}
	m.IntentDecided(ctx, agentslive.DecidedIntent{World: "dungeon", Agent: "gone", Status: agents.Accepted, Code: "", Took: agentslive.IntentTiming{}})
	m.BreakerChanged("dungeon", "gone", flow.BreakerIsOpen)
	m.AgentLeft("dungeon", "gone")
	m.AgentJoined("dungeon", "troll")

	m.WorldReached("dungeon", 811)
	m.WorldReached("dungeon", 812)
	m.IntentDecided(ctx, agentslive.DecidedIntent{World: "dungeon", Agent: "scout", Status: agents.Accepted, Took: agentslive.IntentTiming{
		Total: 12 * ms, Wait: ms, Decide: ms / 2, Apply: ms / 2, Sync: 10 * ms,
	}})
	m.IntentDecided(ctx, agentslive.DecidedIntent{World: "dungeon", Agent: "scout", Status: agents.Duplicate, Code: "", Took: agentslive.IntentTiming{Total: ms / 10, Wait: ms / 10}})
	m.IntentDecided(ctx, agentslive.DecidedIntent{World: "dungeon", Agent: "scout", Status: agents.Rejected, Code: agents.ErrStaleContext, Took: agentslive.IntentTiming{Total: 2 * ms, Wait: ms, Decide: ms}})
	m.IntentDecided(ctx, agentslive.DecidedIntent{World: "dungeon", Agent: "guard", Status: agents.Rejected, Code: "MADE_UP", Took: agentslive.IntentTiming{Total: ms}})
	m.IntentDecided(ctx, agentslive.DecidedIntent{World: "dungeon", Agent: "nobody", Status: agents.Rejected, Code: agents.ErrUnknownAgent, Took: agentslive.IntentTiming{Total: ms}})
	m.IntentsWaiting("dungeon", "scout", 3)
	m.IntentsWaiting("dungeon", "scout", 1)
	m.IntentsWaiting("dungeon", "nobody", 9)

	m.Delivered("dungeon", "scout", 20*ms)
	m.Delivered("dungeon", "scout", 21*ms)
	m.Undelivered("dungeon", "scout", agentslive.DeltaReplaced, 64)
	m.Undelivered("dungeon", "troll", agentslive.DeltaShed, 2)
	m.ObservationsWaiting("dungeon", "scout", 2)
	m.ObservationsWaiting("dungeon", "troll", 7)

	m.Cancelled("dungeon", "scout", agentslive.CancelStale)
	m.Halted("dungeon", "scout", 100*ms)
	m.StreamEnded(ctx, agentslive.EndedStream{World: "dungeon", Agent: "scout", End: agentslive.StreamCancelled, Took: 3 * time.Second, Tokens: 41})
	m.StreamEnded(ctx, agentslive.EndedStream{World: "dungeon", Agent: "scout", End: agentslive.StreamDone, Took: 4 * time.Second, Tokens: 59})
	m.BreakerChanged("dungeon", "scout", flow.BreakerIsOpen)
	m.BreakerChanged("dungeon", "scout", flow.BreakerHalfOpen)
	m.BreakerChanged("dungeon", "guard", flow.BreakerIsOpen)
	m.BreakerChanged("dungeon", "guard", flow.BreakerClosed)
}

var (
	errBroken = errors.New("broken")
	panicked  = &stagelive.SinkError{Err: stagelive.ErrSinkPanic}
	stuck     = &stagelive.SinkError{Err: stagelive.ErrSinkStuck}
)

// house makes every kind of report about the engine.
func house(ctx context.Context, m *prometheus.Collector) {
	const ms = time.Millisecond
	m.Committed(eventlog.CommittedRound{Session: "dungeon", Batches: 3, Entries: 7, Bytes: 2100, Took: 2 * ms})
	m.Committed(eventlog.CommittedRound{Session: "cellar", Batches: 1, Entries: 1, Bytes: 300, Took: 40 * ms})
	m.Committed(eventlog.CommittedRound{Session: "cellar", Batches: 9, Entries: 9, Bytes: 900, Took: ms, Err: errBroken})
	m.FileSynced("wal", 2*ms, nil)
	m.FileSynced("table", 30*ms, nil)
	m.FileSynced("wal", ms, errBroken)
	m.LogFailed(errBroken)

	m.FoldLoaded("dungeon", 811, 5*ms)
	m.Folded("dungeon", 7, 12, ms)
	m.FoldFailed("cellar", errBroken)

	m.ImageStored("dungeon", 4096, 10*ms, nil)
	m.ImageStored("cellar", 8192, ms, errBroken)
	m.ImageDropped("cellar")

	for range 4 {
		m.SinkAttached("dungeon", "*main.wall")
	}
	m.SinkCalled("dungeon", "*main.wall", "Frame", 3*ms)
	m.SinkDetached("dungeon", "*main.wall", nil)
	m.SinkDetached("dungeon", "*main.wall", panicked)
	m.SinkDetached("dungeon", "*main.wall", stuck)
	m.SinkAttached("dungeon", "*main.wall")
	m.SinkDetached("dungeon", "*main.wall", errBroken)
	m.SinkAttached("dungeon", "*main.wall")
	m.SinkDetached("dungeon", "*main.wall", &eventlog.DeletedError{})

	m.DirectorCalled(ctx, "dungeon", "guide", ms, nil)
	m.DirectorCalled(ctx, "dungeon", "respond", 700*ms, errBroken)
	m.JudgeCalled(ctx, directorlive.JudgeCall{Session: "dungeon", Outcome: directorlive.JudgeAnswered, Took: 400 * ms})
	m.JudgeCalled(ctx, directorlive.JudgeCall{Session: "dungeon", Outcome: directorlive.JudgeFailed, Took: 40 * ms})
	m.JudgeCalled(ctx, directorlive.JudgeCall{Session: "dungeon", Outcome: directorlive.JudgeLate, Took: 9 * time.Second})
	m.JudgeCalled(ctx, directorlive.JudgeCall{Session: "dungeon", Outcome: directorlive.JudgeNotCalled})
	m.QuestionsGivenUp("dungeon", 2)
}

// A collector takes every report that an engine makes.
func TestMetricsComplete(t *testing.T) {
	var empty func(v reflect.Value, path string)
	empty = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			switch f, name := v.Field(i), path+"."+v.Type().Field(i).Name; f.Kind() {
			case reflect.Struct:
				empty(f, name)
			default:
				if f.IsNil() {
					t.Errorf("%s is nil", name)
				}
			}
		}
	}
	empty(reflect.ValueOf(prometheus.New(prometheus.Config{}).Metrics()), "Metrics")
}

// A registry gathers exactly the reports, and the metrics pass Prometheus's linter.
func TestGathered(t *testing.T) {
	c := prometheus.New(prometheus.Config{MaxAgents: 3})
	c.WorldOpened("cellar")
	c.AgentJoined("cellar", "rat") // the third with a label of its own
	dungeon(t.Context(), c)
	house(t.Context(), c)
	c.RequestDone("POST /api/signal", 200, 2*time.Millisecond)
	c.RequestDone("POST /api/signal", 503, 20*time.Millisecond)
	c.RequestDone("", 404, time.Millisecond)
	c.StreamOpened("GET /__signals__/stream")
	c.StreamOpened("GET /__signals__/stream")
	c.StreamClosed("GET /__signals__/stream", 200)
	c.SpoolChanged(3, 2, 4096, 8192)
	c.Watch(
		func() map[string]int64 { return map[string]int64{"streams": 3, "memory": 4096} },
		func() map[string]int64 { return map[string]int64{"streams": 8192} },
		func() map[string]uint64 { return map[string]uint64{"AUTH_FAILED": 7} },
	)

	registry := prom.NewPedanticRegistry()
	registry.MustRegister(c)
	const golden = "testdata/dungeon.txt"
	if *update {
		families, err := registry.Gather()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(golden, []byte(text(t, families)), 0o644))
	}
	want, err := os.Open(golden)
	require.NoError(t, err)
	defer want.Close()
	assert.NoError(t, testutil.GatherAndCompare(registry, want))
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func text(t *testing.T, families []*dto.MetricFamily) string {
	t.Helper()
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// expect compares a metric with text in the exposition format without help lines.
func expect(t *testing.T, c prom.Collector, name, kind, want string) {
	t.Helper()
	families := gather(t, c)
	var got strings.Builder
	for _, f := range families {
		if f.GetName() == name {
			f.Help = nil
			if _, err := expfmt.MetricFamilyToText(&got, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want != "" {
		want = "# TYPE " + name + " " + kind + "\n" + want
	}
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

func gather(t *testing.T, c prom.Collector) []*dto.MetricFamily {
	t.Helper()
	registry := prom.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}

// Beyond the limits, agents and worlds share a label. Gauges with that label are sums
// and follow each agent. A label that becomes free goes to an agent that joins later.
func TestShared(t *testing.T) {
	c := prometheus.New(prometheus.Config{MaxWorlds: 1, MaxAgents: 1})
	c.WorldOpened("w1")
	c.WorldOpened("w2")
	for _, id := range []string{"a", "b", "c"} {
		c.AgentJoined("w1", id)
		c.AgentJoined("w2", id)
		c.ObservationsWaiting("w1", id, 10)
		c.ObservationsWaiting("w2", id, 1)
	}
	const name = "sajou_observations_waiting"
	expect(t, c, name, "gauge", `sajou_observations_waiting{agent="a",world="w1"} 10
sajou_observations_waiting{agent="other",world="other"} 3
sajou_observations_waiting{agent="other",world="w1"} 20
`)
	c.ObservationsWaiting("w1", "b", 4)
	c.AgentLeft("w1", "c")
	c.AgentLeft("w2", "b")
	c.AgentLeft("w1", "a")
	c.ObservationsWaiting("w1", "a", 5) // reports about an agent that left are ignored
	c.AgentJoined("w1", "d")
	c.ObservationsWaiting("w1", "d", 7)
	expect(t, c, name, "gauge", `sajou_observations_waiting{agent="d",world="w1"} 7
sajou_observations_waiting{agent="other",world="other"} 2
sajou_observations_waiting{agent="other",world="w1"} 4
`)
	expect(t, c, "sajou_agents", "gauge", `sajou_agents{world="other"} 2
sajou_agents{world="w1"} 2
`)
	c.WorldClosed("w2")
	c.WorldClosed("w1")
	c.WorldOpened("w3")
	expect(t, c, name, "gauge", "sajou_observations_waiting{agent=\"other\",world=\"other\"} 0\n")
	expect(t, c, "sajou_agents", "gauge", `sajou_agents{world="other"} 0
sajou_agents{world="w3"} 0
`)
}

// Names that are invalid as labels, or equal to the shared one, share it. Repeated
// reports and reports out of order change nothing.
func TestOddNames(t *testing.T) {
	ctx, c := t.Context(), prometheus.New(prometheus.Config{})
	c.WorldClosed("w")
	c.AgentLeft("w", "a")
	c.AgentJoined("w", "a")
	for _, name := range []string{"w", "w", "\xff", "other"} {
		c.WorldOpened(name)
		for _, id := range []string{"a", "a", "", "\xff", "other"} {
			c.AgentJoined(name, id)
			c.Cancelled(name, id, agentslive.CancelUser)
		}
		c.AgentLeft(name, "other")
		c.AgentLeft(name, "other")
	}
	c.StreamEnded(ctx, agentslive.EndedStream{World: "w", Agent: "a", End: agentslive.StreamFailed, Took: -time.Second, Tokens: -1})
	c.Undelivered("w", "a", agentslive.DeltaShed, -1)
	c.BreakerChanged("w", "a", "ajar")
	expect(t, c, "sajou_cancellations_total", "counter", `sajou_cancellations_total{agent="a",reason="user",world="w"} 4
sajou_cancellations_total{agent="other",reason="user",world="other"} 10
sajou_cancellations_total{agent="other",reason="user",world="w"} 6
`)
	expect(t, c, "sajou_agents", "gauge", `sajou_agents{world="other"} 6
sajou_agents{world="w"} 3
`)
	expect(t, c, "sajou_breaker_changes_total", "counter", "")
}

// Reports about agents that are not registered, or have left, do not increase the
// number of series.
func TestStrangersAddNothing(t *testing.T) {
	ctx, c := t.Context(), prometheus.New(prometheus.Config{})
	c.WorldOpened("w")
	strangers := func(from, to int) int {
		for n := from; n < to; n++ {
			id := fmt.Sprint("stranger ", n)
			c.IntentDecided(ctx, agentslive.DecidedIntent{World: "w", Agent: id, Status: agents.Rejected, Code: agents.ErrUnknownAgent, Took: agentslive.IntentTiming{Total: 1}})
			c.IntentDecided(ctx, agentslive.DecidedIntent{World: id, Agent: id, Status: agents.Rejected, Code: agents.Code(id), Took: agentslive.IntentTiming{Total: 1}})
			c.WorldReached(id, 1)
			c.Halted(id, id, 1)
			c.Delivered("w", id, 1)
		}
		return testutil.CollectAndCount(c)
	}
	if few, many := strangers(0, 1), strangers(1, 1000); few != many {
		t.Errorf("%d series after one stranger, %d after a thousand", few, many)
	}
}

// Concurrent reports while agents join and leave leave no series behind.
func TestConcurrent(t *testing.T) {
	ctx, c := t.Context(), prometheus.New(prometheus.Config{MaxAgents: 4})
	c.WorldOpened("w")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 50 {
				id := fmt.Sprint("agent ", (g+n)%6)
				c.AgentJoined("w", id)
				c.ObservationsWaiting("w", id, n)
				c.IntentDecided(ctx, agentslive.DecidedIntent{World: "w", Agent: id, Status: agents.Accepted, Code: "", Took: agentslive.IntentTiming{Total: time.Millisecond}})
				c.BreakerChanged("w", id, flow.BreakerIsOpen)
				c.Delivered("w", id, time.Millisecond)
				c.AgentLeft("w", id)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			testutil.CollectAndCount(c)
		}
	})
	wg.Wait()
	expect(t, c, "sajou_agents", "gauge", "sajou_agents{world=\"w\"} 0\n")
	for _, f := range gather(t, c) {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.HasPrefix(l.GetValue(), "agent ") {
					t.Errorf("%s of %s was left behind", f.GetName(), l.GetValue())
				}
			}
		}
	}
	c.WorldClosed("w")
	if n, without := testutil.CollectAndCount(c), testutil.CollectAndCount(prometheus.New(prometheus.Config{})); n != without {
		t.Errorf("%d series after the only world closed, and %d without any", n, without)
	}
}

// Reports about registered agents do not allocate once the series exist.
func TestReportsAllocateNothing(t *testing.T) {
	ctx, c := t.Context(), prometheus.New(prometheus.Config{})
	c.WorldOpened("w")
	c.AgentJoined("w", "a")
	n := testing.AllocsPerRun(100, func() {
		c.WorldReached("w", 1)
		c.IntentDecided(ctx, agentslive.DecidedIntent{World: "w", Agent: "a", Status: agents.Rejected, Code: agents.ErrStaleContext, Took: agentslive.IntentTiming{Total: 4, Wait: 1, Decide: 1, Apply: 1, Sync: 1}})
		c.IntentsWaiting("w", "a", 1)
		c.Delivered("w", "a", 1)
		c.Undelivered("w", "a", agentslive.DeltaShed, 1)
		c.ObservationsWaiting("w", "a", 1)
		c.Cancelled("w", "a", agentslive.CancelStale)
		c.Halted("w", "a", 1)
		c.StreamEnded(ctx, agentslive.EndedStream{World: "w", Agent: "a", End: agentslive.StreamDone, Took: 1, Tokens: 1})
		c.Committed(eventlog.CommittedRound{Batches: 1, Entries: 1, Bytes: 1, Took: 1})
		c.FileSynced("wal", 1, nil)
		c.Folded("w", 1, 1, 1)
		c.ImageStored("w", 1, 1, nil)
		c.SinkCalled("w", "*main.wall", "Frame", 1)
		c.DirectorCalled(ctx, "w", "guide", 1, nil)
		c.JudgeCalled(ctx, directorlive.JudgeCall{Took: 1})
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

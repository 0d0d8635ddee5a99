package prometheus_test

import (
	"flag"
	"fmt"
	"os"
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
)

var update = flag.Bool("update", false, "rewrite the golden files")

// dungeon makes every kind of report to a collector with two free labels of agents:
// the guard shares the label "other" with an agent that is not registered, and the
// troll gets the label of an agent that left.
func dungeon(m agentslive.Metrics) {
	const ms = time.Millisecond
	m.Opened("dungeon")
	for _, id := range []string{"scout", "gone", "guard"} {
		m.Joined("dungeon", id)
	}
	m.Intent("dungeon", "gone", agents.Accepted, "", agentslive.IntentTiming{})
	m.Breaker("dungeon", "gone", flow.BreakerIsOpen)
	m.Left("dungeon", "gone")
	m.Joined("dungeon", "troll")

	m.Reached("dungeon", 811)
	m.Reached("dungeon", 812)
	m.Intent("dungeon", "scout", agents.Accepted, "", agentslive.IntentTiming{
		Total: 12 * ms, Wait: ms, Decide: ms / 2, Apply: ms / 2, Sync: 10 * ms,
	})
	m.Intent("dungeon", "scout", agents.Duplicate, "", agentslive.IntentTiming{Total: ms / 10, Wait: ms / 10})
	m.Intent("dungeon", "scout", agents.Rejected, agents.ErrStaleContext, agentslive.IntentTiming{Total: 2 * ms, Wait: ms, Decide: ms})
	m.Intent("dungeon", "guard", agents.Rejected, "MADE_UP", agentslive.IntentTiming{Total: ms})
	m.Intent("dungeon", "nobody", agents.Rejected, agents.ErrUnknownAgent, agentslive.IntentTiming{Total: ms})
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
	m.Generated("dungeon", "scout", agentslive.StreamCancelled, 3*time.Second, 41)
	m.Generated("dungeon", "scout", agentslive.StreamDone, 4*time.Second, 59)
	m.Breaker("dungeon", "scout", flow.BreakerIsOpen)
	m.Breaker("dungeon", "scout", flow.BreakerHalfOpen)
	m.Breaker("dungeon", "guard", flow.BreakerIsOpen)
	m.Breaker("dungeon", "guard", flow.BreakerClosed)
}

// A registry gathers exactly the reports, and the metrics pass Prometheus's linter.
func TestGathered(t *testing.T) {
	c := prometheus.New(prometheus.Config{MaxAgents: 3})
	m := agentslive.Metrics(c)
	m.Opened("cellar")
	m.Joined("cellar", "rat") // the third with a label of its own
	dungeon(m)

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
	c.Opened("w1")
	c.Opened("w2")
	for _, id := range []string{"a", "b", "c"} {
		c.Joined("w1", id)
		c.Joined("w2", id)
		c.ObservationsWaiting("w1", id, 10)
		c.ObservationsWaiting("w2", id, 1)
	}
	const name = "sajou_observations_waiting"
	expect(t, c, name, "gauge", `sajou_observations_waiting{agent="a",world="w1"} 10
sajou_observations_waiting{agent="other",world="other"} 3
sajou_observations_waiting{agent="other",world="w1"} 20
`)
	c.ObservationsWaiting("w1", "b", 4)
	c.Left("w1", "c")
	c.Left("w2", "b")
	c.Left("w1", "a")
	c.ObservationsWaiting("w1", "a", 5) // reports about an agent that left are ignored
	c.Joined("w1", "d")
	c.ObservationsWaiting("w1", "d", 7)
	expect(t, c, name, "gauge", `sajou_observations_waiting{agent="d",world="w1"} 7
sajou_observations_waiting{agent="other",world="other"} 2
sajou_observations_waiting{agent="other",world="w1"} 4
`)
	expect(t, c, "sajou_agents", "gauge", `sajou_agents{world="other"} 2
sajou_agents{world="w1"} 2
`)
	c.Closed("w2")
	c.Closed("w1")
	c.Opened("w3")
	expect(t, c, name, "gauge", "sajou_observations_waiting{agent=\"other\",world=\"other\"} 0\n")
	expect(t, c, "sajou_agents", "gauge", `sajou_agents{world="other"} 0
sajou_agents{world="w3"} 0
`)
}

// Names that are invalid as labels, or equal to the shared one, share it. Repeated
// reports and reports out of order change nothing.
func TestOddNames(t *testing.T) {
	c := prometheus.New(prometheus.Config{})
	c.Closed("w")
	c.Left("w", "a")
	c.Joined("w", "a")
	for _, name := range []string{"w", "w", "\xff", "other"} {
		c.Opened(name)
		for _, id := range []string{"a", "a", "", "\xff", "other"} {
			c.Joined(name, id)
			c.Cancelled(name, id, agentslive.CancelUser)
		}
		c.Left(name, "other")
		c.Left(name, "other")
	}
	c.Generated("w", "a", agentslive.StreamFailed, -time.Second, -1)
	c.Undelivered("w", "a", agentslive.DeltaShed, -1)
	c.Breaker("w", "a", "ajar")
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
	c := prometheus.New(prometheus.Config{})
	c.Opened("w")
	strangers := func(from, to int) int {
		for n := from; n < to; n++ {
			id := fmt.Sprint("stranger ", n)
			c.Intent("w", id, agents.Rejected, agents.ErrUnknownAgent, agentslive.IntentTiming{Total: 1})
			c.Intent(id, id, agents.Rejected, agents.Code(id), agentslive.IntentTiming{Total: 1})
			c.Reached(id, 1)
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
	c := prometheus.New(prometheus.Config{MaxAgents: 4})
	c.Opened("w")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 50 {
				id := fmt.Sprint("agent ", (g+n)%6)
				c.Joined("w", id)
				c.ObservationsWaiting("w", id, n)
				c.Intent("w", id, agents.Accepted, "", agentslive.IntentTiming{Total: time.Millisecond})
				c.Breaker("w", id, flow.BreakerIsOpen)
				c.Delivered("w", id, time.Millisecond)
				c.Left("w", id)
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
	c.Closed("w")
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d series after the only world closed", n)
	}
}

// Reports about registered agents do not allocate once the series exist.
func TestReportsAllocateNothing(t *testing.T) {
	c := prometheus.New(prometheus.Config{})
	c.Opened("w")
	c.Joined("w", "a")
	n := testing.AllocsPerRun(100, func() {
		c.Reached("w", 1)
		c.Intent("w", "a", agents.Rejected, agents.ErrStaleContext, agentslive.IntentTiming{Total: 4, Wait: 1, Decide: 1, Apply: 1, Sync: 1})
		c.IntentsWaiting("w", "a", 1)
		c.Delivered("w", "a", 1)
		c.Undelivered("w", "a", agentslive.DeltaShed, 1)
		c.ObservationsWaiting("w", "a", 1)
		c.Cancelled("w", "a", agentslive.CancelStale)
		c.Halted("w", "a", 1)
		c.Generated("w", "a", agentslive.StreamDone, 1, 1)
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

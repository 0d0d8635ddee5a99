package live_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
)

// Every reason that the core gives has its kind; numbers in it make no
// difference, and what only resembles one is the program's own.
func TestCancelKindOf(t *testing.T) {
	for reason, want := range map[string]agentslive.CancelKind{
		"stale_due_to_seq_gap_3_threshold_0":          agentslive.CancelStale,
		"stale_due_to_conflict_seq_gap_1_threshold_0": agentslive.CancelStale,
		agents.ReasonUser:                             agentslive.CancelUser,
		agents.ReasonReplaced:                         agentslive.CancelReplaced,
		agents.ReasonTimeout:                          agentslive.CancelDeadline,
		agents.ReasonLeft:                             agentslive.CancelLeft,
		"":                                            agentslive.CancelOther,
		"not stale_due_to":                            agentslive.CancelOther,
		"user_requested_it":                           agentslive.CancelOther,
	} {
		if got := agentslive.CancelKindOf(reason); got != want {
			t.Errorf("%q: got %v, want %v", reason, got, want)
		}
	}
}

// Within an enumeration no two values share a name, for a metric would add them up,
// and only what lies beyond the last value is unknown.
func TestMetricNames(t *testing.T) {
	distinct(t, agentslive.DeltaShed, agentslive.DeltaReplaced)
	distinct(t, agentslive.CancelStale, agentslive.CancelOther)
	distinct(t, agentslive.StreamDone, agentslive.StreamFailed)
}

func distinct[E interface {
	~uint8 | ~int
	String() string
}](t *testing.T, first, last E) {
	t.Helper()
	names := map[string]E{}
	for v := first; v <= last+1; v++ {
		name := v.String()
		if other, taken := names[name]; taken || (name == "unknown") != (v > last) {
			t.Errorf("%T %d is called %q, as is %d", v, v, name, other)
		}
		names[name] = v
	}
}

// heard hears of cancellations only.
type heard struct {
	agentslive.DiscardMetrics
	cancelled []string
}

func (h *heard) Cancelled(world, agent string, why agentslive.CancelKind) {
	h.cancelled = append(h.cancelled, world+"/"+agent+": "+why.String())
}

// report calls every method once.
func report(m agentslive.Metrics, world, agent string) {
	m.Opened(world)
	m.Joined(world, agent)
	m.Reached(world, 812)
	m.Intent(world, agent, agents.Rejected, agents.ErrStaleContext, agentslive.IntentTiming{Total: time.Millisecond})
	m.IntentsWaiting(world, agent, 2)
	m.Delivered(world, agent, 3*time.Millisecond)
	m.Undelivered(world, agent, agentslive.DeltaShed, 4)
	m.ObservationsWaiting(world, agent, 5)
	m.Cancelled(world, agent, agentslive.CancelStale)
	m.Halted(world, agent, 6*time.Millisecond)
	m.Generated(world, agent, agentslive.StreamDone, time.Second, 7)
	m.Breaker(world, agent, flow.BreakerIsOpen)
	m.Left(world, agent)
	m.Closed(world)
}

// One that embeds the discarding one hears what it asks for; and to discard
// costs no memory, which is what makes it fit to be the default.
func TestDiscardMetrics(t *testing.T) {
	var h heard
	report(&h, "dungeon", "scout")
	if want := []string{"dungeon/scout: stale"}; !slices.Equal(h.cancelled, want) {
		t.Errorf("heard %q, want %q", h.cancelled, want)
	}

	var m agentslive.Metrics = agentslive.DiscardMetrics{}
	if n := testing.AllocsPerRun(100, func() { report(m, "dungeon", "scout") }); n != 0 {
		t.Errorf("%v allocations for what is discarded, want 0", n)
	}
}

package sajou_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
)

// Every reason that the core gives has its kind; numbers in it make no
// difference, and what only resembles one is the program's own.
func TestCancelKindOf(t *testing.T) {
	for reason, want := range map[string]sajou.CancelKind{
		"stale_due_to_seq_gap_3_threshold_0":          sajou.CancelStale,
		"stale_due_to_conflict_seq_gap_1_threshold_0": sajou.CancelStale,
		agents.ReasonUser:                             sajou.CancelUser,
		agents.ReasonReplaced:                         sajou.CancelReplaced,
		agents.ReasonTimeout:                          sajou.CancelDeadline,
		agents.ReasonLeft:                             sajou.CancelLeft,
		"":                                            sajou.CancelOther,
		"not stale_due_to":                            sajou.CancelOther,
		"user_requested_it":                           sajou.CancelOther,
	} {
		if got := sajou.CancelKindOf(reason); got != want {
			t.Errorf("%q: got %v, want %v", reason, got, want)
		}
	}
}

// Each value of each enumeration has a name of its own, and one beyond them has
// one too.
func TestMetricNames(t *testing.T) {
	var names []string
	for f := sajou.DeltaShed; f <= sajou.DeltaReplaced+1; f++ {
		names = append(names, f.String())
	}
	for k := sajou.CancelStale; k <= sajou.CancelOther+1; k++ {
		names = append(names, k.String())
	}
	for e := sajou.GenerationDone; e <= sajou.GenerationFailed+1; e++ {
		names = append(names, e.String())
	}
	want := strings.Fields("shed dropped deferred replaced unknown" +
		" stale user replaced deadline left other unknown" +
		" done cut cancelled failed unknown")
	if !slices.Equal(names, want) {
		t.Errorf("names are\n%q, want\n%q", names, want)
	}
}

// heard hears of cancellations only.
type heard struct {
	sajou.DiscardMetrics
	cancelled []string
}

func (h *heard) Cancelled(world, agent string, why sajou.CancelKind) {
	h.cancelled = append(h.cancelled, world+"/"+agent+": "+why.String())
}

// report calls every method once.
func report(m sajou.Metrics, world, agent string) {
	m.Opened(world)
	m.Joined(world, agent)
	m.Reached(world, 812)
	m.Intent(world, agent, agents.Rejected, agents.StaleContext, sajou.IntentTiming{Total: time.Millisecond})
	m.IntentsWaiting(world, agent, 2)
	m.Delivered(world, agent, 3*time.Millisecond)
	m.Undelivered(world, agent, sajou.DeltaShed, 4)
	m.ObservationsWaiting(world, agent, 5)
	m.Cancelled(world, agent, sajou.CancelStale)
	m.Halted(world, agent, 6*time.Millisecond)
	m.Generated(world, agent, sajou.GenerationDone, time.Second, 7)
	m.Breaker(world, agent, agents.BreakerIsOpen)
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

	var m sajou.Metrics = sajou.DiscardMetrics{}
	if n := testing.AllocsPerRun(100, func() { report(m, "dungeon", "scout") }); n != 0 {
		t.Errorf("%v allocations for what is discarded, want 0", n)
	}
}

package live_test

import (
	"testing"

	"github.com/sajou-dev/sajou-go/agents"
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

package live_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
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

// timings keeps the durations of decided intents.
type timings struct {
	mu   sync.Mutex
	took map[string]agentslive.IntentTiming // by req_id; guarded by mu
}

func (m *timings) IntentsWaiting(string, string, int) {}
func (m *timings) IntentDecided(_ context.Context, d agentslive.DecidedIntent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took[d.ReqID] = d.Took
}

// Requests that are decided together have the stages of the whole: those of a batch, of
// a quantum, and of a tick, whose wait includes that for the tick. The clock moves by a
// millisecond whenever it is read.
func TestTimingsOfManyIntents(t *testing.T) {
	for _, authority := range []session.TimeAuthority{session.TimeManual, session.TimeSim} {
		told := timings{took: map[string]agentslive.IntentTiming{}}
		var mu sync.Mutex
		now := enginetest.StoryBegin
		eng, err := sajou.Open("store", sajou.Config{
			FS: vfs.NewMem(), Metrics: sajou.Metrics{Agents: agentslive.AgentMetrics{Intents: &told}},
			Now: func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				now = now.Add(time.Millisecond)
				return now
			},
			AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } },
		})
		require.NoError(t, err)
		ses, err := eng.Begin(t.Context(), "world", authority)
		require.NoError(t, err)
		world := ses.Agents()
		if authority == session.TimeSim {
			require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{"authority":"sim"}`)))
		}
		for _, id := range []string{"a", "b"} {
			draft := enginetest.Draft("EntityCreated", "world", `{"entity_id":"`+id+`","entity_data":{"type":"agent"}}`)
			_, err = world.Quantum(t.Context(), agents.Submission{Draft: &draft})
			require.NoError(t, err)
			_, err = world.Register(t.Context(), id, nil)
			require.NoError(t, err)
		}
		ask := func(agent, reqID string) agents.Intent {
			in := enginetest.Draft("Speak", "", `{"text":"`+reqID+`"}`)
			return agents.Intent{Kind: in.Kind, Payload: in.Payload, AgentID: agent, ReqID: reqID, ContextSeq: 99}
		}
		_, _ = world.SubmitBatch(t.Context(), []agents.Intent{ask("a", "batch 1"), ask("a", "batch 2")})
		_, _ = world.Quantum(t.Context(), agents.Submission{Intent: new(ask("a", "quantum 1"))}, agents.Submission{Intent: new(ask("a", "quantum 2"))})
		want := []string{"batch 1", "batch 2", "quantum 1", "quantum 2"}
		if authority == session.TimeSim {
			p, err := world.SubmitAsync(t.Context(), agents.Submission{Intent: new(ask("b", "tick"))})
			require.NoError(t, err)
			mu.Lock()
			now = now.Add(100 * time.Millisecond)
			mu.Unlock()
			_, err = world.Tick(t.Context(), agentslive.Tick{SimTime: 1})
			require.NoError(t, err)
			_, _ = p.Wait(t.Context())
			want = append(want, "tick")
		}
		require.NoError(t, eng.Close())
		for _, reqID := range want {
			took, ok := told.took[reqID]
			if sum := took.Wait + took.Decide + took.Apply + took.Sync; !ok || took.Wait <= 0 || took.Decide <= 0 || took.Apply <= 0 || took.Sync < 0 || sum > took.Total {
				t.Errorf("%s, %q: %+v", authority, reqID, took)
			}
			if reqID == "tick" && took.Wait < 100*time.Millisecond {
				t.Errorf("the wait for the tick is not told: %+v", took)
			}
		}
		if told.took["batch 1"].Sync <= 0 && told.took["quantum 1"].Sync <= 0 {
			t.Errorf("%s: no sync is told: %+v", authority, told.took)
		}
	}
}

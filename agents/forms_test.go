package agents_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
)

// A setting that is given has one form: times in milliseconds, whole ones as integers, a bound
// that is none as -1, and no latency as a model of its own.
func TestFormsOfSettings(t *testing.T) {
	for want, s := range map[string]agents.AuthoredSettings{
		`{}`:                            {},
		`{"staleness_threshold":0}`:     {Staleness: new(uint64(0))},
		`{"interrupt":"only_conflict"}`: {Interrupt: agents.InterruptConflict},
		`{"debounce_ms":5}`:             {Debounce: new(5 * time.Millisecond)},
		`{"debounce_ms":0}`:             {Debounce: new(time.Duration(0))},
		`{"deadline_ms":1.5}`:           {Deadline: new(1500 * time.Microsecond)},
		`{"deadline_ms":0.000001}`:      {Deadline: new(time.Nanosecond)},
		`{"token_budget":7}`:            {TokenBudget: new(int64(7))},
		`{"quota_intents_per_minute":0,"quota_tokens_per_minute":-1}`: {QuotaIntents: new(int64(0)), QuotaTokens: new(int64(-1))},
		`{"quota_intents_per_minute":-1,"quota_tokens_per_minute":1}`: {QuotaIntents: new(int64(math.MinInt64)), QuotaTokens: new(int64(1))},
		`{"cooldowns":"off"}`:                                    {NoCooldowns: true},
		`{"cooldowns":{"Move":0,"Speak":2000}}`:                  {Cooldowns: map[string]time.Duration{"Speak": 2 * time.Second, "Move": 0}},
		`{"backpressure_policy":"shed_oldest"}`:                  {Pressure: flow.PressureShed},
		`{"max_queue_depth":1,"default_priority":-3,"weight":2}`: {QueueDepth: new(1), Priority: new(-3), Weight: new(2)},
		`{"latency_model":{"model":"none"}}`:                     {Latency: &flow.Latency{}},
		`{"latency_model":{"model":"distance","base_ms":10,"per_unit_ms":0,"spread_ms":0,"seed":0}}`:   {Latency: &flow.Latency{Base: 10 * time.Millisecond}},
		`{"latency_model":{"model":"distance","base_ms":0,"per_unit_ms":0.5,"spread_ms":2,"seed":-1}}`: {Latency: &flow.Latency{PerUnit: 500 * time.Microsecond, Spread: 2 * time.Millisecond, Seed: math.MaxUint64}},
	} {
		v, err := agents.AuthoredConfig{Settings: s}.Value()
		require.NoError(t, err)
		require.Equal(t, want, v.String())
		got, err := agents.ParseConfig(v)
		require.NoError(t, err)
		if s.Latency != nil {
			require.Equal(t, *s.Latency, got.Settings.Latency)
		}
	}
}

// A quantum is decided by time, then the priority, then the source, and one source's requests in
// the order of asking, its drafts with a uuid after those without and by their uuids; a batch in
// the order in which it is given.
func TestOrderOfQuanta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		type asked struct {
			index, priority int
			time            float64
			source, uuid    string
		}
		var subs []agents.Submission
		var order []asked
		for i := range rapid.IntRange(0, 9).Draw(t, "submissions") {
			a := asked{index: i, source: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "source"), priority: rapid.IntRange(0, 2).Draw(t, "priority"), time: float64(rapid.IntRange(0, 2).Draw(t, "time"))}
			if rapid.Bool().Draw(t, "named") {
				a.uuid = fmt.Sprint("u", rapid.IntRange(0, 9).Draw(t, "uuid"))
			}
			subs = append(subs, agents.Submission{
				Draft: &agents.EffectDraft{Kind: fmt.Sprint("K", i), SourceID: a.source}, UUID: a.uuid, Priority: a.priority, Timed: true, SimTime: a.time,
			})
			order = append(order, a)
		}
		by := rapid.SampledFrom([]string{agents.CloseSubmit, agents.CloseFlush, agents.CloseBatch}).Draw(t, "by")
		if by != agents.CloseBatch {
			slices.SortStableFunc(order, func(x, y asked) int {
				return cmp.Or(cmp.Compare(x.time, y.time), cmp.Compare(y.priority, x.priority), cmp.Compare(x.source, y.source), cmp.Compare(x.uuid, y.uuid))
			})
		}
		r.must(r.core.Configure(parse(t, `{"authority":"sim"}`)))
		d := r.core.Decide(r.now, agents.Quantum{By: by}, subs)
		for place, a := range order {
			o := d.Outcomes[a.index]
			require.NoError(t, o.Err())
			require.Equal(t, uint64(place+1), o.GlobalSeq)
			require.Equal(t, fmt.Sprint("K", a.index), o.Effect.Kind)
		}
	})
}

// An intent without a priority has that of its agent, or of the world if nothing knows the agent.
func TestPriorityOfIntents(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off","default_priority":5,"authority":"sim","classes":{"high":{"default_priority":15}}}`)
	r.must(r.core.Register(agents.Registration{AgentID: "a", Class: "high"}))
	intents := []agents.Intent{speak("b", "b default", 9), speak("b", "b ten", 9), speak("c", "c twenty", 9), speak("a", "a default", 9), speak("a", "a one", 9)}
	intents[0].Unprioritized, intents[3].Unprioritized = true, true
	intents[1].Priority, intents[2].Priority, intents[4].Priority = 10, 20, 1
	var subs []agents.Submission
	for i := range intents {
		subs = append(subs, agents.Submission{Intent: &intents[i]})
	}
	d := r.core.Decide(r.now, agents.Quantum{By: agents.CloseFlush}, subs)
	var first []uint64
	for i := range d.Outcomes {
		require.NoError(t, d.Outcomes[i].Err())
		first = append(first, d.Outcomes[i].GlobalSeq)
	}
	require.Equal(t, []uint64{4, 3, 1, 2, 5}, first)
}

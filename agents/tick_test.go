package agents_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// tick decides a tick and keeps its records, at the session time of the tick.
func (r *run) tick(simTime float64, subs ...agents.Submission) agents.Decision {
	r.t.Helper()
	r.now = max(r.now, time.Duration(simTime*float64(time.Second)))
	d := r.core.Decide(r.now, agents.Quantum{By: agents.CloseTick, SimTime: simTime, Timed: true, SourceID: "game"}, subs)
	r.keep(d.Records)
	return d
}

const ticking = `{"authority":"sim","tick_effects":true,"cooldowns":"off"`

// TestTimeIsNoNews shows that ticks make no context stale and cancel no generation, under
// any policy, however many there are, and that the agents are sent them all the same.
func TestTimeIsNoNews(t *testing.T) {
	const ticks = 3 * agents.MaxSent
	for _, policy := range []string{
		`{}`,
		`{"policy":"everything"}`,
		`{"policy":"everything","staleness_threshold":2}`,
		`{"policy":"everything","interrupt":"only_conflict"}`,
		`{"policy":"fog","of":{"policy":"everything"}}`,
		`{"distance_limit":100,"latency_model":{"model":"fixed","ms":75}}`,
	} {
		t.Run(policy, func(t *testing.T) {
			r := newRun(t)
			r.must(r.core.Configure(parse(t, ticking+`}`)))
			r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"b":{}}}`)))
			p := parse(t, policy)
			if _, err := agents.CompilePolicy(p, options); err != nil {
				t.Fatal(err)
			}
			r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: p}))
			r.tick(0.05)
			for _, token := range []agents.TokenRequest{{ReqID: "all"}, {ReqID: "class", Classes: []string{agents.KindTimeTick}}} {
				token.AgentID, token.Current, token.Deadline = "a", true, time.Hour
				_, records, err := r.core.Issue(r.now, token)
				r.must(records, err)
			}
			before := r.arrived["a"].Number
			for i := range ticks {
				r.tick(0.05 * float64(i+2))
			}
			r.advance(time.Second)
			if len(r.gone) > 0 || len(r.core.Tokens("a")) != 2 {
				t.Errorf("cancelled: %v", r.gone)
			}
			if got := r.arrived["a"].Number - before; got != ticks {
				t.Errorf("it was sent %d ticks, want %d", got, ticks)
			}
			for i, number := range []uint64{0, 1, before, ticks} {
				in := speak("a", fmt.Sprint("r", i), r.core.ContextSeq(r.now, "a", number))
				if o, _ := r.core.Submit(r.now, in); !o.OK() {
					t.Errorf("an intent that is based on view %d: %v", number, o.Err())
				}
			}
			restored, err := agents.RestoreCore(r.core.AppendState(nil), options)
			require.NoError(t, err)
			for number := range uint64(ticks) {
				if got, want := restored.ViewSeqOf("a", number), r.core.ViewSeqOf("a", number); got != want {
					t.Fatalf("restored, view %d has view_seq %d, want %d", number, got, want)
				}
			}
			assert.Equal(t, r.core.Number("a", r.core.Seq()), restored.Number("a", r.core.Seq()))

			// A message still makes the context stale.
			first := r.core.ContextSeq(r.now, "a", 1)
			for i := range 3 {
				r.draft(agents.EffectDraft{Kind: "EntityUpdated", SourceID: "b", Payload: parse(t, fmt.Sprintf(`{"entity_id":"b","fields":{"n":%d}}`, i))})
			}
			r.advance(time.Second)
			o, _ := r.core.Submit(r.now, speak("a", "late", first))
			wantCode(t, o, agents.ErrStaleContext)
		})
	}
}

// TestTimeWasNews shows that a session of rules 1 is folded as it was recorded: there a
// tick cancels.
func TestTimeWasNews(t *testing.T) {
	for _, rules := range []int{0, 1, 2} {
		r := newRun(t)
		r.core.SetRules(rules)
		r.must(r.core.Configure(parse(t, ticking+`}`)))
		r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"policy":"everything"}`)}))
		_, records, err := r.core.Issue(0, agents.TokenRequest{AgentID: "a", ReqID: "r", Current: true})
		r.must(records, err)
		r.tick(0.05)
		if cancelled := len(r.gone) == 1; cancelled != (rules < 2) {
			t.Errorf("rules %d: cancelled %v", rules, r.gone)
		}
		if v, _ := r.core.View("a"); (v.ViewSeq == 1) != (rules < 2) {
			t.Errorf("rules %d: view_seq %d", rules, v.ViewSeq)
		}
	}
}

// TestTickWithAMeaning shows that a tick makes a context stale when its handler changes
// what the agent sees, and that an intent of the same kind does not count as a tick.
func TestTickWithAMeaning(t *testing.T) {
	c, err := agents.NewCore(agents.Options{Handlers: []world.Handler{{Kind: agents.KindTimeTick, Plan: func(_ world.ReadOnly, e world.Effect) ([]world.Change, error) {
		if e.SimTime < 1 {
			return nil, nil
		}
		return []world.Change{world.SetField("sun", "up", signal.Bool(true))}, nil
	}}}})
	require.NoError(t, err)
	r := newRun(t)
	r.core = c
	c.Bind("w", r)
	r.must(c.Configure(parse(t, ticking+`}`)))
	r.must(c.Begin(parse(t, `{"entities":{"sun":{},"a":{},"b":{}}}`)))
	for _, id := range []string{"a", "b"} {
		r.must(c.Register(agents.Registration{AgentID: id, Policy: parse(t, `{"policy":"everything"}`)}))
		_, records, err := c.Issue(0, agents.TokenRequest{AgentID: id, ReqID: "r", Current: true, Deadline: time.Hour})
		r.must(records, err)
	}
	r.tick(0.5)
	require.Empty(t, r.gone)
	in := speak("b", "x", c.ContextSeq(r.now, "b", 1))
	in.Kind = agents.KindTimeTick
	require.NoError(t, r.submit(in).Err())
	require.Len(t, r.gone, 2, "an intent of the kind interrupts, its own agent too")
	_, records, err := c.Issue(r.now, agents.TokenRequest{AgentID: "a", ReqID: "s", Current: true, Deadline: time.Hour})
	r.must(records, err)
	r.tick(1)
	require.Len(t, r.gone, 3, "the sun is up")
}

// TestTickEffectHasItsTime shows that the effect of a tick has the tick's sim_time and
// comes first among the effects of that instant.
func TestTickEffectHasItsTime(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, ticking+`}`)))
	var got []string
	tick := func(simTime float64, subs ...agents.Submission) {
		seq := r.core.Seq()
		for _, record := range r.tick(simTime, subs...).Records {
			if record.Word != agents.WordEffect {
				continue
			}
			e, err := world.ParseEffect(record.Value)
			require.NoError(t, err)
			seq++
			require.Equal(t, seq, e.GlobalSeq)
			got = append(got, fmt.Sprint(e.Kind, " ", e.SimTime))
		}
	}
	draft := func(kind string, timed bool, at float64) agents.Submission {
		return agents.Submission{Draft: &agents.EffectDraft{Kind: kind, SourceID: "s"}, Timed: timed, SimTime: at, Priority: 5}
	}
	tick(0.05)
	tick(0.1, draft("Untimed", false, 0), draft("Before", true, 0.07), draft("AtIt", true, 0.1))
	tick(0.15, draft("Before", true, 0.12))
	tick(0.12, draft("Late", true, 0.01)) // time does not run back
	require.Equal(t, []string{
		"TimeTick 0.05",
		"Before 0.07", "TimeTick 0.1", "Untimed 0.1", "AtIt 0.1",
		"Before 0.12", "TimeTick 0.15",
		"Late 0.15", "TimeTick 0.15",
	}, got)
}

package agents_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
)

// sentModel is the plain meaning of an agent's numbers: the view_seq of each of its
// deliveries from the first, of which the last MaxSent that are not the passing of time
// can be told apart.
type sentModel struct {
	seqs  []uint64 // by the agent's own number
	quiet []bool   // only moved time
}

// kept returns the number of the oldest delivery that can be told apart.
func (m *sentModel) kept() int {
	loud := 0
	for n := len(m.seqs) - 1; n >= 0; n-- {
		if !m.quiet[n] {
			if loud++; loud == agents.MaxSent {
				return n
			}
		}
	}
	return 0
}

func (m *sentModel) number(seq uint64) uint64 {
	for n := len(m.seqs) - 1; n >= m.kept(); n-- {
		if m.seqs[n] <= seq {
			return uint64(n)
		}
	}
	return 0
}

func (m *sentModel) viewSeq(number uint64) uint64 {
	if number < uint64(m.kept()) || number >= uint64(len(m.seqs)) {
		return 0
	}
	return m.seqs[number]
}

func (m *sentModel) full() bool {
	loud := 0
	for _, quiet := range m.quiet {
		if !quiet {
			loud++
		}
	}
	return loud >= agents.MaxSent
}

func (m *sentModel) latest() uint64 { return m.seqs[len(m.seqs)-1] }

func (m *sentModel) context(number uint64) uint64 {
	switch {
	case number >= uint64(len(m.seqs)):
		return m.latest()
	case number >= uint64(m.kept()):
		return m.seqs[number]
	case m.full():
		return m.seqs[m.kept()] - min(m.seqs[m.kept()], 1)
	default:
		return m.seqs[0]
	}
}

// gap counts the view_seqs after a context.
func (m *sentModel) gap(context uint64) uint64 {
	if m.full() && context < m.seqs[m.kept()] && context < m.latest() {
		return agents.MaxSent
	}
	newer := map[uint64]bool{}
	for _, seq := range m.seqs {
		if seq > context {
			newer[seq] = true
		}
	}
	return uint64(len(newer))
}

// TestNumbers holds an agent's own numbers, and the staleness that is counted in them,
// against a plain list of its deliveries: effects that it is not sent, ticks that have a
// number but no view_seq, views by another policy, which have the view_seq of the one
// before, and more deliveries than are kept.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.SampledFrom([]uint64{0, 1, 3, agents.MaxSent - 2, agents.MaxSent - 1, agents.MaxSent, 1000}).Draw(t, "threshold")
		r := newRun(t)
		r.must(r.core.Configure(parse(t, fmt.Sprintf(`{"authority":"sim","tick_effects":true,"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"staleness_threshold":%d}`, threshold))))
		r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"far":{}},"spatial_index":{"a":[0,0],"far":[5000,0]}}`)))
		hidden := func() { r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "far"}) }
		for range rapid.IntRange(0, 2).Draw(t, "before") {
			hidden()
		}
		register := func() {
			r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"distance_limit":10}`)}))
		}
		register()
		m := &sentModel{[]uint64{r.core.Seq()}, []bool{false}}
		steps := rapid.SampledFrom([]int{0, 1, 5, 30, agents.MaxSent - 1, agents.MaxSent, agents.MaxSent + 1, agents.MaxSent + 40}).Draw(t, "steps")
		for i := range steps {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				hidden()
			case 1:
				d := r.core.Decide(r.now, agents.Quantum{By: agents.CloseTick, SimTime: float64(i), Timed: true, SourceID: "a"}, nil)
				r.keep(d.Records)
				m.seqs, m.quiet = append(m.seqs, m.latest()), append(m.quiet, true)
			case 2:
				register()
				m.seqs, m.quiet = append(m.seqs, m.latest()), append(m.quiet, false)
			default:
				r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "a"})
				m.seqs, m.quiet = append(m.seqs, r.core.Seq()), append(m.quiet, false)
			}
		}
		restored, err := agents.RestoreCore(r.core.AppendState(nil), options)
		require.NoError(t, err)
		restored.Bind("w", r)
		for _, c := range []*agents.Core{r.core, restored} {
			for seq := range c.Seq() + 2 {
				require.Equal(t, m.number(seq), c.Number("a", seq), "the number of view_seq %d", seq)
			}
			for n := range uint64(len(m.seqs)) + 3 {
				require.Equal(t, m.viewSeq(n), c.ViewSeqOf("a", n), "the view_seq of number %d", n)
				require.Equal(t, m.context(n), c.ContextSeq(r.now, "a", n), "the context of number %d", n)
			}
			least := c.AdmissionStatus(r.now, "a").LeastContext
			for seq := range c.Seq() + 1 {
				gap := m.gap(seq)
				stale := threshold < agents.MaxSent && gap > threshold
				require.Equal(t, stale, seq < least, "view_seq %d, the least context is %d", seq, least)
				o, _ := c.Submit(r.now, speak("a", "r", seq))
				if !stale {
					require.NoError(t, o.Err(), "context %d of %d", seq, m.latest())
					continue
				}
				require.ErrorIs(t, o.Err(), agents.ErrStaleContext)
				require.Equal(t, fmt.Sprintf(agents.TextStale, agents.ReasonStale, gap, threshold), o.Rejection.Reason)
				require.Equal(t, [2]uint64{least, seq}, [2]uint64{o.Rejection.ExpectedSeq, o.Rejection.ActualSeq})
			}
		}
	})
}

// TestContextBeforeAllThatIsKept shows that a number older than all that are kept means a
// context older than all of them, however much older it is.
func TestContextBeforeAllThatIsKept(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Begin(parse(t, `{"entities":{"a":{}}}`)))
	r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"policy":"self"}`)}))
	const more = 7 // than are kept, with the view of the registration
	for range agents.MaxSent + more - 1 {
		r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "a"})
	}
	for number := range uint64(more) {
		require.Equal(t, uint64(more-1), r.core.ContextSeq(r.now, "a", number), "number %d", number)
	}
	require.Equal(t, uint64(more), r.core.ContextSeq(r.now, "a", more))
	require.Equal(t, uint64(agents.MaxSent+more-1), r.core.ContextSeq(r.now, "a", agents.MaxSent+more))
}

// TestUnknownAgents shows that a core answers about an agent that it does not know with
// nothing, and about the others at the time that is asked for.
func TestUnknownAgents(t *testing.T) {
	r := meadow(t, `{"latency_model":1000,"cooldowns":{"Speak":700},"staleness_threshold":9}`)
	r.pass(time.Second)
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	c := r.core
	require.Zero(t, c.Number("nobody", 1))
	require.Zero(t, c.ViewSeqOf("nobody", 1))
	require.Zero(t, c.ContextSeq(r.now, "nobody", 1))
	require.Zero(t, c.LatestViewSeq(r.now, "nobody"))
	require.Nil(t, c.Tokens("nobody"))
	require.True(t, c.Reached("nobody", 0))
	require.False(t, c.Receives("nobody", effect(t, 1, "Ping", "b", `{}`)))
	require.True(t, c.Receives("a", effect(t, 1, "Ping", "b", `{}`)))
	for what, known := range map[string]func(string) bool{
		"view":      func(agent string) bool { _, ok := c.View(agent); return ok },
		"full view": func(agent string) bool { _, ok := c.FullView(agent); return ok },
		"settings":  func(agent string) bool { _, ok := c.Settings(agent); return ok },
		"observer":  func(agent string) bool { _, ok := c.Observer(agent); return ok },
		"complete":  func(agent string) bool { _, ok := c.Complete(agent); return ok },
		"status":    func(agent string) bool { return c.AdmissionStatus(r.now, agent).Registered },
	} {
		require.True(t, known("a"), what)
		require.False(t, known("nobody"), what)
	}

	require.Equal(t, uint64(1), c.ViewSeqOf("a", 1), "a delta in flight is counted")
	require.Equal(t, uint64(0), c.ContextSeq(r.now, "a", 1), "a number that has not arrived")
	require.Equal(t, uint64(1), c.ContextSeq(r.now+time.Second, "a", 1), "a number that has arrived")
	require.False(t, c.Reached("a", 2*time.Second-1))
	require.True(t, c.Reached("a", 2*time.Second))

	o := r.submit(speak("a", "r", 0))
	require.NoError(t, o.Err())
	for _, tt := range []struct {
		after time.Duration
		want  []agents.Cooldown
	}{
		{0, []agents.Cooldown{{Kind: "Speak", Wait: 700 * time.Millisecond}}},
		{700*time.Millisecond - 1, []agents.Cooldown{{Kind: "Speak", Wait: 1}}},
		{700 * time.Millisecond, nil},
	} {
		require.Equal(t, tt.want, c.AdmissionStatus(r.now+tt.after, "a").Cooldowns, "%v later", tt.after)
	}
	s := c.AdmissionStatus(r.now, "a")
	require.Equal(t, [2]int64{1, 3}, [2]int64{s.Intents, s.Tokens})
	s = c.AdmissionStatus(r.now+time.Minute, "a")
	require.Equal(t, [2]int64{}, [2]int64{s.Intents, s.Tokens})
}

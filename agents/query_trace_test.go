package agents_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// questions are what is asked about each agent of a drawn log.
var questions = []query.LeakQuery{
	{Path: jsondoc.Pointer{}},
	{Path: jsondoc.Pointer{"visible_entities"}},
	{Path: jsondoc.Pointer{"visible_entities", "b"}},
	{Path: jsondoc.Pointer{"visible_entities", "e", "hp"}},
	{Path: jsondoc.Pointer{"visible_entities", "c~/d", "bag", "~", "0"}},
	{Path: jsondoc.Pointer{"visible_relationships", "a"}},
	{Path: jsondoc.Pointer{"visible_relationships", "b", "0"}},
	{Path: jsondoc.Pointer{"visible_entities", "none", "hp"}},
	{Path: jsondoc.Pointer{"context_digest"}},
	{Entity: "b"},
	{Entity: "c~/d"},
	{Entity: "e"},
	{Entity: "none"},
	{Text: "群"},
	{Text: "b"},
	{Text: "2"},
	{Text: "true"},
	{Text: "hp"},
	{Text: "r1"},
	{Text: "stale"},
	{Text: `"b"`},
}

// wordings quote ids, paths and secrets in many ways.
var wordings = []string{"hi", "群", "b", "ab b_", "a bb", "for b.", "b2 b", "hp of e", "in visible_entities", `{\"b\":\"\\u7fa4\"}`, "2", "bag/~ 群", "c~/d", "xc~/d", "c~/dx c~/d", "none hp"}

// questionedLog draws a log with all that a question reads.
func questionedLog(t *rapid.T) []kept {
	r := newRun(t)
	number := func(n int) int { return rapid.IntRange(0, n).Draw(t, "number") }
	r.must(r.core.Configure(parse(t, rapid.SampledFrom(coreConfigs).Draw(t, "config"))))
	register := func(id string) {
		r.must(r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, rapid.SampledFrom(lenses).Draw(t, "lens"))}))
	}
	wording := func() string { return rapid.SampledFrom(wordings).Draw(t, "wording") }
	for _, id := range ids[:3] {
		register(id)
	}
	for range 10 + number(20) {
		id := rapid.SampledFrom(ids[:3]).Draw(t, "agent")
		req := fmt.Sprint("r", number(2))
		var records []signal.Record
		switch number(16) {
		case 0, 1, 2, 3:
			e := drawEffect(t, 1)
			_, records = r.core.Broadcast(r.now, agents.EffectDraft{Kind: e.Kind, Payload: e.Payload, SourceID: e.SourceID})
		case 4, 5, 6:
			ask := agents.TokenRequest{AgentID: id, ReqID: req, Deadline: time.Duration(number(900)) * time.Millisecond, Current: number(3) > 0, Prompted: number(2) > 0}
			switch number(3) {
			case 1:
				ask.Reads = []string{"/entities/" + rapid.SampledFrom([]string{"a", "b", "e/hp"}).Draw(t, "read"), "/entities/f"}
			case 2:
				ask.Classes = []string{"Move", "Speak"}
			}
			_, records, _ = r.core.Issue(r.now, ask)
		case 7:
			in := drawIntent(t, r.core)
			in.AgentID, in.ReqID = id, req
			_, records = r.core.Submit(r.now, in)
		case 8:
			in := agents.Intent{Kind: "Speak", AgentID: id, ReqID: req, ContextSeq: r.core.Seq() - min(r.core.Seq(), uint64(number(2))), Payload: value(t, map[string]any{"text": wording()})}
			_, records = r.core.Submit(r.now, in)
		case 9:
			if records = r.core.Expire(r.now); len(records) == 0 {
				records, _ = r.core.Cancel(id, req, []string{"", wording()}[number(1)])
			}
		case 10:
			switch number(3) {
			case 0:
				records, _ = r.core.Leave(id)
			case 1:
				records, _ = r.core.Configure(parse(t, rapid.SampledFrom(coreConfigs).Draw(t, "config")))
			default:
				register(id)
			}
		case 11, 12:
			records, _ = r.core.Generated(id, req, drawAttempt(t, r.core, id, wording()))
		case 13:
			kind := rapid.SampledFrom([]string{"EpisodeStep", "Gossip", "Speak"}).Draw(t, "kind")
			_, records = r.core.Broadcast(r.now, agents.EffectDraft{Kind: kind, SourceID: rapid.SampledFrom(ids[:4]).Draw(t, "source"), Payload: value(t, map[string]any{
				"text": wording(), "channel": "public", "note": []any{number(3), true, wording()},
				"agents": []any{map[string]any{"agent": "b", "reward": number(3), "info": wording()}, 7, map[string]any{"agent": "a", wording(): []any{nil, wording()}}},
			})})
		default:
			r.advance(time.Duration([]int{0, 1, 20, 50, 400, 1000}[number(5)]) * time.Millisecond)
		}
		r.keep(records)
	}
	return r.log
}

// drawAttempt draws the record of a generation's answer, whole or contradictory.
func drawAttempt(t *rapid.T, c *agents.Core, agent, words string) signal.Value {
	number := func(n int) int { return rapid.IntRange(0, n).Draw(t, "number") }
	m := map[string]any{"text": words}
	if number(3) > 0 {
		m["finish"] = "stop"
	}
	prompt := []any{map[string]any{"role": "user", "content": words}}
	if number(4) > 0 {
		m[agents.MemberPromptDigest] = agents.PromptDigest(value(t, prompt))
		if number(5) == 0 {
			m[agents.MemberPromptDigest] = "another"
		}
		v, _ := c.View(agent)
		m[agents.MemberViewSeq], m[agents.MemberViewDigest] = v.ViewSeq+uint64(number(5)/5), v.ContextDigest
		if number(3) > 0 {
			m[agents.MemberPrompt] = prompt
		}
	}
	return value(t, m)
}

// Questions about drawn logs have the answers that they had: what an agent was sent and by
// which routes, how its view changed at a path, the outcomes of its requests, and the view by
// another policy. As with the trace of the cores, another version of rapid draws other logs.
func TestRecordedQuestions(t *testing.T) {
	golden.Trace(t, "testdata/questions.txt", func(step func(name, text string)) {
		for n := range 120 {
			log := rapid.Custom(questionedLog).Example(n)
			agent := ids[n%3]
			step(fmt.Sprint(n, " views"), viewsTold(t, log, agent))
			step(fmt.Sprint(n, " requests"), requestsTold(t, log, agent))
			step(fmt.Sprint(n, " policy"), policyTold(t, log, lenses[n%len(lenses)], agent))
			for _, q := range questions {
				step(fmt.Sprintf("%d leak %v%s%s", n, q.Path, q.Entity, q.Text), leaksTold(t, log, agent, q))
			}
		}
	})
}

// each folds a log and calls tell after each entry.
func each(t *testing.T, log []kept, tell func(out *strings.Builder, c *agents.Core, s *query.FoldedEntry)) string {
	t.Helper()
	c, err := agents.NewCore(options)
	require.NoError(t, err)
	var out strings.Builder
	for i, k := range log {
		s := query.Fold(c, uint64(i+1), k.at, k.record)
		fmt.Fprintln(&out, s.Entry, s.At, s.Record.Word, len(s.Passed))
		tell(&out, c, &s)
	}
	return out.String()
}

func causeOf(n query.TracedDelivery) string {
	return fmt.Sprintf("entry %d at %v by %+v: %s %d at %v", n.Entry, n.Made, n.Cause, n.Delivery.Agent, n.Delivery.Number, n.Delivery.At)
}

func viewsTold(t *testing.T, log []kept, agent string) string {
	t.Helper()
	told := query.NewDeliveredView(agent)
	var paths []*query.PathWatch
	for _, path := range []string{"", "/visible_entities", "/visible_entities/b", "/visible_entities/a/hp", "/visible_relationships/a/0", "/view_seq"} {
		paths = append(paths, watchOf(t, agent, path, nil))
	}
	paths = append(paths, watchOf(t, agent, "/visible_entities/b/hp", value(t, 2)))
	return each(t, log, func(out *strings.Builder, c *agents.Core, s *query.FoldedEntry) {
		require.NoError(t, told.Apply(s))
		presence, left := told.Presence()
		v := told.View()
		fmt.Fprintln(out, presence, left, s.Dismisses(agent), v.AgentID, v.ViewSeq, v.ContextDigest, v.VisibleEntities, v.VisibleRelationships)
		for _, n := range told.Pending() {
			fmt.Fprintln(out, "pending", causeOf(n))
		}
		by, at, ok := query.DeliveredBy(c, agent)
		if fmt.Fprintln(out, at, ok); ok {
			presence, left := by.Presence()
			fmt.Fprintln(out, presence, left, by.View().Value())
		}
		for i, w := range paths {
			for _, p := range w.Apply(c, s) {
				fmt.Fprintln(out, i, causeOf(p.TracedDelivery), p.Before, p.Value)
			}
			fmt.Fprintln(out, len(w.Coming()))
		}
		s.Cancelled(func(gone agents.Cancellation, end query.GenerationEnd) {
			fmt.Fprintf(out, "%+v %s %v\n", gone, end, end.Cancelled())
		})
	})
}

func requestsTold(t *testing.T, log []kept, agent string) string {
	t.Helper()
	var watches []*query.RequestWatch
	for i := range 3 {
		watches = append(watches, query.NewRequestWatch(agent, fmt.Sprint("r", i)))
	}
	return each(t, log, func(out *strings.Builder, c *agents.Core, s *query.FoldedEntry) {
		for _, w := range watches {
			w.Apply(c, s)
			r := w.Report()
			fmt.Fprintln(out, r.AgentID, r.ReqID, r.Dropped)
			for _, g := range r.Generations {
				fmt.Fprintf(out, "%d %v %+v, %d later, %s in %d at %v because %q, generated %d, stale at %v, put off %v since %v by %q\n",
					g.Entry, g.Token.Value(), g.Settings, g.Count, g.End, g.EndEntry, g.EndAt, g.Reason, g.Generated, g.StaleAt, g.PutOff, g.Interrupted, g.By)
				for _, l := range g.Later {
					fmt.Fprintln(out, causeOf(l.TracedDelivery), l.Own, l.Decisive, l.Matched)
				}
			}
			if ruling := r.Ruling; ruling != nil {
				fmt.Fprintln(out, ruling.Entry, ruling.At, fmt.Sprintf("%+v", ruling.Answer), ruling.Effect != nil, ruling.Problems())
			}
		}
	})
}

func policyTold(t *testing.T, log []kept, policy, agent string) string {
	t.Helper()
	one, err := query.NewPolicyWatch(parse(t, policy), options, agent, agent)
	require.NoError(t, err)
	all, err := query.NewPolicyWatch(parse(t, policy), options)
	require.NoError(t, err)
	differences := func(out *strings.Builder, list []query.PolicyDifference) {
		for _, d := range list {
			fmt.Fprintln(out, d.Entry, d.At, d.Cause, d.Agent, d.What, d.Path, d.Before, d.After, d.Standing)
		}
	}
	return each(t, log, func(out *strings.Builder, c *agents.Core, s *query.FoldedEntry) {
		differences(out, one.Apply(c, s, s.Entry > 5))
		if s.Entry%9 == 0 {
			differences(out, one.Standing(c))
		}
		differences(out, all.Apply(c, s, true))
		fmt.Fprintf(out, "%+v %v %+v\n", one.Tally, one.Tally.Same(), all.Tally)
	})
}

func leaksTold(t *testing.T, log []kept, agent string, q query.LeakQuery) string {
	t.Helper()
	w := query.NewLeakWatch(agent, q)
	return each(t, log, func(out *strings.Builder, c *agents.Core, s *query.FoldedEntry) {
		for _, l := range w.Apply(c, s) {
			fmt.Fprintln(out, causeOf(l.TracedDelivery), l.Route, l.Operation, l.Place, l.How)
		}
		if s.Entry%6 == 0 {
			w.Guidance(s.Entry, value(t, map[string]any{"content": wordings[int(s.Entry/6)%len(wordings)]}))
		}
		fmt.Fprintf(out, "%+v %v %v\n", w.Stats, w.Exists(), w.Unsearched())
	})
}

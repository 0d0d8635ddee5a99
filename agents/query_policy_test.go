package agents_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestPolicyWatch shows that what stands as different between two policies is
// what differs between the views of two cores, of which the second folds the same log
// with other registrations; and that a policy does not differ from itself.
func TestPolicyWatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		policy := parse(t, rapid.SampledFrom(lenses).Draw(t, "other policy"))
		agent := rapid.SampledFrom(ids[:3]).Draw(t, "asked about")
		watch, err := query.NewPolicyWatch(policy, options, agent)
		require.NoError(t, err)
		core, err := agents.NewCore(options)
		require.NoError(t, err)
		other, err := agents.NewCore(options)
		require.NoError(t, err)
		standing := map[string]string{} // what differs, as a listener keeps it
		for i, k := range log {
			s := query.Fold(core, uint64(i), k.at, k.record)
			found := watch.Apply(core, &s, true)
			r := k.record
			if id, _ := textMember(r.Value, "agent_id"); r.Word == agents.WordAgent && id == agent {
				again, err := other.Register(agents.Registration{AgentID: id, Policy: policy})
				require.NoError(t, err)
				r = again[0]
			}
			other.Apply(k.at, r)
			for _, d := range found {
				if d.Entry != uint64(i) || d.Agent != agent || d.At != k.at {
					t.Fatalf("entry %d at %v: %+v", i, k.at, d)
				}
				standing[d.Path] = fmt.Sprint(d.What, canonical(d.Before), canonical(d.After))
			}
			before, ok1 := core.View(agent)
			after, ok2 := other.View(agent)
			if ok1 != ok2 {
				t.Fatalf("entry %d: registered %v and %v", i, ok1, ok2)
			}
			want := map[string]string{}
			differing(want, before.VisibleEntities, after.VisibleEntities, "/visible_entities")
			differing(want, before.VisibleRelationships, after.VisibleRelationships, "/visible_relationships")
			got := map[string]string{}
			for _, d := range watch.Standing(core) {
				got[d.Path] = fmt.Sprint(d.What, canonical(d.Before), canonical(d.After))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("entry %d of %q, policy %v (-views +standing)\n%s", i, agent, policy, diff)
			}
			for path, text := range want {
				if standing[path] != text {
					t.Fatalf("entry %d: %s differs, %s, and was told as %q", i, path, text, standing[path])
				}
			}
		}
	})
}

// differing notes how two objects of a view differ: what only one has, and for
// what both have the operations that lead from one to the other.
func differing(want map[string]string, before, after signal.Value, at string) {
	for id, b := range before.Members() {
		path := at + jsondoc.Pointer{id}.String()
		a, ok := after.Get(id)
		if !ok {
			want[path] = fmt.Sprint(query.OnlyBefore, canonical(b), canonical(nil))
			continue
		}
		for _, op := range view.Diff(b, a, 1<<20) {
			p, err := jsondoc.ParsePointer(op.Path)
			if err != nil {
				panic(err)
			}
			old, _ := p.In(b)
			what := map[string]query.DifferenceKind{"add": query.OnlyAfter, "remove": query.OnlyBefore, "replace": query.Different}[op.Op]
			want[path+op.Path] = fmt.Sprint(what, canonical(old), canonical(op.Value))
		}
	}
	for id, a := range after.Members() {
		if _, ok := before.Get(id); !ok {
			want[at+jsondoc.Pointer{id}.String()] = fmt.Sprint(query.OnlyAfter, canonical(nil), canonical(a))
		}
	}
}

func textMember(v signal.Value, name string) (string, bool) {
	m, _ := v.Get(name)
	return m.Text()
}

// TestPolicyWatchSame shows that nothing differs under the policy that was, and
// that a policy which is none is refused before anything is looked at.
func TestPolicyWatchSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		policy := parse(t, rapid.SampledFrom(lenses).Draw(t, "policy"))
		watch, err := query.NewPolicyWatch(policy, options)
		require.NoError(t, err)
		core, err := agents.NewCore(options)
		require.NoError(t, err)
		for i, k := range log {
			if k.record.Word == agents.WordAgent {
				id, _ := textMember(k.record.Value, "agent_id")
				again, err := core.Register(agents.Registration{AgentID: id, Policy: policy})
				require.NoError(t, err)
				k.record = again[0]
			}
			s := query.Fold(core, uint64(i), k.at, k.record)
			if found := watch.Apply(core, &s, true); len(found) > 0 {
				t.Fatalf("entry %d: %+v", i, found)
			}
		}
		if n := watch.Tally; !n.Same() || n.DeltasBefore != n.DeltasAfter {
			t.Fatalf("%+v", n)
		}
	})
	for _, text := range []string{`{"policy":"nonsense"}`, `{"distance_limit":"far"}`, `{"staleness_threshold":-1}`, `[]`} {
		if _, err := query.NewPolicyWatch(parse(t, text), options); !errors.Is(err, view.ErrPolicy) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestRequestOfConflicts shows, of an agent that only conflicts interrupt, which
// deltas make its generation stale: none from before the generation, none that
// touches something else, and none of its own effects.
func TestRequestOfConflicts(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, `{"authority":"manual","cooldowns":"off","debounce_ms":100}`)))
	for _, id := range []string{"a", "b", "door", "bell"} {
		r.draft(agents.EffectDraft{Kind: "EntityCreated", SourceID: "b", Payload: parse(t, `{"entity_id":"`+id+`","entity_data":{}}`)})
	}
	r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"policy":"everything","interrupt":"only_conflict","latency_model":10}`)}))
	update := func(id, source string) {
		r.draft(agents.EffectDraft{Kind: "EntityUpdated", SourceID: source, Payload: parse(t, fmt.Sprintf(`{"entity_id":%q,"fields":{"n":%d}}`, id, r.core.Seq()))})
		r.advance(10 * time.Millisecond)
	}
	begin := func(req string, context uint64) {
		_, records, err := r.core.Issue(r.now, agents.TokenRequest{AgentID: "a", ReqID: req, ContextSeq: context, Reads: []string{"/entities/door"}, Classes: []string{"Alarm"}, Deadline: time.Hour})
		r.must(records, err)
	}
	context := r.core.Seq()
	update("door", "b") // entry 6: before the generation
	begin("r", context) // 7
	update("bell", "b") // 8: something else
	update("door", "a") // 9: its own
	update("door", "b") // 10
	begin("r", r.core.Seq())
	update("door", "b") // 12, within the debounce
	r.advance(200 * time.Millisecond)

	w := query.NewRequestWatch("a", "r")
	c, err := agents.NewCore(options)
	require.NoError(t, err)
	for i, k := range r.log {
		s := query.Fold(c, uint64(i), k.at, k.record)
		w.Apply(c, &s)
	}
	s := query.Fold(c, uint64(len(r.log)), r.now, signal.Record{})
	w.Apply(c, &s)
	report := w.Report()
	var got []string
	for _, g := range report.Generations {
		got = append(got, fmt.Sprintf("%d %s %s at %v, stale at %v, put off %v since %v %v", g.Entry, g.End, g.Reason, g.EndAt, g.StaleAt, g.PutOff, g.Interrupted, g.By))
		for _, n := range g.Later {
			got = append(got, fmt.Sprintf("  %d own %v decisive %v %v", n.Entry, n.Own, n.Decisive, n.Matched))
		}
	}
	want := `7 stale stale_due_to_conflict_seq_gap_4_threshold_0 at 40ms, stale at 40ms, put off false since 0s []
  6 own false decisive false []
  8 own false decisive false []
  9 own true decisive false []
  10 own false decisive true [{/entities/door /entities/door/n  false}]
11 stale stale_due_to_conflict_seq_gap_1_threshold_0 at 140ms, stale at 50ms, put off true since 40ms [r]
  12 own false decisive true [{/entities/door /entities/door/n  false}]`
	if diff := cmp.Diff(strings.Split(want, "\n"), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestRulingProblems shows what is read from the text of a refusal.
func TestRulingProblems(t *testing.T) {
	r := query.Ruling{Answer: agents.FinalOutcome{Reason: "in short; /payload/to: too far; at 3; or more; : no"}}
	want := []agents.Problem{{Path: "/payload/to", Reason: "too far; at 3; or more"}, {Path: "", Reason: "no"}}
	if diff := cmp.Diff(want, r.Problems()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestParsePointer goes through the RFC's own examples and what it forbids.
func TestParsePointer(t *testing.T) {
	doc := parse(t, `{"foo":["bar","baz"],"far":[1,2,[3,4,5]],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}`)
	for path, want := range map[string]string{
		"/far/1": `2`, "/far/2": `[3,4,5]`, "/far/2/2": `5`, "/far/2/1": `4`, "/foo/1": `"baz"`,
		"/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/": `0`, "/a~1b": `1`, "/c%d": `2`, "/e^f": `3`,
		"/g|h": `4`, `/i\j`: `5`, `/k"l`: `6`, "/ ": `7`, "/m~0n": `8`,
	} {
		if v, ok := pointer(t, path).In(doc); !ok || canonical(v) != want {
			t.Errorf("%q: %s, want %s", path, canonical(v), want)
		}
	}
	for _, path := range []string{"/foo/2", "/far/3", "/far/2/3", "/foo/-", "/foo/01", "/foo/+1", "/foo/0/x", "/nobody", "/foo/"} {
		if v, ok := pointer(t, path).In(doc); ok {
			t.Errorf("%q leads to %v", path, v)
		}
	}
	for _, path := range []string{"foo", "/a~", "/a~2", "/~a/b", "~", " /a", strings.Repeat("/x", signal.MaxDepth+2)} {
		if p, err := jsondoc.ParsePointer(path); !errors.Is(err, jsondoc.ErrPointer) {
			t.Errorf("%q is read as %v, %v", path, p, err)
		}
	}
	if p, err := view.ParseViewPath("a/b~"); err != nil || p.String() != "/visible_entities/a~1b~0" {
		t.Errorf("an id: %v, %v", p, err)
	}
	if _, err := view.ParseViewPath(strings.Repeat("x", world.MaxID)); err != nil {
		t.Errorf("the longest id: %v", err)
	}
	if _, err := view.ParseViewPath(strings.Repeat("x", world.MaxID+1)); !errors.Is(err, jsondoc.ErrPointer) {
		t.Errorf("a long id: %v", err)
	}
}

// FuzzParsePointer: what is read is written the same, and leads nowhere in a
// value that is none.
func FuzzParsePointer(f *testing.F) {
	for _, s := range []string{"", "/", "/a/b", "/~0~1", "/a~", "//", "x"} {
		f.Add(s, []byte{0x81, 0xa1, 'a', 0x91, 0x01})
	}
	f.Fuzz(func(t *testing.T, s string, doc []byte) {
		p, err := jsondoc.ParsePointer(s)
		if err != nil {
			return
		}
		if p.String() != s {
			t.Fatalf("%q is written %q", s, p)
		}
		if v, ok := p.In(doc); ok && v.Kind() == signal.KindAbsent {
			t.Fatalf("%q leads to nothing in %x", s, doc)
		}
	})
}

// TestAcceptedIsNotStale shows that no delta is called decisive for a generation that was
// accepted: neither its own effect nor one that a threshold allowed.
func TestAcceptedIsNotStale(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off","staleness_threshold":1}`)
	_, records, err := r.core.Issue(r.now, agents.TokenRequest{AgentID: "a", ReqID: "r", Current: true, Deadline: time.Hour})
	r.must(records, err)
	r.draft(agents.EffectDraft{Kind: "EntityUpdated", SourceID: "b", Payload: parse(t, `{"entity_id":"b","fields":{"n":1}}`)})
	require.NoError(t, r.submit(speak("a", "r", 0)).Err())
	w := query.NewRequestWatch("a", "r")
	c, err := agents.NewCore(options)
	require.NoError(t, err)
	for i, k := range r.log {
		s := query.Fold(c, uint64(i), k.at, k.record)
		w.Apply(c, &s)
	}
	g := w.Report().Generations[0]
	require.Equal(t, query.EndAccepted, g.End)
	require.Len(t, g.Later, 1)
	require.Equal(t, 1, g.Count)
	require.False(t, g.Later[0].Own || g.Later[0].Decisive)
}

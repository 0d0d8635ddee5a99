package agents_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
)

// checkState takes the state up again and compares what is due.
func (r *run) checkState() {
	r.t.Helper()
	c, err := agents.RestoreCore(r.core.AppendState(nil), options)
	if err != nil {
		r.t.Fatal(err)
	}
	at1, ok1 := r.core.Next()
	at2, ok2 := c.Next()
	if at1 != at2 || ok1 != ok2 {
		r.t.Fatalf("next is %v %v, taken up again %v %v", at1, ok1, at2, ok2)
	}
}

// TestInFlightIsBounded shows that the deltas in flight are bounded in number and in
// bytes, that those beyond conflict with every generation, and that a delta that has
// arrived is not counted, even if no call read the agent since.
func TestInFlightIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		effect agents.EffectDraft
		many   int
	}{
		{"number", agents.EffectDraft{Kind: "Ping", SourceID: "b"}, agents.MaxInFlight + 50},
		{"bytes", agents.EffectDraft{Kind: "Ping", SourceID: "b", Payload: parse(t, fmt.Sprintf(`{"conflict_class":["%s"]}`, strings.Repeat("x", 1000)))}, 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRun(t)
			r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"b":{}},"spatial_index":{"a":[0,0],"b":[1,0]}}`)))
			r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"interrupt":"only_conflict","latency_model":60000,"deadline_ms":0}`)}))
			r.issue("one", "/entities/elsewhere")
			r.pass(time.Second)
			most := 0
			for i := range tt.many {
				if _, ok := r.core.Next(); ok != (most > 0) {
					t.Fatalf("after %d something is due: %v", i, ok)
				}
				r.draft(tt.effect)
				if _, ok := r.core.Next(); ok && most == 0 {
					most = i + 1
					r.checkState()
				}
			}
			r.checkState()
			if most == 0 || most < tt.many/2 {
				t.Fatalf("the bound is at %d of %d", most, tt.many)
			}
			size := len(r.core.AppendState(nil))
			r.issue("two", "/entities/elsewhere") // nothing has arrived, so it is based on no delta
			r.checkState()
			r.pass(time.Minute)
			if got := r.cancelled(); strings.Count(got, "1m1s") != 2 {
				t.Errorf("cancelled\n%s", got)
			}
			if left := len(r.core.AppendState(nil)); left > 2000 {
				t.Errorf("%d bytes of %d are left when all has arrived", left, size)
			}
		})
	}
}

// A delta that would not have room is not joined with one that has arrived, so that what an
// agent has seen does not go back.
func TestArrivedDeltasStay(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"b":{}},"spatial_index":{"a":[0,0],"b":[1,0]}}`)))
	r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"latency_model":60000}`)}))
	r.pass(time.Hour)
	for range agents.MaxInFlight {
		r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	}
	r.pass(time.Hour)
	seen := r.core.LatestViewSeq(r.now, "a")
	if want := r.core.Seq(); seen != want {
		t.Fatalf("seen %d, want %d", seen, want)
	}
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	if now := r.core.LatestViewSeq(r.now, "a"); now != seen {
		t.Errorf("seen %d, before %d", now, seen)
	}
}

// TestNothingToInterrupt shows that a delta in flight to an agent without a generation
// sets no timer, and that it counts for a token that is issued later.
func TestNothingToInterrupt(t *testing.T) {
	r := meadow(t, `{"latency_model":1000,"debounce_ms":0,"deadline_ms":0}`)
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	r.pass(100 * time.Millisecond)
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	if at, ok := r.core.Next(); ok {
		t.Errorf("next is %v", at)
	}
	r.pass(900 * time.Millisecond)
	if got := r.core.LatestViewSeq(r.now, "a"); got != 1 {
		t.Errorf("%d has reached a, want 1", got)
	}
	r.issue("one")
	if at, ok := r.core.Next(); !ok || at != 1100*time.Millisecond {
		t.Errorf("next is %v %v", at, ok)
	}
	r.pass(100 * time.Millisecond)
	if got, want := r.cancelled(), "1.1s one stale_due_to_seq_gap_1_threshold_0\n"; got != want {
		t.Errorf("cancelled %q, want %q", got, want)
	}
	if len(r.log) == 0 || r.log[len(r.log)-1].record.Word != "" {
		t.Error("no mark of the time")
	}
	ahead := r.ahead()
	if !bytes.Equal(ahead.AppendState(nil), r.core.AppendState(nil)) {
		t.Error("another state")
	}
}

// TestCrosses compares the search for paths that conflict with one that asks
// each of them.
func TestCrosses(t *testing.T) {
	path := rapid.StringOfN(rapid.SampledFrom([]rune("/ab!~")), 0, 6, -1)
	below := func(path, other string) bool {
		return strings.HasPrefix(path, other) && (len(path) == len(other) || path[len(other)] == '/')
	}
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfN(path, 0, 6).Draw(t, "paths")
		slices.Sort(paths)
		one := path.Draw(t, "path")
		want := slices.ContainsFunc(paths, func(p string) bool { return below(p, one) || below(one, p) })
		if got := agents.Crosses(paths, one); got != want {
			t.Fatalf("%q and %q: %v, want %v", one, paths, got, want)
		}
	})
}

// TestJoinedDeltas shows that a delta beyond the bound is joined with the last one: the result
// is one that changes the view if one of the two does, and the agent's own if both are; it
// conflicts with whatever a generation reads, unless it is the agent's own.
func TestJoinedDeltas(t *testing.T) {
	ping := func(source string) agents.EffectDraft { return agents.EffectDraft{Kind: "Ping", SourceID: source} }
	says := func(source string) agents.EffectDraft {
		return agents.EffectDraft{Kind: "Speak", SourceID: source, Payload: parse(t, `{"text":"hi"}`)}
	}
	const viewed, read = "1m0s view stale_due_to_conflict", "1m0s reads stale_due_to_conflict"
	for _, c := range []struct {
		name string
		last []agents.EffectDraft
		want []string
	}{
		{"nothing is joined", []agents.EffectDraft{ping("b")}, nil},
		{"neither changes the view", []agents.EffectDraft{ping("b"), ping("b")}, []string{read}},
		{"the first changes the view", []agents.EffectDraft{says("b"), ping("b")}, []string{read, viewed}},
		{"the second changes the view", []agents.EffectDraft{ping("b"), says("b")}, []string{read, viewed}},
		{"one of three changes the view", []agents.EffectDraft{says("b"), ping("b"), ping("b")}, []string{read, viewed}},
		{"both are the agent's own", []agents.EffectDraft{says("a"), says("a")}, nil},
		{"the first is the agent's own", []agents.EffectDraft{ping("a"), says("b")}, []string{read, viewed}},
		{"the second is the agent's own", []agents.EffectDraft{says("b"), ping("a")}, []string{read, viewed}},
		{"the agent's own and one without a change", []agents.EffectDraft{ping("a"), ping("b")}, []string{read}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t)
			r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"b":{}},"spatial_index":{"a":[0,0],"b":[1,0]}}`)))
			r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"interrupt":"only_conflict","debounce_ms":0,"latency_model":60000,"deadline_ms":0}`)}))
			r.issue("view")
			r.issue("reads", "/entities/elsewhere")
			for range agents.MaxInFlight - 1 {
				r.draft(ping("b"))
			}
			for _, last := range c.last {
				r.draft(last)
			}
			r.checkState()
			r.pass(time.Minute)
			var got []string
			for line := range strings.Lines(r.cancelled()) {
				got = append(got, line[:strings.Index(line, "conflict")+len("conflict")])
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

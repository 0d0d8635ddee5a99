package agents_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestConflictAtTheBeginning shows that session time 0 is a time like others:
// news that arrives then interrupts what it conflicts with, also when the state was
// taken up in between.
func TestConflictAtTheBeginning(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"b":{}},"spatial_index":{"a":[0,0],"b":[1,0]}}`)))
	r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"interrupt":"only_conflict","deadline_ms":0}`)}))
	r.issue("one", "/entities/b")
	r.issue("two", "/entities/elsewhere")
	r.draft(agents.EffectDraft{Kind: "EntityUpdated", SourceID: "b", Payload: parse(t, `{"entity_id":"b","fields":{"x":1}}`)})
	r.checkState()
	if got, want := r.cancelled(), "0s one stale_due_to_conflict_seq_gap_1_threshold_0\n"; got != want {
		t.Errorf("cancelled %q, want %q", got, want)
	}
}

// TestRegisteredAgain shows that a new view is in flight like other deltas: until
// it arrives, intents may be based on the old one and are not stale, and deltas that
// were in flight still conflict when they arrive. The new view has the view_seq of the
// delta before it.
func TestRegisteredAgain(t *testing.T) {
	r := meadow(t, `{"latency_model":1000,"cooldowns":"off","deadline_ms":0,"interrupt":"only_conflict"}`)
	r.pass(time.Second)
	r.issue("one", "/entities/b")
	r.draft(agents.EffectDraft{Kind: "EntityUpdated", SourceID: "b", Payload: parse(t, `{"entity_id":"b","fields":{"x":1}}`)})
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "c"})
	r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"policy":"everything"}`)}))
	r.checkState()
	if got := r.core.LatestViewSeq(r.now, "a"); got != 0 {
		t.Errorf("%d has reached a before anything could", got)
	}
	if o := r.submit(speak("a", "before", 0)); !o.OK() {
		t.Errorf("stale by what has not arrived: %v", o.Err())
	}
	r.pass(time.Second)
	if got, want := r.cancelled(), "2s one stale_due_to_conflict_seq_gap_2_threshold_0\n"; got != want {
		t.Errorf("cancelled %q, want %q", got, want)
	}
	r.checkState()
}

// TestEndOfTime shows that the core still decides at the last session time there is.
func TestEndOfTime(t *testing.T) {
	r := meadow(t, `{"latency_model":1000,"debounce_ms":1000,"cooldowns":"off"}`)
	r.pass(math.MaxInt64)
	for range 2 {
		r.issue("one")
		r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
		r.checkState()
	}
	if d := r.arrived["a"]; d.At != math.MaxInt64 {
		t.Errorf("told at %v", d.At)
	}
	if n := len(r.gone); n != 2 {
		t.Errorf("%d generations were interrupted, want 2", n)
	}
	r.issue("late")
	r.keep(r.core.Expire(r.now))
	if a, ok := r.Answered("a", "late"); !ok || a.Code != agents.ErrTimeout {
		t.Errorf("at the end a generation is answered %v", a)
	}
}

// TestSecretsOfAnyKind shows that the channel of an effect counts for every kind of
// effect: an agent outside of the channel receives no delta.
func TestSecretsOfAnyKind(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Begin(parse(t, `{"entities":{"a":{"team":"red"},"b":{"team":"red"},"c":{"team":"blue"}}}`)))
	policies := map[string]string{"a": `{"policy":"everything"}`, "b": `{"policy":"everything"}`, "c": `{"policy":"everything"}`, "d": `{"policy":"channel","channels":["public"]}`}
	for _, id := range []string{"a", "b", "c", "d"} {
		r.must(r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, policies[id])}))
	}
	for _, tt := range []struct {
		payload string
		want    []string
	}{
		{`{"channel":"private","target_id":"b"}`, []string{"a", "b"}},
		{`{"channel":"private","target_id":"d"}`, []string{"a"}},
		{`{"channel":"team"}`, []string{"a", "b"}},
		{`{"channel":"public"}`, []string{"a", "b", "c", "d"}},
		{`{"channel":"long wave"}`, []string{"a", "b", "c", "d"}},
		{`{}`, []string{"a", "b", "c", "d"}},
	} {
		_, records := r.core.Broadcast(r.now, agents.EffectDraft{Kind: "Whisper", SourceID: "a", Payload: parse(t, tt.payload)})
		var told []string
		for _, d := range r.core.Apply(r.now, records[0]).Deliveries {
			told = append(told, d.Agent)
		}
		if !slices.Equal(told, tt.want) {
			t.Errorf("%s: deltas for %v, want %v", tt.payload, told, tt.want)
		}
	}
}

// moody is a policy that panics whenever it is asked, or when it is made.
type moody struct{ reach bool }

func (moody) Sees(*view.Viewpoint, string) bool                     { panic("sees") }
func (moody) Shows(*view.Viewpoint, string, string) bool            { panic("shows") }
func (moody) Covers(*view.Viewpoint, world.Position) bool           { panic("covers") }
func (moody) Receives(*view.Viewpoint, world.Effect) view.Reception { panic("hears") }
func (m moody) Dependencies() view.Dependencies {
	if m.reach {
		panic("reach")
	}
	return view.Opaque()
}

// TestPolicyPanics shows that a policy of the program's own that panics shows
// nothing, and that one that cannot be made is refused.
func TestPolicyPanics(t *testing.T) {
	c, err := agents.NewCore(agents.Options{Customs: []view.Custom{
		{Name: "moody", Compile: func(signal.Value) (view.Policy, error) { return moody{}, nil }},
		{Name: "boundless", Compile: func(signal.Value) (view.Policy, error) { return moody{reach: true}, nil }},
		{Name: "stillborn", Compile: func(signal.Value) (view.Policy, error) { panic("compile") }},
	}})
	require.NoError(t, err)
	c.Bind("w", nil)
	policy := func(name string) signal.Value {
		return parse(t, `{"policy":"custom","version":0,"name":"`+name+`"}`)
	}
	for _, name := range []string{"boundless", "stillborn"} {
		if _, err := c.Register(agents.Registration{AgentID: "a", Policy: policy(name)}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, decide := range []func() ([]signal.Record, error){
		func() ([]signal.Record, error) { return c.Begin(parse(t, `{"entities":{"a":{"hp":1},"b":{}}}`)) },
		func() ([]signal.Record, error) {
			return c.Register(agents.Registration{AgentID: "a", Policy: policy("moody")})
		},
		func() ([]signal.Record, error) {
			_, records := c.Broadcast(0, agents.EffectDraft{Kind: "Hit", SourceID: "b", Payload: parse(t, `{"position":[1,2]}`)})
			return records, nil
		},
	} {
		records, err := decide()
		require.NoError(t, err)
		for _, r := range records {
			if out := c.Apply(0, r); out.Err != nil {
				t.Fatal(out.Err)
			}
		}
	}
	v, _ := c.View("a")
	if got, want := v.VisibleEntities.String(), `{"a":{}}`; got != want || v.ViewSeq != 0 {
		t.Errorf("it is shown %s of %d, want %s", got, v.ViewSeq, want)
	}
}

// TestUntimely shows that a submission whose time is not finite is refused at once;
// in the queue it would wait for ever.
func TestUntimely(t *testing.T) {
	r := meadow(t, `{"authority":"sim"}`)
	var intake agents.Intake
	in := speak("a", "r", 0)
	for _, s := range []agents.Submission{{Intent: &in}, {Draft: &agents.EffectDraft{Kind: "Ping", SourceID: "b"}}} {
		for _, at := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			s.Timed, s.SimTime = true, at
			if o := intake.Offer(r.core, r.now, s); o.Ticket != 0 || intake.Len() != 0 {
				t.Errorf("%v at %v waits", s, at)
			} else {
				wantCode(t, o.Outcome, agents.ErrInvalidIntent)
				want := "b"
				if s.Intent != nil {
					want = "a"
				}
				require.Equal(t, want, o.Outcome.Rejection.AgentID)
			}
		}
	}
}

// TestLimit shows that a payload beyond [agents.Core.Limit] is refused as malformed,
// of intents and of drafts, and that the rest of its quantum is decided.
func TestLimit(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off"}`)
	r.core.Limit(20)
	large, small := speak("a", "large", 0), speak("a", "small", 0)
	large.Payload = parse(t, `{"text":"more than there is room for"}`)
	d := r.core.Decide(r.now, agents.Quantum{By: agents.CloseFlush}, []agents.Submission{
		{Intent: &large}, {Intent: &small}, {Draft: &agents.EffectDraft{Kind: "Ping", SourceID: "b", Payload: large.Payload}},
	})
	wantCode(t, d.Outcomes[0], agents.ErrInvalidIntent)
	wantCode(t, d.Outcomes[2], agents.ErrInvalidIntent)
	if !d.Outcomes[1].OK() {
		t.Errorf("the small one: %v", d.Outcomes[1].Err())
	}
	r.keep(d.Records)
	var intake agents.Intake
	wantCode(t, intake.Offer(r.core, r.now, agents.Submission{Intent: &large}).Outcome, agents.ErrInvalidIntent)
}

// TestWithdraw shows that a request that is withdrawn while it waits gets its final
// outcome, once.
func TestWithdraw(t *testing.T) {
	r := meadow(t, `{"authority":"sim","cooldowns":"off"}`)
	r.keep(r.core.Withdraw("a", "r"))
	o := r.submit(speak("a", "r", 0))
	wantCode(t, o, agents.ErrCancelled)
	if again := r.core.Withdraw("a", "r"); again != nil || o.Status != agents.Duplicate {
		t.Errorf("answered %v, and once more by %v", o.Status, again)
	}
	if records := r.core.Withdraw("nobody", "r"); records != nil {
		t.Errorf("of an unknown agent: %v", records)
	}
}

// TestBeginRefusesTrailingBytes shows that a world is one value: bytes behind it would
// be recorded and read back by nothing.
func TestBeginRefusesTrailingBytes(t *testing.T) {
	c, err := agents.NewCore(options)
	require.NoError(t, err)
	v := parse(t, `{"entities":{"a":{}}}`)
	_, err = c.Begin(append(slices.Clone(v), v...))
	require.Error(t, err)
	_, err = c.Begin(v)
	require.NoError(t, err)
}

// TestBeginRefuses shows the worlds that nothing begins with, and when none can begin any more.
func TestBeginRefuses(t *testing.T) {
	c, err := agents.NewCore(options)
	require.NoError(t, err)
	deep := func(levels int) string {
		return `{"metadata":` + strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) + "}"
	}
	for text, want := range map[string]string{
		`[]`:              "object",
		`{"entities":[]}`: "/entities: want an object",
		`{"relationships":{"a":[{"to":"b","since":1}]}}`:  "/relationships/a/0/since",
		`{"typed_relationships":[{"from":"","to":"b"}]}`:  "an id has 1 to 256 bytes",
		`{"entities":{"a":{}},"spatial_index":{"a":[1]}}`: "/spatial_index/a",
		deep(world.MaxEntityDepth + 1):                    "too large",
		deep(world.MaxEntityDepth + 20):                   "world: ",
	} {
		records, err := c.Begin(parse(t, text))
		require.ErrorContains(t, err, want, text)
		require.Empty(t, records)
	}
	_, err = c.Begin(parse(t, deep(world.MaxEntityDepth)))
	require.NoError(t, err)
	begun := []func(r *run){
		func(r *run) { r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"}) },
		func(r *run) { r.must(r.core.Register(agents.Registration{AgentID: "a"})) },
	}
	for _, do := range begun {
		r := newRun(t)
		do(r)
		_, err := r.core.Begin(parse(t, `{}`))
		require.ErrorIs(t, err, agents.ErrBegun)
	}
}

// TestTokensAreBounded shows that an agent has MaxTokens generations at most, when they
// are issued and when their records are folded.
func TestTokensAreBounded(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Register(agents.Registration{AgentID: "a"}))
	request := func(i int) agents.TokenRequest {
		return agents.TokenRequest{AgentID: "a", ReqID: fmt.Sprint(i), Current: true}
	}
	for i := range agents.MaxTokens {
		_, records, err := r.core.Issue(r.now, request(i))
		r.must(records, err)
	}
	_, _, err := r.core.Issue(r.now, request(agents.MaxTokens))
	require.ErrorIs(t, err, agents.ErrQueueFull)

	forged := agents.Token{AgentID: "a", ReqID: "one too many"}
	out := r.core.Apply(r.now, signal.Record{Word: agents.WordToken, Value: forged.Value()})
	require.ErrorIs(t, out.Err, agents.ErrRecord)
	require.Len(t, r.core.Tokens("a"), agents.MaxTokens)

	forged.ReqID = "0" // replaces one
	out = r.core.Apply(r.now, signal.Record{Word: agents.WordToken, Value: forged.Value()})
	require.NoError(t, out.Err)
	require.Len(t, r.core.Tokens("a"), agents.MaxTokens)
}

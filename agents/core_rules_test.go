package agents_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestRetry shows that a refusal that may change leaves the req_id free, and a
// final one does not.
func TestRetry(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off"}`)
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	wantCode(t, r.submit(speak("a", "r", 0)), agents.ErrStaleContext)
	if o := r.submit(speak("a", "r", 1)); !o.OK() || o.Status != agents.Accepted {
		t.Fatalf("the second try: %v", o.Err())
	}
	bad := speak("a", "bad", 2)
	bad.Payload = signal.Value("\x80")
	o := r.submit(bad)
	wantCode(t, o, agents.ErrInvalid)
	again := speak("a", "bad", 2)
	if o := r.submit(again); o.Status != agents.Duplicate {
		t.Errorf("a request that was refused for good is answered %v", o.Status)
	}
	if r.effects != 2 {
		t.Errorf("%d effects, want 2", r.effects)
	}
}

// TestStaleByOwnSight shows that only what an agent can see makes it stale.
func TestStaleByOwnSight(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off"}`)
	for range 3 {
		r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "c"})
	}
	if o := r.submit(speak("a", "r1", 0)); !o.OK() {
		t.Error(o.Err())
	}
	wantCode(t, r.submit(speak("c", "r1", 0)), agents.ErrStaleContext)
}

// TestQuantumIsOneInstant shows that effects of one quantum make none of its intents
// stale, and that the first of two conflicting intents in order is accepted.
func TestQuantumIsOneInstant(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off","rules":{"min_separation":1}}`)
	move := func(agent string, priority int) *agents.Intent {
		return &agents.Intent{Kind: "Move", Payload: parse(t, `{"to":[1,1]}`), ReqID: "r", AgentID: agent, Priority: priority}
	}
	d := r.core.Decide(0, agents.Quantum{By: agents.CloseFlush}, []agents.Submission{{Intent: move("a", 0)}, {Intent: move("b", 5)}})
	wantCode(t, d.Outcomes[0], agents.ErrIntentConflict)
	if !d.Outcomes[1].OK() {
		t.Error(d.Outcomes[1].Err())
	}
	r.keep(d.Records)
	if _, ok := r.core.Answered("a", "r"); ok {
		t.Error("a conflict is remembered")
	}
}

// TestQuota goes over the edge of the window and of a cooldown.
func TestQuota(t *testing.T) {
	r := meadow(t, `{"quota_intents_per_minute":2,"cooldowns":{"Speak":1000},"staleness_threshold":100}`)
	for i, step := range []struct {
		at   time.Duration
		want agents.Code
	}{
		{0, ""},
		{999 * time.Millisecond, agents.ErrCooldownActive},
		{time.Second, ""},
		{30 * time.Second, agents.ErrQuotaExceeded},
		{time.Minute - 1, agents.ErrQuotaExceeded},
		{time.Minute, ""},
		{61*time.Second - 1, agents.ErrQuotaExceeded},
		{61 * time.Second, ""},
	} {
		r.advance(step.at - r.now)
		o := r.submit(speak("a", fmt.Sprint("r", i), 0))
		if step.want == "" && o.Err() != nil || step.want != "" && !errors.Is(o.Err(), step.want) {
			t.Errorf("at %v: %v, want %q", step.at, o.Err(), step.want)
		}
		if step.want != "" && o.Rejection != nil {
			if later, _ := r.core.Submit(r.now+o.Rejection.RetryAfter, speak("a", fmt.Sprint("r", i), 0)); !later.OK() {
				t.Errorf("at %v: not after RetryAfter %v either: %v", step.at, o.Rejection.RetryAfter, later.Err())
			}
		}
	}
}

// The uses of the last minute, the requests that are allowed now and the waits for the others
// equal those of a plain list of everything that the agent was granted.
func TestQuotaOfAList(t *testing.T) {
	type grant struct {
		at     time.Duration
		kind   string
		tokens int64
	}
	rapid.Check(t, func(rt *rapid.T) {
		intents, tokens := rapid.SampledFrom([]int64{-1, 0, 1, 2, 5}).Draw(rt, "intents"), rapid.SampledFrom([]int64{-1, 3, 7, 20}).Draw(rt, "tokens")
		wait := map[string]time.Duration{"Speak": 9 * time.Second, "Move": 0, "Custom": time.Second}
		r := meadow(t, fmt.Sprintf(`{"quota_intents_per_minute":%d,"quota_tokens_per_minute":%d,"cooldowns":{"Speak":9000,"Custom":1000,"Move":0},"staleness_threshold":1000,"intent_kinds":["Custom"]}`, intents, tokens))
		var granted []grant
		for i := range rapid.IntRange(1, 25).Draw(rt, "requests") {
			r.advance(time.Duration(rapid.SampledFrom([]int64{0, 1, 1000, 9000, 8999, 20_000, 30_000, 59_999, 60_000}).Draw(rt, "ms")) * time.Millisecond)
			kind, text := rapid.SampledFrom([]string{"Speak", "Move", "Custom"}).Draw(rt, "kind"), strings.Repeat("x", rapid.IntRange(1, 20).Draw(rt, "text"))
			in := speak("a", fmt.Sprint(i), 0)
			in.Kind, in.Payload = kind, parse(t, `{"to":[0,0],"text":"`+text+`"}`)
			asked := int64(len(`{"to":[0,0],"text":""}`)+len(text)) / 4 // a token has four characters

			var used, spent int64
			oldest, last := time.Duration(-1), time.Duration(-1)
			for _, g := range granted {
				if r.now-g.at < time.Minute {
					if used++; oldest < 0 {
						oldest = g.at
					}
					spent += g.tokens
				}
				if g.kind == kind {
					last = g.at
				}
			}
			want, after := agents.Code(""), time.Duration(0)
			switch {
			case intents >= 0 && used >= intents || tokens >= 0 && spent+asked > tokens:
				if want = agents.ErrQuotaExceeded; intents != 0 && (tokens < 0 || asked <= tokens) {
					after = time.Minute - (r.now - oldest)
				}
			case last >= 0 && r.now < last+wait[kind]:
				want, after = agents.ErrCooldownActive, last+wait[kind]-r.now
			}
			status := r.core.AdmissionStatus(r.now, "a")
			if counted := intents >= 0 || tokens >= 0; counted {
				require.Equal(t, used, status.Intents)
				require.Equal(t, spent, status.Tokens)
			}
			cooling := map[string]time.Duration{}
			for _, c := range status.Cooldowns {
				cooling[c.Kind] = c.Wait
			}
			require.Equal(t, last >= 0 && r.now < last+wait[kind], cooling[kind] > 0)
			if cooling[kind] > 0 {
				require.Equal(t, last+wait[kind]-r.now, cooling[kind])
			}
			o := r.submit(in)
			if want == "" {
				require.NoError(t, o.Err())
				granted = append(granted, grant{r.now, kind, asked})
				continue
			}
			require.ErrorIs(t, o.Err(), want)
			require.Equal(t, after, o.Rejection.RetryAfter)
		}
	})
}

// TestRecordedTokens shows which tokens a recorded refusal uses of a quota: those of its
// record, within the bounds of a payload. A log of another program may have any number.
func TestRecordedTokens(t *testing.T) {
	for tokens, want := range map[string]int64{
		``: 0, `,"tokens":0`: 0, `,"tokens":-5`: 0, `,"tokens":"many"`: 0, `,"tokens":1`: 1,
		fmt.Sprintf(`,"tokens":%d`, world.MaxPayload): world.MaxPayload, fmt.Sprintf(`,"tokens":%d`, world.MaxPayload+1): world.MaxPayload,
	} {
		r := meadow(t, `{"quota_tokens_per_minute":1000000000}`)
		for code, uses := range map[agents.Code]int64{agents.ErrInvalid: 1, agents.ErrTimeout: 0, agents.ErrCancelled: 0} {
			before := r.core.AdmissionStatus(0, "a")
			out := r.core.Apply(0, signal.Record{Word: agents.WordOutcome, Value: parse(t, `{"agent_id":"a","req_id":"r","code":"`+string(code)+`","reason":"why"`+tokens+`}`)})
			require.NoError(t, out.Err)
			after := r.core.AdmissionStatus(0, "a")
			require.Equal(t, uses, after.Intents-before.Intents, "%s%s", code, tokens)
			require.Equal(t, uses*want, after.Tokens-before.Tokens, "%s%s", code, tokens)
		}
	}
}

// TestBatch shows that a batch is kept as a whole or not at all.
func TestBatch(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off"}`)
	bad := speak("b", "r2", 0)
	bad.Payload = signal.Value("\x80")
	before := r.core.AppendState(nil)
	d := r.core.DecideBatch(0, []agents.Intent{speak("a", "r1", 0), bad, speak("a", "r1", 0)})
	wantCode(t, d.Outcomes[0], agents.ErrBatchAborted)
	wantCode(t, d.Outcomes[1], agents.ErrInvalid)
	wantCode(t, d.Outcomes[2], agents.ErrBatchAborted)
	r.keep(d.Records)
	if r.effects != 0 || bytes.Equal(before, r.core.AppendState(nil)) {
		t.Errorf("a refused batch has %d effects, and left no use of the refused one's quota", r.effects)
	}
	if o := r.submit(speak("b", "r2", 0)); o.Status != agents.Duplicate || !errors.Is(o.Err(), agents.ErrInvalid) {
		t.Errorf("what was refused for good in a batch is answered %v", o)
	}
	d = r.core.DecideBatch(0, []agents.Intent{speak("a", "r1", 0), speak("b", "r3", 0)})
	r.keep(d.Records)
	if r.effects != 2 || len(d.Records) != 3 || d.Records[0].Word != agents.WordQuantum {
		t.Errorf("%d effects, records %v", r.effects, d.Records)
	}
}

func (r *run) issue(req string, reads ...string) {
	r.t.Helper()
	_, records, err := r.core.Issue(r.now, agents.TokenRequest{AgentID: "a", ReqID: req, Current: true, Reads: reads})
	r.must(records, err)
}

func (r *run) cancelled() string {
	s := ""
	for _, c := range r.gone {
		s += fmt.Sprintf("%v %s %s\n", c.At, c.ReqID, c.Reason)
	}
	return s
}

// TestOnlyConflict shows that what does not conflict neither interrupts a
// generation nor makes its intent stale.
func TestOnlyConflict(t *testing.T) {
	r := meadow(t, `{"interrupt":"only_conflict","debounce_ms":0,"cooldowns":"off"}`)
	r.issue("one", "/entities/b")
	r.issue("two", "/entities/a")
	r.issue("three")
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"}) // writes nothing
	r.advance(time.Millisecond)
	r.draft(agents.EffectDraft{Kind: "Speak", SourceID: "b", Payload: parse(t, `{"text":"hi"}`)})
	want := "1ms one stale_due_to_conflict_seq_gap_2_threshold_0\n1ms three stale_due_to_conflict_seq_gap_2_threshold_0\n"
	if diff := cmp.Diff(want, r.cancelled()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if o := r.submit(speak("a", "two", 0)); !o.OK() {
		t.Error(o.Err())
	}
	wantCode(t, r.submit(speak("a", "one", 0)), agents.ErrStaleContext)
}

// TestLatency shows that a delta in flight makes no intent stale, and that deltas keep
// their order.
func TestLatency(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, `{"cooldowns":"off"}`)))
	r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"near":{},"far":{}},"spatial_index":{"a":[0,0],"near":[1,0],"far":[40,0]}}`)))
	r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"latency_model":{"model":"distance","base_ms":10,"per_unit_ms":1}}`)}))
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "far"})
	if at := r.arrived["a"].At; at != 50*time.Millisecond {
		t.Errorf("from far at %v", at)
	}
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "near"})
	if at := r.arrived["a"].At; at != 50*time.Millisecond {
		t.Errorf("from near at %v, before what came first", at)
	}
	r.advance(50*time.Millisecond - 1)
	if o, _ := r.core.Submit(r.now, speak("a", "r", 0)); !o.OK() {
		t.Error(o.Err())
	}
	o, _ := r.core.Submit(r.now+1, speak("a", "r", 0))
	wantCode(t, o, agents.ErrStaleContext)
}

// TestDeadline shows that a generation gets its final outcome at its deadline.
func TestDeadline(t *testing.T) {
	r := meadow(t, `{"deadline_ms":200}`)
	r.issue("one")
	if next, ok := r.core.Next(); !ok || next != 200*time.Millisecond {
		t.Errorf("next is %v, %v", next, ok)
	}
	r.advance(200*time.Millisecond - 1)
	if rs := r.core.Expire(r.now); len(rs) > 0 {
		t.Errorf("too early: %v", rs)
	}
	r.advance(1)
	wantCode(t, r.submit(speak("a", "one", 0)), agents.ErrTimeout)
	if o, ok := r.core.Answered("a", "one"); !ok || !errors.Is(o.Err(), agents.ErrTimeout) {
		t.Errorf("%v %v", o, ok)
	}
	if rs := r.core.Expire(r.now); len(rs) > 0 {
		t.Errorf("twice: %v", rs)
	}
	if _, ok := r.core.Next(); ok {
		t.Error("something is still due")
	}
}

// TestIntake shows turns, weights, urgency and backpressure.
func TestIntake(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, `{"cooldowns":"off","max_queue_depth":3,"classes":{"shed":{"backpressure_policy":"shed_oldest"},"heavy":{"weight":2}}}`)))
	for id, class := range map[string]string{"a": "heavy", "b": "", "c": "shed"} {
		r.must(r.core.Register(agents.Registration{AgentID: id, Class: class}))
	}
	var intake agents.Intake
	offer := func(agent, req string, priority int) agents.EnqueueResult {
		in := speak(agent, req, 0)
		in.Priority = priority
		return intake.Offer(r.core, 0, agents.Submission{Intent: &in})
	}
	for _, agent := range []string{"b", "a", "c"} {
		for i, priority := range []int{0, 20, 10} {
			offer(agent, fmt.Sprint(agent, i), priority)
		}
	}
	if o := offer("b", "b0", 0); !o.Joined {
		t.Errorf("the same request again: %+v", o)
	}
	o := offer("b", "b3", 0)
	wantCode(t, o.Outcome, agents.ErrQueueFull)
	if o := offer("c", "c3", 0); o.Shed == nil || o.Shed.Intent.ReqID != "c0" || o.Refusal.Recovery != agents.ShedOldest {
		t.Errorf("shed: %+v", o)
	}
	var got []string
	for range 3 {
		for _, w := range intake.Take(r.core, 4, math.Inf(1)) {
			got = append(got, w.Intent.ReqID)
		}
		got = append(got, "|")
	}
	if want := []string{"a1", "a2", "b1", "c1", "|", "a0", "b2", "c2", "b0", "|", "c3", "|"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if intake.Len() != 0 {
		t.Errorf("%d left", intake.Len())
	}
}

// TestOneSourceInItsOrder shows that what one source asks for in one quantum happens in
// the order of asking, where time and priority are the same; that the intake keeps this
// order; and that given uuids, and the order between sources, stand as the design has them.
func TestOneSourceInItsOrder(t *testing.T) {
	move := func(agent, req string, x int) agents.Submission {
		return agents.Submission{Intent: &agents.Intent{Kind: "Move", Payload: parse(t, fmt.Sprintf(`{"to":[%d,1]}`, x)), ReqID: req, AgentID: agent}}
	}
	draft := func(source, uuid string, n int) agents.Submission {
		return agents.Submission{UUID: uuid, Draft: &agents.EffectDraft{Kind: "Note", SourceID: source, Payload: parse(t, fmt.Sprintf(`{"n":%d}`, n))}}
	}
	urgent := move("a", "urgent", 99)
	urgent.Intent.Priority = 1
	for n := range 8 { // a hash would keep one order in 8! cases
		r := meadow(t, `{"cooldowns":"off","authority":"sim"}`)
		var subs []agents.Submission
		for i := range 8 {
			subs = append(subs, move("b", fmt.Sprint("b", n, i), i), move("a", fmt.Sprint("a", n, i), i), draft("a", "", i))
		}
		subs = append(subs, draft("a", "2", 100), draft("a", "1", 101), urgent)
		var intake agents.Intake
		for _, s := range subs {
			if o := intake.Offer(r.core, r.now, s); o.Ticket == 0 {
				t.Fatalf("not queued: %v", o.Outcome)
			}
		}
		taken := agents.Submissions(intake.Take(r.core, 0, math.Inf(1)))
		for what, list := range map[string][]agents.Submission{"asked": subs, "taken": taken} {
			var got []string
			for _, record := range r.core.Decide(r.now, agents.Quantum{By: agents.CloseTick, SimTime: 1, Timed: true}, list).Records {
				if record.Word == agents.WordEffect {
					at, _ := record.Value.Get("payload")
					source, _ := record.Value.Member("source_id").Text()
					got = append(got, fmt.Sprint(source, at))
				}
			}
			want := []string{`a{"to":[99,1]}`}
			for i := range 8 {
				want = append(want, fmt.Sprintf(`a{"to":[%d,1]}`, i), fmt.Sprintf(`a{"n":%d}`, i))
			}
			want = append(want, `a{"n":101}`, `a{"n":100}`)
			for i := range 8 {
				want = append(want, fmt.Sprintf(`b{"to":[%d,1]}`, i))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got)\n%s", what, diff)
			}
		}
	}
}

// TestSpeakerHasAnEntity shows that the public message of an agent without an entity is
// refused, and that its private message, which its target keeps, is accepted.
func TestSpeakerHasAnEntity(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off","intent_kinds":["SpeakResponse","MessageEmitted"]}`)
	r.must(r.core.Register(agents.Registration{AgentID: "ghost", Policy: parse(t, `{"policy":"everything"}`)}))
	say := func(kind, req, payload string) agents.Outcome {
		return r.submit(agents.Intent{Kind: kind, Payload: parse(t, payload), ReqID: req, AgentID: "ghost", ContextSeq: r.core.LatestViewSeq(r.now, "ghost")})
	}
	for _, kind := range []string{"Speak", "SpeakResponse", "MessageEmitted"} {
		for i, payload := range []string{`{"text":"boo"}`, `{"text":"boo","channel":"team"}`} {
			o := say(kind, fmt.Sprint(kind, i), payload)
			wantCode(t, o, agents.ErrInvalid)
			if p := o.Rejection.Problems; len(p) != 1 || p[0].Path != "/agent_id" {
				t.Errorf("%s %s: %v", kind, payload, p)
			}
		}
	}
	if o := say("Speak", "private", `{"text":"boo","channel":"private","target_id":"a"}`); !o.OK() {
		t.Error(o.Err())
	}
	r.draft(agents.EffectDraft{Kind: "EntityCreated", SourceID: "ghost", Payload: parse(t, `{"entity_id":"ghost","entity_data":{"type":"agent"}}`)})
	if o := say("Speak", "now", `{"text":"boo"}`); !o.OK() {
		t.Error(o.Err())
	}
}

// TestQuotaRefusalsAreTyped shows that a refusal says which quota it was over, and its limit.
func TestQuotaRefusalsAreTyped(t *testing.T) {
	want := func(what string, err error, quota agents.QuotaType, limit int64) {
		t.Helper()
		r, ok := errors.AsType[*agents.Rejection](err)
		if !ok || r.Code != agents.ErrQuotaExceeded || r.Quota != quota || r.Limit != limit {
			t.Errorf("%s: %v %+v", what, err, r)
		}
	}
	intents := meadow(t, `{"cooldowns":"off","quota_intents_per_minute":1,"max_agents":3}`)
	_, err := intents.core.Register(agents.Registration{AgentID: "d"})
	want("agents", err, agents.QuotaAgents, 3)
	intents.submit(speak("a", "1", 0))
	want("intents", intents.submit(speak("a", "2", 1)).Err(), agents.QuotaIntents, 1)
	tokens := meadow(t, `{"cooldowns":"off","quota_tokens_per_minute":1}`)
	want("tokens", tokens.submit(speak("a", "1", 0)).Err(), agents.QuotaTokens, 1)
}

// TestIntentBeyondQuota shows that an intent that alone exceeds a quota gets no time after
// which to retry, and that a refusal without ids names none.
func TestIntentBeyondQuota(t *testing.T) {
	tokens := meadow(t, `{"cooldowns":"off","quota_tokens_per_minute":1}`).submit(speak("a", "1", 0))
	wantCode(t, tokens, agents.ErrQuotaExceeded)
	require.Regexp(t, `^an intent of \d+ tokens, at most 1 in a minute$`, tokens.Rejection.Reason)
	require.Zero(t, tokens.Rejection.RetryAfter)
	intents := meadow(t, `{"cooldowns":"off","quota_intents_per_minute":0}`).submit(speak("a", "1", 0))
	wantCode(t, intents, agents.ErrQuotaExceeded)
	require.Zero(t, intents.Rejection.RetryAfter)

	for want, r := range map[string]agents.Rejection{
		`agents: "1" of "a": QUOTA_EXCEEDED`: {Code: agents.ErrQuotaExceeded, AgentID: "a", ReqID: "1"},
		`agents: "a": QUOTA_EXCEEDED`:        {Code: agents.ErrQuotaExceeded, AgentID: "a"},
		`agents: "1": QUOTA_EXCEEDED`:        {Code: agents.ErrQuotaExceeded, ReqID: "1"},
		`agents: QUOTA_EXCEEDED: why`:        {Code: agents.ErrQuotaExceeded, Reason: "why"},
	} {
		require.EqualError(t, &r, want)
	}
}

// TestRelationsKeepNoMetadata shows that metadata of a relationship, and any other member
// that it does not keep, is refused rather than dropped, and that a record that has it is
// folded as before.
func TestRelationsKeepNoMetadata(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off","intent_kinds":[{"kind":"RelationshipAdded","relate":true}]}`)
	payload := parse(t, `{"from":"a","to":"b","type":"friend","metadata":{"since":1}}`)
	o, _ := r.core.Broadcast(r.now, agents.EffectDraft{Kind: "RelationshipAdded", SourceID: "a", Payload: payload})
	wantCode(t, o, agents.ErrInvalid)
	asked := r.submit(agents.Intent{Kind: "RelationshipAdded", Payload: payload, ReqID: "r", AgentID: "a"})
	wantCode(t, asked, agents.ErrInvalid)
	for _, o := range []agents.Outcome{o, asked} {
		if p := o.Rejection.Problems; len(p) != 1 || p[0].Path != "/payload/metadata" {
			t.Errorf("problems %v", p)
		}
	}
	fresh := newRun(t)
	for text, place := range map[string]string{
		`"typed_relationships":[["a","b","foe"],{"from":"a","to":"b","metadata":{"since":1}}]`: "/typed_relationships/1/metadata: ",
		`"typed_relationships":{"a":[{"to_entity":"b","colour":"red"}]}`:                       "/typed_relationships/a/0/colour: ",
		`"typed_relationships":{"a":[{"to":"b","from":"a"}]}`:                                  "/typed_relationships/a/0/from: ",
		`"relationships":{"a/b":["a",{"to":"b","metadata":{"since":1}}]}`:                      "/relationships/a~1b/1/metadata: ",
		`"relationships":{"a":[{"to":"b","type":"foe","m/n":1}]}`:                              "/relationships/a/0/m~1n: ",
	} {
		begun := parse(t, `{"entities":{"a":{},"b":{}},`+text+`}`)
		_, err := fresh.core.Begin(begun)
		require.ErrorContains(t, err, "agents: world: "+place)
		_, err = world.ParseWorld(begun)
		require.NoError(t, err, "a recorded world")
	}
	_, err := fresh.core.Begin(parse(t, `{"entities":{"a":{},"b":{}},"relationships":{"a":["b",{"to_entity":"b","relationship_type":"foe","strength":1,"metadata":null}]}}`))
	require.NoError(t, err)
	var relation world.Relation
	require.ErrorContains(t, json.Unmarshal([]byte(`{"to":"b","colour":"red"}`), &relation), "/colour: ")
	o, records := r.core.Broadcast(r.now, agents.EffectDraft{Kind: "RelationshipAdded", SourceID: "a", Payload: parse(t, `{"from":"a","to":"b","type":"friend"}`)})
	if o.Err() != nil {
		t.Fatal(o.Err())
	}
	e := *o.Effect
	e.Payload = payload
	records[0].Value = e.Value()
	r.keep(records)
	if got := r.core.World().Relations("a"); len(got) != 1 || got[0].Type != "friend" {
		t.Errorf("folded: %v", got)
	}
}

// TestQuantumIsRecorded shows that a quantum is recorded before its effects, however few
// they are; not if it has none, and not if it is a lone submission.
func TestQuantumIsRecorded(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off"}`)
	words := func(d agents.Decision) (words []string) {
		for _, record := range d.Records {
			words = append(words, record.Word)
		}
		return words
	}
	good, stale := speak("a", "good", 0), speak("a", "stale", 0)
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	good.ContextSeq = 1
	one := []agents.Submission{{Intent: &good}}
	for by, want := range map[string][]string{
		agents.CloseSubmit: {agents.WordEffect},
		agents.CloseFlush:  {agents.WordQuantum, agents.WordEffect},
		agents.CloseTick:   {agents.WordQuantum, agents.WordEffect},
	} {
		if got := words(r.core.Decide(0, agents.Quantum{By: by}, one)); !slices.Equal(got, want) {
			t.Errorf("by %q: %q, want %q", by, got, want)
		}
		if got := words(r.core.Decide(0, agents.Quantum{By: by}, []agents.Submission{{Intent: &stale}})); len(got) > 0 {
			t.Errorf("by %q without an effect: %q", by, got)
		}
	}
	if got := words(r.core.DecideBatch(0, []agents.Intent{good})); !slices.Equal(got, []string{agents.WordQuantum, agents.WordEffect}) {
		t.Errorf("a batch of one: %q", got)
	}
	if got := words(r.core.DecideBatch(0, []agents.Intent{stale})); len(got) > 0 {
		t.Errorf("a batch that is refused: %q", got)
	}
}

// TestCooldownIsForgotten shows that a configuration without a cooldown clears the time
// of the last intent of the kind, so a later configuration with a cooldown does not use it.
func TestCooldownIsForgotten(t *testing.T) {
	r := meadow(t, `{"cooldowns":{"Speak":60000,"Custom":60000},"staleness_threshold":9}`)
	custom := speak("a", "custom", 0)
	custom.Kind = agents.KindCustom
	if o := r.submit(speak("a", "first", 0)); !o.OK() {
		t.Fatal(o.Err())
	}
	if o := r.submit(custom); !o.OK() {
		t.Fatal(o.Err())
	}
	r.must(r.core.Configure(parse(t, `{"cooldowns":{"Speak":0,"Custom":60000},"staleness_threshold":9}`)))
	r.checkState()
	r.must(r.core.Configure(parse(t, `{"cooldowns":{"Speak":60000,"Custom":60000},"staleness_threshold":9}`)))
	if o := r.submit(speak("a", "again", 0)); !o.OK() {
		t.Error(o.Err())
	}
	custom.ReqID = "custom again"
	wantCode(t, r.submit(custom), agents.ErrCooldownActive)
}

package agents_test

import (
	"bytes"
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
	agentview "github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// options have what panics, in a handler and in a validator.
var options = agents.Options{
	Customs: customs,
	Handlers: append([]world.Handler{{Kind: "Boom", Plan: func(w world.ReadOnly, e world.Effect) ([]world.Change, error) {
		if _, ok := w.Position(e.SourceID); ok {
			panic("boom")
		}
		return []world.Change{world.PutEntity("rubble", signal.Value{0x80})}, nil
	}}}, handlers...),
	Validators: []agents.Validator{{Name: "nobody says bang", Check: func(_ world.ReadOnly, in agents.Intent) []agents.Problem {
		if text, _ := in.Payload.Get("text"); text.String() == `"bang"` {
			panic("bang")
		}
		return nil
	}}},
}

// kept is a record with the session time at which it was kept; without a word
// it says nothing but the time.
type kept struct {
	at     time.Duration
	record signal.Record
}

// run is a core with all that came out of it.
type run struct {
	t        rapid.TB
	core     *agents.Core
	now      time.Duration
	log      []kept
	views    map[string]signal.Value // as a client has them, from deltas alone
	arrived  map[string]agents.Delivery
	left     map[string]bool
	gone     []agents.Cancellation
	effects  int
	accepted map[[2]string]uint64
	answers  map[[2]string]agents.FinalOutcome
}

// Answered finds an answer as a log does, by what its records answer.
func (r *run) Answered(agent, reqID string) (agents.FinalOutcome, bool) {
	a, ok := r.answers[[2]string{agent, reqID}]
	return a, ok
}

func newRun(t rapid.TB) *run {
	t.Helper()
	c, err := agents.NewCore(options)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{
		t: t, core: c, views: map[string]signal.Value{}, arrived: map[string]agents.Delivery{},
		left: map[string]bool{}, accepted: map[[2]string]uint64{}, answers: map[[2]string]agents.FinalOutcome{},
	}
	c.Bind("w", r)
	return r
}

// keep folds what was decided; a decided record is never ignored.
func (r *run) keep(records []signal.Record) {
	r.t.Helper()
	for _, record := range records {
		if v, rest, err := signal.CheckValue(record.Value); err != nil || len(rest) > 0 || v.Kind() != signal.KindObject {
			r.t.Fatalf("record %s is no object: %v", record.Word, err)
		}
		out := r.core.Apply(r.now, record)
		if out.Err != nil {
			r.t.Fatalf("%s %v: %v", record.Word, record.Value, out.Err)
		}
		r.log = append(r.log, kept{r.now, record})
		if record.Word == agents.WordLeft {
			id, _ := record.Value.Get("agent_id")
			name, _ := id.Text()
			r.left[name] = true
		}
		if agent, reqID, a, ok := agents.FinalOutcomeOf(record); ok {
			if first, twice := r.Answered(agent, reqID); twice {
				r.t.Fatalf("%q of %q is answered %v, then %v", reqID, agent, first, a)
			}
			r.answers[[2]string{agent, reqID}] = a
		}
		r.take(out)
	}
}

func (r *run) take(out agents.Applied) {
	r.t.Helper()
	r.gone = append(r.gone, out.Cancellations...)
	if out.Effect != nil {
		r.effects++
	}
	for _, d := range out.Deliveries {
		last := r.arrived[d.Agent]
		if record := r.log[len(r.log)-1].record; record.Word == agents.WordAgent && r.left[d.Agent] {
			last.At = 0 // it came again: its numbers go on, but what was on its way never came
			r.left[d.Agent] = false
		}
		if d.At < last.At || d.Number != last.Number+1 {
			r.t.Fatalf("delivery %d at %v after %d at %v", d.Number, d.At, last.Number, last.At)
		}
		r.arrived[d.Agent] = d
		view, ok := r.views[d.Agent]
		if !ok {
			view = parse(r.t, `{"visible_entities":{},"visible_relationships":{}}`)
		}
		view, err := jsondoc.ApplyPatch(view, d.Delta.Patches)
		if err != nil {
			r.t.Fatalf("delta for %q: %v", d.Agent, err)
		}
		r.views[d.Agent] = view
		entities, _ := view.Get("visible_entities")
		relations, _ := view.Get("visible_relationships")
		if got := (agentview.View{AgentID: d.Agent, VisibleEntities: entities, VisibleRelationships: relations}).Digest(); got != d.Delta.ContextDigest() {
			r.t.Fatalf("the view of %q has the digest %s, its delta says %s", d.Agent, got, d.Delta.ContextDigest())
		}
	}
}

// must takes the records of a decision that cannot fail.
func (r *run) must(records []signal.Record, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	r.keep(records)
}

func (r *run) advance(d time.Duration) {
	r.now += d
	r.take(r.core.Advance(r.now))
}

// pass lets time pass as the live side does: the log, and with it the core, is
// told only if time alone cancels something.
func (r *run) pass(d time.Duration) {
	r.t.Helper()
	r.now += d
	if next, ok := r.core.Next(); r.core.Due(r.now) && (!ok || next > r.now) {
		r.t.Fatalf("something is due at %v, next is %v, %v", r.now, next, ok)
	}
	if r.core.Due(r.now) {
		r.log = append(r.log, kept{at: r.now})
		r.take(advance(r.t, r.core, r.now))
	}
}

// advance lets time pass, and shows that Due says truly whether that cancels
// anything.
func advance(t rapid.TB, c *agents.Core, now time.Duration) agents.Applied {
	t.Helper()
	due := c.Due(now)
	out := c.Advance(now)
	if cancels := len(out.Cancellations) > 0; cancels != due {
		t.Fatalf("at %v something is due: %v, but is cancelled: %v", now, due, out.Cancellations)
	}
	if next, ok := c.Next(); c.Due(now) || ok && next <= now && len(c.Expire(now)) == 0 {
		t.Fatalf("at %v next is %v", now, next)
	}
	return out
}

// ahead returns the core as it is when time has passed for it.
func (r *run) ahead() *agents.Core {
	r.t.Helper()
	c, err := agents.RestoreCore(r.core.AppendState(nil), options)
	if err != nil {
		r.t.Fatal(err)
	}
	c.Bind("w", r)
	advance(r.t, c, r.now)
	return c
}

func (r *run) submit(in agents.Intent) agents.Outcome {
	r.t.Helper()
	o, records := r.core.Submit(r.now, in)
	r.keep(records)
	return o
}

func (r *run) draft(d agents.EffectDraft) {
	r.t.Helper()
	o, records := r.core.Broadcast(r.now, d)
	if o.Err() != nil {
		r.t.Fatal(o.Err())
	}
	r.keep(records)
}

var coreConfigs = []string{
	`{}`,
	`{"quota_intents_per_minute":3,"cooldowns":{"Speak":1000,"Move":0},"debounce_ms":50}`,
	`{"authority":"sim","tick_effects":true,"cooldowns":"off","quota_intents_per_minute":-1,"staleness_threshold":1}`,
	`{"authority":"manual","cooldowns":"off","quota_tokens_per_minute":20,"latency_model":{"model":"jitter","ms":20,"spread_ms":100,"seed":7}}`,
	`{"interrupt":"only_conflict","debounce_ms":200,"cooldowns":"off","rules":{"min_separation":1},"latency_model":{"model":"distance"}}`,
}

func drawIntent(t *rapid.T, c *agents.Core) agents.Intent {
	e := drawEffect(t, 1)
	in := agents.Intent{
		Kind:    rapid.SampledFrom([]string{"Speak", "Move", "Interact", "Custom", "Swap", "Boom", "Nonsense"}).Draw(t, "kind"),
		Payload: e.Payload,
		ReqID:   fmt.Sprint("r", rapid.IntRange(0, 12).Draw(t, "req")),
		AgentID: rapid.SampledFrom(ids[:5]).Draw(t, "agent"),
		// Most know nearly everything.
		ContextSeq: c.Seq() - min(c.Seq(), uint64(rapid.IntRange(0, 2).Draw(t, "behind"))),
		Priority:   rapid.IntRange(-1, 1).Draw(t, "priority"),
	}
	if in.Kind == "Move" || in.Kind == "Speak" || in.Kind == "Interact" {
		in.Payload = value(t, map[string]any{
			"to": []int{rapid.IntRange(-4, 4).Draw(t, "x"), 0}, "text": rapid.SampledFrom([]string{"hi", "", "bang"}).Draw(t, "text"),
			"target_id": rapid.SampledFrom(ids).Draw(t, "target"),
		})
	}
	return in
}

// TestCore is the main property of the core, over drawn requests:
//
//   - deciding changes nothing
//   - the records of a decision are folded without an error
//   - cores that fold the same records at the same times have the same bytes, however
//     time advances in between and wherever the state is restored
//   - while nothing is due, a decision is the same with and without Advance
//   - deltas in order give the view whose digest they carry
//   - a request has one effect at most
//   - how the sources are mixed in a quantum makes no difference
func TestCore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		r.must(r.core.Configure(parse(t, rapid.SampledFrom(coreConfigs).Draw(t, "config"))))
		for range rapid.IntRange(0, 12).Draw(t, "before") {
			e := drawEffect(t, 1)
			_, records := r.core.Broadcast(0, agents.EffectDraft{Kind: e.Kind, Payload: e.Payload, SourceID: e.SourceID})
			r.keep(records)
		}
		for _, id := range ids[:4] {
			r.must(r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, rapid.SampledFrom(lenses).Draw(t, "lens"))}))
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before, inside := r.core.AppendState(nil), world.Dump(r.core.World())
			var records []signal.Record
			switch rapid.IntRange(0, 10).Draw(t, "step") {
			case 0, 1:
				in := drawIntent(t, r.core)
				o, rs := r.core.Submit(r.now, in)
				r.judge(in, o)
				records = rs
				if o2, rs2 := r.ahead().Submit(r.now, in); !cmp.Equal(o, o2) || !cmp.Equal(rs, rs2) {
					t.Fatalf("decided %v, later %v", o, o2)
				}
			case 2:
				e := drawEffect(t, 1)
				_, records = r.core.Broadcast(r.now, agents.EffectDraft{Kind: e.Kind, Payload: e.Payload, SourceID: e.SourceID})
			case 3, 4:
				records = r.quantum(t)
			case 5:
				intents := []agents.Intent{drawIntent(t, r.core), drawIntent(t, r.core)}
				d := r.core.DecideBatch(r.now, intents)
				for i, o := range d.Outcomes {
					if o.OK() && !d.Outcomes[1-i].OK() && o.Status != agents.Duplicate {
						t.Fatalf("of a batch only intent %d is accepted", i)
					}
					r.judge(intents[i], o)
				}
				records = d.Records
			case 6:
				req := agents.TokenRequest{
					AgentID: rapid.SampledFrom(ids[:4]).Draw(t, "agent"), ReqID: fmt.Sprint("r", rapid.IntRange(0, 12).Draw(t, "req")),
					Current: true, Deadline: time.Duration(rapid.IntRange(0, 300).Draw(t, "deadline")) * time.Millisecond,
				}
				if rapid.Bool().Draw(t, "reads") {
					req.Reads = []string{"/entities/" + rapid.SampledFrom(ids).Draw(t, "read")}
				}
				_, records, _ = r.core.Issue(r.now, req)
				if _, rs, _ := r.ahead().Issue(r.now, req); !cmp.Equal(records, rs) {
					t.Fatalf("issued %v, later %v", records, rs)
				}
			case 7:
				if rapid.Bool().Draw(t, "user") {
					records, _ = r.core.Cancel(rapid.SampledFrom(ids[:4]).Draw(t, "agent"), fmt.Sprint("r", rapid.IntRange(0, 12).Draw(t, "req")), "")
				} else {
					records = r.core.Expire(r.now)
				}
			case 8:
				id := rapid.SampledFrom(ids[:4]).Draw(t, "agent")
				switch rapid.IntRange(0, 5).Draw(t, "change") {
				case 0:
					records, _ = r.core.Leave(id)
				case 1:
					records, _ = r.core.Configure(parse(t, rapid.SampledFrom(coreConfigs).Draw(t, "config")))
				case 2:
					records, _ = r.core.Generated(id, "r0", parse(t, `{"text":"hi"}`))
				default:
					records, _ = r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, rapid.SampledFrom(lenses).Draw(t, "lens"))})
				}
			default:
				r.pass(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
				before = r.core.AppendState(nil)
			}
			if diff := cmp.Diff(inside, world.Dump(r.core.World())); diff != "" {
				t.Fatalf("deciding changed the world (-before +after)\n%s", diff)
			}
			if !bytes.Equal(before, r.core.AppendState(nil)) {
				t.Fatal("deciding changed the state")
			}
			r.keep(records)
			restored, err := agents.RestoreCore(r.core.AppendState(nil), options)
			require.NoError(t, err)
			if rapid.IntRange(0, 4).Draw(t, "restart") == 0 {
				restored.Bind("w", r)
				r.core = restored
			}
		}
		r.take(advance(t, r.core, r.now))
		r.replay(t)
	})
}

// judge notes what an intent came to: one effect for one request, for ever.
func (r *run) judge(in agents.Intent, o agents.Outcome) {
	key := [2]string{in.AgentID, in.ReqID}
	if seq, ok := r.accepted[key]; ok && (o.Status != agents.Duplicate || o.GlobalSeq != seq) {
		r.t.Fatalf("%q, which became effect %d, is answered %v %d", key, seq, o.Status, o.GlobalSeq)
	}
	if o.OK() {
		r.accepted[key] = o.GlobalSeq
	}
}

// quantum decides a quantum in two orders of arrival. Each source asks in the same order
// in both.
func (r *run) quantum(t *rapid.T) []signal.Record {
	var subs []agents.Submission
	for range rapid.IntRange(1, 6).Draw(t, "asked") {
		s := agents.Submission{Timed: rapid.Bool().Draw(t, "timed"), SimTime: float64(rapid.IntRange(0, 3).Draw(t, "sim time"))}
		if rapid.IntRange(0, 3).Draw(t, "draft") == 0 {
			e := drawEffect(t, 1)
			s.Draft = &agents.EffectDraft{Kind: e.Kind, Payload: e.Payload, SourceID: e.SourceID}
		} else {
			in := drawIntent(t, r.core)
			s.Intent = &in
		}
		subs = append(subs, s)
	}
	q := agents.Quantum{By: agents.CloseTick, SimTime: Seconds(r.now), Timed: true}
	d := r.core.Decide(r.now, q, subs)
	places := rapid.Permutation([]int{0, 1, 2, 3, 4, 5}[:len(subs)]).Draw(t, "arrival")
	other := make([]agents.Submission, len(subs))
	bySource := map[string][]agents.Submission{}
	sourceOf := func(s *agents.Submission) string {
		if s.Intent != nil {
			return s.Intent.AgentID
		}
		return s.Draft.SourceID
	}
	for i := range subs {
		source := sourceOf(&subs[i])
		bySource[source] = append(bySource[source], subs[i])
	}
	for i, p := range places {
		source := sourceOf(&subs[p])
		other[i], bySource[source] = bySource[source][0], bySource[source][1:]
	}
	d2 := r.core.Decide(r.now, q, other)
	if diff := cmp.Diff(d.Records, d2.Records); diff != "" {
		t.Fatalf("another order of arrival (-one +other)\n%s", diff)
	}
	for _, status := range []agents.Status{agents.Rejected, agents.Accepted, agents.Duplicate} { // as they were decided
		for i := range subs {
			if subs[i].Intent != nil && d.Outcomes[i].Status == status {
				r.judge(*subs[i].Intent, d.Outcomes[i])
			}
		}
	}
	return d.Records
}

func Seconds(d time.Duration) float64 { return world.Seconds(d) }

// replay folds the log again, with other steps of time and a restart.
func (r *run) replay(t *rapid.T) {
	c, err := agents.NewCore(options)
	require.NoError(t, err)
	restart := rapid.IntRange(0, len(r.log)).Draw(t, "restart at")
	var gone []agents.Cancellation
	for i, k := range r.log {
		for range rapid.IntRange(0, 2).Draw(t, "cuts") {
			if span := k.at - c.Now(); span > 0 {
				gone = append(gone, advance(t, c, c.Now()+time.Duration(rapid.Int64Range(0, int64(span)).Draw(t, "cut"))).Cancellations...)
			}
		}
		var out agents.Applied
		if k.record.Word == "" {
			out = c.Advance(k.at)
		} else {
			out = c.Apply(k.at, k.record)
		}
		if out.Err != nil {
			t.Fatalf("replay of %s: %v", k.record.Word, out.Err)
		}
		gone = append(gone, out.Cancellations...)
		if i == restart {
			if c, err = agents.RestoreCore(c.AppendState(nil), options); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone = append(gone, c.Advance(r.now).Cancellations...)
	if !bytes.Equal(c.AppendState(nil), r.core.AppendState(nil)) {
		t.Fatalf("the replay's state differs\n got %x\nwant %x", c.AppendState(nil), r.core.AppendState(nil))
	}
	if diff := cmp.Diff(r.gone, gone); diff != "" {
		t.Fatalf("cancellations (-live +replay)\n%s", diff)
	}
	in := drawIntent(t, r.core)
	if o, records := c.Submit(r.now, in); o.OK() || len(records) > 0 {
		t.Fatalf("a core that is not bound decides %v", o)
	}
	c.Bind("w", r)
	o1, rs1 := r.core.Submit(r.now, in)
	o2, rs2 := c.Submit(r.now, in)
	if o1.Status != o2.Status || !cmp.Equal(rs1, rs2) {
		t.Fatalf("the replay decides %v, the live core %v", o2, o1)
	}
}

// meadow is a core with agents a and b that see everything, and c far away.
func meadow(t testing.TB, config string) *run {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, config)))
	r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"b":{},"c":{}},"spatial_index":{"a":[0,0],"b":[3,0],"c":[900,0]}}`)))
	for _, id := range []string{"a", "b", "c"} {
		r.must(r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, `{"distance_limit":50}`)}))
	}
	return r
}

func speak(agent, req string, context uint64) agents.Intent {
	return agents.Intent{Kind: "Speak", Payload: signal.Value("\x81\xa4text\xa2hi"), ReqID: req, AgentID: agent, ContextSeq: context}
}

func wantCode(t *testing.T, o agents.Outcome, want agents.Code) {
	t.Helper()
	if !errors.Is(o.Err(), want) {
		t.Errorf("got %v %v, want %s", o.Status, o.Err(), want)
	}
}

// Each record that ends a request tells which one and how; any other tells nothing.
func TestFinalOutcomeOf(t *testing.T) {
	effect := `{"source_id":"a","req_id":"r","global_seq":%s,"number":4}`
	for _, tt := range []struct {
		word, text string
		want       agents.FinalOutcome
		ok         bool
	}{
		{agents.WordEffect, strings.Replace(effect, "%s", "1", 1), agents.FinalOutcome{GlobalSeq: 1, Number: 4}, true},
		{agents.WordEffect, strings.Replace(effect, "%s", "9", 1), agents.FinalOutcome{GlobalSeq: 9, Number: 4}, true},
		{agents.WordEffect, strings.Replace(effect, "%s", "0", 1), agents.FinalOutcome{}, false},
		{agents.WordEffect, `{"source_id":"a","global_seq":1}`, agents.FinalOutcome{}, false},
		{agents.WordEffect, `{"agent_id":"a","req_id":"r","global_seq":1}`, agents.FinalOutcome{}, false},
		{agents.WordOutcome, `{"agent_id":"a","req_id":"r","code":"` + string(agents.ErrCancelled) + `","reason":"why"}`, agents.FinalOutcome{Code: agents.ErrCancelled, Reason: "why"}, agents.ErrCancelled.Final()},
		{agents.WordOutcome, `{"agent_id":"a","req_id":"r","code":"no code"}`, agents.FinalOutcome{}, agents.Code("no code").Final()},
		{agents.WordCancel, `{"agent_id":"a","req_id":"r","reason":"` + agents.ReasonUser + `"}`, agents.FinalOutcome{Code: agents.ErrCancelled, Reason: agents.ReasonUser}, true},
		{agents.WordCancel, `{"agent_id":"a","req_id":"r","reason":"` + agents.ReasonReplaced + `"}`, agents.FinalOutcome{}, false},
		{agents.WordCancel, `{"agent_id":"","req_id":"r","reason":"` + agents.ReasonUser + `"}`, agents.FinalOutcome{}, false},
		{agents.WordLeft, `{"agent_id":"a","req_id":"r"}`, agents.FinalOutcome{}, false},
	} {
		agent, req, got, ok := agents.FinalOutcomeOf(signal.Record{Word: tt.word, Value: parse(t, tt.text)})
		if ok != tt.ok {
			t.Errorf("%s %s: %v, want %v", tt.word, tt.text, ok, tt.ok)
			continue
		}
		if ok && (agent != "a" || req != "r" || got.GlobalSeq != tt.want.GlobalSeq || got.Number != tt.want.Number || got.Code != tt.want.Code || got.Reason != tt.want.Reason) {
			t.Errorf("%s %s: %q %q %+v, want %+v", tt.word, tt.text, agent, req, got, tt.want)
		}
		if !ok && (agent != "" || req != "" || got.GlobalSeq != 0 || got.Code != "" || got.Reason != "") {
			t.Errorf("%s %s: %q %q %+v beside no answer", tt.word, tt.text, agent, req, got)
		}
	}
}

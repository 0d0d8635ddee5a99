package agents_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestPanics shows that a handler or a validator that panics has refused, in
// the middle of a quantum or of a batch as well, and that nothing is left of it.
func TestPanics(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off","rules":{"min_separation":1}}`)
	// What it sees in its way may be a conflict; what it does not see never is.
	r.must(r.core.Register(agents.Registration{AgentID: "c", Policy: parse(t, `{"distance_limit":2000}`)}))
	inside := world.Dump(r.core.World())
	ask := func(agent, req, kind, payload string) *agents.Intent {
		return &agents.Intent{Kind: kind, Payload: parse(t, payload), ReqID: req, AgentID: agent}
	}
	asked := []*agents.Intent{
		ask("a", "1", "Move", `{"to":[1,1]}`),
		ask("b", "2", "Boom", `{}`),
		ask("b", "3", "Speak", `{"text":"bang"}`),
		ask("b", "4", "Swap", `{"with":"a"}`),
		ask("c", "5", "Move", `{"to":[0.5,1]}`), // a is there
		ask("c", "6", "Speak", `{"text":"hi"}`),
	}
	var subs []agents.Submission
	var batch []agents.Intent
	for _, in := range asked {
		subs = append(subs, agents.Submission{Intent: in})
		batch = append(batch, *in)
	}
	d := r.core.Decide(0, agents.Quantum{By: agents.CloseFlush}, subs)
	var got []string
	for _, o := range d.Outcomes {
		if o.OK() {
			got = append(got, "accepted")
		} else {
			got = append(got, string(o.Rejection.Code))
		}
	}
	want := []string{"accepted", string(agents.ErrInvalid), string(agents.ErrInvalid), "accepted", string(agents.ErrIntentConflict), "accepted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got)\n%s", diff)
	}
	for i, word := range map[int]string{1: "boom", 2: "bang"} {
		if err := d.Outcomes[i].Err(); !strings.Contains(err.Error(), "panicked: "+word) {
			t.Errorf("intent %d: %v", i, err)
		}
	}
	if diff := cmp.Diff(inside, world.Dump(r.core.World())); diff != "" {
		t.Errorf("after the quantum (-before +after)\n%s", diff)
	}
	b := r.core.DecideBatch(0, batch)
	wantCode(t, b.Outcomes[0], agents.ErrBatchAborted)
	if diff := cmp.Diff(inside, world.Dump(r.core.World())); diff != "" {
		t.Errorf("after the batch (-before +after)\n%s", diff)
	}
	o, _ := r.core.Broadcast(0, agents.EffectDraft{Kind: "Boom", SourceID: "a"})
	wantCode(t, o, agents.ErrInvalid)
	e := agents.EffectDraft{Kind: "Boom", SourceID: "a"}.Effect("u", 1, 0, "")
	if out := r.core.Apply(0, signal.Record{Word: agents.WordEffect, Value: e.Value()}); !errors.Is(out.Err, agents.ErrRecord) {
		t.Errorf("folded: %v", out.Err)
	}
	if diff := cmp.Diff(inside, world.Dump(r.core.World())); diff != "" {
		t.Errorf("after the record (-before +after)\n%s", diff)
	}
	r.keep(d.Records)
	if r.effects != 3 {
		t.Errorf("%d effects", r.effects)
	}
}

package agents_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
)

// TestAnswers shows which records answer a request for ever, and that a core
// without an external memory remembers them itself, as long as it exists.
func TestAnswers(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off"}`)
	r.core.Bind("w", nil)
	r.submit(speak("a", "said", 0))
	bad := speak("b", "bad", 1)
	bad.Payload = parse(t, `{"text":" "}`)
	r.submit(bad)
	r.issue("dropped")
	records, _ := r.core.Cancel("a", "dropped", "")
	r.keep(records)
	r.issue("postponed")
	records, _ = r.core.Cancel("a", "postponed", agents.ReasonReplaced)
	r.keep(records)
	_, records = r.core.Broadcast(r.now, agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	r.keep(records)
	want := map[[2]string]agents.FinalOutcome{
		{"a", "said"}:    {GlobalSeq: 1, Number: 1},
		{"b", "bad"}:     {Code: agents.ErrInvalid, Problems: []agents.Problem{{Path: "/payload/text", Reason: "nothing is said"}}},
		{"a", "dropped"}: {Code: agents.ErrCancelled, Reason: "user_requested"},
	}
	if diff := cmp.Diff(want, r.answers); diff != "" {
		t.Errorf("answers (-want +got)\n%s", diff)
	}
	for key, answer := range want {
		if o, ok := r.core.Answered(key[0], key[1]); !ok || o.Status != agents.Duplicate || o.GlobalSeq != answer.GlobalSeq {
			t.Errorf("%q is answered %v, %v", key, o, ok)
		}
	}
	restored, err := agents.RestoreCore(r.core.AppendState(nil), options)
	require.NoError(t, err)
	if _, ok := restored.Answered("a", "said"); ok {
		t.Error("answers are part of the state")
	}
	o, _ := restored.Submit(r.now, speak("a", "said", 0))
	wantCode(t, o, agents.ErrWorldPaused)
	o, _ = restored.Broadcast(r.now, agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	wantCode(t, o, agents.ErrWorldPaused)
	if _, _, err := restored.Issue(r.now, agents.TokenRequest{AgentID: "a", ReqID: "new"}); err == nil {
		t.Error("a core that is not bound issues a token")
	}
	restored.Bind("w", r)
	if o, _ := restored.Submit(r.now, speak("a", "said", 0)); o.Status != agents.Duplicate || o.GlobalSeq != 1 {
		t.Errorf("answered %v", o)
	}
}

package live_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// The end-to-end test of the document: A generates an answer, B says something
// meanwhile, A's generation is cancelled, and C hears of both in order.
func TestConversationWithInterruption(t *testing.T) {
	ctx := t.Context()
	world := enginetest.BeginWorld(t, session.TimeManual).Agents()
	conversation := enginetest.Value(t, `{"policy":"conversation"}`)
	a, _, c := enginetest.Register(t, world, "A", conversation), enginetest.Register(t, world, "B", conversation), enginetest.Register(t, world, "C", conversation)
	for _, ends := range []string{`"from":"A","to":"B"`, `"from":"A","to":"C"`, `"from":"B","to":"C"`} {
		if _, err := world.Broadcast(ctx, enginetest.Draft("RelationshipAdded", "world", `{`+ends+`,"mutual":true}`)); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, world.Settle(ctx))
	told := drain(t, c)
	first := enginetest.Draft("MessageEmitted", "A", `{"text":"Let me think about this."}`)
	if _, err := world.Broadcast(ctx, first); err != nil {
		t.Fatal(err)
	}
	token, err := a.Begin(ctx, agents.TokenRequest{ReqID: "req_1", Current: true})
	require.NoError(t, err)
	if _, err := world.Broadcast(ctx, enginetest.Draft("MessageEmitted", "B", `{"text":"Wait, I have something important!"}`)); err != nil {
		t.Fatal(err)
	}
	<-token.Context().Done()
	var interrupted *agentslive.InterruptedError
	if cause := context.Cause(token.Context()); !errors.As(cause, &interrupted) || !strings.HasPrefix(interrupted.Reason, "stale_due_to") {
		t.Fatalf("the generation ended by %v, want stale_due_to…", cause)
	}
	require.NoError(t, world.Settle(ctx)) // a cancellation is sent before the deliveries
	heard := drain(t, c)
	if len(told) == 0 || len(heard) != 2 || heard[0].ViewSeq >= heard[1].ViewSeq {
		t.Errorf("C was told %v and then %v, want two messages in order", told, heard)
	}
}

// drain returns what a reader has been told and has not fetched.
func drain(t *testing.T, g *agentslive.Agent) (list []agentslive.Observation) {
	t.Helper()
	for at, ok := g.NextAt(); ok; at, ok = g.NextAt() {
		o, err := g.NextObservation(t.Context())
		require.NoError(t, err)
		if o.At < at {
			t.Errorf("told at %v what was due at %v", o.At, at)
		}
		list = append(list, o)
	}
	return list
}

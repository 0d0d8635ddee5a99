package live_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// One caller asks for two things of one tick, and polls for what comes of it.
func TestAskForOneTick(t *testing.T) {
	ctx := t.Context()
	world := enginetest.BeginWorld(t, session.TimeManual).Agents()
	require.NoError(t, world.Configure(ctx, enginetest.Value(t, `{"authority":"sim","cooldowns":"off"}`)))
	a, err := world.Register(ctx, "A", enginetest.Value(t, `{"policy":"self"}`))
	require.NoError(t, err)
	require.NoError(t, world.Settle(ctx))
	if o, ok, err := a.Poll(ctx); err != nil || !ok || o.ViewSeq != 0 {
		t.Fatalf("A is told %v, %v, %v at first, want its view", o, ok, err)
	}
	if o, ok, err := a.Poll(ctx); err != nil || ok {
		t.Fatalf("A is told %v, %v twice", o, err)
	}
	var asked []*agentslive.Submitted
	for _, kind := range []string{"Nonsense", "Custom"} {
		s, err := world.SubmitAsync(ctx, agents.Submission{Intent: &agents.Intent{AgentID: "A", ReqID: kind, Kind: kind, Unprioritized: true}})
		require.NoError(t, err)
		select {
		case <-s.Done():
			t.Fatalf("%s is decided before its tick", kind)
		default:
		}
		asked = append(asked, s)
	}
	if n, err := world.Tick(ctx, agentslive.Tick{}); err != nil || n != 2 {
		t.Fatalf("the tick decided %d, %v, want 2", n, err)
	}
	if _, err := asked[0].Wait(ctx); !errors.Is(err, agents.ErrInvalid) {
		t.Errorf("nonsense: %v, want %v", err, agents.ErrInvalid)
	}
	if o, err := asked[1].Wait(ctx); err != nil || o.GlobalSeq != 1 {
		t.Errorf("%v, %v, want the first effect", o, err)
	}
}

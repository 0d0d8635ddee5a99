package sajou_test

import (
	"errors"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
)

// One caller asks for two things of one tick, and polls for what comes of it.
func TestAskForOneTick(t *testing.T) {
	ctx := t.Context()
	world := beginWorld(t, sajou.TimeManual).Agents()
	if err := world.Configure(ctx, value(t, `{"authority":"sim","cooldowns":"off"}`)); err != nil {
		t.Fatal(err)
	}
	a, err := world.Register(ctx, "A", value(t, `{"policy":"self"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := world.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if o, ok, err := a.Poll(ctx); err != nil || !ok || o.ViewSeq != 0 {
		t.Fatalf("A is told %v, %v, %v at first, want its view", o, ok, err)
	}
	if o, ok, err := a.Poll(ctx); err != nil || ok {
		t.Fatalf("A is told %v, %v twice", o, err)
	}
	var asked []*sajou.Submitted
	for _, kind := range []string{"Nonsense", "Custom"} {
		s, err := world.Ask(ctx, agents.Submission{Intent: &agents.Intent{AgentID: "A", ReqID: kind, Kind: kind, Unprioritized: true}})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.Done():
			t.Fatalf("%s is decided before its tick", kind)
		default:
		}
		asked = append(asked, s)
	}
	if n, err := world.Tick(ctx, sajou.Tick{}); err != nil || n != 2 {
		t.Fatalf("the tick decided %d, %v, want 2", n, err)
	}
	if _, err := asked[0].Wait(ctx); !errors.Is(err, agents.Invalid) {
		t.Errorf("nonsense: %v, want %v", err, agents.Invalid)
	}
	if o, err := asked[1].Wait(ctx); err != nil || o.GlobalSeq != 1 {
		t.Errorf("%v, %v, want the first effect", o, err)
	}
}

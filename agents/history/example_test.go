package history_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// The log answers what an agent knew, and proves what it was never sent.
func ExampleHistory() {
	if err := askHistory(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ann knows {"safe":{"color":"grey"}}
	// grey: sajou: the agent was sent the content: "ann", in 1 places
	// XK-4711: <nil>
}

func askHistory(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	if err != nil {
		return err
	}
	policy, err := signal.ParseValue([]byte(`{"field_visibility": {"code": false}}`))
	if err != nil {
		return err
	}
	w := ses.Agents()
	if _, err := w.Register(ctx, "ann", policy); err != nil {
		return err
	}
	safe, err := signal.ParseValue([]byte(`{"entity_id": "safe", "entity_data": {"color": "grey", "code": "XK-4711"}}`))
	if err != nil {
		return err
	}
	if _, err := w.Broadcast(ctx, agents.EffectDraft{Kind: world.KindEntityCreated, SourceID: "author", Payload: safe}); err != nil {
		return err
	}
	if err := w.Settle(ctx); err != nil {
		return err
	}

	past, err := eng.AgentHistory("a")
	if err != nil {
		return err
	}
	known, err := past.ViewAt(ctx, "ann", replay.Moment{Seq: ses.Head().Seq})
	if err != nil {
		return err
	}
	fmt.Printf("ann knows %s\n", known.View.VisibleEntities.AppendJSON(nil))
	for _, text := range []string{"grey", "XK-4711"} {
		proof, err := past.Leak(ctx, "ann", query.LeakQuery{Text: text}, nil)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %v\n", text, proof.Err())
	}
	return nil
}

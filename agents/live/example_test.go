package live_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Two agents share a world. Each is sent what its policy lets it see, and a request that
// is refused says why.
func ExampleAgents() {
	if err := share(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ann sees /visible_entities {"ann":{"position":[0.0,0.0,0.0],"type":"agent"},"lamp":{"position":[1.0,0.0,0.0],"type":"lamp"}}
	// ann sees /visible_relationships {}
	// lighting the lamp: accepted
	// opening the door: INTENT_VALIDATION_FAILED abort
	// bob, far away, is sent the full view: true
	// bob, far away, is sent the light: false
}

func share(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	if err != nil {
		return err
	}
	value := func(text string) signal.Value {
		v, parseErr := signal.ParseValue([]byte(text))
		err = errors.Join(err, parseErr)
		return v
	}
	start := value(`{"entities": {"ann": {"type": "agent"}, "bob": {"type": "agent"}, "lamp": {"type": "lamp"}}, "spatial_index": {"ann": [0, 0], "bob": [9, 0], "lamp": [1, 0]}}`)
	near := value(`{"policy": "distance", "limit": 5}`)
	light, door := value(`{"target_id": "lamp", "type": "light"}`), value(`{"target_id": "door", "type": "open"}`)
	if err != nil {
		return err
	}

	w := ses.Agents()
	if err := w.Begin(ctx, start); err != nil {
		return err
	}
	ann, err := w.Register(ctx, "ann", near)
	if err != nil {
		return err
	}
	bob, err := w.Register(ctx, "bob", near)
	if err != nil {
		return err
	}
	seen, err := ann.NextObservation(ctx) // first the full view
	if err != nil {
		return err
	}
	for _, op := range seen.Patches {
		fmt.Printf("ann sees %s %s\n", op.Path, op.Value.AppendJSON(nil))
	}
	outcome, err := ann.Submit(ctx, agents.Intent{Kind: world.KindInteract, Payload: light, ReqID: "1", ContextSeq: seen.ViewSeq})
	if err != nil {
		return err
	}
	fmt.Println("lighting the lamp:", outcome.Status)
	_, err = bob.Submit(ctx, agents.Intent{Kind: world.KindInteract, Payload: door, ReqID: "1"})
	if refused, ok := errors.AsType[*agents.Rejection](err); ok {
		fmt.Println("opening the door:", refused.Code, refused.Recovery)
	}
	if err := w.Settle(ctx); err != nil { // everything that was decided is delivered
		return err
	}
	for _, what := range []string{"the full view", "the light"} {
		_, sent, err := bob.Poll(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("bob, far away, is sent %s: %t\n", what, sent)
	}
	return nil
}

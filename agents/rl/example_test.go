package rl_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/rl"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Two agents on a line, each of which sees one field far. Both want the middle: who
// comes first in the order of the quantum gets it, and the other is told why not.
func Example() {
	if err := line(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ant knows [ant], bee knows [bee]
	// step 1: ant has moved in effect 1, bee was refused: INTENT_CONFLICT
	// ant knows [ant bee], bee knows [ant bee]
	// ant earned 1 and is done, bee earned 0; left: [bee]
}

func line(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Begin(ctx, "line", session.TimeManual)
	if err != nil {
		return err
	}
	if err := ses.Agents().Configure(ctx, parse(`{"cooldowns":"off","rules":{"min_separation":0.5}}`)); err != nil {
		return err
	}

	near := parse(`{"policy":"distance","limit":1}`)
	env, err := rl.New(ses, rl.Spec[int]{
		PossibleAgents: []agents.Registration{{AgentID: "ant", Policy: near}, {AgentID: "bee", Policy: near}},
		World: func(uint64, *rand.Rand) (signal.Value, error) {
			return parse(`{"entities":{"ant":{},"bee":{}},"spatial_index":{"ant":[0,0],"bee":[2,0]}}`), nil
		},
		Intent: func(_ view.View, field int) agents.Intent {
			return agents.Intent{Kind: world.KindMove, Payload: parse(fmt.Sprintf(`{"to":[%d,0]}`, field))}
		},
		Reward: func(t rl.Transition) float64 {
			at, _ := t.After.Position(t.Agent)
			return at.X * (2 - at.X)
		},
		Terminated: func(t rl.Transition) bool { return t.Outcome.OK() },
	})
	if err != nil {
		return err
	}
	defer env.Close()

	observations, _, err := env.Reset(ctx, 42)
	if err != nil {
		return err
	}
	fmt.Printf("ant knows %v, bee knows %v\n", ids(observations["ant"]), ids(observations["bee"]))
	r, err := env.Step(ctx, map[string]int{"ant": 1, "bee": 1})
	if err != nil {
		return err
	}
	fmt.Printf("step %d: ant has moved in effect %d, bee was refused: %v\n",
		r.Step, r.Infos["ant"].Effect.GlobalSeq, r.Infos["bee"].Rejection.Code)
	fmt.Printf("ant knows %v, bee knows %v\n", ids(r.Observations["ant"]), ids(r.Observations["bee"]))
	fmt.Printf("ant earned %g and is done, bee earned %g; left: %v\n", r.Rewards["ant"], r.Rewards["bee"], env.Agents())
	return nil
}

// ids returns what an agent sees.
func ids(o rl.AgentObservation) (list []string) {
	for id := range o.View.VisibleEntities.Members() {
		list = append(list, id)
	}
	return list
}

func parse(text string) signal.Value {
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

// Agents that act in turns: each knows what those before it have done.
func ExampleAEC() {
	if err := cycle(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ant has earned 0
	// bee has earned 1
	// ant has earned 2, its last
	// bee has earned 1, its last
}

func cycle(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Begin(ctx, "talk", session.TimeManual)
	if err != nil {
		return err
	}
	env, err := rl.NewAEC(ses, rl.Spec[string]{
		PossibleAgents: []agents.Registration{{AgentID: "ant"}, {AgentID: "bee"}},
		World: func(uint64, *rand.Rand) (signal.Value, error) {
			return parse(`{"entities":{"ant":{},"bee":{}}}`), nil
		},
		Intent: func(_ view.View, text string) agents.Intent {
			return agents.Intent{Kind: world.KindSpeak, Payload: parse(fmt.Sprintf(`{"text":%q}`, text))}
		},
		Reward:   func(rl.Transition) float64 { return 1 },
		MaxSteps: 2,
	})
	if err != nil {
		return err
	}
	defer env.Close()
	if err := env.Reset(ctx, 42); err != nil {
		return err
	}
	for agent := range env.Agents() {
		turn := env.Last()
		words := "good morning"
		action := &words
		last := ""
		if turn.Done() {
			action, last = nil, ", its last"
		}
		fmt.Printf("%s has earned %g%s\n", agent, turn.Reward, last)
		if err := env.Step(ctx, action); err != nil {
			return err
		}
	}
	return nil
}

package rl_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/rl"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// The environment of these tests: a board of 6 by 6 fields on which some agents look
// for food. Each sees two fields far. Two cannot be on one field, so who comes later
// in a quantum is refused. Who finds the food has come to its end.

const side = 6

// move is an action: a step in one of the directions, or none.
type move int

const (
	stay move = iota
	north
	east
	south
	west
)

var ways = map[move]world.Position{north: {Y: -1}, east: {X: 1}, south: {Y: 1}, west: {X: -1}}

func forager(ids ...string) rl.Spec[move] {
	spec := rl.Spec[move]{
		World:    board(ids),
		Intent:   walk,
		Reward:   reward,
		MaxSteps: 25,
		Terminated: func(t rl.Transition) bool {
			return fed(t.After, t.Agent)
		},
		ActionMask: mask,
	}
	for _, id := range ids {
		spec.PossibleAgents = append(spec.PossibleAgents, agents.Registration{
			AgentID: id, Policy: value(`{"policy":"distance","limit":2}`),
		})
	}
	return spec
}

// board puts the agents and the food on different fields.
func board(ids []string) func(uint64, *rand.Rand) (signal.Value, error) {
	return func(_ uint64, rng *rand.Rand) (signal.Value, error) {
		fields := rng.Perm(side * side)
		world := ""
		for i, id := range append([]string{"food"}, ids...) {
			kind := "agent"
			if id == "food" {
				kind = "food"
			}
			world += fmt.Sprintf(`,%q:{"type":%q,"position":[%d,%d,0]}`, id, kind, fields[i]%side, fields[i]/side)
		}
		return signal.ParseValue([]byte(`{"entities":{` + world[1:] + `},"spatial_index":` + index(append([]string{"food"}, ids...), fields) + `}`))
	}
}

func index(ids []string, fields []int) string {
	text := ""
	for i, id := range ids {
		text += fmt.Sprintf(`,%q:[%d,%d,0]`, id, fields[i]%side, fields[i]/side)
	}
	return "{" + text[1:] + "}"
}

// walk makes a Move of a step, from where the agent knows itself to be.
func walk(v view.View, m move) agents.Intent {
	way, ok := ways[m]
	if !ok {
		return agents.Intent{}
	}
	at, _ := place(v, v.AgentID)
	return agents.Intent{
		Kind:    world.KindMove,
		Payload: value(fmt.Sprintf(`{"to":[%g,%g,0]}`, at.X+way.X, at.Y+way.Y)),
	}
}

// place returns where an agent sees an entity.
func place(v view.View, id string) (world.Position, bool) {
	entity, _ := v.VisibleEntities.Get(id)
	position, _ := entity.Get("position")
	at, err := world.ParsePosition(position)
	return at, err == nil
}

func fed(w world.ReadOnly, agent string) bool {
	food, ok1 := w.Position("food")
	at, ok2 := w.Position(agent)
	return ok1 && ok2 && food.Distance(at) <= 1 // it lies on a field, too, so they stand beside it
}

func reward(t rl.Transition) float64 {
	switch {
	case fed(t.After, t.Agent):
		return 1
	case t.Outcome.Rejection != nil:
		return -0.5
	default:
		return -0.125
	}
}

// mask forbids steps off the board.
func mask(_ world.ReadOnly, v view.View) []bool {
	at, ok := place(v, v.AgentID)
	list := []bool{true, false, false, false, false}
	for m, way := range ways {
		x, y := at.X+way.X, at.Y+way.Y
		list[m] = ok && x >= 0 && x < side && y >= 0 && y < side
	}
	return list
}

// choose takes one of the actions that a mask allows.
func choose(rng *rand.Rand, mask []bool) move {
	for {
		if m := rng.IntN(len(mask)); mask[m] {
			return move(m)
		}
	}
}

const rules = `{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,` +
	`"rules":{"max_move_distance":1,"min_separation":0.5}}`

func open(t testing.TB, fs vfs.FS, authority session.TimeAuthority) *sajou.Session {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: fs, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	ses, err := eng.Begin(context.Background(), "board", authority)
	require.NoError(t, err)
	if ses.Head().Seq == 0 {
		require.NoError(t, ses.Agents().Configure(context.Background(), value(rules)))
	}
	return ses
}

func newEnv(t testing.TB, ses *sajou.Session, spec rl.Spec[move]) *rl.Env[move] {
	t.Helper()
	env, err := rl.New(ses, spec)
	require.NoError(t, err)
	t.Cleanup(env.Close)
	return env
}

func value(text string) signal.Value {
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

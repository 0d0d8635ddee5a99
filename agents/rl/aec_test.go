package rl_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents/rl"
	"github.com/sajou-dev/sajou-go/session"
)

func newAEC(t testing.TB, ses *sajou.Session, spec rl.Spec[move]) *rl.AEC[move] {
	t.Helper()
	env, err := rl.NewAEC(ses, spec)
	require.NoError(t, err)
	t.Cleanup(env.Close)
	return env
}

// A cycle as PettingZoo has it: rewards add up until an agent's own turn, and one that
// is done comes before everybody else, once, with its last observation.
func TestCycle(t *testing.T) {
	ctx := t.Context()
	ses := open(t, vfs.NewMem(), session.TimeManual)
	spec := forager("ant", "bee", "cat")
	spec.World, spec.MaxSteps = corner(cornered), 7
	spec.Reward = func(t rl.Transition) float64 {
		if t.Outcome.OK() {
			return 10
		}
		return 1
	}
	env := newAEC(t, ses, spec)
	assert.ErrorIs(t, env.Step(ctx, nil), rl.ErrReset, "a turn before the reset")
	require.NoError(t, env.Reset(ctx, 1))
	script := map[string][]move{"ant": {east, south}, "bee": {south, east}, "cat": {stay, north, north}}
	var story strings.Builder
	for agent := range env.Agents() {
		turn := env.Last()
		at, _ := place(turn.Observation.View, agent)
		fmt.Fprintf(&story, "%s at %g,%g earned %g", agent, at.X, at.Y, turn.Reward)
		if turn.Info.Effect != nil {
			fmt.Fprintf(&story, " by %s", turn.Info.ReqID)
		}
		if agent != turn.Agent || agent != env.Selected() {
			t.Errorf("%s has the turn of %s", agent, turn.Agent)
		}
		var action *move
		switch {
		case turn.Done():
			fmt.Fprintf(&story, ", done (%v, %v)", turn.Terminated, turn.Truncated)
			wrong := east
			assert.ErrorIs(t, env.Step(ctx, &wrong), rl.ErrAction, "an action of one who is done")
		case len(script[agent]) > 0:
			action = &script[agent][0]
			script[agent] = script[agent][1:]
		}
		fmt.Fprintf(&story, " of %s\n", strings.Join(env.Active(), " "))
		require.NoError(t, env.Step(ctx, action))
	}
	// bee finds the food in its second turn, so cat, whose turn it was, comes after it.
	want := `ant at 0,0 earned 0 of ant bee cat
bee at 2,0 earned 1 of ant bee cat
cat at 5,5 earned 2 of ant bee cat
ant at 1,0 earned 12 by rl/1/1 of ant bee cat
bee at 2,1 earned 12 by rl/1/2 of ant bee cat
bee at 3,1 earned 10 by rl/1/5, done (true, false) of ant bee cat
cat at 5,5 earned 3 of ant cat
ant at 1,1 earned 12 by rl/1/4 of ant cat
ant at 1,1 earned 1, done (false, true) of ant cat
cat at 5,4 earned 11 by rl/1/6, done (false, true) of cat
`
	if diff := cmp.Diff(want, story.String()); diff != "" {
		t.Error(diff)
	}
	if env.Last().Agent != "" || env.Selected() != "" {
		t.Errorf("at the end it is the turn of %q", env.Selected())
	}
}

// An episode that is resumed after any turn goes on as one that was not: the same
// turns of the same agents, with the same rewards.
func TestCycleResumed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		stops := rapid.SliceOfN(rapid.Bool(), 12, 12).Draw(rt, "resume after")
		run := func(resume bool) (story []string) {
			ses := open(t, vfs.NewMem(), session.TimeManual)
			spec := forager("ant", "bee", "cat")
			spec.MaxSteps = 10
			env := newAEC(t, ses, spec)
			require.NoError(rt, env.Reset(t.Context(), seed))
			rng := rand.New(rand.NewPCG(seed, 1))
			for i := 0; env.Selected() != ""; i++ {
				turn := env.Last()
				done := turn.Done()
				story = append(story, fmt.Sprintf("%s %g %v %v %s", turn.Agent, turn.Reward, turn.Terminated, turn.Truncated,
					turn.Observation.View.ContextDigest))
				var action *move
				if !done {
					m := choose(rng, turn.Info.ActionMask)
					action = &m
				}
				require.NoError(rt, env.Step(t.Context(), action))
				// One that has had its last turn would have it again.
				if resume && !done && i < len(stops) && stops[i] {
					env = newAEC(t, ses, spec)
					require.NoError(rt, env.Resume(t.Context()))
				}
			}
			return story
		}
		if a, b := run(false), run(true); !slices.Equal(a, b) {
			rt.Fatalf("without a break\n%s\nwith breaks\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	})
}

// Where nobody is in another's way, what is done at once and by turns comes to the
// same, and each sees the same of it.
func TestCycleAndParallelAgree(t *testing.T) {
	ctx := t.Context()
	spec := forager("ant", "bee", "cat")
	spec.World = corner(cornered)
	spec.Delta = 1
	together, apart := open(t, vfs.NewMem(), session.TimeManual), open(t, vfs.NewMem(), session.TimeManual)
	env, aec := newEnv(t, together, spec), newAEC(t, apart, spec)
	if _, _, err := env.Reset(ctx, 1); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, aec.Reset(ctx, 1))
	actions := map[string]move{"ant": south, "bee": south, "cat": north}
	r, err := env.Step(ctx, actions)
	require.NoError(t, err)
	for range 3 {
		action := actions[aec.Selected()]
		require.NoError(t, aec.Step(ctx, &action))
	}
	if a, b := worldOf(t, together), worldOf(t, apart); a != b {
		t.Errorf("at once\n%sby turns\n%s", a, b)
	}
	for _, id := range aec.PossibleAgents() {
		turn := aec.Last()
		if turn.Agent != id {
			t.Errorf("the turn of %s, want %s", turn.Agent, id)
		}
		for other := range r.Observations {
			a, ok1 := place(r.Observations[id].View, other)
			b, ok2 := place(turn.Observation.View, other)
			if a != b || ok1 != ok2 {
				t.Errorf("%s sees %s at %v (%v), by turns at %v (%v)", id, other, a, ok1, b, ok2)
			}
		}
		require.NoError(t, aec.Step(ctx, nil))
	}
}

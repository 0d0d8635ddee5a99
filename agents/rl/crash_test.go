package rl_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/rl"
	"github.com/sajou-dev/sajou-go/session"
)

// script is what everybody does, by step; ant and bee are in each other's way.
var script = []map[string]move{
	{"ant": east, "bee": west, "cat": north},
	{"ant": east, "bee": south, "cat": north},
	{"ant": south, "bee": east, "cat": east},
	{"ant": south, "cat": west},
}

// play goes on with an episode to the end of the script, by the actions of those
// who take part, and returns what each step came to.
func play(t *testing.T, env *rl.Env[move]) map[uint64]rl.StepResult {
	t.Helper()
	results := map[uint64]rl.StepResult{}
	for int(env.Steps()) < len(script) {
		actions := maps.Clone(script[env.Steps()])
		active := map[string]bool{}
		for _, id := range env.Agents() {
			active[id] = true
		}
		maps.DeleteFunc(actions, func(id string, _ move) bool { return !active[id] })
		r, err := env.Step(t.Context(), actions)
		require.NoError(t, err)
		results[r.Step] = r
	}
	return results
}

// Whatever write the power fails at, the episode goes on where it was: each intent has
// exactly one outcome, each step one end, and the world is in the end as if nothing had
// been.
func TestCrash(t *testing.T) {
	spec := forager("ant", "bee", "cat")
	spec.World = corner(cornered)

	mem := vfs.NewCrashableMem()
	var mu sync.Mutex
	var images []*vfs.MemFS
	armed, rng := false, rand.New(rand.NewPCG(1, 2))
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if armed && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			for _, percent := range []int{0, 60} {
				images = append(images, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
			}
		}
		return nil
	}))
	arm := func(on bool) {
		mu.Lock()
		defer mu.Unlock()
		armed = on
	}

	ses := open(t, fs, session.TimeManual)
	env := newEnv(t, ses, spec)
	arm(true)
	if _, _, err := env.Reset(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	want := play(t, env)
	arm(false)
	images = append(images, mem.CrashClone(vfs.CrashCloneCfg{}))
	end := worldOf(t, ses)
	if len(images) < 20 {
		t.Fatalf("only %d images", len(images))
	}
	stood := map[uint64]int{}
	for i, image := range images {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ses := open(t, image, session.TimeManual)
			env := newEnv(t, ses, spec)
			last, err := env.Resume(t.Context())
			switch {
			case errors.Is(err, rl.ErrReset):
				if _, _, err := env.Reset(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
			case err != nil:
				t.Fatal(err)
			}
			stood[env.Steps()]++
			if n := env.Steps(); n > 0 {
				// The last step, asked for again with other actions, is what it was.
				again, err := env.StepAt(t.Context(), n, map[string]move{"cat": south, "ant": west})
				require.NoError(t, err)
				same(t, again, want[n])
				same(t, last, want[n])
			}
			for step, r := range play(t, env) {
				if !maps.Equal(r.Rewards, want[step].Rewards) || !maps.Equal(r.Terminations, want[step].Terminations) {
					t.Errorf("step %d: %v, want %v", step, r, want[step])
				}
			}
			asked, marks := map[string]int{}, 0
			for e := range effectsOf(t, ses) {
				if e.ReqID != "" {
					asked[e.SourceID+" "+e.ReqID]++
				}
				if e.Kind == rl.KindEpisodeStep {
					marks++
				}
			}
			for request, n := range asked {
				if n != 1 {
					t.Errorf("%s has %d effects", request, n)
				}
			}
			if marks != len(script) || env.Episode() != 1 {
				t.Errorf("%d steps are recorded, episode %d", marks, env.Episode())
			}
			if got := worldOf(t, ses); got != end {
				t.Errorf("the world is\n%s\nwant\n%s", got, end)
			}
		})
	}
	if len(stood) != len(script)+1 {
		t.Errorf("crashes by steps taken: %v, want all from 0 to %d", stood, len(script))
	}
}

// same compares a step that is told again with what it came to.
func same(t *testing.T, got, want rl.StepResult) {
	t.Helper()
	for id, info := range want.Infos {
		g := got.Infos[id]
		if g.ReqID != info.ReqID || !reflect.DeepEqual(g.Effect, info.Effect) {
			t.Errorf("step %d: %s: effect %+v, want %+v", want.Step, id, g.Effect, info.Effect)
		}
		if (g.Rejection == nil) != (info.Rejection == nil) || g.Rejection != nil && !refused(g.Rejection, info.Rejection) {
			t.Errorf("step %d: %s: %v, want %v", want.Step, id, g.Rejection, info.Rejection)
		}
	}
	if !maps.Equal(got.Rewards, want.Rewards) || !maps.Equal(got.Terminations, want.Terminations) ||
		!maps.Equal(got.Truncations, want.Truncations) || got.Step != want.Step {
		t.Errorf("step %d: %+v, want %+v", want.Step, got, want)
	}
}

// refused reports whether two refusals are of one kind. What conflicted with the
// first half of a quantum is invalid if the crash came between the two halves.
func refused(a, b *agents.Rejection) bool {
	conflict := func(r *agents.Rejection) bool {
		return r.Code == agents.ErrIntentConflict || r.Code == agents.ErrInvalid
	}
	return a.AgentID == b.AgentID && a.ReqID == b.ReqID && (a.Code == b.Code || conflict(a) && conflict(b))
}

// worldOf returns the world without its numbers.
func worldOf(t *testing.T, ses *sajou.Session) string {
	t.Helper()
	state, err := ses.State(t.Context())
	require.NoError(t, err)
	text := ""
	for id := range session.WorldOf(state).World().Entities() {
		at, _ := session.WorldOf(state).World().Position(id)
		text += fmt.Sprintf("%s %v\n", id, at)
	}
	return text
}

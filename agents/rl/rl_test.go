package rl_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/rl"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// corner is a world without chance: ant and bee stand two fields apart, cat in the
// other corner, far from the food.
func corner(text string) func(uint64, *rand.Rand) (signal.Value, error) {
	return func(uint64, *rand.Rand) (signal.Value, error) { return signal.ParseValue([]byte(text)) }
}

const cornered = `{"entities":{"ant":{"type":"agent"},"bee":{"type":"agent"},"cat":{"type":"agent"},"food":{"type":"food"}},
	"spatial_index":{"ant":[0,0],"bee":[2,0],"cat":[5,5],"food":[4,1]},
	"relationships":{"ant":["bee",{"to":"cat","type":"rival","strength":0.5}]}}`

// A step of the parallel environment as PettingZoo has it: what is returned is about all
// who took part, who is done leaves, and the log has the very effects.
func TestParallel(t *testing.T) {
	ctx := t.Context()
	ses := open(t, vfs.NewMem(), session.TimeManual)
	spec := forager("ant", "bee", "cat")
	spec.World = corner(cornered)
	env := newEnv(t, ses, spec)
	if _, err := env.Step(ctx, nil); !errors.Is(err, rl.ErrReset) {
		t.Errorf("a step before the reset: %v", err)
	}
	observations, infos, err := env.Reset(ctx, 7)
	require.NoError(t, err)
	if got := env.Agents(); !slices.Equal(got, []string{"ant", "bee", "cat"}) || env.Episode() != 1 || env.Seed() != 7 {
		t.Errorf("agents %q, episode %d, seed %d", got, env.Episode(), env.Seed())
	}
	// Each sees two fields far: ant and bee each other, cat itself.
	sees := func(o rl.AgentObservation) (ids []string) {
		for id := range o.View.VisibleEntities.Members() {
			ids = append(ids, id)
		}
		return ids
	}
	for id, want := range map[string][]string{"ant": {"ant", "bee"}, "bee": {"ant", "bee"}, "cat": {"cat"}} {
		if got := sees(observations[id]); !slices.Equal(got, want) {
			t.Errorf("%s sees %q, want %q", id, got, want)
		}
		if observations[id].View.Digest() != observations[id].View.ContextDigest {
			t.Errorf("the digest of what %s sees is wrong", id)
		}
	}
	if want := []bool{true, false, true, true, false}; !slices.Equal(infos["ant"].ActionMask, want) {
		t.Errorf("mask of ant: %v, want %v", infos["ant"].ActionMask, want)
	}

	// ant and bee want the same field: ant comes first by its id. cat leaves the board.
	r, err := env.Step(ctx, map[string]move{"bee": west, "ant": east, "cat": stay})
	require.NoError(t, err)
	if r.Episode != 1 || r.Step != 1 || env.Steps() != 1 {
		t.Errorf("step %d of episode %d", r.Step, r.Episode)
	}
	if e := r.Infos["ant"].Effect; e == nil || e.ReqID != "rl/1/1" || e.SourceID != "ant" || r.Infos["ant"].Rejection != nil {
		t.Fatalf("ant: %+v", r.Infos["ant"])
	} else {
		seq, _, err := ses.Agents().GlobalSeq(ctx, "ant", "rl/1/1")
		require.NoError(t, err)
		logged := effectAt(t, ses, seq)
		if logged.GlobalSeq = e.GlobalSeq; !reflect.DeepEqual(*e, logged) {
			t.Errorf("ant's effect is %+v, in the log %+v", *e, logged)
		}
	}
	if i := r.Infos["bee"]; i.Effect != nil || !errors.Is(i.Rejection, agents.ErrIntentConflict) || i.ReqID != "rl/1/1" {
		t.Errorf("bee: %+v, want a conflict", i)
	}
	if i := r.Infos["cat"]; i.Effect != nil || i.Rejection != nil || i.ReqID != "" {
		t.Errorf("cat asked for nothing: %+v", i)
	}
	if want := map[string]float64{"ant": -0.125, "bee": -0.5, "cat": -0.125}; !maps.Equal(r.Rewards, want) {
		t.Errorf("rewards %v, want %v", r.Rewards, want)
	}
	// What is new for each is what it sees: bee saw ant move, cat nothing of it.
	for id, want := range map[string]bool{"ant": true, "bee": true, "cat": false} {
		changed := slices.ContainsFunc(r.Observations[id].Deltas, func(o agentslive.Observation) bool { return len(o.Patches) > 0 })
		if changed != want {
			t.Errorf("%s was told of the move: %v, want %v", id, changed, want)
		}
	}
	if at, _ := place(r.Observations["bee"].View, "ant"); at != (world.Position{X: 1}) {
		t.Errorf("bee sees ant at %v", at)
	}

	// bee reaches the food and is done.
	for i, m := range []move{south, east} {
		if r, err = env.Step(ctx, map[string]move{"bee": m}); err != nil {
			t.Fatal(err)
		}
		if done := r.Terminations["bee"]; done != (i == 1) {
			t.Errorf("step %d: bee is done: %v", r.Step, done)
		}
	}
	if r.Rewards["bee"] != 1 || r.Truncations["bee"] || len(r.Observations) != 3 {
		t.Errorf("bee's last step: %+v", r)
	}
	if got := env.Agents(); !slices.Equal(got, []string{"ant", "cat"}) {
		t.Errorf("agents %q after bee is done", got)
	}
	if _, err = env.Step(ctx, map[string]move{"bee": north}); !errors.Is(err, rl.ErrAction) {
		t.Errorf("an action of one who is done: %v", err)
	}
	for len(env.Agents()) > 0 {
		if r, err = env.Step(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.Observations["bee"]; ok {
			t.Fatal("bee is still told of it")
		}
	}
	if r.Step != spec.MaxSteps || !r.Truncations["ant"] || !r.Truncations["cat"] || r.Terminations["ant"] {
		t.Errorf("the end: %+v", r)
	}
	if _, err = env.Step(ctx, nil); !errors.Is(err, rl.ErrReset) {
		t.Errorf("a step after the end: %v", err)
	}
	if _, err = env.StepAt(ctx, 3, nil); !errors.Is(err, rl.ErrStep) {
		t.Errorf("step 3 again: %v", err)
	}
}

func effectAt(t *testing.T, ses *sajou.Session, globalSeq uint64) world.Effect {
	t.Helper()
	for e := range effectsOf(t, ses) {
		if e.GlobalSeq == globalSeq {
			return e
		}
	}
	t.Fatalf("no effect %d", globalSeq)
	return world.Effect{}
}

func effectsOf(t *testing.T, ses *sajou.Session) func(yield func(world.Effect) bool) {
	return func(yield func(world.Effect) bool) {
		for entry, err := range ses.Entries(t.Context(), 1) {
			require.NoError(t, err)
			r, err := session.WorldRecordOf(&entry)
			if err != nil || r.Word != agents.WordEffect {
				continue
			}
			e, err := world.ParseEffect(r.Value)
			require.NoError(t, err)
			if !yield(e) {
				return
			}
		}
	}
}

// A new episode in the same log: its world is that of the seed alone, whatever the last
// one left behind, and nothing is left of quotas and cooldowns.
func TestEpisodes(t *testing.T) {
	ctx := t.Context()
	ses := open(t, vfs.NewMem(), session.TimeManual)
	require.NoError(t, ses.Agents().Configure(ctx, value(`{"cooldowns":{"Move":60000}}`)))
	spec := forager("ant", "bee", "cat")
	spec.World = corner(cornered)
	env := newEnv(t, ses, spec)
	var first string
	for episode := range uint64(3) {
		if _, _, err := env.Reset(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if env.Episode() != episode+1 || env.Steps() != 0 {
			t.Fatalf("episode %d, step %d", env.Episode(), env.Steps())
		}
		state, err := ses.State(ctx)
		require.NoError(t, err)
		world := session.WorldOf(state).World().Value()
		metadata, _ := world.Get("metadata")
		text := strings.Replace(world.String(), metadata.String(), "", 1)
		if episode == 0 {
			first = text
		} else if text != first {
			t.Errorf("episode %d begins with\n%s\nthe first with\n%s", episode+1, text, first)
		}
		// Something that was not there, and a place of nobody.
		for _, d := range []agents.EffectDraft{
			{Kind: "EntityCreated", SourceID: "gm", Payload: value(`{"entity_id":"ghost","entity_data":{}}`)},
			{Kind: "Move", SourceID: "nobody", Payload: value(`{"to":[1,1]}`)},
		} {
			if _, err := ses.Agents().Broadcast(ctx, d); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := env.Step(ctx, nil); err != nil {
			t.Fatal(err)
		}
		r, err := env.Step(ctx, map[string]move{"ant": south})
		if err != nil || r.Infos["ant"].Rejection != nil {
			t.Fatalf("episode %d: %v, %v", episode+1, r.Infos["ant"].Rejection, err)
		}
		if r, err = env.Step(ctx, map[string]move{"ant": south}); err != nil || !errors.Is(r.Infos["ant"].Rejection, agents.ErrCooldownActive) {
			t.Fatalf("episode %d, at once again: %v, %v", episode+1, r.Infos["ant"].Rejection, err)
		}
	}
}

// The same seed and actions give the same log, to the byte, whatever the order of the
// maps; and so for every kind of time.
func TestDeterminism(t *testing.T) {
	for _, authority := range []session.TimeAuthority{session.TimeManual, session.TimeSim, session.TimeWall} {
		t.Run(string(authority), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				seed := rapid.Uint64().Draw(rt, "seed")
				steps := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 4), 3, 3), 0, 6).Draw(rt, "steps")
				var heads []eventlog.Head
				for range 2 {
					ses := open(t, vfs.NewMem(), authority)
					env := newEnv(t, ses, forager("ant", "bee", "cat"))
					if _, _, err := env.Reset(t.Context(), seed); err != nil {
						rt.Fatal(err)
					}
					for _, list := range steps {
						actions := map[string]move{}
						for i, id := range env.Agents() {
							actions[id] = move(list[i])
						}
						if len(actions) == 0 {
							break
						}
						r, err := env.Step(t.Context(), actions)
						require.NoError(rt, err)
						for id, o := range r.Observations {
							if o.View.Digest() != o.View.ContextDigest {
								rt.Fatalf("step %d: the digest of what %s knows is wrong", r.Step, id)
							}
						}
					}
					heads = append(heads, ses.Head())
				}
				if heads[0] != heads[1] {
					rt.Fatalf("two heads: %v and %v", heads[0], heads[1])
				}
			})
		})
	}
}

// A step passes time: the world's time, the next step's and that of news on its way.
func TestTime(t *testing.T) {
	ctx := t.Context()
	for _, authority := range []session.TimeAuthority{session.TimeManual, session.TimeSim} {
		ses := open(t, vfs.NewMem(), authority)
		spec := forager("ant", "bee", "cat")
		spec.World, spec.Delta = corner(cornered), 250*time.Millisecond
		spec.PossibleAgents[1].Policy = value(`{"policy":"distance","limit":2,"latency_model":{"model":"fixed","ms":300}}`)
		env := newEnv(t, ses, spec)
		if _, _, err := env.Reset(ctx, 1); err != nil {
			t.Fatal(err)
		}
		for step := range 3 {
			actions := map[string]move{}
			if step == 0 {
				actions["ant"] = east
			}
			r, err := env.Step(ctx, actions)
			require.NoError(t, err)
			if got, want := ses.Agents().Now(), time.Duration(step+1)*spec.Delta; got != want {
				t.Errorf("%s: after step %d it is %v, want %v", authority, step+1, got, want)
			}
			// bee is told 300 ms after the step began: in the second one.
			at, _ := place(r.Observations["bee"].View, "ant")
			for id, o := range r.Observations {
				if o.View.Digest() != o.View.ContextDigest {
					t.Errorf("%s: step %d: the digest of what %s knows is wrong", authority, step+1, id)
				}
			}
			if told := at == (world.Position{X: 1}); told != (step > 0) {
				t.Errorf("%s: after step %d bee knows of the move: %v", authority, step+1, told)
			}
		}
	}
}

// What cannot be an environment is refused when it is made, and what cannot be a
// world or a reward when it shows.
func TestRefusals(t *testing.T) {
	ctx := t.Context()
	good := func() rl.Spec[move] { return forager("ant", "bee") }
	for name, spoil := range map[string]func(*rl.Spec[move]){
		"nobody":      func(s *rl.Spec[move]) { s.PossibleAgents = nil },
		"twice":       func(s *rl.Spec[move]) { s.PossibleAgents[1].AgentID = "ant" },
		"unnamed":     func(s *rl.Spec[move]) { s.PossibleAgents[1].AgentID = "" },
		"the source":  func(s *rl.Spec[move]) { s.Source = "bee" },
		"no world":    func(s *rl.Spec[move]) { s.World = nil },
		"no intents":  func(s *rl.Spec[move]) { s.Intent = nil },
		"past":        func(s *rl.Spec[move]) { s.Delta = -1 },
		"metadata":    func(s *rl.Spec[move]) { s.World = corner(`{"metadata":{"a":1}}`) },
		"placeless":   func(s *rl.Spec[move]) { s.World = corner(`{"spatial_index":{"x":[0,0]}}`) },
		"relation":    func(s *rl.Spec[move]) { s.World = corner(`{"entities":{"x":{}},"relationships":{"x":["y"]}}`) },
		"malformed":   func(s *rl.Spec[move]) { s.World = corner(`[]`) },
		"no reward":   func(s *rl.Spec[move]) { s.Reward = func(rl.Transition) float64 { return 1 / zero } },
		"not a thing": func(s *rl.Spec[move]) { s.Reward = func(rl.Transition) float64 { return zero / zero } },
	} {
		spec := good()
		spoil(&spec)
		ses := open(t, vfs.NewMem(), session.TimeManual)
		env, err := rl.New(ses, spec)
		if err == nil {
			defer env.Close()
			_, _, err = env.Reset(ctx, 1)
		}
		if err == nil {
			_, err = env.Step(ctx, nil)
		}
		assert.ErrorIsf(t, err, rl.ErrSpec, "%s: %v, want ErrSpec", name, err)
	}
}

var zero float64

// What others write in the environment's name, or an agent asks for under its kinds,
// is none of its records.
func TestForgedRecords(t *testing.T) {
	ctx := t.Context()
	ses := open(t, vfs.NewMem(), session.TimeManual)
	require.NoError(t, ses.Agents().Configure(ctx, value(`{"intent_kinds":["EpisodeBegan","EpisodeStep"],"cooldowns":"off"}`)))
	env := newEnv(t, ses, forager("ant", "bee"))
	if _, _, err := env.Reset(ctx, 1); err != nil {
		t.Fatal(err)
	}
	for i, kind := range []string{rl.KindEpisodeBegan, rl.KindEpisodeStep} {
		seq, _ := ses.Agents().LatestViewSeq("ant")
		_, err := ses.Agents().Submit(ctx, agents.Intent{
			AgentID: "ant", ReqID: "forged" + kind, Kind: kind, ContextSeq: seq + uint64(i),
			Payload: value(`{"episode":9,"step":1,"seed":3,"agents":["ant","bee"]}`),
		})
		require.NoError(t, err)
	}
	if _, err := env.Resume(ctx); err != nil || env.Episode() != 1 || env.Steps() != 0 {
		t.Errorf("episode %d, step %d, %v", env.Episode(), env.Steps(), err)
	}
	for payload, want := range map[string]error{
		`{"episode":1,"step":2,"agents":[]}`: rl.ErrRecord,
		`{"episode":"1"}`:                    rl.ErrRecord,
	} {
		ses := open(t, vfs.NewMem(), session.TimeManual)
		env := newEnv(t, ses, forager("ant", "bee"))
		if _, err := env.Resume(ctx); !errors.Is(err, rl.ErrReset) {
			t.Errorf("resume before there is anything: %v", err)
		}
		if _, _, err := env.Reset(ctx, 1); err != nil {
			t.Fatal(err)
		}
		d := agents.EffectDraft{Kind: rl.KindEpisodeStep, SourceID: "environment", Payload: value(payload)}
		if _, err := ses.Agents().Broadcast(ctx, d); err != nil {
			t.Fatal(err)
		}
		if _, err := env.Resume(ctx); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", payload, err, want)
		}
	}
	other := newEnv(t, ses, forager("ant", "bee", "cat"))
	if _, err := other.Resume(ctx); !errors.Is(err, rl.ErrSpec) {
		t.Errorf("an episode of other agents: %v", err)
	}
}

// A context that ends is an error, and the same call takes the step.
func TestCancelledStep(t *testing.T) {
	ses := open(t, vfs.NewMem(), session.TimeManual)
	spec := forager("ant", "bee", "cat")
	spec.World = corner(cornered)
	env := newEnv(t, ses, spec)
	if _, _, err := env.Reset(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := env.Step(done, map[string]move{"ant": south}); !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v", err)
	}
	if r, err := env.Step(t.Context(), map[string]move{"ant": south}); err != nil || r.Step != 1 || r.Infos["ant"].Effect == nil {
		t.Errorf("step %d: %+v, %v", r.Step, r.Infos["ant"], err)
	}
}

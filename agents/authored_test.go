package agents_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/schematest"
	"github.com/sajou-dev/sajou-go/signal"
)

var someNames = rapid.Map(rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,4}`), 1, 3), func(l []string) []string { return l })

func somePolicy(depth int) *rapid.Generator[view.Policy] {
	return rapid.Custom(func(t *rapid.T) view.Policy {
		of := func() []view.Policy {
			if depth == 0 {
				return []view.Policy{view.Self()}
			}
			return rapid.SliceOfN(somePolicy(depth-1), 1, 3).Draw(t, "of")
		}
		distance := rapid.Float64Range(0, 1e6)
		switch rapid.IntRange(0, 11).Draw(t, "policy") {
		case 0:
			return view.Everything()
		case 1:
			return view.Self()
		case 2:
			return view.Conversation()
		case 3:
			return view.Distance(distance.Draw(t, "limit"), rapid.Bool().Draw(t, "unplaced"))
		case 4:
			return view.Cone(rapid.Float64Range(0, 360).Draw(t, "angle"), distance.Draw(t, "range"))
		case 5:
			return view.Allies(someNames.Draw(t, "fields")...)
		case 6:
			return view.Channels(rapid.SampledFrom([]string{world.ChannelPublic, world.ChannelTeam, world.ChannelPrivate}).Draw(t, "channel"))
		case 7:
			return view.Fields(view.FieldRule{
				Fields: map[string]bool{"a": rapid.Bool().Draw(t, "a"), "b": false}, Types: someNames.Draw(t, "types"),
				Of: view.Of(rapid.IntRange(0, 3).Draw(t, "of")),
			})
		case 8:
			return view.Relationships(view.RelationshipRule{
				Types: someNames.Draw(t, "types"), Depth: rapid.IntRange(1, 64).Draw(t, "depth"),
				Direction: view.Direction(rapid.IntRange(0, 2).Draw(t, "direction")), Entities: rapid.SampledFrom([]string{"", "door"}).Draw(t, "entities"),
			})
		case 9:
			return view.All(of()...)
		case 10:
			return view.Any(of()...)
		default:
			return view.Not(of()[0])
		}
	})
}

// A policy that is compiled from its form is the policy that was marshalled.
func TestMarshalPolicy(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := somePolicy(3).Draw(r, "policy")
		options := view.Options{
			MaxPatchOps: rapid.IntRange(1, 100).Draw(r, "ops"), HidePositions: rapid.Bool().Draw(r, "hide"),
			TypedRelationships: rapid.Bool().Draw(r, "typed"), Remember: rapid.IntRange(0, 100).Draw(r, "remember"),
		}
		v, err := view.MarshalPolicy(p, options)
		require.NoError(t, err)
		compiled, err := view.CompilePolicy(v, nil)
		require.NoError(t, err, "%v", v)
		assert.Equal(t, view.NewCompiledPolicy(p, options), compiled, "%v", v)
	})
	for _, c := range []struct {
		policy view.Policy
		want   string
	}{
		{nil, `{"policy":"everything"}`},
		{view.All(), `{"policy":"everything"}`},
		{view.Any(), `{"policy":"self"}`},
		{view.CustomPolicy("sonar", 2, parse(t, `{"ping":1}`)), `{"policy":"custom","name":"sonar","version":2,"config":{"ping":1}}`},
		{view.Fields(view.FieldRule{Fields: map[string]bool{"a": false}}, view.FieldRule{Fields: map[string]bool{"b": false}}), `{"policy":"all","of":[` +
			`{"policy":"fields","fields":{"a":false},"types":[],"of":"all"},{"policy":"fields","fields":{"b":false},"types":[],"of":"all"}]}`},
	} {
		v, err := view.MarshalPolicy(c.policy, view.Options{})
		require.NoError(t, err)
		assert.Equal(t, c.want, string(v.AppendJSON(nil)))
	}
	assert.False(t, view.CustomPolicy("sonar", 1, nil).Sees(nil, "a"))
}

// ownPolicy is a policy of the program's own.
type ownPolicy struct{ view.Policy }

// A mistake in a policy made in Go is refused as the one in JSON is, at the same place.
func TestMarshalPolicyErrors(t *testing.T) {
	for _, c := range []struct {
		policy  view.Policy
		options view.Options
		path    string
	}{
		{view.Any(view.Self(), view.Distance(-1, false)), view.Options{}, "/of/1/limit"},
		{view.Not(view.Cone(400, 1)), view.Options{}, "/of/angle"},
		{view.Distance(math.NaN(), false), view.Options{}, "/limit"},
		{view.Channels("gossip"), view.Options{}, "/channels/0"},
		{view.Any(view.Self(), view.Distance(-1, false)), view.Options{Remember: 5}, "/of/of/1/limit"},
		{view.Self(), view.Options{MaxPatchOps: -1}, "/max_patch_ops"},
		{view.CustomPolicy("sonar", 1, nil), view.Options{}, "/name"},
		{view.All(view.Self(), view.Not(ownPolicy{})), view.Options{}, "/of/1/of"},
		{ownPolicy{}, view.Options{Remember: 5}, "/of"},
		{view.Allies("\xff"), view.Options{}, ""},
	} {
		v, err := view.MarshalPolicy(c.policy, c.options)
		if err == nil {
			_, err = view.CompilePolicy(v, nil)
		}
		var refused *view.PolicyError
		require.ErrorAs(t, err, &refused, "%v", v)
		assert.Equal(t, c.path, refused.Path, "%v", err)
	}
}

func someSettings(t *rapid.T) agents.AuthoredSettings {
	millis := rapid.Map(rapid.Int64Range(0, int64(time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
	s := agents.AuthoredSettings{NoCooldowns: rapid.Bool().Draw(t, "none")}
	if rapid.Bool().Draw(t, "some") {
		return s
	}
	s.Staleness, s.Interrupt = new(rapid.Uint64Max(99).Draw(t, "staleness")), agents.InterruptConflict
	s.Debounce, s.Deadline = new(millis.Draw(t, "debounce")), new(millis.Draw(t, "deadline"))
	s.TokenBudget, s.QuotaIntents, s.QuotaTokens = new(int64(7)), new(rapid.Int64Range(-1, 100).Draw(t, "intents")), new(int64(9))
	s.Cooldowns = map[string]time.Duration{"Sing": millis.Draw(t, "sing")}
	s.QueueDepth, s.Pressure, s.Priority, s.Weight = new(3), flow.PressureShed, new(-5), new(7)
	s.Latency = &flow.Latency{Base: millis.Draw(t, "base"), PerUnit: time.Millisecond, Spread: millis.Draw(t, "spread"), Seed: rapid.Uint64().Draw(t, "seed")}
	return s
}

// under returns the settings that s gives over base.
func under(base agents.Settings, s agents.AuthoredSettings) agents.Settings {
	if s.Staleness != nil {
		base = agents.Settings{
			Staleness: *s.Staleness, Interrupt: s.Interrupt, Debounce: *s.Debounce, Deadline: *s.Deadline, TokenBudget: *s.TokenBudget,
			QuotaIntents: *s.QuotaIntents, QuotaTokens: *s.QuotaTokens, Cooldowns: maps.Clone(base.Cooldowns), QueueDepth: *s.QueueDepth,
			Pressure: s.Pressure, Priority: *s.Priority, Weight: *s.Weight, Latency: *s.Latency,
		}
		if base.Cooldowns == nil {
			base.Cooldowns = map[string]time.Duration{}
		}
		maps.Copy(base.Cooldowns, s.Cooldowns)
	}
	if s.NoCooldowns {
		base.Cooldowns = nil
	}
	return base
}

// A configuration in Go is the one that ParseConfig reads from its form, which the schema
// accepts.
func TestAuthoredConfig(t *testing.T) {
	defaults, err := agents.ParseConfig(nil)
	require.NoError(t, err)
	rapid.Check(t, func(r *rapid.T) {
		authored := agents.AuthoredConfig{
			Settings: someSettings(r), Classes: map[string]agents.AuthoredSettings{"npc": someSettings(r)},
			Authority: agents.TimeSim, TickEffects: rapid.Bool().Draw(r, "ticks"), Paused: rapid.Bool().Draw(r, "paused"),
			MaxAgents: rapid.IntRange(1, 9).Draw(r, "agents"), MaxQuantum: 5,
			Kinds:   []string{"Sing", "Dig"},
			Touches: map[string]agents.Touch{"Dig": {Own: []string{"depth"}, Place: true, Remove: []string{"own"}}, "Fill": {Create: []string{"{agent}/"}, Relate: true, Others: []string{"a"}}},
			Rules:   agents.Rules{MaxPayload: 5, MaxText: 6, MaxMove: 0.5, MinSeparation: 1, MaxInteract: 2, InteractionTypes: []string{"a"}, RefusedWords: []string{"b"}},
		}
		v, err := signal.Marshal(authored)
		require.NoError(t, err)
		assert.NoError(t, schematest.Validate(agents.ConfigSchema(), v.AppendJSON(nil)))
		got, err := agents.ParseConfig(v)
		require.NoError(t, err, "%v", v)
		assert.Equal(t, under(defaults.Settings, authored.Settings), got.Settings)
		assert.Equal(t, under(got.Settings, authored.Classes["npc"]), got.Classes["npc"])
		assert.Equal(t, []string{"Sing", "Dig", "Fill"}, got.Kinds)
		assert.Equal(t, authored.Touches, got.Touches)
		assert.Equal(t, authored.Rules, got.Rules)
		assert.Equal(t, []any{authored.Authority, authored.TickEffects, authored.Paused, authored.MaxAgents, authored.MaxQuantum},
			[]any{got.Authority, got.TickEffects, got.Paused, got.MaxAgents, got.MaxQuantum})
	})
	v, err := agents.AuthoredConfig{}.Value()
	require.NoError(t, err)
	assert.Equal(t, "{}", string(v.AppendJSON(nil)))
	for path, wrong := range map[string]agents.AuthoredConfig{
		"/max_agents":                {MaxAgents: -1},
		"/deadline_ms":               {Settings: agents.AuthoredSettings{Deadline: new(-time.Second)}},
		"/classes/a~1b/weight":       {Classes: map[string]agents.AuthoredSettings{"a/b": {Weight: new(0)}}},
		"/authority":                 {Authority: "god"},
		"/intent_kinds/0/remove/0":   {Touches: map[string]agents.Touch{"Dig": {Remove: []string{"all"}}}},
		"/rules/max_move_distance":   {Rules: agents.Rules{MaxMove: math.Inf(1)}},
		"/latency_model/per_unit_ms": {Settings: agents.AuthoredSettings{Latency: &flow.Latency{PerUnit: -1}}},
		"/cooldowns/Speak":           {Settings: agents.AuthoredSettings{Cooldowns: map[string]time.Duration{"Speak": -1}}},
		"/quota_intents_per_minute":  {Settings: agents.AuthoredSettings{QuotaIntents: new(int64(1) << 40)}},
		"/backpressure_policy":       {Settings: agents.AuthoredSettings{Pressure: "block"}},
	} {
		v, err := wrong.Value()
		require.NoError(t, err)
		_, err = agents.ParseConfig(v)
		var refused *view.PolicyError
		require.ErrorAs(t, err, &refused, "%v", v)
		assert.Equal(t, path, refused.Path)
	}
	_, err = agents.AuthoredConfig{Kinds: []string{"\xff"}}.Value()
	assert.ErrorContains(t, err, "not UTF-8")
}

// A policy in Go has what the agent sees and its settings; both are of force in a core.
func TestAuthoredPolicy(t *testing.T) {
	core, err := agents.NewCore(agents.Options{})
	require.NoError(t, err)
	core.Bind("w", nil)
	policy, err := signal.Marshal(agents.AuthoredPolicy{
		Sight: view.Any(view.Self(), view.Distance(5, false)), Options: view.Options{HidePositions: true},
		Settings: agents.AuthoredSettings{QuotaIntents: new(int64(3)), NoCooldowns: true},
	})
	require.NoError(t, err)
	start, err := signal.Marshal(world.AuthoredWorld{
		Entities:  map[string]any{"ann": person{"agent"}, "bob": person{"agent"}, "far": map[string]any{"type": "tree"}},
		Relations: map[string][]world.Relation{"ann": {{To: "bob"}, {To: "bob", Type: "knows", Strength: 0.5}}},
		Places:    map[string]world.Position{"ann": {}, "bob": {X: 3}, "far": {X: 30}},
		Metadata:  map[string]int{"round": 1},
	})
	require.NoError(t, err)
	for _, decide := range []func() ([]signal.Record, error){
		func() ([]signal.Record, error) { return core.Begin(start) },
		func() ([]signal.Record, error) {
			return core.Register(agents.Registration{AgentID: "ann", Policy: policy})
		},
	} {
		records, err := decide()
		require.NoError(t, err)
		for _, r := range records {
			require.NoError(t, core.Apply(0, r).Err)
		}
	}
	assert.EqualValues(t, 3, core.AdmissionStatus(0, "ann").QuotaIntents)
	v, ok := core.View("ann")
	require.True(t, ok)
	assert.Equal(t, `{"ann":{"type":"agent"},"bob":{"type":"agent"}}`, string(v.VisibleEntities.AppendJSON(nil)))
	bob, err := signal.Unmarshal[person](v.Entity("bob"))
	require.NoError(t, err)
	assert.Equal(t, person{"agent"}, bob)

	for want, p := range map[string]agents.AuthoredPolicy{
		`{}`:           {},
		`{"weight":2}`: {Settings: agents.AuthoredSettings{Weight: new(2)}},
		`{"policy":"distance","limit":100.0,"unplaced":true,"typed_relationships":true}`: {Options: view.Options{TypedRelationships: true}},
	} {
		text, err := json.Marshal(p)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	_, err = agents.AuthoredPolicy{Sight: ownPolicy{}}.Value()
	assert.ErrorIs(t, err, view.ErrPolicy)
	_, err = signal.Marshal(agents.AuthoredPolicy{Sight: ownPolicy{}})
	assert.ErrorIs(t, err, view.ErrPolicy)
}

type person struct {
	Type string `json:"type"`
}

// A world in Go is the one that ParseWorld reads, and comes back from it. Its mistakes
// are those of the JSON.
func TestAuthoredWorld(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		coordinate := rapid.Float64Range(-1e6, 1e6)
		w := world.AuthoredWorld{
			Entities:  map[string]any{"a": map[string]any{"type": someText.Draw(r, "type")}, "b": map[string]any{}},
			Relations: map[string][]world.Relation{"a": {{To: "b", Type: someText.Draw(r, "relation"), Strength: coordinate.Draw(r, "strength")}}},
			Places:    map[string]world.Position{"b": {X: coordinate.Draw(r, "x") + 0, Y: coordinate.Draw(r, "y") + 0, Z: 1}},
		}
		v, err := signal.Marshal(w)
		require.NoError(t, err)
		parsed, err := world.ParseWorld(v)
		require.NoError(t, err, "%v", v)
		back, err := signal.Unmarshal[world.AuthoredWorld](parsed.Value())
		require.NoError(t, err)
		back.Metadata = nil
		assert.Equal(t, w, back)
	})
	for want, w := range map[string]world.AuthoredWorld{
		"/entities/a~1b: an entity is an object": {Entities: map[string]any{"a/b": 5}},
		"/spatial_index/a: ":                     {Places: map[string]world.Position{"a": {X: 1e13}}},
		"/relationships/a: ":                     {Relations: map[string][]world.Relation{"a": {{}}}},
		"/metadata: want an object":              {Metadata: 5},
		"signal: /entities/a/deep/1: a chan int": {Entities: map[string]any{"a": map[string]any{"deep": []any{1, make(chan int)}}}},
	} {
		v, err := signal.Marshal(w)
		if err == nil {
			_, err = world.ParseWorld(v)
		}
		assert.ErrorContains(t, err, want)
	}
}

func ExampleAuthoredPolicy() {
	// What an agent sees: everything within 10 units, and the names of its allies.
	policy, err := signal.Marshal(agents.AuthoredPolicy{
		Sight:    view.Any(view.Distance(10, false), view.Allies("name")),
		Settings: agents.AuthoredSettings{Debounce: new(50 * time.Millisecond)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(policy) // what Register of a session's agents takes
	// Output:
	// {"policy":"any","of":[{"policy":"distance","limit":10.0,"unplaced":false},{"policy":"team","fields":["name"]}],"debounce_ms":50}
}

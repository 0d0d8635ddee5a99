package agents_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

const smallWorld = `{
	"entities": {"a": {"team": "red", "hp": 3}, "b": {"team": "red", "message_count": 1}, "c": {"team": "blue"}},
	"relationships": {"a": ["b"], "c": [{"to": "a", "type": "foe", "strength": 0.5}]},
	"spatial_index": {"a": [0, 0], "b": [1, 0, 2]},
	"metadata": {"name": "town"}
}`

func newWorld(t rapid.TB, text string) *world.World {
	t.Helper()
	w, err := world.ParseWorld(parse(t, text), handlers...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func effect(t rapid.TB, seq uint64, kind, source, payload string) world.Effect {
	t.Helper()
	d := agents.EffectDraft{Kind: kind, Payload: parse(t, payload), SourceID: source, SchemaVersion: world.SchemaVersion}
	return d.Effect(fmt.Sprint("u", seq), seq, world.Seconds(time.Duration(seq)*500*time.Millisecond), "")
}

// TestEffects applies one effect of each kind to a small world and shows what
// became of it, as a patch of the world's document, and what the changes name.
func TestEffects(t *testing.T) {
	for _, tt := range []struct{ name, kind, source, payload, patch, paths string }{
		{
			"move", "Move", "a", `{"to":[3,4]}`,
			`add /entities/a/last_move_time 2.0, add /entities/a/last_position [0.0,0.0,0.0], add /entities/a/position [3.0,4.0,0.0], replace /spatial_index/a [3.0,4.0,0.0]`,
			"/entities/a/last_move_time /entities/a/last_position /entities/a/position /spatial_index/a",
		},
		{"move of an unknown entity", "Move", "ghost", `{"position":[1,1]}`, `add /spatial_index/ghost [1.0,1.0,0.0]`, "/spatial_index/ghost"},
		{
			"speak", "Speak", "b", `{"text":"hi"}`,
			`add /entities/b/last_message "hi", add /entities/b/last_speak_time 2.0, replace /entities/b/message_count 2`,
			"/entities/b/last_message /entities/b/last_speak_time /entities/b/message_count",
		},
		{
			"speak without a text", "SpeakResponse", "b", `{}`,
			`add /entities/b/last_message "", add /entities/b/last_speak_time 2.0, replace /entities/b/message_count 2`,
			"/entities/b/last_message /entities/b/last_speak_time /entities/b/message_count",
		},
		{
			"emit", "MessageEmitted", "a", `{"message":"hi","channel":"public"}`,
			`add /entities/a/emit_count 1, add /entities/a/last_emit_time 2.0, add /entities/a/last_message "hi"`,
			"/entities/a/emit_count /entities/a/last_emit_time /entities/a/last_message",
		},
		{
			"private", "Speak", "a", `{"text":"psst","channel":"private","target_id":"c"}`,
			`add /entities/a/private_message {"from":"a","text":"psst","time":2.0,"to":"c"}, add /entities/c/private_message {"from":"a","text":"psst","time":2.0,"to":"c"}`,
			"/entities/a/private_message /entities/c/private_message",
		},
		{
			"team", "Speak", "a", `{"text":"go","channel":"team"}`,
			`add /entities/a/team_message {"team":"red","text":"go","time":2.0}`, "/entities/a/team_message",
		},
		{"speech from outside", "Speak", "stranger", `{"text":"hi"}`, ``, ""},
		{
			"interact", "Interact", "a", `{"target_id":"b"}`,
			`add /relationships/b ["a"]`, "/relationships/b/a",
		},
		{"interact with oneself", "Interact", "a", `{"target":"a"}`, ``, ""},
		{
			"create", "EntityCreated", "", `{"entity_id":"d/e","entity_data":{"x":1},"position":[1,2]}`,
			`add /entities/d~1e {"x":1}, add /spatial_index/d~1e [1.0,2.0,0.0]`, "/entities/d~1e /entities/d~1e/x /spatial_index/d~1e",
		},
		{
			"create again", "EntityCreated", "", `{"entity_id":"a"}`,
			`remove /entities/a/hp, remove /entities/a/team, remove /spatial_index/a`, "/entities/a/hp /entities/a/team /spatial_index/a",
		},
		{
			"remove", "EntityRemoved", "", `{"entity_id":"a"}`,
			`remove /entities/a, remove /relationships/a, remove /relationships/c, remove /spatial_index/a`,
			"/entities/a /entities/a/hp /entities/a/team /relationships/a/b /relationships/c/a /spatial_index/a",
		},
		{
			"update", "EntityUpdated", "", `{"entity_id":"a","fields":{"hp":2},"remove":["team","none"]}`,
			`replace /entities/a/hp 2, remove /entities/a/team`, "/entities/a/hp /entities/a/none /entities/a/team",
		},
		{
			"relate", "RelationshipAdded", "", `{"from":"a","to":"b","type":"friend","mutual":true}`,
			`replace /relationships/a ["b",{"to":"b","type":"friend"}], add /relationships/b [{"to":"a","type":"friend"}]`,
			"/relationships/a/b /relationships/b/a",
		},
		{"relate more", "RelationshipAdded", "", `{"from":"c","to":"a","type":"foe","strength":1}`, `replace /relationships/c [{"strength":1.0,"to":"a","type":"foe"}]`, "/relationships/c/a"},
		{"unrelate", "RelationshipRemoved", "", `{"from":"c","to":"a"}`, `remove /relationships/c`, "/relationships/c/a"},
		{"unrelate what is not", "RelationshipRemoved", "", `{"from":"c","to":"a","type":"friend"}`, ``, ""},
		{
			"by a handler", "Swap", "a", `{"with":"b"}`,
			`remove /entities/a/hp, add /entities/a/swapped "b", replace /relationships/a ["b",{"strength":0.5,"to":"b","type":"friend"}], replace /spatial_index/a [1.0,0.0,2.0], replace /spatial_index/b [0.0,0.0,0.0]`,
			"/entities/a/hp /entities/a/swapped /relationships/a/b /spatial_index/a /spatial_index/b",
		},
		{"of an unknown kind", "Explosion", "a", `{"position":[0,0]}`, ``, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, smallWorld)
			before := w.Value()
			e := effect(t, 4, tt.kind, tt.source, tt.payload)
			_, err := w.Plan(e)
			require.NoError(t, err)
			c, err := w.Apply(e)
			require.NoError(t, err)
			var patch []string
			for _, op := range view.Diff(before, w.Value(), 0) {
				if !strings.HasPrefix(op.Path, "/metadata/") {
					patch = append(patch, strings.TrimSpace(op.Op+" "+op.Path+" "+strings.TrimSuffix(canonical(op.Value), "null")))
				}
			}
			if diff := cmp.Diff(tt.patch, strings.Join(patch, ", ")); diff != "" {
				t.Errorf("the world: (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.paths, strings.Join(c.Paths(), " ")); diff != "" {
				t.Errorf("the changes: (-want +got)\n%s", diff)
			}
			want := fmt.Sprintf(`{"last_effect_kind":%q,"last_effect_seq":4,"last_effect_time":2.0,"name":"town"}`, tt.kind)
			if got := canonical(w.Metadata()); got != want || c.Seq != 4 {
				t.Errorf("metadata %s, seq %d, want %s", got, c.Seq, want)
			}
		})
	}
}

// TestPlanRefuses shows the effects that Plan refuses, and the errors.
func TestPlanRefuses(t *testing.T) {
	long := strings.Repeat("x", world.MaxEntityBytes)
	deep := strings.Repeat("[", world.MaxEntityDepth) + strings.Repeat("]", world.MaxEntityDepth)
	for _, tt := range []struct {
		kind, source, payload string
		is                    error
		want                  string
	}{
		{"", "a", `{}`, world.ErrPayload, `effect "" /kind: want 1 to 256 bytes`},
		{"Move", "a", `{}`, world.ErrPayload, `effect "Move" /payload/to: missing`},
		{"Move", "a", `{"to":[1]}`, world.ErrPayload, `/payload/to: want an array of two or three numbers`},
		{"Move", "a", `{"to":[1,2,3,4]}`, world.ErrPayload, `/payload/to: want an array`},
		{"Move", "a", `{"to":[1,"2"]}`, world.ErrPayload, `/payload/to: element 1 is no number`},
		{"Move", "a", `{"position":[1,1e13]}`, world.ErrPayload, `/payload/position: element 1 is beyond 1e+12`},
		{"Move", "", `{"to":[1,2]}`, world.ErrPayload, `/source_id: an id has 1 to 256 bytes`},
		{"Speak", "a", `{"text":7}`, world.ErrPayload, `/payload/text: integer, want a string`},
		{"Speak", "a", `{"channel":"radio"}`, world.ErrPayload, `/payload/channel: "radio", want public, team or private`},
		{"Speak", "a", `{"channel":"private"}`, world.ErrPayload, `/payload/target_id: missing`},
		{"Speak", "a", `{"channel":"private","target_id":"z"}`, world.ErrUnknownEntity, `/payload/target_id: "z": no such entity`},
		{"Interact", "a", `{"target":"z"}`, world.ErrUnknownEntity, `/payload/target: "z"`},
		{"EntityCreated", "", `{"entity_id":""}`, world.ErrPayload, `/payload/entity_id: an id has`},
		{"EntityCreated", "", `{"entity_id":"d","entity_data":[]}`, world.ErrPayload, `an entity is an object`},
		{"EntityCreated", "", `{"entity_id":"d","entity_data":{"position":"here"}}`, world.ErrPayload, `/payload/entity_data/position: want an array`},
		{"EntityCreated", "", `{"entity_id":"d","entity_data":{"x":"` + long + `"}}`, world.ErrLimit, `entity "d": more than 65536 bytes`},
		{"EntityCreated", "", `{"entity_id":"d","entity_data":{"x":` + deep + `}}`, world.ErrLimit, `entity "d": deeper than 64 levels`},
		{"EntityUpdated", "", `{"entity_id":"a","fields":{"x":"` + long + `"}}`, world.ErrLimit, `more than 65536 bytes`},
		{"EntityUpdated", "", `{"entity_id":"a","fields":[]}`, world.ErrPayload, `/payload/fields: array, want an object`},
		{"EntityUpdated", "", `{"entity_id":"a","remove":[1]}`, world.ErrPayload, `/payload/remove: integer, want names`},
		{"EntityRemoved", "", `{}`, world.ErrPayload, `/payload/entity_id: `},
		{"EntityRemoved", "", `{"entity_id":"z"}`, world.ErrUnknownEntity, `/payload/entity_id: "z"`},
		{"RelationshipAdded", "", `{"from":"a","to":"z"}`, world.ErrUnknownEntity, `/payload/to: "z"`},
		{"RelationshipAdded", "", `{"from":"a","to":"b","type":7}`, world.ErrPayload, `/payload/type: `},
		{"RelationshipAdded", "", `{"to":"b"}`, world.ErrPayload, `/payload/from: `},
		{"RelationshipAdded", "", `{"from":"a"}`, world.ErrPayload, `/payload/to: `},
		{"RelationshipRemoved", "", `{"from":"a","to":"b","type":7}`, world.ErrPayload, `/payload/type: `},
		{"RelationshipRemoved", "", `{"to":"b"}`, world.ErrPayload, `/payload/from: `},
		{"RelationshipRemoved", "", `{"from":"a"}`, world.ErrPayload, `/payload/to: `},
		{"RelationshipAdded", "", `{"from":"a","to":"b","strength":"much"}`, world.ErrPayload, `/payload/strength: string, want a number`},
		{"Swap", "a", `{"with":"c"}`, world.ErrRefused, `effect "Swap": both need a position`},
	} {
		_, err := newWorld(t, smallWorld).Plan(effect(t, 1, tt.kind, tt.source, tt.payload))
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %.60s: %v, want %v: %s", tt.kind, tt.payload, err, tt.is, tt.want)
		}
		if _, ok := errors.AsType[*world.EffectError](err); !ok {
			t.Errorf("%v is no EffectError", err)
		}
	}
}

// TestHandlerIsChecked shows that what a handler returns is believed no more
// than what comes from outside.
func TestHandlerIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		change world.Change
		is     error
	}{
		"no value":          {world.SetField("a", "f", signal.Value{0xc1}), world.ErrPayload},
		"no entity":         {world.SetField("z", "f", parse(t, "1")), world.ErrUnknownEntity},
		"no object":         {world.PutEntity("z", parse(t, "1")), world.ErrPayload},
		"no id":             {world.PutEntity("", parse(t, "{}")), world.ErrPayload},
		"nowhere":           {world.Place("a", world.Position{X: 1e13}), world.ErrPayload},
		"to no entity":      {world.Relate("a", world.Relation{To: "z"}), world.ErrUnknownEntity},
		"a name too long":   {world.RemoveField("a", strings.Repeat("x", 300)), world.ErrLimit},
		"removed to relate": {world.Relate("gone", world.Relation{To: "a"}), world.ErrUnknownEntity},
	} {
		h := world.Handler{Kind: "Do", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return []world.Change{world.RemoveEntity("b"), tt.change}, nil
		}}
		w, err := world.ParseWorld(parse(t, smallWorld), h)
		require.NoError(t, err)
		if _, err := w.Apply(effect(t, 1, "Do", "a", `{}`)); !errors.Is(err, tt.is) {
			t.Errorf("%s: err = %v, want %v", name, err, tt.is)
		}
		if _, ok := w.Entity("b"); !ok {
			t.Errorf("%s: half of it was applied", name)
		}
	}
	many := world.Handler{Kind: "Do", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
		return make([]world.Change, world.MaxChanges+1), nil
	}}
	w, err := world.NewWorld(many)
	require.NoError(t, err)
	_, err = w.Plan(effect(t, 1, "Do", "a", `{}`))
	assert.ErrorIs(t, err, world.ErrLimit)
}

// TestNewWorld shows which handlers are refused.
func TestNewWorld(t *testing.T) {
	plan := func(world.ReadOnly, world.Effect) ([]world.Change, error) { return nil, nil }
	for _, list := range [][]world.Handler{
		{{Kind: "x"}}, {{Plan: plan}}, {{Kind: "Move", Plan: plan}}, {{Kind: "x", Plan: plan}, {Kind: "x", Plan: plan}},
	} {
		if _, err := world.NewWorld(list...); err == nil {
			t.Errorf("%v is taken", list)
		}
	}
}

// TestParseWorld shows the errors of malformed worlds.
func TestParseWorld(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`[]`, "agents: world: want an object"},
		{`{"entity":{}}`, "agents: world: /entity: unknown member"},
		{`{"entities":[]}`, "agents: world: /entities: want an object"},
		{`{"entities":{"a/b":1}}`, "agents: world: /entities/a~1b: an entity is an object"},
		{`{"spatial_index":{"a":[1]}}`, "agents: world: /spatial_index/a: want an array of two or three numbers"},
		{`{"relationships":{"a":"b"}}`, "agents: world: /relationships/a: want an array"},
		{`{"relationships":{"a":[{}]}}`, "agents: world: /relationships/a: an id has 1 to 256 bytes"},
		{`{"typed_relationships":[{"to":"b"}]}`, "agents: world: /typed_relationships: element 0: an id has 1 to 256 bytes"},
		{`{"metadata":{"last_effect_seq":-1}}`, "agents: world: /metadata/last_effect_seq: want a sequence number"},
	} {
		if _, err := world.ParseWorld(parse(t, tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.text, err, tt.want)
		}
	}
	w := newWorld(t, `{"relationships":{"a":["b","c"]},"typed_relationships":[{"from_entity":"a","to_entity":"b","relationship_type":"friend","strength":1},["a","b","foe"]]}`)
	if got, want := canonical(w.Value()), `"relationships":{"a":["c",{"strength":1.0,"to":"b","type":"friend"},{"to":"b","type":"foe"}]}`; !strings.Contains(got, want) {
		t.Errorf("%s has no %s", got, want)
	}
}

// TestSpatial compares the index with a scan of everything, through moves and
// removals, for circles and cones, in the order of ids.
func TestSpatial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := world.Handler{Kind: "Put", Plan: func(_ world.ReadOnly, e world.Effect) ([]world.Change, error) {
			if v, ok := e.Payload.Get("at"); ok {
				at, err := world.ParsePosition(v)
				return []world.Change{world.Place(e.SourceID, at)}, err
			}
			return []world.Change{world.Unplace(e.SourceID)}, nil
		}}
		w, err := world.NewWorld(h)
		require.NoError(t, err)
		number := rapid.OneOf(rapid.Float64Range(-10, 10), rapid.Map(rapid.IntRange(-5, 5), func(i int) float64 { return float64(i) }), rapid.Float64Range(-1e12, 1e12))
		point := rapid.Custom(func(t *rapid.T) world.Position {
			return world.Position{X: number.Draw(t, "x"), Y: number.Draw(t, "y"), Z: number.Draw(t, "z")}
		})
		model := map[string]world.Position{}
		for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 90).Draw(t, "id"))
			payload := `{}`
			if rapid.IntRange(0, 4).Draw(t, "unplace") > 0 {
				model[id] = point.Draw(t, "at")
				payload = fmt.Sprintf(`{"at":%v}`, model[id].Value())
			} else {
				delete(model, id)
			}
			if _, err := w.Apply(effect(t, uint64(i+1), "Put", id, payload)); err != nil {
				t.Fatal(err)
			}
		}
		cone := world.Cone{
			At: point.Draw(t, "eye"), Facing: point.Draw(t, "facing"),
			Angle: rapid.Float64Range(0, 400).Draw(t, "angle"), Range: rapid.OneOf(rapid.Float64Range(0, 20), rapid.Float64Range(0, 1e13)).Draw(t, "range"),
		}
		var near, inside []string
		for id, at := range model {
			if cone.At.Distance(at) <= cone.Range {
				near = append(near, id)
			}
			if cone.Holds(at) {
				inside = append(inside, id)
			}
		}
		slices.Sort(near)
		slices.Sort(inside)
		if diff := cmp.Diff(near, w.Within(cone.At, cone.Range)); diff != "" {
			t.Fatalf("within: (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(inside, w.InCone(cone)); diff != "" {
			t.Fatalf("in the cone: (-want +got)\n%s", diff)
		}
	})
}

// TestCone shows where the edges of a cone are.
func TestCone(t *testing.T) {
	for _, tt := range []struct {
		angle float64
		at    world.Position
		want  bool
	}{
		{90, world.Position{X: 1, Y: 1}, true},
		{90, world.Position{X: 1, Y: -1}, true},
		{90, world.Position{X: 1, Y: 1.001}, false},
		{90, world.Position{X: 7, Z: 7}, true},
		{180, world.Position{Y: 3}, true},
		{180, world.Position{X: -0.001, Y: 3}, false},
		{0, world.Position{X: 10}, true},
		{0, world.Position{X: 10.001}, false},
		{0, world.Position{X: 5, Y: 0.001}, false},
		{360, world.Position{X: -1}, true},
		{270, world.Position{X: -1, Y: 1}, true},
		{270, world.Position{X: -1, Y: 0.9}, false},
		{10, world.Position{}, true},
	} {
		c := world.Cone{Facing: world.Position{X: 2}, Angle: tt.angle, Range: 10}
		if got := c.Holds(tt.at); got != tt.want {
			t.Errorf("%g degrees, %v: %v, want %v", tt.angle, tt.at, got, tt.want)
		}
	}
}

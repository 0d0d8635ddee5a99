package scene_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// engine compiles the schema file with an independent JSON Schema implementation.
func engine(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(scene.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("scene.schema.json", doc))
	s, err := c.Compile("scene.schema.json")
	require.NoError(t, err)
	return s
}

// agree fails unless the engine and this package give the same verdict on a text. Errors
// that the schema cannot express are left out of the comparison.
func agree(t rapid.TB, schema *jsonschema.Schema, text string) (accepted bool) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want := schema.Validate(doc)
	structural, beyond := scene.Judge(v)
	if structural == (want == nil) {
		_, err := scene.Compile(v)
		t.Fatalf("%s:\nthis package: %v\nthe engine: %v", text, err, want)
	}
	_, err = scene.Compile(v)
	if (err == nil) != (!structural && !beyond) {
		t.Fatalf("%s: Compile says %v", text, err)
	}
	return err == nil
}

// The schema and this package agree on texts with a single error, except for the errors
// that the package comment lists.
func TestSchemaTable(t *testing.T) {
	schema := engine(t)
	scene := func(members string) string { return `{"sajou":"scene","version":1` + members + `}` }
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		text string
		want bool
	}{
		{scene(``), true},
		{`{"sajou":"scene"}`, false},
		{`{"version":1}`, false},
		{`{"sajou":"stage","version":1}`, false},
		{`{"sajou":"scene","version":2}`, false},
		{`{"sajou":"scene","version":"1"}`, false},
		{`{"sajou":"scene","version":1.0}`, true},
		{`[]`, false},
		{scene(`,"$schema":"scene.schema.json","name":"n","title":""`), true},
		{scene(`,"name":""`), false},
		{scene(`,"name":"` + long + `"`), false},
		{scene(`,"other":1`), false},
		{scene(`,"size":{"width":1,"height":1000000}`), true},
		{scene(`,"size":{"width":0.5,"height":10}`), false},
		{scene(`,"size":{"width":10}`), false},
		{scene(`,"size":{"width":10,"height":10,"depth":1}`), false},
		{scene(`,"background":"tomato"`), true},
		{scene(`,"background":"Tomato"`), false},
		{scene(`,"background":"#12f"`), true},
		{scene(`,"background":"#12fg"`), false},
		{scene(`,"background":"#12345"`), false},
		{scene(`,"background":"#11223344"`), true},
		{scene(`,"background":"#112233\n"`), false},
		{scene(`,"layers":["a","b"]`), true},
		{scene(`,"layers":[]`), false},
		{scene(`,"layers":["a","a"]`), false},
		{scene(`,"looks":{"a":{}}`), true},
		{scene(`,"looks":{"":{}}`), false},
		{scene(`,"looks":{"a":{"size":0}}`), false},
		{scene(`,"slots":{"a":{"x":1,"y":-1000000}}`), true},
		{scene(`,"slots":{"a":{"x":1,"y":-1000001}}`), false},
		{scene(`,"slots":{"a":{"x":1}}`), false},
		{scene(`,"slots":{"a":{"x":1,"y":2,"name":"b"}}`), false},
		{scene(`,"slots":[{"name":"a","x":1,"y":2}]`), true},
		{scene(`,"slots":[{"x":1,"y":2}]`), false},
		{scene(`,"slots":"a"`), false},
		{scene(`,"routes":{"r":{"points":[{"x":1,"y":2},{"x":1,"y":2,"name":"end"}],"closed":false}}`), true},
		{scene(`,"routes":{"r":{"points":[{"x":1,"y":2}]}}`), false},
		{scene(`,"routes":{"r":{}}`), false},
		{scene(`,"entities":[{"id":"a","at":{"x":1,"y":2},"label":"","opacity":0.5,"scale":0,"rotation":-90,"hidden":true,"state":"idle"}]`), true},
		{scene(`,"entities":[{"id":"a"}]`), false},
		{scene(`,"entities":[{"at":{"x":1,"y":2}}]`), false},
		{scene(`,"entities":[{"id":"a","at":[1,2]}]`), false},
		{scene(`,"entities":[{"id":"a","at":{"x":1,"y":2},"opacity":1.1}]`), false},
		{scene(`,"entities":[{"id":"a","at":{"x":1,"y":2},"scale":-1}]`), false},
		{scene(`,"agents":[{"match":"*"}]`), true},
		{scene(`,"agents":[{"look":"robot"}]`), false},
		{scene(`,"entities":[{"id":"a","at":{"x":1,"y":2}}],"agents":[{"match":"*","entity":"a"}]`), true},
		{scene(`,"entities":[{"id":"a","at":{"x":1,"y":2}}],"agents":[{"match":"*","entity":"a","look":"robot"}]`), false},
		{scene(`,"stranger":"robot","impressions":false`), true},
		{scene(`,"impressions":null`), false},
	} {
		if got := agree(t, schema, c.text); got != c.want {
			t.Errorf("%s: accepted: %t, want %t", c.text, got, c.want)
		}
	}
	// The schema accepts these and this package refuses them: it cannot express them.
	for _, members := range []string{
		`,"stranger":"nobody"`,
		`,"name":"` + strings.Repeat("é", 200) + `"`,
		`,"slots":[{"name":"a","x":1,"y":2},{"name":"a","x":1,"y":2}]`,
		`,"slots":{"a":{"x":1,"y":2}},"waypoints":{"a":{"x":1,"y":2}}`,
		`,"routes":{"r":{"points":["a","b"]}}`,
		`,"entities":[{"id":"a","at":"nowhere"}]`,
		`,"entities":[{"id":"a","at":{"x":1,"y":2},"layer":"none"}]`,
		`,"entities":[{"id":"a","at":{"x":1,"y":2}},{"id":"a","at":{"x":1,"y":2}}]`,
		`,"agents":[{"match":"*","entity":"a"}]`,
		`,"agents":[{"match":"*","slot":"a"}]`,
	} {
		if agree(t, schema, scene(members)) {
			t.Errorf("%s: accepted", members)
		}
	}
}

// odd are values that are rarely valid.
var odd = []string{`null`, `true`, `""`, `"a"`, `0`, `-1`, `1.5`, `1e6`, `1000000.5`, `[]`, `{}`, `["a"]`, `{"x":1}`, `{"x":1,"y":2}`, `{"a":{"x":1,"y":2}}`}

// genMembers draws an object whose members are mostly valid.
func genMembers(t *rapid.T, required int, members ...string) string {
	var parts []string
	for i, m := range members {
		leave := 14
		if i < required {
			leave = 1
		}
		if rapid.IntRange(0, 19).Draw(t, "leave") < leave {
			continue
		}
		if name, _, _ := strings.Cut(m, ":"); rapid.IntRange(0, 29).Draw(t, "wrong") == 0 {
			m = name + ":" + rapid.SampledFrom(odd).Draw(t, "odd")
		}
		parts = append(parts, m)
	}
	if rapid.IntRange(0, 39).Draw(t, "extra") == 0 {
		parts = append(parts, `"extra":1`)
	}
	return "{" + strings.Join(rapid.Permutation(parts).Draw(t, "order"), ",") + "}"
}

func genName(t *rapid.T) string {
	return rapid.SampledFrom([]string{`"a"`, `"b"`, `"robot"`, `"c*"`, `"stage"`, `"é"`}).Draw(t, "name")
}

func genNumber(t *rapid.T) string {
	return rapid.SampledFrom([]string{`0`, `1`, `-3`, `0.5`, `12.25`, `-0.0`, `1e6`}).Draw(t, "number")
}

func genPlace(t *rapid.T) string {
	if rapid.Bool().Draw(t, "named") {
		return genName(t)
	}
	return genMembers(t, 2, `"x":`+genNumber(t), `"y":`+genNumber(t))
}

func genMap(t *rapid.T, each func(*rapid.T) string) string {
	var parts []string
	for _, name := range []string{`"a"`, `"b"`, `"robot"`} {
		if rapid.Bool().Draw(t, "has") {
			parts = append(parts, name+":"+each(t))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func genList(t *rapid.T, each func(*rapid.T) string) string {
	return "[" + strings.Join(rapid.SliceOfN(rapid.Custom(each), 0, 3).Draw(t, "list"), ",") + "]"
}

func genBool(t *rapid.T) string {
	return rapid.SampledFrom([]string{`true`, `false`}).Draw(t, "bool")
}

// genScene draws the text of a scene, or nearly one.
func genScene(t *rapid.T) string {
	color := func(t *rapid.T) string {
		return rapid.SampledFrom([]string{`"#123"`, `"#a1b2c3"`, `"gold"`, `"#12345678"`}).Draw(t, "color")
	}
	point := func(t *rapid.T) string { return genMembers(t, 2, `"x":`+genNumber(t), `"y":`+genNumber(t)) }
	slots := genMap(t, point)
	if rapid.Bool().Draw(t, "array") {
		slots = genList(t, func(t *rapid.T) string {
			return genMembers(t, 3, `"name":`+genName(t), `"x":`+genNumber(t), `"y":`+genNumber(t))
		})
	}
	return genMembers(t, 2, `"sajou":"scene"`, `"version":1`,
		`"name":`+genName(t),
		`"size":`+genMembers(t, 2, `"width":960`, `"height":540.5`),
		`"background":`+color(t),
		`"layers":`+genList(t, genName),
		`"looks":`+genMap(t, func(t *rapid.T) string {
			return genMembers(t, 0, `"figure":`+genName(t), `"color":`+color(t), `"size":12`)
		}),
		`"slots":`+slots,
		`"waypoints":`+genMap(t, point),
		`"routes":`+genMap(t, func(t *rapid.T) string {
			return genMembers(t, 1, `"points":`+genList(t, genPlace), `"closed":`+genBool(t))
		}),
		`"entities":`+genList(t, func(t *rapid.T) string {
			return genMembers(t, 2, `"id":`+genName(t), `"at":`+genPlace(t), `"actor":`+genName(t), `"look":`+genName(t),
				`"label":""`, `"layer":`+genName(t), `"hidden":`+genBool(t), `"opacity":0.5`, `"scale":2`, `"rotation":`+genNumber(t), `"state":"idle"`)
		}),
		`"agents":`+genList(t, func(t *rapid.T) string {
			if rapid.Bool().Draw(t, "stands") {
				return genMembers(t, 2, `"match":`+genName(t), `"entity":`+genName(t))
			}
			return genMembers(t, 1, `"match":`+genName(t), `"look":`+genName(t), `"slot":`+genName(t), `"layer":`+genName(t))
		}),
		`"stranger":`+genName(t),
		`"impressions":`+genBool(t),
	)
}

// The schema and this package agree on random texts.
func TestSchemaOracle(t *testing.T) {
	schema := engine(t)
	structural, accepted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := genScene(t)
		if agree(t, schema, text) {
			accepted++
		} else {
			structural++
		}
	})
	if !testing.Short() && (structural == 0 || accepted == 0) { // the short form draws too few to tell
		t.Errorf("the draws were one-sided: %d refused, %d accepted", structural, accepted)
	}
}

// The schema and this package have the same color names.
func TestSchemaColors(t *testing.T) {
	var doc struct {
		Defs struct {
			Color struct {
				AnyOf []struct{ Enum []string }
			}
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(scene.Schema(), &doc))
	enum := doc.Defs.Color.AnyOf[1].Enum
	if len(enum) != len(scene.ColorNames()) {
		t.Errorf("the schema names %d colors, there are %d", len(enum), len(scene.ColorNames()))
	}
	for _, name := range enum {
		if !scene.ColorNames()[name] {
			t.Errorf("the schema names the color %s, which is not known", name)
		}
	}
}

package authored_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/internal/simulate"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

func TestRead(t *testing.T) {
	for _, c := range []struct{ file, text, value, refused string }{
		{"a.json", `{"a": [1, 2.0]}`, `{"a":[1,2.0]}`, ""},
		{"a", "\n{\"a\": }", "", "a:2:7: error: "},
		{"a.json", "a: 1", "", "a.json:1:1: error: "},
		{"a.yaml", "a: [1, 2.0]", `{"a":[1,2.0]}`, ""},
		{"dir.x/A.YML", "- a\n- 'b'", `["a","b"]`, ""},
		{"a.yaml", "{\n\t\"a\": 1}", `{"a":1}`, ""}, // JSON that YAML does not allow
		{"a.yaml", "a: 1\nb: [", "", "a.yaml:2:"},
		{"a.yaml", "a: !x 1", "", "a.yaml:1:4: error: the tag !x"},
		{"a.yaml", "one: 1\n\nn: 12345678901234567890123", "", "a.yaml:3:4: error: "},
		{"a.yaml", "one: 1\ntwo: 2\none: 3", "", "a.yaml:3:1: error: "},
		{"yaml", "a: 1", "", "yaml:1:1: error: "},
	} {
		text, refused := authored.Read(c.file, []byte(c.text))
		if c.refused != "" {
			assert.Nil(t, text, c.text)
			require.Len(t, refused, 1, c.text)
			assert.Contains(t, refused[0].String(), c.refused)
			assert.True(t, refused.Refused())
			continue
		}
		require.Empty(t, refused, c.text)
		assert.Equal(t, c.value, string(text.Value.AppendJSON(nil)))
		assert.Equal(t, c.file, text.File)
	}
	text, refused := authored.ReadYAML("stdin", []byte("a: 1"))
	require.Empty(t, refused)
	assert.True(t, text.FromYAML())
}

// What a YAML text has the JSON text of the same meaning has too: JSON is YAML.
func TestReadJSONAsYAML(t *testing.T) {
	words := rapid.Map(rapid.SliceOfN(rapid.RuneFrom([]rune("ab: -#'\"\\é\n~0{}[]&*!|>%@")), 0, 8), func(r []rune) string { return string(r) })
	scalars := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int64(), func(i int64) any { return i }), rapid.Map(words, func(s string) any { return s }))
	lists := rapid.Map(rapid.SliceOfN(scalars, 0, 4), func(l []any) any { return l })
	values := rapid.OneOf(scalars, lists, rapid.Map(rapid.MapOfN(words, lists, 0, 4), func(m map[string]any) any { return m }))
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(values.Draw(t, "value"))
		require.NoError(t, err)
		asJSON, refused := authored.Read("a.json", text)
		require.Empty(t, refused)
		asYAML, refused := authored.ReadYAML("a.yaml", text)
		require.Empty(t, refused, "%s", text)
		assert.True(t, bytes.Equal(asJSON.Value, asYAML.Value), "%s", text)
	})
}

// Every reader of authored files reads YAML, with the same result as from JSON.
func TestReadersOfYAML(t *testing.T) {
	for _, c := range []struct {
		name, json, yaml string
		read             func(file string, text []byte) (any, authored.Diagnostics)
	}{
		{
			"choreographies", `[{"on":"go","steps":[{"action":"flash","entity":"a"}]}]`,
			"- on: go\n  steps:\n    - {action: flash, entity: a}\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				d, ds := language.Parse(file, text)
				if len(d) == 0 {
					return nil, ds
				}
				return d[0].Value(), ds
			},
		},
		{
			"scene", `{"sajou":"scene","version":1,"size":{"width":100,"height":50},"slots":{"desk":{"x":1,"y":2}}}`,
			"sajou: scene\nversion: 1\nsize: {width: 100, height: 50}\nslots:\n  desk: {x: 1, y: 2}\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				s, ds := scene.Parse(file, text)
				if s == nil {
					return nil, ds
				}
				return s.Value(), ds
			},
		},
		{
			"bundle", `{"sajou":"scene","version":1,"size":{"width":100,"height":50}}`,
			"sajou: scene\nversion: 1\nsize:\n  width: 100\n  height: 50\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				s, _, ds := scene.ParseBundle(file, text)
				if s == nil {
					return nil, ds
				}
				return s.Value(), ds
			},
		},
		{
			"foreign scene", `{"dimensions":{"width":100,"height":50},"entities":[]}`,
			"dimensions: {width: 100, height: 50}\nentities: []\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				s, ds := scene.Parse(file, text)
				if s == nil {
					return nil, ds
				}
				return s.Value(), ds
			},
		},
		{
			"episode", `{"id":"e","beats":[]}`, "id: e\nbeats: []\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				e, ds := episode.Parse(file, text)
				if e == nil {
					return nil, ds
				}
				return e.Value(), ds
			},
		},
		{
			"series", `{"id":"e","beats":[]}`, "id: e\nbeats: []\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				e, ds := episode.ParseSeries(episode.SourceFile{File: file, Text: text})
				if e[0] == nil {
					return nil, ds[0]
				}
				return e[0].Value(), ds[0]
			},
		},
		{
			"scenario of signals", `{"name":"s","script":[{"advance":5}]}`, "name: s\nscript:\n- advance: 5\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				s, ds := rehearsal.Parse(file, text)
				if s == nil {
					return nil, ds
				}
				return s, ds
			},
		},
		{
			"scenario of agents", `{"sajou":"simulation","version":1,"name":"s"}`, "sajou: simulation\nversion: 1\nname: s\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				s, ds := simulate.Parse(file, text)
				if s == nil {
					return nil, ds
				}
				return s.Name, ds
			},
		},
		{
			"declarations", `[{"sajou":"scene","version":1,"size":{"width":100,"height":50}},{"on":"go","steps":[]}]`,
			"- {sajou: scene, version: 1, size: {width: 100, height: 50}}\n- on: go\n  steps: []\n",
			func(file string, text []byte) (any, authored.Diagnostics) {
				d, _, ds := lint.Read(new(language.Catalog), file, text)
				if len(d) == 0 {
					return nil, ds
				}
				return d[len(d)-1].Value(), ds
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, ds := c.read("a.json", []byte(c.json))
			require.NotNil(t, want, "%v", ds)
			got, ds := c.read("a.yaml", []byte(c.yaml))
			require.NotNil(t, got, "%v", ds)
			assert.Equal(t, want, got)
			assert.False(t, ds.Refused())

			_, ds = c.read("a.yaml", []byte(c.yaml+"\n  'x\n"))
			require.Len(t, ds, 1)
			assert.Greater(t, ds[0].Line, 1, "%v", ds)
			got, _ = c.read("a.json", []byte(c.yaml))
			assert.Nil(t, got, "YAML in a file of JSON")
		})
	}
}

// A mistake in YAML is reported at its line and column there, in the order of these.
func TestPlacesInYAML(t *testing.T) {
	for _, c := range []struct {
		text, want string
		read       func(file string, text []byte) authored.Diagnostics
	}{
		{
			"# two\n- on: go\n  steps: []\n- on: go\n  steps:\n    - {action: 5}\n", "a.yaml:6:16: error: ",
			func(file string, text []byte) authored.Diagnostics { _, ds := language.Parse(file, text); return ds },
		},
		{
			"sajou: scene\nversion: 1\nsize: wide\n", "a.yaml:3:7: error: ",
			func(file string, text []byte) authored.Diagnostics { _, ds := scene.Parse(file, text); return ds },
		},
		{
			"sajou: simulation\nversion: 1\nname: s\nuntil: x\n", "a.yaml:4:8: error: ",
			func(file string, text []byte) authored.Diagnostics { _, ds := simulate.Parse(file, text); return ds },
		},
		{
			"name: s\nscript:\n- advance: x\n", "a.yaml:3:12: error: ",
			func(file string, text []byte) authored.Diagnostics { _, ds := rehearsal.Parse(file, text); return ds },
		},
		{
			"definitions:\n- on: go\n  steps: []\n  thing: 1\nscript: []\n", "a.yaml:4:3: error: ",
			func(file string, text []byte) authored.Diagnostics { return rehearsal.Remarks(file, text) },
		},
		{
			"id: e\nbeats: 5\n", "a.yaml:2:8: error: ",
			func(file string, text []byte) authored.Diagnostics { _, ds := episode.Parse(file, text); return ds },
		},
		{
			"id: e\nbeats: 5\n", "a.yaml:2:8: error: ",
			func(file string, text []byte) authored.Diagnostics {
				_, ds := episode.ParseSeries(episode.SourceFile{File: file, Text: text})
				return ds[0]
			},
		},
		{
			"id: x y\n", "a.yaml:1:5: error: ",
			func(file string, text []byte) authored.Diagnostics {
				_, ds := episode.ParseGenre(file, text)
				return ds
			},
		},
		{
			"- {sajou: scene, version: 1, size: {width: 100,\n   height: tall}}\n- on: go\n  steps: []\n", "a.yaml:2:12: error: ",
			func(file string, text []byte) authored.Diagnostics {
				_, _, ds := lint.Read(new(language.Catalog), file, text)
				return ds
			},
		},
		{
			"on: go\nsteps:\n- action: flahs\n  entity: a\n", "a.yaml:3:11: warning: ",
			func(file string, text []byte) authored.Diagnostics {
				var ds authored.Diagnostics
				for _, issue := range lint.Check(lint.File{Name: file, Text: text}) {
					ds = append(ds, issue.Diagnostic)
				}
				return ds
			},
		},
	} {
		ds := c.read("a.yaml", []byte(c.text))
		assert.Contains(t, ds.String(), c.want, c.text)
	}
}

// An error of a reader of values names a JSON pointer, which leads to a place in a file.
func TestDiagnose(t *testing.T) {
	text, refused := authored.Read("world.yaml", []byte("policy: any\nof:\n- policy: self\n- policy: distance\n  limit: far\n"))
	require.Empty(t, refused)
	_, err := view.CompilePolicy(text.Value, nil)
	var at *view.PolicyError
	require.ErrorAs(t, err, &at)
	assert.Equal(t, "world.yaml:5:10: error: want a number from 0 to 1e+15 (/of/1/limit)", text.Diagnose(at.Path, at.Reason).String())

	text, refused = authored.Read("config.json", []byte("{\n  \"classes\": {\"a/b\": {\"weight\": 0}}}"))
	require.Empty(t, refused)
	_, err = agents.ParseConfig(text.Value)
	require.ErrorAs(t, err, &at)
	assert.Equal(t, "config.json:2:33: error: want a number from 1 to 1000 (/classes/a~1b/weight)", text.Diagnose(at.Path, at.Reason).String())
	assert.Equal(t, "config.json:2:14: error: r (/classes/x/y)", text.Diagnose("/classes/x/y", "r").String())
	assert.Equal(t, "config.json:1:1: error: r", text.Diagnose("", "r").String())
}

func ExampleRead() {
	policy := []byte("policy: any\nof:\n- policy: team\n- policy: distance\n  limit: -1\n")
	text, refused := authored.Read("policy.yaml", policy)
	if refused != nil {
		fmt.Println(refused)
		return
	}
	_, err := view.CompilePolicy(text.Value, nil) // or Register, which does it too
	if wrong, ok := errors.AsType[*view.PolicyError](err); ok {
		fmt.Println(text.Diagnose(wrong.Path, wrong.Reason))
	}
	// Output:
	// policy.yaml:5:10: error: want a number from 0 to 1e+15 (/of/1/limit)
}

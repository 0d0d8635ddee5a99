package language_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// catalogOf returns a catalog with declarations, and these.
func catalogOf(t *testing.T, texts ...string) (*language.Catalog, []language.Declaration) {
	t.Helper()
	c := new(language.Catalog)
	var declarations []language.Declaration
	for _, text := range texts {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		d, err := language.CompileDeclaration(language.WordFor(v), v)
		require.NoError(t, err)
		c, err = c.With(d)
		require.NoError(t, err)
		declarations = append(declarations, d)
	}
	return c, declarations
}

// The value of a definition in force is part of the state of a session, so each
// member of its expansion counts.
func TestExpandedValue(t *testing.T) {
	const flash = `{"sequence":"flash","params":["who"],"steps":[{"action":"flash","entity":"param.who","guard":{"entity":"param.who","policy":"skip"}},{"action":"param.who"}]}`
	for name, c := range map[string]struct {
		declarations []string
		want         string
	}{
		"placeholders in a step, in its guard, but not in its action": {
			[]string{flash, `{"id":"c","on":"s","steps":[{"action":"include","sequence":"flash","with":{"who":"a"}}]}`},
			`{"id":"c","on":"s","steps":[{"action":"flash","entity":"a","guard":{"entity":"a","policy":"skip"}},{"action":"param.who"}]}`,
		},
		"onInterrupt inside a step is dropped": {
			[]string{flash, `{"id":"c","on":"s","steps":[{"action":"parallel","steps":[{"action":"onInterrupt","steps":[]},{"action":"include","sequence":"flash","with":{"who":"a"}}]},{"action":"onInterrupt","steps":[]}]}`},
			`{"id":"c","on":"s","steps":[{"action":"parallel","steps":[{"action":"onArrive","steps":[{"action":"flash","entity":"a","guard":{"entity":"a","policy":"skip"}},{"action":"param.who"}]}]},{"action":"onInterrupt","steps":[]}]}`,
		},
		"easings that are not an object are replaced": {
			[]string{`{"easing":"e","curve":"steps(2)"}`, `{"id":"c","on":"s","easings":7,"steps":[{"action":"flash","easing":"e"}]}`},
			`{"id":"c","on":"s","easings":{"e":"steps(2)"},"steps":[{"action":"flash","easing":"e"}]}`,
		},
		"a definition's own easing hides the catalog's": {
			[]string{`{"easing":"e","curve":"steps(2)"}`, `{"id":"c","on":"s","easings":{"e":"steps(3)"},"steps":[{"action":"flash","easing":"e"}]}`},
			`{"id":"c","on":"s","easings":{"e":"steps(3)"},"steps":[{"action":"flash","easing":"e"}]}`,
		},
		"the delays of a stagger are exact": {
			[]string{`{"id":"c","on":"s","steps":[{"action":"stagger","every":9223372036854775807,"steps":[{"action":"a"},{"action":"b"}]}]}`},
			`{"id":"c","on":"s","steps":[{"action":"parallel","steps":[{"action":"a"},{"action":"onArrive","steps":[{"action":"wait","duration":9223372036854775807},{"action":"b"}]}]}]}`,
		},
		"speech of a text that comes in parts is appended": {
			[]string{`{"binding":"b","targetEntityId":"e","property":"speech","sourceType":"thinking"}`},
			`{"id":"binding:b","on":"thinking","steps":[{"action":"say","entity":"e","text":{"$text":{}},"append":true}]}`,
		},
		"speech of another text is not": {
			[]string{`{"binding":"b","targetEntityId":"e","property":"speech","sourceType":"s"}`},
			`{"id":"binding:b","on":"s","steps":[{"action":"say","entity":"e","text":{"$text":{}}}]}`,
		},
	} {
		catalog, declarations := catalogOf(t, c.declarations...)
		bound, err := catalog.Bind(declarations[len(declarations)-1])
		require.NoError(t, err, name)
		require.Len(t, bound, 1, name)
		assert.Equal(t, c.want, bound[0].Value().String(), name)
	}
}

// Bind answers for any declaration, not only for the one that was added last.
func TestBindAnEarlierDeclaration(t *testing.T) {
	catalog, declarations := catalogOf(t, `{"id":"a","on":"s","steps":[]}`, `{"id":"b","on":"s","steps":[]}`)
	for i, want := range []string{"a", "b"} {
		bound, err := catalog.Bind(declarations[i])
		require.NoError(t, err)
		require.Len(t, bound, 1)
		assert.Equal(t, want, bound[0].Name())
	}
}

// A catalog is restored only from the declarations and definitions of one catalog.
func TestRestoreCatalogRefuses(t *testing.T) {
	_, a := catalogOf(t, `{"id":"a","on":"s","steps":[]}`)
	_, other := catalogOf(t, `{"id":"a","on":"t","steps":[]}`)
	catalog, b := catalogOf(t, `{"id":"b","on":"s","steps":[]}`)
	bound, err := catalog.Bind(b[0])
	require.NoError(t, err)
	in := func(ds ...language.Declaration) (all []*definition.Definition) {
		for _, d := range ds {
			all = append(all, d.(*definition.Definition))
		}
		return all
	}
	restored, err := language.RestoreCatalog(b, bound)
	require.NoError(t, err)
	assert.Equal(t, catalog.Used(), restored.Used())
	for name, c := range map[string]struct {
		declared  []language.Declaration
		performed []*definition.Definition
	}{
		"another value is performed":             {a, in(other[0])},
		"nothing is performed":                   {a, nil},
		"a definition that is not declared":      {a, in(a[0], b[0])},
		"a declaration twice":                    {append(a, a[0]), in(a[0])},
		"a definition twice, a declaration once": {a, in(a[0], a[0])},
	} {
		_, err := language.RestoreCatalog(c.declared, c.performed)
		assert.Error(t, err, name)
	}
}

// A file may declare a sequence after the choreography that includes it in "before",
// and may not write the easings that an expansion adds.
func TestParseOrder(t *testing.T) {
	declarations, diagnostics := language.Parse("f.json", []byte(`[
		{"id":"d","extends":"c","before":[{"action":"include","sequence":"q"}]},
		{"id":"c","on":"s","steps":[{"action":"flash"}]},
		{"sequence":"q","steps":[{"action":"flash"}]}]`))
	require.NoError(t, diagnostics.Err(definition.ErrInvalid))
	var names []string
	for _, d := range declarations {
		names = append(names, d.Name())
	}
	assert.Equal(t, []string{"q", "c", "d"}, names)

	_, diagnostics = language.Parse("f.json", []byte(`{"id":"c","on":"s","easings":{},"steps":[{"action":"flash"}]}`))
	assert.ErrorContains(t, diagnostics.Err(definition.ErrInvalid), `unknown field "easings"`)
}

// A sequence that leads to others in very many ways is declared again without following each
// of the ways.
func TestManyWaysBetweenSequences(t *testing.T) {
	c := new(language.Catalog)
	declare := func(text string) {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		d, err := language.CompileDeclaration("sequence", v)
		require.NoError(t, err)
		c, err = c.With(d)
		require.NoError(t, err)
	}
	declare(`{"sequence":"s0","steps":[]}`)
	const levels = 60
	for i := range levels {
		include := fmt.Sprintf(`{"action":"include","sequence":"s%d"}`, i)
		declare(fmt.Sprintf(`{"sequence":"s%d","steps":[%s,{"action":"onArrive","steps":[%s]}]}`, i+1, include, include))
	}
	declare(fmt.Sprintf(`{"sequence":"s%d","steps":[{"action":"include","sequence":"s%d"},{"action":"flash"}]}`, levels, levels-1))
}

// A state may hold sequences that include each other without end. What includes them is
// refused, with the names from the first that comes again.
func TestRestoredCircles(t *testing.T) {
	compiled := func(word, text string) language.Declaration {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		d, err := language.CompileDeclaration(word, v)
		require.NoError(t, err)
		return d
	}
	sequence := func(name, included string) language.Declaration {
		return compiled("sequence", `{"sequence":"`+name+`","steps":[{"action":"include","sequence":"`+included+`"}]}`)
	}
	c, err := language.RestoreCatalog([]language.Declaration{sequence("in", "a"), sequence("a", "b"), sequence("b", "a")}, nil)
	require.NoError(t, err)
	_, err = c.Bind(compiled("choreography", `{"on":"x","steps":[{"action":"include","sequence":"in"}]}`))
	require.ErrorIs(t, err, definition.ErrInvalid)
	require.ErrorContains(t, err, "sequences include each other without end: a → b → a")
}

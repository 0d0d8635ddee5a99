package choreography_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// A catalog behaves like a list in which a name keeps its place, and no catalog
// is changed by what is added to it.
func TestCatalogAgainstList(t *testing.T) {
	declare := func(t *rapid.T, word, name string, version int) language.Declaration {
		text := map[string]string{
			"easing":       `{"easing": "%s", "curve": "steps(%d)"}`,
			"sequence":     `{"sequence": "%s", "steps": [{"action": "wait", "duration": %d}]}`,
			"choreography": `{"id": "%s", "on": "x", "steps": [{"action": "wait", "duration": %d}]}`,
			"binding":      `{"id": "%s", "entity": "e", "property": "visible", "on": "x%d"}`,
		}[word]
		return parsed(t, fmt.Sprintf(text, name, version))[0]
	}
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			catalog *language.Catalog
			list    []language.Declaration
		}
		versions := []version{{new(language.Catalog), nil}}
		for i := range rapid.IntRange(0, 200).Draw(t, "declarations") {
			v := versions[rapid.IntRange(max(0, len(versions)-3), len(versions)-1).Draw(t, "version")]
			word := rapid.SampledFrom([]string{"easing", "sequence", "choreography", "binding"}).Draw(t, "word")
			d := declare(t, word, fmt.Sprint("n", rapid.IntRange(0, 60).Draw(t, "name")), i+2)
			next, err := v.catalog.With(d)
			require.NoError(t, err)
			list := slices.Clone(v.list)
			at := slices.IndexFunc(list, func(o language.Declaration) bool { return o.Word() == d.Word() && o.Name() == d.Name() })
			if at >= 0 {
				list[at] = d
			} else {
				list = append(list, d)
			}
			versions = append(versions, version{next, list})
		}
		for i, v := range versions {
			if got := slices.Collect(v.catalog.All()); !slices.Equal(got, v.list) {
				t.Fatalf("version %d has %d declarations, want %d", i, len(got), len(v.list))
			}
			for _, d := range v.list {
				if got := v.catalog.Get(d.Word(), d.Name()); got != d {
					t.Fatalf("version %d has another %s %s", i, d.Word(), d.Name())
				}
			}
			if got := v.catalog.Get("easing", "nobody"); got != nil {
				t.Fatalf("version %d has %v", i, got)
			}
		}
	})
}

// Ten thousand declarations one by one cost each about the same.
func TestCatalogOfMany(t *testing.T) {
	const n = 10_000
	ds := make([]language.Declaration, n)
	for i := range ds {
		ds[i] = parsed(t, fmt.Sprintf(`{"easing": "e%d", "curve": "steps(2)"}`, i))[0]
	}
	c := new(language.Catalog)
	for _, d := range ds[:n-100] {
		c, _ = c.With(d)
	}
	next := n - 100
	allocations := testing.AllocsPerRun(50, func() {
		c, _ = c.With(ds[next])
		next++
	})
	// The tree is at most 1.44 log2(n) high, a few copies more for turning it,
	// and the list four.
	if allocations > 40 {
		t.Errorf("one declaration beside %d others: %v allocations", n-100, allocations)
	}
	if got := slices.Collect(c.All()); !slices.Equal(got, ds[:next]) {
		t.Errorf("there are %d declarations, want %d", len(got), next)
	}
}

// The state goes on with what is in force by name, also where a name was
// replaced by something that refers to what was declared after it.
func TestStateHoldsTheCatalog(t *testing.T) {
	s := choreography.NewScheduler()
	define := func(texts ...string) {
		t.Helper()
		ds, diagnostics := language.ParseWith(s.Catalog(), "test.json", []byte("["+strings.Join(texts, ",")+"]"))
		require.NoError(t, diagnostics.Err(definition.ErrInvalid))
		for _, d := range ds {
			require.NoError(t, s.Define(d))
		}
	}
	define(`{"sequence": "a", "steps": [{"action": "spawn"}]}`,
		`{"id": "base", "on": "x", "steps": [{"action": "include", "sequence": "a"}, {"action": "move", "duration": 10, "easing": "soft"}]}`,
		`{"easing": "soft", "curve": "steps(2)"}`,
		`{"id": "lamp", "entity": "lamp", "property": "opacity", "sourceChoreographyId": "base"}`)
	define(`{"sequence": "b", "steps": [{"action": "flash"}]}`)
	define(`{"sequence": "a", "steps": [{"action": "include", "sequence": "b"}]}`)
	again := restored(t, s)
	for _, s := range []*choreography.Scheduler{s, again} {
		define := func(text string) error {
			ds, diagnostics := language.ParseWith(s.Catalog(), "test.json", []byte(text))
			if err := diagnostics.Err(definition.ErrInvalid); err != nil {
				return err
			}
			return s.Define(ds[0])
		}
		require.NoError(t, define(`{"extends": "base", "on": "y", "after": [{"action": "include", "sequence": "a"}]}`))
		if err := define(`{"sequence": "b", "steps": [{"action": "include", "sequence": "a"}]}`); err == nil || !strings.Contains(err.Error(), "b → a → b") {
			t.Errorf("a circle: %v", err)
		}
		var sink choreography.RecordingSink
		s.SetSink(&sink)
		s.Signal(9, &signal.Signal{Type: "y"})
		s.Advance(5_000_000)
		var got []string
		for _, c := range sink.Commands {
			got = append(got, fmt.Sprint(c.Kind, " ", c.Action, " ", c.Progress))
		}
		if want := []string{"execute spawn 0", "start move 0", "update move 0.5"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

package scene_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// mutated replaces or drops one value somewhere inside v.
func mutated(t *rapid.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || rapid.IntRange(0, 7).Draw(t, "here") == 0 {
			break
		}
		name := rapid.SampledFrom(names).Draw(t, "member")
		if rapid.IntRange(0, 7).Draw(t, "drop") == 0 {
			delete(v, name)
		} else {
			v[name] = mutated(t, v[name])
		}
		return v
	case []any:
		if len(v) == 0 || rapid.IntRange(0, 7).Draw(t, "here") == 0 {
			break
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "element")
		if rapid.IntRange(0, 7).Draw(t, "again") == 0 {
			return append(v, v[i])
		}
		v[i] = mutated(t, v[i])
		return v
	}
	var other any
	require.NoError(t, json.Unmarshal([]byte(rapid.SampledFrom(odd).Draw(t, "odd")), &other))
	return other
}

// Files of Sajou's tools with a few mutations are translated to a scene or refused with
// an error, and the scene is valid in this package's own format.
func TestMutatedImports(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "import", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	scenes, refused := 0, 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		archive := txtar.Parse(text)
		rapid.Check(t, func(rt *rapid.T) {
			var files []scene.BundleFile
			for _, f := range archive.Files {
				var v any
				if filepath.Ext(f.Name) != ".json" || json.Unmarshal(f.Data, &v) != nil {
					continue
				}
				for range rapid.IntRange(0, 3).Draw(rt, "changes") {
					v = mutated(rt, v)
				}
				text, err := json.Marshal(v)
				require.NoError(rt, err)
				files = append(files, scene.BundleFile{Name: f.Name, Text: text})
				s, ds := scene.Parse(f.Name, text)
				check(t, text, s, ds)
			}
			s, rest, ds := scene.ParseFiles(files...)
			if ds.Refused() {
				refused++
				if s != nil || rest != nil {
					rt.Fatalf("results beside errors: %v", ds)
				}
				return
			}
			if s != nil {
				scenes++
				again, err := scene.Compile(s.Value())
				require.NoError(rt, err)
				same(rt, s, again)
			}
			for _, v := range rest {
				if _, ok := v.Get("steps"); ok {
					if _, err := language.CompileDeclaration("choreography", v); err != nil {
						rt.Fatalf("%s: %v", v, err)
					}
				}
			}
		})
	}
	if scenes == 0 || refused == 0 {
		t.Errorf("the draws were one-sided: %d scenes, %d refused", scenes, refused)
	}
}

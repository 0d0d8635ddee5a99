package scene_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// seeds adds all JSON in testdata and the example scenes.
func seeds(f *testing.F, add func(text []byte)) {
	f.Helper()
	add([]byte(yard))
	for _, pattern := range []string{"testdata/*/*.txtar", "../../docs/examples/scenes/*.json"} {
		names, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil || len(names) == 0 {
			f.Fatal(names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(f, err)
			if filepath.Ext(name) == ".json" {
				add(text)
				continue
			}
			for _, file := range txtar.Parse(text).Files {
				if filepath.Ext(file.Name) == ".json" {
					add(file.Data)
				}
			}
		}
	}
}

// check fails if a result contradicts itself or its diagnostics.
func check(t *testing.T, text []byte, s *scene.Scene, ds authored.Diagnostics) {
	t.Helper()
	if s != nil && ds.Refused() {
		t.Errorf("a scene beside errors: %v", ds)
	}
	if len(ds) > 250 {
		t.Errorf("%d diagnostics", len(ds))
	}
	for _, d := range ds {
		if d.Line < 1 || d.Column < 1 || d.Column > len(text)+1 || d.Message == "" || len(d.Message) > 2000 {
			t.Errorf("odd diagnostic: %+v", d)
		}
	}
	if s == nil {
		return
	}
	again, err := scene.Compile(s.Value())
	if err != nil || !reflect.DeepEqual(s, again) {
		t.Errorf("the value does not give the scene: %v", err)
	}
	written, err := scene.Compile(scene.Write(s))
	require.NoError(t, err, "what is written is no scene")
	same(t, s, written)
	if len(s.Layers) == 0 || s.Width < 1 || s.Height < 1 || s.LookNamed("") == (scene.Look{}) {
		t.Errorf("the scene lacks what every scene has: %+v", s)
	}
	for _, e := range s.Entities {
		if e.Layer < 0 || e.Layer >= len(s.Layers) || len(s.Figures(e.ID)) == 0 || len(s.Figures(e.Actor)) == 0 {
			t.Errorf("odd entity: %+v", e)
		}
		if _, ok := s.Looks[e.Look]; !ok {
			t.Errorf("entity %s has no look", e.ID)
		}
	}
	for _, r := range s.Routes {
		if len(r.Points) < 2 || len(r.Names) != len(r.Points) {
			t.Errorf("odd route: %+v", r)
		}
	}
	s.Rule("agent-7")
}

// Parse never panics, and a text that it accepts is a scene.
func FuzzParse(f *testing.F) {
	seeds(f, func(text []byte) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text []byte) {
		s, ds := scene.Parse("scene.json", text)
		check(t, text, s, ds)
		if s == nil && !ds.Refused() {
			t.Error("neither a scene nor an error")
		}
		if v, err := signal.ParseValue(text); err == nil && s != nil && !scene.IsScene(v) {
			t.Error("IsScene denies what Parse reads")
		}
	})
}

// ParseBundle never panics, and its results are valid values.
func FuzzParseBundle(f *testing.F) {
	seeds(f, func(text []byte) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text []byte) {
		s, rest, ds := scene.ParseBundle("bundle.json", text)
		check(t, text, s, ds)
		if len(rest) > 0 && ds.Refused() {
			t.Error("declarations beside errors")
		}
		for _, v := range rest {
			if _, left, err := signal.CheckValue(v); err != nil || len(left) > 0 {
				t.Errorf("%x is no value: %v", v, err)
			}
		}
	})
}

// Compile never panics, and it accepts the values that Parse accepts.
func FuzzCompile(f *testing.F) {
	seeds(f, func(text []byte) {
		if v, err := signal.ParseValue(text); err == nil {
			f.Add([]byte(v))
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scene.Compile(data)
		if (s == nil) != (err != nil) {
			t.Fatalf("got %v, %v", s, err)
		}
		if err != nil {
			return
		}
		text := s.Value().AppendJSON(nil)
		parsed, ds := scene.Parse("scene.json", text)
		if len(ds) > 0 {
			t.Fatalf("%s: %v", text, ds)
		}
		same(t, s, parsed)
		check(t, text, s, ds)
	})
}

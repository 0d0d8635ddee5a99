package scene_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Scenes and files of Sajou's tools, whole and with some members changed, are read as they
// were, with the same remarks.
func TestRecordedScenes(t *testing.T) {
	type file struct{ name, text string }
	var files []file
	for _, pattern := range []string{"testdata/import/*.txtar", "testdata/diagnostics/*.txtar", "testdata/shapes/accepted.txtar", "../../docs/examples/scenes/*.json"} {
		names, err := filepath.Glob(filepath.FromSlash(pattern))
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			if filepath.Ext(name) == ".json" {
				files = append(files, file{filepath.Base(name), string(data)})
				continue
			}
			for _, f := range txtar.Parse(data).Files {
				if json.Valid(f.Data) && len(f.Data) < 20_000 {
					files = append(files, file{filepath.Base(name) + " " + f.Name, string(f.Data)})
				}
			}
		}
	}
	files = append(files, file{"yard", yard})
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		for n, f := range files {
			d := golden.NewDice(uint64(n))
			var out strings.Builder
			for i := range 64 {
				text := f.text
				if i > 0 {
					text = golden.Damage(d, text)
				}
				fmt.Fprintln(&out, text)
				s, remarks := scene.Parse("drawn.json", []byte(text))
				fmt.Fprintln(&out, remarks)
				tellScene(&out, s)
				if v, err := signal.ParseValue([]byte(text)); err == nil {
					s, err := scene.Compile(v)
					fmt.Fprintln(&out, err, s == nil, scene.IsScene(v))
				}
				s, rest, remarks := scene.ParseBundle("drawn.json", []byte(text))
				fmt.Fprintln(&out, remarks)
				tellScene(&out, s)
				for _, v := range rest {
					fmt.Fprintln(&out, v)
				}
				if i%8 == 7 {
					step(fmt.Sprint(f.name, " ", i), out.String())
					out.Reset()
				}
			}
		}
	})
}

// tellScene writes all that a scene says.
func tellScene(out *strings.Builder, s *scene.Scene) {
	if s == nil {
		return
	}
	fmt.Fprintf(out, "%s %+v\n%s\n%s\n", s.Name(), plain(s), s.Value(), scene.Write(s))
	for _, name := range []string{"agent-1", "agent-x", "my-smith", "smith", "one", "boss", "", "nobody"} {
		rule, ok := s.Rule(name)
		at, there := s.Place(name)
		fmt.Fprintln(out, rule, ok, at, there, s.Figures(name), s.LookNamed(name))
	}
}

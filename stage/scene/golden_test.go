package scene_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// TestDiagnostics parses the scene of each file in testdata/diagnostics and compares the
// diagnostics.
func TestDiagnostics(t *testing.T) {
	golden.Run(t, "testdata/diagnostics/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		s, diagnostics := scene.Parse(in[0].Name, in[0].Data)
		if refused := diagnostics.Refused(); refused != (s == nil) {
			t.Errorf("refused: %t, but the scene is %v", refused, s)
		}
		return []txtar.File{{Name: "told", Data: told(diagnostics)}}
	})
}

// TestImport reads the bundles in testdata/import, and compares the diagnostics, the
// scene, the choreographies and the bindings.
func TestImport(t *testing.T) {
	golden.Run(t, "testdata/import/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		var files []scene.BundleFile
		for _, f := range in {
			files = append(files, scene.BundleFile{Name: f.Name, Text: f.Data})
		}
		s, rest, diagnostics := scene.ParseFiles(files...)
		out := []txtar.File{{Name: "told", Data: told(diagnostics)}}
		if s != nil {
			again, err := scene.Compile(s.Value())
			require.NoError(t, err)
			same(t, s, again)
			out = append(out, txtar.File{Name: "scene", Data: indented(t, s.Value())})
		}
		if len(rest) > 0 {
			var b bytes.Buffer
			inForce := new(language.Catalog)
			for _, v := range rest {
				if checked, left, err := signal.CheckValue(v); err != nil || len(left) > 0 || checked == nil {
					t.Errorf("%s is no value: %v", v, err)
				}
				d, err := language.CompileDeclaration(language.WordFor(v), v)
				if err == nil {
					inForce, err = inForce.With(d)
				}
				require.NoErrorf(t, err, "%s", v)
				b.Write(indented(t, v))
			}
			out = append(out, txtar.File{Name: "rest", Data: b.Bytes()})
		}
		return out
	})
}

// TestShapes reads each file in testdata/shapes alone and compares the diagnostics. The
// name of the archive tells the verdict on all of its files.
func TestShapes(t *testing.T) {
	golden.Run(t, "testdata/shapes/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		var b bytes.Buffer
		for _, f := range in {
			s, diagnostics := scene.Parse(f.Name, f.Data)
			if want := strings.HasSuffix(t.Name(), "refused"); (s == nil) != want || diagnostics.Refused() != want {
				t.Errorf("%s: refused is not %t: %v", f.Name, want, diagnostics)
			}
			b.Write(told(diagnostics))
		}
		return []txtar.File{{Name: "told", Data: b.Bytes()}}
	})
}

func told(ds authored.Diagnostics) []byte {
	if len(ds) == 0 {
		return []byte("nothing\n")
	}
	return []byte(ds.String() + "\n")
}

// indented writes a value for readers: an array or object of scalars is on one line.
func indented(t *testing.T, v signal.Value) []byte {
	t.Helper()
	var b bytes.Buffer
	var write func(v signal.Value, margin string)
	write = func(v signal.Value, margin string) {
		flat := true
		for _, e := range v.Members() {
			flat = flat && e.Kind() != signal.KindArray && e.Kind() != signal.KindObject
		}
		for e := range v.Elements() {
			flat = flat && e.Kind() != signal.KindArray && e.Kind() != signal.KindObject
		}
		switch {
		case flat:
			b.Write(v.AppendJSON(nil))
		case v.Kind() == signal.KindArray:
			sep := "["
			for e := range v.Elements() {
				b.WriteString(sep + "\n" + margin + "  ")
				write(e, margin+"  ")
				sep = ","
			}
			b.WriteString("\n" + margin + "]")
		default:
			sep := "{"
			for name, e := range v.Members() {
				fmt.Fprintf(&b, "%s\n%s  %q: ", sep, margin, name)
				write(e, margin+"  ")
				sep = ","
			}
			b.WriteString("\n" + margin + "}")
		}
	}
	write(v, "")
	b.WriteByte('\n')
	if !json.Valid(b.Bytes()) {
		t.Fatalf("no JSON: %s", &b)
	}
	return b.Bytes()
}

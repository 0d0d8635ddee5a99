// Package layers holds the import graph of the module as a list, and tests
// that the code keeps to it.
package layers

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sajou-dev/sajou-go"

// grade says what a package may ask of the world outside its arguments.
type grade int

const (
	// pure: no input or output, no clock, no chance, no goroutine.
	pure grade = iota
	// timeless: no clock and no chance; what it reads is handed to it.
	timeless
	// effects: files, goroutines, waiting. The clock and chance come through
	// the configuration; golangci-lint's forbidigo says where they are read.
	effects
)

// layer is one package: where it stands, what it may import of this module.
type layer struct {
	dir   string // relative to the module's root
	grade grade
	may   []string // dirs of this module; each must stand further up in the list
}

// layers is the import graph, from the bottom up. A package may import what its
// line names and nothing else of this module. Tests are not held to it.
var layers = []layer{
	{"signal", pure, nil},
	{"internal/exact", pure, nil},
	{"internal/jsonplace", pure, nil},
	{"internal/spelling", pure, nil},
	{"internal/wording", pure, []string{"signal"}},
	{"internal/statebytes", pure, []string{"signal"}},
	{"choreography", pure, []string{"signal", "internal/exact", "internal/jsonplace", "internal/statebytes", "internal/wording"}},
	{"agents", pure, []string{"signal", "internal/exact", "internal/statebytes"}},
	{"director", pure, []string{"signal", "choreography", "internal/jsonplace", "internal/statebytes", "internal/wording"}},
	{"director/episodes", pure, []string{"director"}},
	{"internal/yaml", pure, []string{"signal"}},
	{"internal/beatgraph", pure, []string{"director"}},
	{"stage/scene", pure, []string{"signal", "choreography", "internal/exact", "internal/jsonplace", "internal/wording"}},
	{"stage", pure, []string{"signal", "choreography", "stage/scene", "internal/exact", "internal/statebytes"}},
	{"stage/picture", pure, []string{"signal", "choreography", "stage/scene", "stage", "internal/exact"}},
	{"eventlog", effects, []string{"signal"}},
	{"projection", pure, []string{"eventlog"}},
	{"snapshot", effects, []string{"eventlog", "projection"}},
	{"replay", timeless, []string{"signal", "choreography", "eventlog", "projection", "snapshot"}},
	{"replay/where", timeless, []string{"signal", "choreography", "eventlog", "projection", "replay", "internal/spelling"}},
	{"internal/redact", effects, []string{"signal"}}, // a slog.Handler hands on what it was given
	{".", effects, []string{"signal", "choreography", "agents", "director", "internal/redact", "eventlog", "projection", "snapshot", "replay", "stage/scene", "stage"}},
	{"adapter/openai", effects, []string{"agents", "director", "."}},
	{"adapter/prometheus", effects, []string{"agents", "."}},
	{"agents/rl", effects, []string{"signal", "agents", "eventlog", "projection", "replay", "."}},
	{"agents/message", effects, []string{"signal", "agents", "eventlog", "projection", "replay", "."}},
	{"internal/conformance", effects, []string{"signal", "choreography", "agents", "director", "internal/jsonplace"}},
	{"internal/lint", pure, []string{"signal", "choreography", "internal/jsonplace", "internal/spelling", "stage/scene"}},
	{"internal/simulate", timeless, []string{
		"signal", "choreography", "agents", "eventlog", "projection", ".", "internal/jsonplace", "internal/spelling", "internal/wording",
	}},
	{"internal/bench", effects, []string{"signal", "choreography", "agents", "eventlog", "projection", "snapshot", "replay", "replay/where", ".", "stage/scene", "stage", "stage/picture", "adapter/openai", "director"}},
	{"internal/golden", effects, nil},
	{"internal/layers", effects, nil},
	{"internal/arch", effects, nil},
	{"cmd/sajou-replay", effects, []string{
		"signal", "choreography", "agents", "eventlog", "projection", "snapshot", "replay", "replay/where", ".", "internal/conformance",
		"stage/scene", "stage", "stage/picture", "internal/lint", "internal/simulate", "internal/jsonplace", "internal/spelling",
		"director", "director/episodes", "internal/yaml", "internal/beatgraph", "adapter/openai",
	}},
}

// outside are the standard library's doors to the world. A trailing slash
// stands for everything below.
var outside = []string{
	"os", "os/", "net", "net/", "syscall", "plugin", "log", "log/", "io/ioutil", "database/sql",
	"C", "runtime/debug", "testing",
}

// chance are the imports that make a result differ from run to run.
var chance = []string{"math/rand", "math/rand/v2", "crypto/rand", "hash/maphash"}

// clock are the functions of package time that read or wait for the clock.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// source is one parsed file that is not a test.
type source struct {
	name string // relative to the module's root
	file *ast.File
}

// modulePackages parses every package of the module, by dir. Folders that begin
// with a dot or are called testdata, and other modules, are none of it.
func modulePackages(t *testing.T) (map[string][]source, *token.FileSet) {
	t.Helper()
	root := filepath.Join("..", "..")
	packages, fset := map[string][]source{}, token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case rel == ".":
			return nil
		case d.IsDir():
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		case !strings.HasSuffix(rel, ".go"):
			return nil
		}
		dir := path.Dir(rel)
		sources := packages[dir]
		if !strings.HasSuffix(rel, "_test.go") {
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			sources = append(sources, source{rel, file})
		}
		packages[dir] = sources // one of tests alone counts too
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 5 {
		t.Fatalf("found only %d packages under %s: the walk is broken", len(packages), root)
	}
	return packages, fset
}

func imports(t *testing.T, s source) []string {
	t.Helper()
	var paths []string
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, name)
	}
	return paths
}

// The list itself points down only and names no package twice.
func TestListPointsDown(t *testing.T) {
	var below []string
	for _, l := range layers {
		if slices.Contains(below, l.dir) {
			t.Errorf("%s stands in the list twice", l.dir)
		}
		for _, dir := range l.may {
			if !slices.Contains(below, dir) {
				t.Errorf("%s may import %s, which does not stand above it in the list", l.dir, dir)
			}
		}
		below = append(below, l.dir)
	}
}

// Every package of the module is in the list, and the list names no other.
func TestEveryPackageHasItsPlace(t *testing.T) {
	packages, _ := modulePackages(t)
	for dir := range packages {
		if !slices.ContainsFunc(layers, func(l layer) bool { return l.dir == dir }) {
			t.Errorf("package %s is not in the list of layers: give it its place", dir)
		}
	}
	for _, l := range layers {
		if _, ok := packages[l.dir]; !ok {
			t.Errorf("the list of layers names %s, which is no package", l.dir)
		}
	}
}

// No package imports what its line of the list does not name.
func TestImportsPointDown(t *testing.T) {
	packages, _ := modulePackages(t)
	for _, l := range layers {
		for _, s := range packages[l.dir] {
			for _, name := range imports(t, s) {
				dir, ours := moduleDir(name)
				if ours && !slices.Contains(l.may, dir) {
					t.Errorf("%s imports %s: %s may import only %q", s.name, name, l.dir, l.may)
				}
			}
		}
	}
}

func moduleDir(importPath string) (dir string, ours bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// Packages that promise the same result every time do not ask for the time,
// for chance, or for anything outside.
func TestGradesAreKept(t *testing.T) {
	packages, fset := modulePackages(t)
	for _, l := range layers {
		if l.grade == effects {
			continue
		}
		for _, s := range packages[l.dir] {
			for _, name := range imports(t, s) {
				if matches(name, chance) || matches(name, outside) {
					t.Errorf("%s imports %s, which no package that is %s may", s.name, name, l.grade)
				}
			}
			ast.Inspect(s.file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == timeName(s.file) && slices.Contains(clock, n.Sel.Name) {
						t.Errorf("%v: time.%s in a package that is %s", fset.Position(n.Pos()), n.Sel.Name, l.grade)
					}
				case *ast.GoStmt:
					if l.grade == pure {
						t.Errorf("%v: a goroutine in a package that is pure", fset.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
}

func (g grade) String() string {
	return [...]string{pure: "pure", timeless: "timeless", effects: "free"}[g]
}

func matches(name string, list []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return name == entry || strings.HasSuffix(entry, "/") && strings.HasPrefix(name, entry)
	})
}

// timeName returns what a file calls package time, or "" if it does not import
// it.
func timeName(file *ast.File) string {
	for _, spec := range file.Imports {
		switch {
		case spec.Path.Value != `"time"`:
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return "time"
		}
	}
	return ""
}

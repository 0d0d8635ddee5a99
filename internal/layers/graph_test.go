package layers

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	require.NoError(t, err)
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
		require.NoError(t, err)
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
		for i, dir := range l.may {
			if slices.Contains(l.may[:i], dir) {
				t.Errorf("%s may import %s twice", l.dir, dir)
			}
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
			t.Errorf("the list of layers names %s, which is not a package", l.dir)
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

// The list names no import that no file makes.
func TestEveryEdgeIsUsed(t *testing.T) {
	packages, _ := modulePackages(t)
	for _, l := range layers {
		unused := slices.Clone(l.may)
		for _, s := range packages[l.dir] {
			for _, name := range imports(t, s) {
				if dir, ours := moduleDir(name); ours {
					unused = slices.DeleteFunc(unused, func(may string) bool { return may == dir })
				}
			}
		}
		for _, dir := range unused {
			t.Errorf("%s may import %s and does not: delete it from the list", l.dir, dir)
		}
	}
}

// No two packages export a type of the same name, except where the list of
// shared names gives a reason. An alias of the other package's type is not a
// second type.
func TestTypeNamesAreUnique(t *testing.T) {
	packages, _ := modulePackages(t)
	dirs := map[string][]string{} // of the packages, by the name of a type
	for _, l := range layers {
		for _, s := range packages[l.dir] {
			if s.file.Name.Name == "main" {
				continue
			}
			for _, name := range exportedTypes(s.file) {
				dirs[name] = append(dirs[name], l.dir)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		if len(dirs[name]) > 1 && sharedNames[name] == "" {
			t.Errorf("%q export a type %s each: rename all but one, or give a reason in sharedNames", dirs[name], name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sharedNames)) {
		if len(dirs[name]) < 2 {
			t.Errorf("sharedNames lists %s, which fewer than two packages export: delete it", name)
		}
	}
}

// exportedTypes returns the exported types that a file declares.
func exportedTypes(file *ast.File) []string {
	var names []string
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok || !ts.Name.IsExported() {
				continue
			}
			if x, ok := ts.Type.(*ast.SelectorExpr); ok && ts.Assign.IsValid() && x.Sel.Name == ts.Name.Name {
				continue
			}
			names = append(names, ts.Name.Name)
		}
	}
	return names
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

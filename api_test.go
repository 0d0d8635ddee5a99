package sajou_test

import (
	"bytes"
	"fmt"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/layers"
)

// apiFile lists what the public packages export, one a line: functions, types, fields,
// methods, variables, and constants with their values.
const apiFile = "testdata/api.txt"

const modulePath = "github.com/sajou-dev/sajou-go"

// The exported API is the listed one. A line that goes or changes can break a program
// that uses the module, and one that comes is a promise; so both are seen in review.
func TestAPI(t *testing.T) {
	got := exportedAPI(t)
	if *update {
		require.NoError(t, os.WriteFile(apiFile, []byte(strings.Join(got, "\n")+"\n"), 0o644))
		return
	}
	text, err := os.ReadFile(apiFile)
	require.NoError(t, err)
	listed := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	removed, added := apiChanges(listed, got)
	if len(removed) > 0 {
		t.Errorf("the API has changed in a way that can break programs. See \"The Go API\" in docs/compatibility.md: keep what was promised, "+
			"or deprecate it first. If the change is meant, run go test . -run TestAPI -update, and say in the commit what programs have to do.\n- %s",
			strings.Join(removed, "\n- "))
	}
	if len(added) > 0 {
		t.Errorf("the API has grown. If programs need it (see docs/compatibility.md), run go test . -run TestAPI -update; otherwise unexport it.\n+ %s",
			strings.Join(added, "\n+ "))
	}
}

// apiChanges returns the lines that only the first or only the second list has.
func apiChanges(listed, got []string) (removed, added []string) {
	for _, line := range listed {
		if _, found := slices.BinarySearch(got, line); !found {
			removed = append(removed, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(listed, line) {
			added = append(added, line)
		}
	}
	return removed, added
}

// Where a comment names something of a package, as in agents.Core, that exists.
func TestCommentsNameTheAPI(t *testing.T) {
	text, err := os.ReadFile(apiFile)
	require.NoError(t, err)
	exported := map[string]bool{} // by the last element of the package's path
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		exported[name[strings.LastIndex(name, "/")+1:]] = true
	}
	packages := map[string]bool{}
	for name := range exported {
		name, _, _ = strings.Cut(name, ".")
		packages[name] = true
	}
	names, comment := 0, regexp.MustCompile(`(?m)//.*$`)
	reference := regexp.MustCompile(`(?:^|[^\w/.])([a-z]+)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
	for _, dir := range layers.Public() {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if strings.HasSuffix(file, "_test.go") || dir == "adapter/otel" { // which means the other otel
				continue
			}
			for _, m := range reference.FindAllStringSubmatch(strings.Join(comment.FindAllString(string(text), -1), "\n"), -1) {
				pkg := m[1]
				for _, prefix := range []string{"agents", "agent", "director", "stage"} { // agentslive, directorlive
					if rest := strings.TrimPrefix(pkg, prefix); !packages[pkg] && packages[rest] {
						pkg = rest
					}
				}
				if !packages[pkg] {
					continue
				}
				names++
				if !exported[pkg+"."+m[2]] {
					t.Errorf("%s: a comment names %s.%s, which does not exist", file, m[1], m[2])
				}
			}
		}
	}
	if names < 300 {
		t.Errorf("only %d names: the test looks for the wrong thing", names)
	}
}

func TestAPIChanges(t *testing.T) {
	removed, added := apiChanges([]string{"a.F func()", "a.G func()"}, []string{"a.F func(int)", "a.G func()", "a.H func()"})
	require.Equal(t, []string{"a.F func()"}, removed)
	require.Equal(t, []string{"a.F func(int)", "a.H func()"}, added)
}

// exportedAPI returns the lines of the API, sorted. It reads what the compiler exports,
// so it parses nothing.
func exportedAPI(t *testing.T) []string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, dir := range layers.Public() {
		args = append(args, "./"+dir)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	compiler := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var api apiLines
	for _, dir := range layers.Public() {
		path := modulePath
		if dir != "." {
			path += "/" + dir
		}
		pkg, err := compiler.Import(path)
		require.NoError(t, err)
		api.add(pkg)
	}
	slices.Sort(api.lines)
	return slices.Compact(api.lines)
}

// apiLines collects the lines of the API.
type apiLines struct{ lines []string }

// inModule names a package by its folder in the module, or by its path.
func inModule(pkg *types.Package) string {
	if pkg.Path() == modulePath {
		return "sajou"
	}
	return strings.TrimPrefix(pkg.Path(), modulePath+"/")
}

func written(t types.Type) string { return types.TypeString(t, inModule) }

// add adds what a package exports.
func (a *apiLines) add(pkg *types.Package) {
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		name = inModule(pkg) + "." + name
		switch obj := obj.(type) {
		case *types.Const:
			value := obj.Val().ExactString()
			if obj.Val().Kind() == constant.Float {
				value = obj.Val().String()
			}
			a.line("%s const %s = %s", name, written(obj.Type()), value)
		case *types.Var:
			a.line("%s var %s", name, written(obj.Type()))
		case *types.Func:
			a.line("%s %s", name, signature(obj))
		case *types.TypeName:
			a.typ(name, obj)
		}
	}
}

// typ adds a type with its exported fields and methods.
func (a *apiLines) typ(name string, obj *types.TypeName) {
	named, ok := obj.Type().(*types.Named)
	if obj.IsAlias() || !ok {
		a.line("%s type = %s", name, written(types.Unalias(obj.Type())))
		return
	}
	if params := named.TypeParams(); params.Len() > 0 {
		var list []string
		for p := range params.TypeParams() {
			list = append(list, p.Obj().Name()+" "+written(p.Constraint()))
		}
		a.line("%s type parameters [%s]", name, strings.Join(list, ", "))
	}
	switch under := named.Underlying().(type) {
	case *types.Struct:
		a.line("%s type struct", name)
		for f := range under.Fields() {
			if f.Exported() {
				a.line("%s.%s field %s", name, f.Name(), written(f.Type()))
			}
		}
	case *types.Interface:
		a.line("%s type interface", name)
		for m := range under.Methods() { // one that is not exported keeps programs from implementing it
			a.line("%s.%s method of interface %s", name, m.Name(), signature(m))
		}
	default:
		a.line("%s type %s", name, written(under))
	}
	for m := range named.Methods() {
		if m.Exported() {
			kind := "method"
			if _, pointer := m.Signature().Recv().Type().(*types.Pointer); pointer {
				kind = "method of pointer"
			}
			a.line("%s.%s %s %s", name, m.Name(), kind, signature(m))
		}
	}
}

func (a *apiLines) line(format string, args ...any) {
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

// signature returns the type of a function without the names of its parameters, which no
// caller depends on.
func signature(f *types.Func) string {
	sig := f.Signature()
	var params []*types.TypeParam
	for p := range sig.TypeParams().TypeParams() {
		params = append(params, p)
	}
	text := written(types.NewSignatureType(nil, nil, nil, unnamed(sig.Params()), unnamed(sig.Results()), sig.Variadic()))
	if len(params) == 0 {
		return text
	}
	var list []string
	for _, p := range params {
		list = append(list, p.Obj().Name()+" "+written(p.Constraint()))
	}
	return strings.Replace(text, "func(", "func["+strings.Join(list, ", ")+"](", 1)
}

func unnamed(tuple *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range tuple.Variables() {
		vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
	}
	return types.NewTuple(vars...)
}

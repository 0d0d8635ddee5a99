package sajou_test

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// depsFile lists the modules whose packages a program that imports the root package
// compiles, besides those that Pebble and bbolt bring: one a line, with the reason.
const depsFile = "testdata/dependencies.txt"

// modulesOf returns the modules of the packages that the given ones are compiled of,
// without this module and the standard library. It needs no network: the packages are
// those of this test's own build.
func modulesOf(t *testing.T, packages ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"}, packages...)...)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	list := strings.Fields(string(out))
	slices.Sort(list)
	return slices.Compact(list)
}

// A program that imports the root package compiles the modules that Pebble and bbolt
// bring, and those of a committed list. No line of the list is superfluous.
func TestDependencies(t *testing.T) {
	text, err := os.ReadFile(depsFile)
	require.NoError(t, err)
	var listed []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if strings.TrimSpace(reason) == "" {
			t.Errorf("%s: %s has no reason", depsFile, name)
		}
		listed = append(listed, name)
	}
	stores := modulesOf(t, "github.com/cockroachdb/pebble/v2", "go.etcd.io/bbolt")
	compiled := modulesOf(t, ".")
	for _, m := range compiled {
		if !slices.Contains(stores, m) && !slices.Contains(listed, m) {
			t.Errorf("an importer of the root package compiles %s, which neither Pebble nor bbolt brings; cut the import, or add the module to %s with the reason", m, depsFile)
		}
	}
	for _, m := range listed {
		if !slices.Contains(compiled, m) || slices.Contains(stores, m) {
			t.Errorf("%s lists %s, which is not compiled or which Pebble or bbolt brings; delete the line", depsFile, m)
		}
	}
}

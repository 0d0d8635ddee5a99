// Package golden runs tests that are txtar files, which are easy to read and edit:
// the inputs first, and from the part "told" on the outputs.
//
//	What the story shows.
//	-- script --
//	…
//	-- told --
//	…
//
// The flag -update writes the outputs into the files. Only tests import this package.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// told is the first part of a file that is an output.
const told = "told"

// Run runs each file that matches a pattern as a test of its own and compares
// the outputs that tell returns for the inputs with those in the file. The first
// output is called "told". A pattern without a match fails the test.
func Run(t *testing.T, pattern string, tell func(t *testing.T, in []txtar.File) []txtar.File) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden files %s: %v", pattern, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(want)
			if i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == told }); i >= 0 {
				archive.Files = archive.Files[:i:i]
			}
			archive.Files = append(archive.Files, tell(t, archive.Files)...)
			got := txtar.Format(archive)
			if *update && !t.Failed() {
				if err := os.WriteFile(name, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got; run with -update to accept)\n%s", diff)
			}
		})
	}
}

// Tell is [Run] for tests that look inputs up by name and have one thing to tell.
func Tell(t *testing.T, pattern string, tell func(t *testing.T, files map[string]string) string) {
	t.Helper()
	Run(t, pattern, func(t *testing.T, in []txtar.File) []txtar.File {
		files := map[string]string{}
		for _, f := range in {
			files[f.Name] = string(f.Data)
		}
		return []txtar.File{{Name: told, Data: []byte(tell(t, files))}}
	})
}

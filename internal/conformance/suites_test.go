package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// variable names the environment variable with the folder of a set to judge.
const variable = "SAJOU_CONFORMANCE"

// TestConformance judges every case of a set: the one that SAJOU_CONFORMANCE
// names, or else our own and, where it lies beside the repository, the shared
// sample. It closes with one line a suite. Of our own no case may be inapplicable.
func TestConformance(t *testing.T) {
	var lines strings.Builder
	if named := os.Getenv(variable); named != "" {
		for _, suite := range Suites() {
			judge(t, fromRoot(named), suite, &lines)
		}
	} else {
		for _, suite := range Suites() {
			for _, line := range judge(t, ownSet(suite), suite, &lines) {
				t.Error(line)
			}
		}
		if _, err := os.Stat("../../../shared/conformance"); err == nil {
			for _, suite := range Suites() {
				judge(t, "../../../shared/conformance", suite, &lines)
			}
		}
	}
	fmt.Print(lines.String())
}

// ownSet returns where our own files of a suite are: those about agents and the
// director, which are data for any engine, at the module's root.
func ownSet(suite Suite) string {
	if suite.Folder == "agents" || suite.Folder == "director" {
		return "../../testdata"
	}
	return "testdata"
}

// fromRoot takes a relative path from the module's root, where go test is
// typed, and not from this folder, where it runs.
func fromRoot(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join("..", "..", path)
}

// judge runs one suite of a set and writes its lines, that of the cases counted
// apart after that of the rest. It returns the lines of those that are inapplicable.
func judge(t *testing.T, set string, suite Suite, lines *strings.Builder) (inapplicable []string) {
	t.Helper()
	names := []string{suite.Folder}
	passed, failed := map[string]int{}, map[string]int{}
	t.Run(suite.Folder, func(t *testing.T) {
		cases, err := suite.Cases(set)
		if err != nil {
			failed[suite.Folder]++
			t.Errorf("suite %s: %v", suite.Folder, err)
			return
		}
		for _, c := range cases {
			if c.Inapplicable != "" {
				inapplicable = append(inapplicable, fmt.Sprintf("%s: not applicable: %s: %s\n", suite.Folder, c.Name, c.Inapplicable))
				continue
			}
			name := suite.Folder
			if c.Apart != "" {
				name += "-" + c.Apart
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			var err error
			t.Run(c.Name, func(t *testing.T) {
				if err = c.Judge(); err != nil && !errors.Is(err, ErrInapplicable) {
					t.Error(err)
				}
			})
			switch {
			case errors.Is(err, ErrInapplicable):
				inapplicable = append(inapplicable, fmt.Sprintf("%s: %s: %v\n", suite.Folder, c.Name, err))
			case err == nil:
				passed[name]++
			default:
				failed[name]++
			}
		}
	})
	for _, name := range names {
		fmt.Fprintf(lines, "%s: %d passed, %d failed\n", name, passed[name], failed[name])
	}
	for _, line := range inapplicable {
		lines.WriteString(line)
	}
	return inapplicable
}

// TestMissingFolder shows that a set without a suite's folder, or with an empty
// one, is an error.
func TestMissingFolder(t *testing.T) {
	set := t.TempDir()
	for _, suite := range Suites() {
		if _, err := suite.Cases(set); err == nil {
			t.Errorf("%s: no error for a missing folder", suite.Folder)
		}
		require.NoError(t, os.Mkdir(filepath.Join(set, suite.Folder), 0o755))
		if _, err := suite.Cases(set); err == nil {
			t.Errorf("%s: no error for an empty folder", suite.Folder)
		}
	}
}

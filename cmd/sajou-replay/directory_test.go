package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// tree returns every file below a directory, and the folders with a slash at the end.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			all[name+"/"] = ""
			return nil
		}
		b, err := os.ReadFile(path)
		all[name] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

// everyCommand has a valid command line for each command that opens the store.
var everyCommand = [][]string{
	{"ls"},
	{"info"},
	{"cat"},
	{"tail"},
	{"show", "1"},
	{"state"},
	{"diff", "0", "end"},
	{"play", "--rate", "0"},
	{"verify"},
	{"verify", "--all"},
	{"scan", "--where", "true"},
	{"bisect", "--where", "true"},
	{"export"},
	{"export", "--raw"},
	{"snapshot", "ls"},
	{"snapshot", "build"},
	{"snapshot", "drop"},
	{"define", "ls"},
	{"import", "-"},
	{"import", "-", "-s", "new"},
	{"sim", "--example"},
	{"demo"},
}

// No command changes a directory with other files, or creates a store there, for all
// names of files.
func TestForeignDirectories(t *testing.T) {
	for _, names := range [][]string{
		{"20240101.log", "000010.sst"},
		{"LOCK"},
		{"notes.txt", ".hidden"},
		{"snapshots.db"},
	} {
		store := filepath.Join(t.TempDir(), "store")
		require.NoError(t, os.Mkdir(store, 0o755))
		for _, name := range names {
			require.NoError(t, os.WriteFile(filepath.Join(store, name), []byte("precious"), 0o644))
		}
		before := tree(t, filepath.Dir(store))
		for _, args := range everyCommand {
			r := sajouReplay(t.Context(), t, strings.NewReader(signalLines(1)), append([]string{"-C", store}, args...)...)
			if r.code == 0 || r.stderr == "" {
				t.Errorf("%v in a directory with %v: exit %d, %s", args, names, r.code, r.stderr)
			}
			if d := cmp.Diff(before, tree(t, filepath.Dir(store))); d != "" {
				t.Fatalf("%v in a directory with %v: changed:\n%s", args, names, d)
			}
		}
	}
}

// Every command refuses a store without its empty marker file, which copies and
// synchronizers lose, and leaves it unchanged. The error recommends repair, which
// copies every entry.
func TestLostMarker(t *testing.T) {
	tmp := t.TempDir()
	store := filepath.Join(tmp, "store")
	importLines(t, store, 5)
	want := sajouReplay(t.Context(), t, nil, "-C", store, "export").stdout
	markers, err := filepath.Glob(filepath.Join(store, "marker.manifest.*"))
	if err != nil || len(markers) != 1 {
		t.Fatal(markers, err)
	}
	require.NoError(t, os.Remove(markers[0]))
	before := tree(t, tmp)
	for _, args := range everyCommand {
		r := sajouReplay(t.Context(), t, strings.NewReader(signalLines(1)), append([]string{"-C", store}, args...)...)
		if r.code != cli.ExitNo || !strings.Contains(r.stderr, "marker.manifest.*") || !strings.Contains(r.stderr, "sajou-replay repair -C "+store+" --to NEWDIR") || strings.Contains(r.stderr, "import FILE") {
			t.Errorf("%v: exit %d, %s", args, r.code, r.stderr)
		}
		if d := cmp.Diff(before, tree(t, tmp)); d != "" {
			t.Fatalf("%v: changed:\n%s", args, d)
		}
	}
	saved := filepath.Join(tmp, "saved")
	r := sajouReplay(t.Context(), t, nil, "repair", "-C", store, "--to", saved)
	if r.code != 0 || !strings.Contains(r.stdout, "rebuilt: marker.manifest.") || !strings.Contains(r.stdout, "whole\n") {
		t.Errorf("repair: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if got := sajouReplay(t.Context(), t, nil, "-C", saved, "export").stdout; got != want || want == "" {
		t.Errorf("the copy holds\n%s, want\n%s", got, want)
	}
	after := tree(t, tmp)
	for name := range after {
		if strings.HasPrefix(name, "saved") {
			delete(after, name)
		}
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("repair changed the store:\n%s", d)
	}
}

// Repair exits with 3 if entries were lost, and with 1 and without a copy if nothing
// could be saved. Misuse is reported.
func TestRepairExits(t *testing.T) {
	tmp := t.TempDir()
	store := filepath.Join(tmp, "store")
	importLines(t, store, 50)
	tables, err := filepath.Glob(filepath.Join(store, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	if r := sajouReplay(t.Context(), t, nil, "repair", "-C", store, "--to", filepath.Join(tmp, "copy"), "-o", "json"); r.code != 0 || !strings.Contains(r.stdout, `"whole": true`) || !json.Valid([]byte(r.stdout)) {
		t.Errorf("of a whole store: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"repair", "-C", store}, cli.ExitMisuse, "--to NEWDIR"},
		{[]string{"repair", "-C", store, "--to", store}, cli.ExitMisuse, "would change the store"},
		{[]string{"repair", "-C", store, "--to", filepath.Join(store, "in")}, cli.ExitMisuse, "would change the store"},
		{[]string{"repair", "-C", store, "--to", filepath.Join(tmp, "copy")}, cli.ExitNo, "it is not empty"},
		{[]string{"repair", "-C", filepath.Join(tmp, "nowhere"), "--to", filepath.Join(tmp, "new")}, cli.ExitNotFound, "there is no store"},
	} {
		if r := sajouReplay(t.Context(), t, nil, tc.args...); r.code != tc.code || !strings.Contains(r.stderr, tc.want) {
			t.Errorf("%v: exit %d, %s", tc.args, r.code, r.stderr)
		}
	}
	for _, table := range tables {
		b, err := os.ReadFile(table)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(table, bytes.Repeat([]byte{7}, len(b)), 0o644))
	}
	lost := filepath.Join(tmp, "lost")
	r := sajouReplay(t.Context(), t, nil, "repair", "-C", store, "--to", lost)
	// The entries in the write-ahead logs are saved, and the copy is not called whole.
	if r.code != cli.ExitLoss && r.code != cli.ExitNo || !strings.Contains(r.stdout, "doubt: table") {
		t.Errorf("without tables: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(lost); r.code == cli.ExitNo && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was saved, and there is %s: %v", lost, err)
	}
}

// A command that fails before it records anything leaves no new store, no new
// directory above it, and no snapshot file.
func TestFailuresLeaveNoStore(t *testing.T) {
	tmp := t.TempDir()
	bad, broken := filepath.Join(tmp, "bad.jsonl"), filepath.Join(tmp, "broken.json")
	for path, contents := range map[string]string{bad: "no JSON\n", broken: "{"} {
		require.NoError(t, os.WriteFile(path, []byte(contents), 0o644))
	}
	above := filepath.Join(tmp, "above")
	store := filepath.Join(above, "a", "store")
	for _, there := range []bool{false, true} {
		if there {
			require.NoError(t, os.MkdirAll(store, 0o755))
		}
		before := tree(t, above)
		for _, args := range [][]string{
			{"import", bad},
			{"import", bad, "--lenient"},
			{"import", filepath.Join(tmp, "nowhere.jsonl")},
			{"import", tmp},
			{"import", "-", "--define", broken},
			{"import", "-"},
			{"import", "-", "-s", "bad\x01name"},
			{"define", "add", broken, "-s", "x"},
			{"define", "add", filepath.Join(tmp, "nowhere.json"), "-s", "x"},
			{"sim", bad},
			{"sim", broken},
			{"episode", "play", broken},
			{"snapshot", "build"},
			{"episode", "rerun", "x"},
		} {
			stdin := io.Reader(strings.NewReader(""))
			r := sajouReplay(t.Context(), t, stdin, append([]string{"-C", store}, args...)...)
			if r.code == 0 && !slices.Equal(args, []string{"import", "-"}) {
				t.Errorf("%v: exit 0\n%s", args, r.stdout)
			}
			if d := cmp.Diff(before, tree(t, above)); d != "" {
				t.Fatalf("%v, directory there before %v: exit %d, %s; changed:\n%s", args, there, r.code, r.stderr, d)
			}
		}
	}
}

// Reading changes no byte of a store and leaves no file, also if the LOCK file is
// missing, as in some copies.
func TestReadingLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	store := filepath.Join(tmp, "store")
	importLines(t, store, 5)
	require.NoError(t, os.Remove(filepath.Join(store, "LOCK")))
	before := tree(t, tmp)
	for _, args := range everyCommand {
		if slices.Contains([]string{"import", "sim", "demo"}, args[0]) || slices.Contains([]string{"build", "drop"}, args[len(args)-1]) {
			continue
		}
		r := sajouReplay(t.Context(), t, nil, append([]string{"-C", store}, args...)...)
		if r.code == cli.ExitLocked {
			t.Errorf("%v: exit %d, %s", args, r.code, r.stderr)
		}
		if d := cmp.Diff(before, tree(t, tmp)); d != "" {
			t.Fatalf("%v: changed:\n%s", args, d)
		}
	}
}

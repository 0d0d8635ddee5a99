package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// indexed is the number of entries from which a session has an index.
const indexed = 10_000

// TestIndex: the first question about a long session builds its index, the next ones leave it
// as it is, and one that is damaged is built again. Without it the answers are the same.
func TestIndex(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	var lines strings.Builder
	for n := range indexed {
		fmt.Fprintf(&lines, `{"id":"s%d","type":"note","timestamp":%d,"source":"test","correlationId":"job-%d","payload":{}}`+"\n", n, 1000+n, n/2)
	}
	r := sajouReplay(t.Context(), t, strings.NewReader(lines.String()), "-C", store, "import", "-", "-s", "long")
	require.Zero(t, r.code, r.stderr)
	files := func() (list []string) {
		require.NoError(t, filepath.WalkDir(store, func(path string, _ os.DirEntry, err error) error {
			if strings.Contains(filepath.Base(path), ".index.") {
				list = append(list, path)
			}
			return err
		}))
		return list
	}
	const answer = `"id":"s9000",`
	ask := func(flags ...string) {
		t.Helper()
		r := sajouReplay(t.Context(), t, nil, slices.Concat([]string{"-C", store, "cat", "long", "corr:job-4500", "-o", "jsonl"}, flags)...)
		require.Zero(t, r.code, r.stderr)
		assert.Contains(t, r.stdout, answer)
		assert.Equal(t, 1, strings.Count(r.stdout, "\n"))
	}
	ask("--no-snapshots")
	require.Empty(t, files(), "--no-snapshots works without an index")
	ask()
	require.Len(t, files(), 1)
	index := files()[0]
	built, err := os.ReadFile(index)
	require.NoError(t, err)
	before, err := os.Stat(index)
	require.NoError(t, err)
	ask()
	after, err := os.Stat(index)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "it was used, not built again")
	assert.Equal(t, before.ModTime(), after.ModTime())

	for name, damaged := range map[string][]byte{
		"torn": built[:len(built)-10], "empty": {}, "foreign": []byte(strings.Repeat("no index", 100)),
		"changed": slices.Concat(built[:len(built)/2], []byte{built[len(built)/2] ^ 1}, built[len(built)/2+1:]),
	} {
		require.NoError(t, os.WriteFile(index, damaged, 0o600), name)
		ask()
		ask() // damage in a page is found when a question reads it
		present, err := os.ReadFile(index)
		require.NoError(t, err, name)
		if name != "changed" { // the page may not be one that the question reads
			assert.Equal(t, built, present, name)
		}
	}
	r = sajouReplay(t.Context(), t, nil, "-C", store, "snapshot", "drop", "long")
	require.Zero(t, r.code, r.stderr)
	assert.Empty(t, files())
	ask()
	present, err := os.ReadFile(index)
	require.NoError(t, err)
	assert.Equal(t, built, present)
}

package sajou_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
)

// Files that cannot be used as a snapshot store are kept, each under a name of
// its own, up to a bound.
func TestUnusableSnapshotsAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	path := filepath.Join(dir, sajou.SnapshotFile)
	contents := func(n int) string { return string(rune('a' + n)) }
	for n := range 11 {
		eng, err := sajou.Open(dir, sajou.Config{})
		require.NoError(t, err)
		require.NoError(t, eng.Close())
		require.NoError(t, os.WriteFile(path, []byte(contents(n)), 0o600))
	}
	kept, err := filepath.Glob(path + ".unusable*")
	if err != nil || len(kept) != 9 {
		t.Fatalf("%d files are kept, want 9: %v, %v", len(kept), kept, err)
	}
	for name, want := range map[string]string{".unusable": "a", ".unusable.2": "b", ".unusable.9": "j"} {
		if got, err := os.ReadFile(path + name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, want %q, %v", name, got, want, err)
		}
	}
}

//go:build unix

package access_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOwnerOfTokens shows that a file of the superuser belongs to the user of the server,
// who is the owner of the directory, or of the file that was there.
func TestOwnerOfTokens(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.tokens")
	owner := func() int {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		return int(info.Sys().(*syscall.Stat_t).Uid)
	}
	put(t, path, 1, "ann", time.Time{})
	assert.Equal(t, os.Geteuid(), owner())
	if os.Geteuid() != 0 {
		t.Skip("only the superuser gives files away")
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Chown(dir, 65532, 65532))
	put(t, path, 1, "ann", time.Time{})
	assert.Equal(t, 65532, owner())
	require.NoError(t, os.Chown(path, 65531, 65531))
	revoke(t, path, "ann", noon)
	assert.Equal(t, 65531, owner())
}

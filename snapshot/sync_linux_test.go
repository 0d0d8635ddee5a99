package snapshot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/snapshot"
)

// Forget reports a disk that does not sync: the images are dropped, and may come back when
// power is lost. The open file is replaced by a device that takes all writes and syncs none.
func TestForgetReportsTheSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images")
	s, err := snapshot.Open(path, snapshot.Config{})
	require.NoError(t, err)
	defer func() { _ = s.Close() }() // the device is not a locked file
	put(t, s, "a", image(1, 10))
	device, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer device.Close()
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	replaced := 0
	for _, e := range open {
		var fd int
		_, err := fmt.Sscan(e.Name(), &fd)
		require.NoError(t, err)
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && name == path {
			require.NoError(t, syscall.Dup3(int(device.Fd()), fd, syscall.O_CLOEXEC))
			replaced++
		}
	}
	require.Equal(t, 1, replaced)
	err = s.Forget("a")
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "snapshot: forget a")
}

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package storefile

import (
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// shareLock returns a placeholder for the shared lock of a read-only file: these
// systems have no lock for reading, and no process can write to the file.
func shareLock(vfs.FS, string) (io.Closer, error) { return nopCloser{}, nil }

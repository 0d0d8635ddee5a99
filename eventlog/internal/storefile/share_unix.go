//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package storefile

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// shareLock takes a shared lock on a read-only file. It excludes a writer, if a
// process can write to the file, and no other reader.
func shareLock(disk vfs.FS, path string) (io.Closer, error) {
	if disk != vfs.Default {
		return nopCloser{}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

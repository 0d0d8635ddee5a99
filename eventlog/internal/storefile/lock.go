package storefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrLocked is the error while another process has the store open.
var ErrLocked = errors.New("eventlog: store is in use by another process")

// LockOptions controls [LockDirectory].
type LockOptions struct {
	ReadOnly bool
	Wait     time.Duration // how long to wait for another process to close the store
}

// LockDirectory takes the store's lock, and retries for opts.Wait. locked is false
// if there is nothing to lock: the store is opened for reading and has no LOCK file,
// which reading does not create, or is on a medium that no process writes to.
func LockDirectory(disk vfs.FS, dir string, names []string, opts LockOptions) (lock *pebble.Lock, locked bool, err error) {
	if opts.ReadOnly && !slices.Contains(names, LockName) {
		lock, err = pebble.LockDirectory(dir, heldFS{disk, nopCloser{}})
		return lock, false, err
	}
	const pause = 20 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		lock, err := pebble.LockDirectory(dir, disk)
		if err == nil {
			return lock, true, nil
		}
		if opts.ReadOnly && isReadOnly(err) {
			held, shareErr := shareLock(disk, disk.PathJoin(dir, LockName))
			if shareErr == nil {
				lock, err = pebble.LockDirectory(dir, heldFS{disk, held})
				return lock, true, err
			}
			err = shareErr
		}
		// The lock file could not be opened, so no other process is the reason.
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, false, fmt.Errorf("eventlog: lock %s: %w", dir, err)
		}
		if waited >= opts.Wait {
			return nil, false, fmt.Errorf("%w: %s: %v", ErrLocked, dir, err)
		}
		<-time.After(pause)
	}
}

// isReadOnly reports whether err says that a file may not be written to.
func isReadOnly(err error) bool {
	_, ofFile := errors.AsType[*fs.PathError](err) // a lock held by another process can be an EACCES without a path
	return ofFile && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS))
}

// heldFS returns a lock that this process already holds.
type heldFS struct {
	vfs.FS
	lock io.Closer
}

// Lock implements [vfs.FS].
func (h heldFS) Lock(string) (io.Closer, error) { return h.lock, nil }

type nopCloser struct{}

func (nopCloser) Close() error { return nil }

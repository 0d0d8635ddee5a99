package eventlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// This file prepares the directory of a store before Pebble sees it: it is
// found, created and locked.

// holdsStore tells from a directory's names whether there is a store in it.
func holdsStore(names []string) bool {
	for _, name := range names {
		if strings.HasPrefix(name, "marker.manifest.") {
			return true
		}
	}
	return false
}

// makeDirectory creates dir and its missing parents so that a crash does not
// lose them: what is in the store is no more durable than the way to it.
func makeDirectory(disk vfs.FS, dir string) error {
	var changed []string // directories that get a new entry
	for path := dir; ; {
		if _, err := disk.Stat(path); err == nil {
			break
		}
		parent := disk.PathDir(path)
		if parent == path {
			break
		}
		path = parent
		changed = append(changed, path)
	}
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, path := range changed {
		if err := syncDirectory(disk, path); err != nil {
			return err
		}
	}
	return nil
}

func syncDirectory(disk vfs.FS, path string) error {
	d, err := disk.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// canonical returns the one path by which a directory on the disk is known.
// Pebble's lock excludes other processes whatever path they use, but this
// process only from a path that is spelled the same.
func canonical(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("eventlog: open %s: %w", dir, err)
	}
	return path, nil
}

// lockDirectory takes the store's lock, trying again until cfg.LockWait is
// over.
func lockDirectory(dir string, cfg Config) (*pebble.Lock, error) {
	const pause = 20 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		lock, err := pebble.LockDirectory(dir, cfg.FS)
		if err == nil {
			return lock, nil
		}
		// The lock file itself could not be made: that is not another process.
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, fmt.Errorf("eventlog: lock %s: %w", dir, err)
		}
		if waited >= cfg.LockWait {
			return nil, fmt.Errorf("%w: %s: %v", ErrLocked, dir, err)
		}
		<-time.After(pause)
	}
}

package storefile

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// WALNumber returns the number of a file of the write-ahead log.
func WALNumber(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil
}

// CopyBeginning truncates a file to size bytes: it writes them to aside and renames
// that file to path.
func CopyBeginning(disk vfs.FS, path, aside string, size int64) error {
	from, err := disk.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // open for reading only
	to, err := disk.Create(aside, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.CopyN(to, from, size)
	if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
		return err
	}
	if err := disk.Rename(aside, path); err != nil {
		return err
	}
	return SyncDirectory(disk, disk.PathDir(path))
}

// WatchFS records which files of the write-ahead log are opened.
type WatchFS struct {
	vfs.FS
	mu     sync.Mutex
	opened []string // guarded by mu
}

// Open implements [vfs.FS].
func (w *WatchFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if base := w.PathBase(name); KindOf(base) == KindLog {
		w.mu.Lock()
		if !slices.Contains(w.opened, base) {
			w.opened = append(w.opened, base)
		}
		w.mu.Unlock()
	}
	return w.FS.Open(name, opts...)
}

// Unwrap implements [vfs.FS].
func (w *WatchFS) Unwrap() vfs.FS { return w.FS }

// Logs returns the names of the files of the write-ahead log that were opened.
func (w *WatchFS) Logs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.opened)
}

// CutFS is a view of a directory in which the write-ahead log ends earlier.
type CutFS struct {
	vfs.FS
	Hidden map[string]bool
	Name   string // of the file that is shorter
	Size   int64
}

// List implements [vfs.FS].
func (c *CutFS) List(dir string) ([]string, error) {
	names, err := c.FS.List(dir)
	return slices.DeleteFunc(names, func(name string) bool { return c.Hidden[name] }), err
}

// Open implements [vfs.FS].
func (c *CutFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	base := c.PathBase(name)
	if c.Hidden[base] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	file, err := c.FS.Open(name, opts...)
	if err != nil || base != c.Name {
		return file, err
	}
	return &cutFile{File: file, left: c.Size}, nil
}

// Unwrap implements [vfs.FS].
func (c *CutFS) Unwrap() vfs.FS { return c.FS }

// cutFile is a file whose sequential reads end earlier.
type cutFile struct {
	vfs.File
	left int64
}

// Read implements [vfs.File].
func (c *cutFile) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.File.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

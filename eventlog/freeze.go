package eventlog

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// freezeFS stands between Pebble and the disk, for the moment when a write
// fails.
//
// Pebble ends the process when it cannot write its write-ahead log or its
// manifest (by a panic under a lock that it has given back, which no recover
// catches), tries failed flushes again at once and for ever, and waits for
// them in Open and Flush. So it never learns of such a failure: the first one
// is handed to the log, which becomes read-only, and from then on the disk is
// frozen as it was. Nothing more is written to it or removed from it. What
// Pebble goes on to write is dropped, except for the tables of its last
// flushes, which it reads again: these live in memory, bounded by the
// memtables they came from.
//
// It also closes a gap in what Pebble syncs; see Create.
//
// What remains on the disk is what a crash at the moment of the failure could
// have left, and the next Open recovers from it in the same way.
type freezeFS struct {
	vfs.FS
	fail func(error) // told every failed write

	frozen atomic.Bool
	cause  atomic.Pointer[error] // set before frozen

	// lost says that something meant for a write-ahead log was dropped: no
	// sync that ends from now on can be believed. Set after fail was called.
	lost atomic.Bool

	memory *vfs.MemFS // tables created while frozen, by base name
}

func newFreezeFS(fs vfs.FS, fail func(error)) *freezeFS {
	return &freezeFS{FS: fs, fail: fail, memory: vfs.NewMem()}
}

func (f *freezeFS) Unwrap() vfs.FS { return f.FS }

// freeze is called with the first failed write, and with those that were
// under way beside it.
func (f *freezeFS) freeze(err error) {
	f.cause.CompareAndSwap(nil, &err)
	f.frozen.Store(true)
	f.fail(err)
}

// do runs one change of the directory, unless the disk is frozen, and hides
// its failure.
func (f *freezeFS) do(op func() error) {
	if f.frozen.Load() {
		return
	}
	if err := op(); err != nil {
		f.freeze(err)
	}
}

// writeCategoryCompaction is how Pebble marks the outputs of compactions.
const writeCategoryCompaction vfs.DiskWriteCategory = "pebble-compaction"

// Create implements [vfs.FS].
func (f *freezeFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.create(name, category, func() (vfs.File, error) {
		file, err := f.FS.Create(name, category)
		if err != nil || !strings.HasPrefix(f.PathBase(name), "MANIFEST-") {
			return file, err
		}
		// Pebble syncs the directory only once, when it has written the marker
		// that names the manifest as well. A crash before may keep the marker
		// and lose the manifest, and the store with it.
		if err := syncDirectory(f.FS, f.PathDir(name)); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return file, nil
	})
}

// ReuseForWrite implements [vfs.FS].
func (f *freezeFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.create(newname, category, func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenReadWrite implements [vfs.FS].
func (f *freezeFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.create(name, category, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, category, opts...) })
}

func (f *freezeFS) create(name string, category vfs.DiskWriteCategory, create func() (vfs.File, error)) (vfs.File, error) {
	if !f.frozen.Load() {
		file, err := create()
		if err == nil {
			return &freezeFile{File: file, fs: f, role: roleOf(name)}, nil
		}
		f.freeze(err)
	}
	if category == writeCategoryCompaction {
		// One that had begun; its size has no bound. See [compactions].
		return nil, *f.cause.Load()
	}
	if roleOf(name) == roleTable {
		return f.memory.Create(f.memoryName(name), category)
	}
	return &freezeFile{fs: f, role: roleOf(name)}, nil
}

func (f *freezeFS) memoryName(name string) string { return "/" + f.PathBase(name) }

// Open implements [vfs.FS].
func (f *freezeFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.frozen.Load() {
		if file, err := f.memory.Open(f.memoryName(name)); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

// OpenDir implements [vfs.FS].
func (f *freezeFS) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: dir, fs: f, role: roleOther}, nil
}

// Stat implements [vfs.FS].
func (f *freezeFS) Stat(name string) (vfs.FileInfo, error) {
	if f.frozen.Load() {
		if info, err := f.memory.Stat(f.memoryName(name)); err == nil {
			return info, nil
		}
	}
	return f.FS.Stat(name)
}

// Remove implements [vfs.FS]. A file that could not be removed does no harm,
// so such a failure goes to Pebble as it is.
func (f *freezeFS) Remove(name string) error {
	if f.frozen.Load() {
		_ = f.memory.Remove(f.memoryName(name)) // most names are not there
		return nil
	}
	return f.FS.Remove(name)
}

// RemoveAll implements [vfs.FS].
func (f *freezeFS) RemoveAll(name string) error {
	if f.frozen.Load() {
		return nil
	}
	return f.FS.RemoveAll(name)
}

// Link implements [vfs.FS].
func (f *freezeFS) Link(oldname, newname string) error {
	f.do(func() error { return f.FS.Link(oldname, newname) })
	return nil
}

// Rename implements [vfs.FS].
func (f *freezeFS) Rename(oldname, newname string) error {
	f.do(func() error { return f.FS.Rename(oldname, newname) })
	return nil
}

// MkdirAll implements [vfs.FS].
func (f *freezeFS) MkdirAll(dir string, perm os.FileMode) error {
	f.do(func() error { return f.FS.MkdirAll(dir, perm) })
	return nil
}

// fileRole says what a failed write to a file means.
type fileRole uint8

const (
	roleOther fileRole = iota // manifest, options, markers, directories
	roleWAL                   // write-ahead log: a failure makes syncs worthless
	roleTable                 // will be read again: Pebble has to know, and writes another
)

func roleOf(name string) fileRole {
	switch {
	case strings.HasSuffix(name, ".log"):
		return roleWAL
	case strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".blob"):
		return roleTable
	default:
		return roleOther
	}
}

// freezeFile is a file open for writing, or a directory. Its File is nil when
// it was created while frozen, and is not of a table: then nothing is kept.
type freezeFile struct {
	vfs.File
	fs   *freezeFS
	role fileRole
}

// do runs one change of the file, unless the disk is frozen. What it returns
// is what Pebble may know.
func (f *freezeFile) do(op func() error) error {
	if !f.fs.frozen.Load() {
		err := op()
		if err == nil {
			return nil
		}
		f.fs.freeze(err)
	}
	switch f.role {
	case roleTable:
		return *f.fs.cause.Load()
	case roleWAL:
		f.fs.lost.Store(true)
	default:
	}
	return nil
}

// Write implements [vfs.File].
func (f *freezeFile) Write(p []byte) (int, error) {
	if err := f.do(func() error { _, err := f.File.Write(p); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteAt implements [vfs.File].
func (f *freezeFile) WriteAt(p []byte, offset int64) (int, error) {
	if err := f.do(func() error { _, err := f.File.WriteAt(p, offset); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Sync implements [vfs.File].
func (f *freezeFile) Sync() error {
	return f.do(func() error { return f.File.Sync() })
}

// SyncData implements [vfs.File].
func (f *freezeFile) SyncData() error {
	return f.do(func() error { return f.File.SyncData() })
}

// SyncTo implements [vfs.File].
func (f *freezeFile) SyncTo(length int64) (fullSync bool, err error) {
	err = f.do(func() (err error) { fullSync, err = f.File.SyncTo(length); return err })
	return fullSync, err
}

// Preallocate implements [vfs.File]. It is a hint; where it matters that
// there is no room, the write will say so.
func (f *freezeFile) Preallocate(offset, length int64) error {
	if !f.fs.frozen.Load() {
		_ = f.File.Preallocate(offset, length)
	}
	return nil
}

// Close implements [vfs.File]. The file beneath is closed in any case.
func (f *freezeFile) Close() error {
	if f.File == nil {
		return nil
	}
	err := f.File.Close()
	if err == nil {
		return nil
	}
	return f.do(func() error { return err })
}

// Stat implements [vfs.File].
func (f *freezeFile) Stat() (vfs.FileInfo, error) {
	if f.File == nil {
		return f.fs.memory.Stat("/") // Pebble asks for the size, to know what it may reuse: nothing
	}
	return f.File.Stat()
}

// Fd implements [vfs.File].
func (f *freezeFile) Fd() uintptr {
	if f.File == nil {
		return vfs.InvalidFd
	}
	return f.File.Fd()
}

// Read implements [vfs.File]; files for writing are not read.
func (f *freezeFile) Read(p []byte) (int, error) {
	if f.File == nil {
		return 0, os.ErrInvalid
	}
	return f.File.Read(p)
}

// ReadAt implements [vfs.File]; files for writing are not read.
func (f *freezeFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.File == nil {
		return 0, os.ErrInvalid
	}
	return f.File.ReadAt(p, offset)
}

// Prefetch implements [vfs.File].
func (f *freezeFile) Prefetch(offset, length int64) error {
	if f.File == nil {
		return nil
	}
	return f.File.Prefetch(offset, length)
}

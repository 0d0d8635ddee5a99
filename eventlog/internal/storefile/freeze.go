package storefile

import (
	"errors"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FreezeFS stands between Pebble and the disk and hides failed writes from Pebble.
//
// Pebble ends the process when it cannot write its write-ahead log or its manifest
// (by a panic under a lock that it has given back, which no recover catches), retries
// failed flushes at once and forever, and waits for them in Open and Flush. So
// FreezeFS never reports such a failure to Pebble: it passes the first one to the
// log, which becomes read-only, and freezes the disk. From then on nothing is written
// to the disk or removed from it. Later writes of Pebble are dropped, except for the
// tables of its last flushes, which it reads again: these live in memory, bounded by
// the memtables they came from.
//
// It also closes a gap in what Pebble syncs (see Create) and keeps the list of
// the files that must exist ([Ledger]).
//
// The disk is then in a state that a crash at the moment of the failure could have
// left, and the next Open recovers from it in the same way.
type FreezeFS struct {
	vfs.FS
	fail func(error) // called with every failed write
	Note *Ledger     // nil: none is kept; set before the store is opened

	// Dir is the directory of the store. The files of checkpoints in it pass through: they
	// are not in FILES, and a failed write of one is an error of the call and no reason to
	// freeze. Empty means that there are none; set before the store is opened.
	Dir string

	// Synced, unless nil, is called with the role, the duration and the error of every
	// sync that reached the disk, measured with Now. Set before the store is opened.
	Synced func(role string, took time.Duration, err error)
	Now    func() time.Time

	Frozen atomic.Bool
	cause  atomic.Pointer[error] // set before frozen

	// Lost says that bytes of a write-ahead log were dropped: a sync that ends
	// from now on proves nothing. Set after fail was called.
	Lost atomic.Bool

	memory *vfs.MemFS // tables created while frozen, by base name
}

// NewFreezeFS returns a file system over fs that calls fail with every failed write.
func NewFreezeFS(fs vfs.FS, fail func(error)) *FreezeFS {
	return &FreezeFS{FS: fs, fail: fail, memory: vfs.NewMem()}
}

// Unwrap implements [vfs.FS].
func (f *FreezeFS) Unwrap() vfs.FS { return f.FS }

// freeze is called with the first failed write and with every failed write that was
// concurrent with it.
func (f *FreezeFS) freeze(err error) {
	f.cause.CompareAndSwap(nil, &err)
	f.Frozen.Store(true)
	f.fail(err)
}

// elsewhere reports whether a path is the folder of checkpoints or inside it.
func (f *FreezeFS) elsewhere(path string) bool {
	if f.Dir == "" {
		return false
	}
	rest, ok := strings.CutPrefix(path, f.PathJoin(f.Dir, CheckpointsName))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}

// do makes one change of the directory, unless the disk is frozen, and hides its
// failure from Pebble.
func (f *FreezeFS) do(op func() error) {
	if f.Frozen.Load() {
		return
	}
	if err := op(); err != nil {
		f.freeze(err)
	}
}

// writeCategoryCompaction is how Pebble marks the outputs of compactions.
const writeCategoryCompaction vfs.DiskWriteCategory = "pebble-compaction"

// Create implements [vfs.FS].
func (f *FreezeFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if f.elsewhere(name) {
		return f.FS.Create(name, category)
	}
	return f.create(name, category, func() (vfs.File, error) {
		base := f.PathBase(name)
		if f.Note != nil {
			if err := f.Note.announce(base); err != nil {
				return nil, err
			}
		}
		file, err := f.FS.Create(name, category)
		if err == nil && f.Note != nil {
			f.Note.moved(base)
		}
		if err != nil || KindOf(base) != KindManifest {
			return file, err
		}
		// Pebble syncs the directory only once, after it has also written the marker
		// that names the manifest. A crash before that may keep the marker and lose the
		// manifest, and the store with it.
		if err := SyncDirectory(f.FS, f.PathDir(name)); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return file, nil
	})
}

// ReuseForWrite implements [vfs.FS].
func (f *FreezeFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if f.elsewhere(newname) {
		return f.FS.ReuseForWrite(oldname, newname, category)
	}
	file, err := f.create(newname, category, func() (vfs.File, error) {
		if f.Note != nil {
			if err := f.Note.dispensable(f.PathBase(oldname), f.PathBase(newname)); err != nil {
				return nil, err
			}
		}
		return f.FS.ReuseForWrite(oldname, newname, category)
	})
	if reused, ok := file.(*freezeFile); ok && reused.File != nil {
		if info, err := reused.File.Stat(); err == nil {
			reused.filled = info.Size()
		}
	}
	return file, err
}

// OpenReadWrite implements [vfs.FS].
func (f *FreezeFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.elsewhere(name) {
		return f.FS.OpenReadWrite(name, category, opts...)
	}
	return f.create(name, category, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, category, opts...) })
}

func (f *FreezeFS) create(name string, category vfs.DiskWriteCategory, create func() (vfs.File, error)) (vfs.File, error) {
	if !f.Frozen.Load() {
		file, err := create()
		if err == nil {
			return &freezeFile{File: file, fs: f, kind: KindOf(f.PathBase(name)), base: f.PathBase(name), sum: newSummed()}, nil
		}
		f.freeze(err)
	}
	if category == writeCategoryCompaction {
		// A compaction that had begun; its size has no bound. See [compactions].
		return nil, *f.cause.Load()
	}
	if kind := KindOf(f.PathBase(name)); kind == KindTable || kind == kindBlob {
		return f.memory.Create(f.memoryName(name), category)
	}
	return &freezeFile{fs: f, kind: KindOf(f.PathBase(name))}, nil
}

func (f *FreezeFS) memoryName(name string) string { return "/" + f.PathBase(name) }

// Open implements [vfs.FS].
func (f *FreezeFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.Frozen.Load() && !f.elsewhere(name) {
		if file, err := f.memory.Open(f.memoryName(name)); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

// OpenDir implements [vfs.FS].
func (f *FreezeFS) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil || f.elsewhere(name) {
		return dir, err
	}
	return &freezeFile{File: dir, fs: f, kind: KindUnknown}, nil
}

// Stat implements [vfs.FS].
func (f *FreezeFS) Stat(name string) (vfs.FileInfo, error) {
	if f.Frozen.Load() && !f.elsewhere(name) {
		if info, err := f.memory.Stat(f.memoryName(name)); err == nil {
			return info, nil
		}
	}
	return f.FS.Stat(name)
}

// Remove implements [vfs.FS]. A file that could not be removed does no harm,
// so such a failure goes to Pebble as it is.
func (f *FreezeFS) Remove(name string) error {
	if f.elsewhere(name) {
		return f.FS.Remove(name)
	}
	if f.Frozen.Load() {
		_ = f.memory.Remove(f.memoryName(name)) // most names are not there
		return nil
	}
	base := f.PathBase(name)
	if f.Note != nil && KindOf(base) == KindLog {
		if err := f.Note.dispensable(base, ""); err != nil {
			f.freeze(err)
			return nil
		}
	}
	err := f.FS.Remove(name)
	if err == nil && f.Note != nil {
		f.Note.removed(base)
	}
	return err
}

// RemoveAll implements [vfs.FS].
func (f *FreezeFS) RemoveAll(name string) error {
	if f.elsewhere(name) {
		return f.FS.RemoveAll(name)
	}
	if f.Frozen.Load() {
		return nil
	}
	return f.FS.RemoveAll(name)
}

// Link implements [vfs.FS].
func (f *FreezeFS) Link(oldname, newname string) error {
	if f.elsewhere(newname) {
		return f.FS.Link(oldname, newname)
	}
	f.do(func() error { return f.FS.Link(oldname, newname) })
	return nil
}

// Rename implements [vfs.FS].
func (f *FreezeFS) Rename(oldname, newname string) error {
	if f.elsewhere(newname) {
		return f.FS.Rename(oldname, newname)
	}
	f.do(func() error { return f.FS.Rename(oldname, newname) })
	return nil
}

// MkdirAll implements [vfs.FS].
func (f *FreezeFS) MkdirAll(dir string, perm os.FileMode) error {
	if f.elsewhere(dir) {
		return f.FS.MkdirAll(dir, perm)
	}
	f.do(func() error { return f.FS.MkdirAll(dir, perm) })
	return nil
}

// freezeFile is a file open for writing, or a directory. Its File is nil for a file
// other than a table that was created while the disk was frozen: its writes are
// dropped.
type freezeFile struct {
	vfs.File
	fs   *FreezeFS
	kind FileKind // decides how a failed write is handled; see do
	base string   // its name in the directory
	sum  *summed  // of the bytes written; nil for a directory

	// Of a write-ahead log: what was written, and where the bytes end that it may replace. Only
	// Write uses them.
	written, filled int64
}

// do makes one change of the file, unless the disk is frozen. It returns the error
// that Pebble may see.
func (f *freezeFile) do(op func() error) error {
	if !f.fs.Frozen.Load() {
		err := op()
		if err == nil {
			return nil
		}
		f.fs.freeze(err)
	}
	switch f.kind {
	case KindTable, kindBlob:
		// Pebble reads this file again; on an error it writes another one.
		return *f.fs.cause.Load()
	case KindLog:
		f.fs.Lost.Store(true)
	default:
		// The MANIFEST, options, markers, directories: the failure is hidden.
	}
	return nil
}

// Write implements [vfs.File].
func (f *freezeFile) Write(p []byte) (int, error) {
	if err := f.do(func() error {
		if f.sum == nil {
			_, err := f.File.Write(p)
			return err
		}
		if f.kind == KindLog {
			f.fill(int64(len(p)))
		}
		return f.sum.write(p, f.File.Write)
	}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// A write-ahead log has zeros behind its records: as many bytes as records, within these bounds.
const (
	minZeros = 32 << 10
	maxZeros = 256 << 10
)

var zeros [maxZeros]byte

// fill writes zeros behind the place of the next n bytes, unless the file has bytes there. A sync of
// bytes that replace others needs no change of the file's size and extents, which costs the
// journal of the file system a second write, and has to wait for the changes of other
// files. Readers take zeros for the end of the log. Without them the log is only slower, so
// an error is that of the write behind it, or none.
func (f *freezeFile) fill(n int64) {
	f.written += n
	if f.written <= f.filled {
		return
	}
	n = min(max(f.written, minZeros), maxZeros)
	if _, err := f.File.WriteAt(zeros[:n], f.written); err != nil {
		f.filled = math.MaxInt64
		return
	}
	f.filled = f.written + n
}

// WriteAt implements [vfs.File].
func (f *freezeFile) WriteAt(p []byte, offset int64) (int, error) {
	if f.sum != nil {
		f.sum.lose()
	}
	if err := f.do(func() error { _, err := f.File.WriteAt(p, offset); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// synced syncs the file or directory and then notes the part that is durable.
func (f *freezeFile) synced(sync func() (whole bool, err error)) error {
	if f.fs.Synced != nil {
		sync = f.measured(sync)
	}
	return f.do(func() error {
		note := f.fs.Note
		if note == nil {
			_, err := sync()
			return err
		}
		if f.sum == nil {
			d := note.beforeDirectorySync()
			_, err := sync()
			if err == nil {
				note.afterDirectorySync(d)
			}
			return err
		}
		e, known := f.sum.extent()
		whole, err := sync()
		if err != nil || !whole || !known {
			return err
		}
		return note.synced(f.base, e)
	})
}

// measured returns a sync that reports its duration.
func (f *freezeFile) measured(sync func() (bool, error)) func() (bool, error) {
	return func() (bool, error) {
		began := f.fs.Now()
		whole, err := sync()
		f.fs.Synced(f.kind.role(), max(f.fs.Now().Sub(began), 0), err)
		return whole, err
	}
}

// Sync implements [vfs.File].
func (f *freezeFile) Sync() error {
	return f.synced(func() (bool, error) { return true, f.File.Sync() })
}

// SyncData implements [vfs.File].
func (f *freezeFile) SyncData() error {
	return f.synced(func() (bool, error) { return true, f.File.SyncData() })
}

// SyncTo implements [vfs.File].
func (f *freezeFile) SyncTo(length int64) (fullSync bool, err error) {
	err = f.synced(func() (bool, error) {
		var err error
		fullSync, err = f.File.SyncTo(length)
		return fullSync, err
	})
	return fullSync, err
}

// Preallocate implements [vfs.File]. It reserves nothing: Pebble would reserve 110 % of
// the largest memtable for each file of the write-ahead log, also for a store with one
// entry, and syncs are not faster for it. See fill.
func (f *freezeFile) Preallocate(_, _ int64) error { return nil }

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
		return f.fs.memory.Stat("/") // Pebble reads the size to decide on reuse: there is nothing to reuse
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

package storefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// This file opens a store for reading and checks it before Pebble opens it for
// writing. Opening for writing replays logs and deletes files, so damage that these
// checks miss cannot be found afterwards.

// ReadOnlyFS is a file system on which nothing can be changed.
type ReadOnlyFS struct{ vfs.FS }

// Unwrap implements [vfs.FS].
func (r ReadOnlyFS) Unwrap() vfs.FS { return r.FS }

func (r ReadOnlyFS) refuse(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: syscall.EROFS}
}

// Create implements [vfs.FS].
func (r ReadOnlyFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, r.refuse("create", name)
}

// Link implements [vfs.FS].
func (r ReadOnlyFS) Link(_, newname string) error { return r.refuse("link", newname) }

// OpenReadWrite implements [vfs.FS].
func (r ReadOnlyFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, r.refuse("open", name)
}

// Remove implements [vfs.FS].
func (r ReadOnlyFS) Remove(name string) error { return r.refuse("remove", name) }

// RemoveAll implements [vfs.FS].
func (r ReadOnlyFS) RemoveAll(name string) error { return r.refuse("remove", name) }

// Rename implements [vfs.FS].
func (r ReadOnlyFS) Rename(oldname, _ string) error { return r.refuse("rename", oldname) }

// ReuseForWrite implements [vfs.FS].
func (r ReadOnlyFS) ReuseForWrite(oldname, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, r.refuse("rename", oldname)
}

// MkdirAll implements [vfs.FS].
func (r ReadOnlyFS) MkdirAll(dir string, _ os.FileMode) error { return r.refuse("mkdir", dir) }

// GuardPebble runs f, which reads bytes that may be hostile, and returns a panic of
// Pebble as an error.
func GuardPebble(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", chain.ErrCorrupt, r)
		}
	}()
	return f()
}

// CheckFormat checks the store's format version. It runs before every other check.
func CheckFormat(db *pebble.DB, dir string, state DirState) error {
	v, closer, err := db.Get(keyspace.FormatKey())
	switch {
	case errors.Is(err, pebble.ErrNotFound) && state == StateLegacy:
		return &DirectoryError{dir, "it holds a Pebble store of another program or of an unfinished creation", "name a directory that is absent or empty", ErrForeign}
	case errors.Is(err, pebble.ErrNotFound):
		return Damaged(dir, "the store has no format record")
	case err != nil:
		return keyspace.ReadError("read format", err)
	}
	version := bytes.Clone(v)
	if err := closer.Close(); err != nil {
		return err
	}
	switch {
	case len(version) != 1:
		return Damaged(dir, "the format record has %d bytes, want 1", len(version))
	case version[0] != keyspace.FormatVersion && version[0] != keyspace.FormatDeletions:
		return fmt.Errorf("%w: store has version %d, this program reads %d and %d", chain.ErrVersion, version[0], keyspace.FormatVersion, keyspace.FormatDeletions)
	}
	return nil
}

// CheckContents compares the files of a store with what Pebble reads from it.
//
// Every table that Pebble reads must have the store's id and valid checksums. Every
// other table, which Pebble would delete, must hold only keys that the store has: it
// is left from a compaction, or from a flush that was killed before the MANIFEST
// listed it, and then the write-ahead log has the same keys. If a table holds more,
// apart from keys of deleted sessions, the MANIFEST is not the newest. The write-ahead logs of a store from before FILES
// are checked in the same way.
//
// If Pebble was used without this package, keys may have been deleted, so only the
// names are checked; package verify checks the chains.
func CheckContents(disk vfs.FS, db *pebble.DB, dir string, s Directory) error {
	levels, err := db.SSTables(pebble.WithProperties())
	if err != nil {
		return Damaged(dir, "%s", keyspace.FirstLine(err))
	}
	live := map[string]bool{}
	for _, level := range levels {
		for _, table := range level {
			name := TableFile(table)
			live[name] = true
			if id, ok := tableStore(table.Properties); ok && s.Format.ID != "" && id != s.Format.ID {
				return Damaged(dir, "table %s is of store %s, and this is store %s", name, id, s.Format.ID)
			}
		}
	}
	deleted, err := keyspace.DeletedNumbers(db)
	if err != nil {
		return err
	}
	for _, name := range s.Names {
		path := disk.PathJoin(dir, name)
		switch KindOf(name) {
		case KindTable:
			if _, announced := s.Files.Tables[name]; live[name] || announced {
				continue
			}
			if err := checkUnlisted(disk, db, deleted, dir, name, s); err != nil {
				return err
			}
		case kindTemp, kindOptions:
			if ok, err := isOptions(disk, path); err != nil || !ok {
				return errors.Join(err, &DirectoryError{dir, fmt.Sprintf("%s is named like a file of the store, but its contents are not the store's", name), "move it away", chain.ErrCorrupt})
			}
		default:
		}
	}
	if s.Unnoted() {
		return checkLogs(disk, db, deleted, dir, s)
	}
	return nil
}

// TableFile returns the name of a table's file.
func TableFile(table pebble.SSTableInfo) string { return fmt.Sprintf("%s.sst", table.BackingSSTNum) }

// checkUnlisted checks a table that is in the directory and not in the store.
func checkUnlisted(disk vfs.FS, db *pebble.DB, deleted map[uint32]bool, dir, name string, s Directory) error {
	if s.outside {
		return nil
	}
	err := EachTableKey(disk, disk.PathJoin(dir, name), func(key, _ []byte) error {
		return mustHave(db, deleted, dir, name, key)
	})
	if _, refused := errors.AsType[*DirectoryError](err); refused {
		return err
	}
	if err != nil && !s.Unnoted() {
		return &DirectoryError{dir, fmt.Sprintf("%s is not a table that the store wrote", name), "move it away", chain.ErrCorrupt}
	}
	// Without FILES, a table that a kill cut off cannot be distinguished from a
	// foreign file: opening the store for writing keeps it under another name; see
	// setAside.
	return nil
}

// mustHave reports a key that a file holds and the store does not, unless it is under
// the number of a deleted session.
func mustHave(db *pebble.DB, deleted map[uint32]bool, dir, name string, key []byte) error {
	_, closer, err := db.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		if keyspace.IsOf(deleted, key) {
			return nil // the file is from before the deletion
		}
		return Damaged(dir, "%s holds %s, which is not in the store: its MANIFEST is not the newest", name, keyspace.KeyText(key))
	case err != nil:
		return keyspace.ReadError("compare "+name, err)
	}
	return closer.Close()
}

// isOptions reports whether a file, however short, begins as Pebble's options do.
func isOptions(disk vfs.FS, path string) (bool, error) {
	const begins = "[Version]\n"
	f, err := disk.Open(path)
	if err != nil {
		return false, err
	}
	head, err := io.ReadAll(io.LimitReader(f, int64(len(begins))))
	return beginning([]byte(begins), head), errors.Join(err, f.Close())
}

// EachTableKey calls f with every key of a table file and its value, which are
// valid until f returns.
func EachTableKey(disk vfs.FS, path string, f func(key, value []byte) error) error {
	return GuardPebble(func() (err error) {
		file, err := BlockFS{disk}.Open(path)
		if err != nil {
			return err
		}
		readable, err := sstable.NewSimpleReadable(file)
		if err != nil {
			return errors.Join(err, file.Close())
		}
		opts := &pebble.Options{}
		opts.EnsureDefaults()
		r, err := sstable.NewReader(context.Background(), readable, opts.MakeReaderOptions())
		if err != nil {
			return errors.Join(err, readable.Close())
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		for kv := it.First(); kv != nil; kv = it.Next() {
			if kv.Kind() != pebble.InternalKeyKindSet {
				return fmt.Errorf("%w: a key of kind %v", chain.ErrCorrupt, kv.Kind())
			}
			value, _, err := kv.Value(nil)
			if err != nil {
				return err
			}
			if err := f(kv.K.UserKey, value); err != nil {
				return err
			}
		}
		return it.Error()
	})
}

// LogScan is the result of reading one write-ahead log.
type LogScan struct {
	records int
	Stopped error // why the reading stopped early; nil at a clean end
}

// EachLogKey calls f with every key that a write-ahead log sets, up to the first
// place that cannot be read.
func EachLogKey(log wal.LogicalLog, f func(key, value []byte) error) (scan LogScan, err error) {
	err = GuardPebble(func() (err error) {
		r := log.OpenForRead()
		defer func() { err = errors.Join(err, r.Close()) }()
		var buf bytes.Buffer
		for {
			record, _, err := r.NextRecord()
			if err == nil {
				buf.Reset()
				_, err = io.Copy(&buf, record)
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				scan.Stopped = err
				return nil
			}
			if buf.Len() < batchrepr.HeaderLen {
				scan.Stopped = fmt.Errorf("%w: a record of %d bytes", chain.ErrCorrupt, buf.Len())
				return nil
			}
			for br := batchrepr.Read(buf.Bytes()); ; {
				kind, key, value, ok, err := br.Next()
				if err != nil {
					scan.Stopped = err
					return nil
				}
				if !ok {
					break
				}
				if kind != pebble.InternalKeyKindSet {
					continue
				}
				if err := f(key, value); err != nil {
					return err
				}
			}
			scan.records++
		}
	})
	return scan, err
}

// checkLogs checks the write-ahead logs of a store without FILES: every key in them
// must be in the store.
func checkLogs(disk vfs.FS, db *pebble.DB, deleted map[uint32]bool, dir string, s Directory) error {
	logs, err := wal.Scan(wal.Dir{FS: ReadOnlyFS{disk}, Dirname: dir})
	if err != nil {
		return Damaged(dir, "%s", keyspace.FirstLine(err))
	}
	if len(logs) == 0 && !s.outside {
		return Damaged(dir, "it has no write-ahead log, and every store has one")
	}
	for _, log := range logs {
		_, path := log.SegmentLocation(0)
		name := disk.PathBase(path)
		scan, err := EachLogKey(log, func(key, _ []byte) error {
			if s.outside {
				return nil
			}
			return mustHave(db, deleted, dir, name, key)
		})
		if err != nil {
			return err
		}
		if scan.records == 0 && scan.Stopped != nil {
			if ok, err := maybeLog(disk, path, uint64(log.Num), s.Names); err != nil || !ok {
				return errors.Join(err, &DirectoryError{dir, name + " is not a write-ahead log of the store", "move it away", chain.ErrCorrupt})
			}
		}
	}
	return nil
}

// maybeLog reports whether a file whose first record cannot be read may be a
// write-ahead log that a crash cut off: its first chunk has the number of the
// file, or the file is shorter than a chunk's header and its number is near the
// others'.
func maybeLog(disk vfs.FS, path string, number uint64, names []string) (bool, error) {
	const headerSize = 11 // checksum (4B), length (2B), type (1B), log number (4B)
	f, err := disk.Open(path)
	if err != nil {
		return false, err
	}
	head, err := io.ReadAll(io.LimitReader(f, headerSize))
	if err := errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if !slices.ContainsFunc(head, func(b byte) bool { return b != 0 }) {
		return near(number, names), nil
	}
	if len(head) < headerSize {
		return near(number, names), nil
	}
	const oldTypes, allTypes = 4, 12 // Pebble's chunk types; the first four carry no log number
	kind := head[6]
	if kind <= oldTypes {
		return kind > 0 && near(number, names), nil
	}
	logNumber := uint32(head[7]) | uint32(head[8])<<8 | uint32(head[9])<<16 | uint32(head[10])<<24
	return kind <= allTypes && logNumber == uint32(number), nil
}

// near reports whether a file number can follow the numbers of the other files.
func near(number uint64, names []string) bool {
	const far = 1000
	newest := uint64(0)
	for _, name := range names {
		if k := KindOf(name); k == KindManifest || k == kindOptions || k == KindTable {
			newest = max(newest, FileNumber(name))
		}
	}
	return number <= newest+far
}

package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
)

// This file opens a directory. It examines the directory, creates or locks it,
// examines it again under the lock, reads it, and only then lets Pebble open it for
// writing.

const (
	// FormatFile is the name of the file that marks a directory as a store.
	FormatFile = storefile.FormatFile

	// HeadsFile is the name of the file in which a store notes how far its
	// sessions are durable.
	HeadsFile = storefile.HeadsFile
)

// DirectoryError explains why a directory is not opened. Its fields are Dir, the
// directory; Found, the contents that are wrong or missing; Do, the remedy, which is
// empty where it is [Repair]; and Err, the class. It matches [ErrForeign] for a directory
// that holds something else, [fs.ErrExist] for one that a backup is to make and that
// exists, and [ErrCorrupt] or [ErrVersion] for a store.
type DirectoryError = storefile.DirectoryError

// creation lists the directories that Open made.
type creation struct {
	directory bool     // Open made the store's directory too
	above     []string // directories above it, the outermost first
}

// open opens the store in dir.
func (l *Log) open(dir string) error {
	const maxTries = 100 // another process may create and remove the store meanwhile
	for range maxTries {
		again, err := l.tryOpen(dir)
		if !again || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s: other processes keep creating and removing it", ErrLocked, dir)
}

// tryOpen opens the store in dir. It returns again where the directory has
// changed since it was looked at.
func (l *Log) tryOpen(dir string) (again bool, err error) {
	disk := l.cfg.FS
	before, err := storefile.LookAt(disk, dir)
	if err != nil {
		return false, err
	}
	switch {
	case before.Err != nil:
		return false, before.Err
	case l.cfg.ReadOnly && (before.State == storefile.StateAbsent || before.State == storefile.StateEmpty || before.State == storefile.StateCreating):
		return false, fmt.Errorf("%w in %s", ErrNoStore, dir)
	case before.State == storefile.StateAbsent:
		created, above, err := storefile.CreateBeside(disk, dir, l.build)
		if err != nil {
			return false, fmt.Errorf("eventlog: create %s: %w", dir, err)
		}
		if created {
			l.made = &creation{true, above}
		}
		return true, nil
	}
	lock, locked, err := storefile.LockDirectory(disk, dir, before.Names, storefile.LockOptions{ReadOnly: l.cfg.ReadOnly, Wait: l.cfg.LockWait})
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // removed meanwhile
	}
	if err != nil {
		return false, err
	}
	release := func() error { return lock.Close() }
	again, err = l.openLocked(dir, lock, locked)
	if again || err != nil {
		if err != nil && locked && !slices.Contains(before.Names, storefile.LockName) {
			// A refused directory stays as it was, without the LOCK made above.
			_ = disk.Remove(disk.PathJoin(dir, storefile.LockName))
		}
		return again, errors.Join(err, release())
	}
	return false, nil
}

// openLocked opens the store in dir, whose lock is held. If locked is false, the
// lock is one that excludes no process.
func (l *Log) openLocked(dir string, lock *pebble.Lock, locked bool) (again bool, err error) {
	disk := l.cfg.FS
	s, err := storefile.LookAt(disk, dir)
	if err != nil {
		return false, err
	}
	switch {
	case s.Err != nil:
		return false, s.Err
	case !locked && slices.Contains(s.Names, storefile.LockName):
		return true, nil // another process has begun to write meanwhile
	case s.State == storefile.StateAbsent:
		return true, nil
	case s.State == storefile.StateEmpty || s.State == storefile.StateCreating:
		if l.cfg.ReadOnly {
			return true, nil
		}
		if err := storefile.CreateInside(disk, dir, l.build); err != nil {
			return false, fmt.Errorf("eventlog: create a store in %s: %w", dir, err)
		}
		l.made = &creation{}
		return true, nil
	}
	if s.Check(disk, dir); s.Err != nil {
		return false, s.Err
	}
	l.dir, l.id, l.lock = dir, s.Format.ID, lock
	x, err := l.examine(dir, s, lock)
	if err != nil {
		return false, err
	}
	// Last, because opening for writing replays the write-ahead log: a store that
	// cannot be read is refused before anything has been changed.
	if err := l.countSessions(); err != nil {
		l.db = nil
		return false, errors.Join(openError(dir, err), x.close())
	}
	if l.cfg.ReadOnly {
		return false, nil
	}
	unreadable, err := l.setAsideNames(x.db, dir, s)
	if err := errors.Join(err, x.close()); err != nil {
		return false, err
	}
	l.db = nil
	if l.loss != nil {
		if !l.cfg.AcceptLoss {
			return false, l.loss
		}
		if err := x.cut(&s); err != nil {
			return false, err
		}
	}
	if err := l.openWriting(dir, s, lock, unreadable); err != nil || l.loss == nil {
		return false, err
	}
	// The notes now hold the remaining heads.
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	if err := l.notes.rewrite(); err != nil {
		return false, errors.Join(err, l.db.Close(), l.disk.Note.Close())
	}
	return false, nil
}

// setAsideNames returns the tables of a store from before FILES that are neither
// in the store nor readable.
func (l *Log) setAsideNames(db *pebble.DB, dir string, s storefile.Directory) ([]string, error) {
	if !s.Unnoted() {
		return nil, nil
	}
	levels, err := db.SSTables()
	if err != nil {
		return nil, keyspace.ReadError("list tables", err)
	}
	live := map[string]bool{}
	for _, level := range levels {
		for _, table := range level {
			live[storefile.TableFile(table)] = true
		}
	}
	var names []string
	for _, name := range s.Names {
		if storefile.KindOf(name) != storefile.KindTable || live[name] {
			continue
		}
		if err := storefile.EachTableKey(l.cfg.FS, l.cfg.FS.PathJoin(dir, name), func(_, _ []byte) error { return nil }); err != nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// asideSuffix ends the new name of a table that Pebble would have deleted.
const asideSuffix = ".set-aside"

// openWriting opens for writing a store that the examination found intact.
func (l *Log) openWriting(dir string, s storefile.Directory, lock *pebble.Lock, unreadable []string) error {
	disk := l.cfg.FS
	for _, name := range unreadable {
		path := disk.PathJoin(dir, name)
		if err := disk.Rename(path, path+asideSuffix); err != nil {
			return fmt.Errorf("eventlog: set %s aside: %w", path, err)
		}
		l.cfg.Logger.Warn("a table that is not in the store was set aside", slog.String("path", path+asideSuffix))
	}
	if slices.Contains(s.Names, storefile.CreatingName) {
		if err := storefile.RemoveCreating(disk, dir); err != nil {
			return fmt.Errorf("eventlog: remove the rest of an unfinished creation in %s: %w", dir, err)
		}
	}
	legacy := s.State == storefile.StateLegacy
	if legacy && l.id == "" {
		id, err := storefile.NewStoreID()
		if err != nil {
			return err
		}
		if err := storefile.WriteAtomically(disk, dir, storefile.FormatFile, storefile.FormatContents(id, true)); err != nil {
			return fmt.Errorf("eventlog: write %s in %s: %w", storefile.FormatFile, dir, err)
		}
		l.id = id
	}
	if err := storefile.SweepCheckpoints(disk, dir, s.Names); err != nil {
		l.cfg.Logger.Warn("a checkpoint that no process uses could not be removed", slog.Any("err", err))
	}
	state, err := currentFiles(disk, dir, s, l.id)
	if err != nil {
		return err
	}
	l.disk.Dir = dir
	if l.disk.Note, err = storefile.OpenLedger(disk, dir, state); err != nil {
		return err
	}
	fail := func(err error) error { return errors.Join(err, l.disk.Note.Close()) }
	if legacy {
		// From here on the store must have FILES.
		if err := storefile.WriteAtomically(disk, dir, storefile.FormatFile, storefile.FormatContents(l.id, false)); err != nil {
			return fail(fmt.Errorf("eventlog: write %s in %s: %w", storefile.FormatFile, dir, err))
		}
	}
	l.db, err = l.openPebble(dir, lock, l.disk, false)
	if failed := l.firstFailure(); err != nil || failed != nil {
		if l.db != nil {
			_ = l.db.Close() // the first failure is reported
		}
		if err == nil {
			err = fmt.Errorf("eventlog: open %s: %w", dir, failed)
		} else {
			err = pebbleError(dir, errors.Join(err, failed))
		}
		return fail(err)
	}
	return nil
}

// currentFiles returns the first state of FILES when a store that the examination
// found intact is opened for writing.
func currentFiles(disk vfs.FS, dir string, s storefile.Directory, id storefile.StoreID) (storefile.FileList, error) {
	n := storefile.NewFileList(id)
	m, _ := storefile.NewestMarker(s.Names, storefile.MarkerManifest)
	whole, err := storefile.ExtentOf(disk, disk.PathJoin(dir, m.Value), -1)
	if err != nil {
		return n, fmt.Errorf("eventlog: read %s in %s: %w", m.Value, dir, err)
	}
	n.Iteration, n.Current = m.Iteration, m.Value
	n.Manifests[m.Value] = whole
	for _, name := range s.Names {
		switch storefile.KindOf(name) {
		case storefile.KindLog:
			n.Logs[name] = s.Files.Logs[name]
		case storefile.KindTable:
			if _, announced := s.Files.Tables[name]; announced {
				n.Tables[name] = false
			}
		default:
		}
	}
	return n, nil
}

// Unused reports whether this Open created the store and nothing was appended.
func (l *Log) Unused() bool {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	return l.made != nil && !l.wrote
}

// closeStore closes the store, removes it if Open created it and it stayed unused, and
// releases the lock.
func (l *Log) closeStore() error {
	err := l.db.Close()
	if err == nil && l.flushed {
		err = l.removeFinished()
	}
	if l.disk.Note != nil {
		err = errors.Join(err, l.disk.Note.Close())
	}
	if l.made != nil && l.cfg.RemoveUnused {
		l.removeUnused()
	}
	return errors.Join(err, l.lock.Close())
}

// removeUnused removes a store that holds no session. If the store cannot be read or
// removed, it stays, complete and empty.
func (l *Log) removeUnused() {
	disk, dir := l.cfg.FS, l.dir
	s, err := storefile.LookAt(disk, dir)
	if err != nil || s.Err != nil || s.State != storefile.StateStore {
		return
	}
	if s.Check(disk, dir); s.Err != nil {
		return
	}
	// The lock is still held; Pebble takes it once more.
	db, err := newLog(l.cfg).openReading(dir, s, l.lock)
	if err != nil {
		return
	}
	used, err := holdsMore(db)
	if err := errors.Join(err, db.Close()); err != nil || used {
		return
	}
	if slices.ContainsFunc(s.Names, func(name string) bool {
		return storefile.KindOf(name) == storefile.KindUnknown || storefile.KindOf(name) == storefile.KindSnapshot
	}) {
		return // files of other programs: the store stays, since they may belong to it
	}
	if err := storefile.ClearFolder(disk, dir); err != nil || !l.made.directory {
		return
	}
	if err := disk.Remove(dir); err != nil {
		return
	}
	for _, path := range slices.Backward(l.made.above) {
		if err := disk.Remove(path); err != nil {
			break // it holds other files by now
		}
	}
	_ = storefile.SyncDirectory(disk, disk.PathDir(dir)) // the parent may be removed too
}

// holdsMore reports whether a store holds more than its format version.
func holdsMore(db *pebble.DB) (bool, error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return false, err
	}
	more := false
	for ok := it.First(); ok && !more; ok = it.Next() {
		more = !bytes.Equal(it.Key(), keyspace.FormatKey())
	}
	return more, errors.Join(it.Error(), it.Close())
}

// build makes a complete, empty store in dir, which exists and is empty. lock is the
// lock of dir.
func (l *Log) build(dir string, lock *pebble.Lock) error {
	return buildStore(l.cfg, dir, lock, func(*Log) error { return nil })
}

// buildStore is [Log.build] with contents: fill writes them to the db of a log in dir,
// not synced, before the store is complete.
func buildStore(cfg Config, dir string, lock *pebble.Lock, fill func(*Log) error) error {
	id, err := storefile.NewStoreID()
	if err != nil {
		return err
	}
	l := newLog(cfg)
	l.dir, l.id, l.disk.Dir = dir, id, dir
	if l.disk.Note, err = storefile.OpenLedger(cfg.FS, dir, storefile.NewFileList(id)); err != nil {
		return err
	}
	opts := l.pebbleOptions(l.disk, false)
	opts.Lock = lock
	db, err := pebble.Open(dir, opts)
	if err == nil {
		l.db = db
		err = db.Set(keyspace.FormatKey(), []byte{keyspace.FormatVersion}, pebble.Sync)
		if err == nil {
			err = fill(l)
		}
		if err == nil {
			// After a flush the write-ahead log holds nothing to replay and is of
			// the newest format, which distinguishes rot in the middle from a torn
			// end. Pebble begins the first log of a store in its oldest format.
			err = db.Flush()
		}
		err = errors.Join(err, db.Close())
	}
	if err := errors.Join(err, l.firstFailure(), l.disk.Note.Close()); err != nil {
		return err
	}
	return storefile.WriteAtomically(cfg.FS, dir, storefile.FormatFile, storefile.FormatContents(id, false))
}

package eventlog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// This file repairs a store into a copy.
//
// Apart from deletions of whole sessions a store only adds keys. So the union of the keys
// in all readable tables and write-ahead logs, without those of sessions that have a
// tombstone in it, is everything that can be saved, whatever the state of the files that
// list them. The chains then prove that the saved entries are those that were written.

// Repaired is the result of [Repair].
type Repaired struct {
	// Found is the reason why the source cannot be opened, or which of its tables cannot be
	// read as a whole; nil if neither was found.
	Found error

	// Rebuilt names files of the source that were missing or damaged and that
	// hold nothing of the sessions.
	Rebuilt []string

	// Doubts are the reasons why entries may be lost; empty if none are.
	Doubts []string

	// Sessions are all sessions of the copy, as verified there.
	Sessions []verify.SessionReport

	// Tombstones are the deleted sessions of the copy.
	Tombstones []Tombstone

	notes bool // the source has a file of noted heads
}

// Whole reports whether the copy provably holds everything that the source held, with
// intact chains.
func (r Repaired) Whole() bool {
	return len(r.Doubts) == 0 && !slices.ContainsFunc(r.Sessions, func(s verify.SessionReport) bool { return !s.Whole() })
}

func (r *Repaired) doubt(format string, args ...any) {
	if d := fmt.Sprintf(format, args...); !slices.Contains(r.Doubts, d) {
		r.Doubts = append(r.Doubts, d)
	}
}

// Repair copies the readable entries of the store in from, which it does not change,
// to a new store in to, which must be absent or empty, and verifies them there. The copy
// has an id of its own. If no session can be saved, no copy is made; that is not an
// error. Of cfg, ReadOnly and RemoveUnused are ignored.
func Repair(ctx context.Context, from, to string, cfg Config) (Repaired, error) {
	cfg.ReadOnly = true
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Repaired{}, err
	}
	if cfg.FS == vfs.Default {
		if from, err = storefile.Canonical(from); err != nil {
			return Repaired{}, err
		}
		if to, err = storefile.Canonical(to); err != nil {
			return Repaired{}, err
		}
	}
	if to == from || strings.HasPrefix(to, strings.TrimSuffix(from, "/")+"/") {
		return Repaired{}, fmt.Errorf("%w: the copy in %s would change the store in %s: name a directory elsewhere", ErrInvalid, to, from)
	}
	s, err := storefile.LookAt(cfg.FS, from)
	if err != nil {
		return Repaired{}, err
	}
	target, err := storefile.LookAt(cfg.FS, to)
	switch {
	case err != nil:
		return Repaired{}, err
	case target.State != storefile.StateAbsent && target.State != storefile.StateEmpty:
		return Repaired{}, &DirectoryError{Dir: to, Found: "it is not empty", Do: "name a directory that is absent or empty", Err: ErrForeign}
	case s.State == storefile.StateForeign:
		return Repaired{}, s.Err
	case s.State == storefile.StateAbsent || s.State == storefile.StateEmpty || s.State == storefile.StateCreating:
		return Repaired{}, fmt.Errorf("%w in %s", ErrNoStore, from)
	}
	lock, _, err := storefile.LockDirectory(cfg.FS, from, s.Names, storefile.LockOptions{ReadOnly: cfg.ReadOnly, Wait: cfg.LockWait})
	if err != nil {
		return Repaired{}, err
	}
	cfg.FS = storefile.RegularFS{FS: cfg.FS}
	r, err := repairLocked(ctx, from, to, cfg, lock)
	return r, errors.Join(err, lock.Close())
}

func repairLocked(ctx context.Context, from, to string, cfg Config, lock *pebble.Lock) (r Repaired, err error) {
	s, err := storefile.LookAt(cfg.FS, from)
	if err != nil {
		return r, err
	}
	if s.Err == nil {
		s.Check(cfg.FS, from)
	}
	r.Found = cmp.Or(s.Err, s.Short)
	if errors.Is(r.Found, ErrVersion) {
		return r, r.Found
	}
	if r.Found == nil {
		db, err := newLog(cfg).openReading(from, s, lock)
		if err == nil {
			err = db.Close()
		}
		r.Found = err
	}
	if err := r.survey(from, cfg, lock, s); err != nil {
		return r, err
	}
	cfg.ReadOnly, cfg.RemoveUnused = false, true
	saved, err := Open(to, cfg)
	if err != nil {
		return r, err
	}
	err = r.save(ctx, saved, from, cfg.FS, s)
	if err := errors.Join(err, saved.Close()); err != nil {
		return r, err
	}
	cfg.ReadOnly, cfg.RemoveUnused = true, false
	saved, err = Open(to, cfg)
	switch {
	case errors.Is(err, ErrNoStore):
		r.doubt("no session could be saved")
		return r, r.compareNotes(ctx, nil, cfg.FS, from)
	case err != nil:
		return r, err
	}
	if err = r.verify(ctx, saved); err == nil {
		err = r.compareNotes(ctx, saved, cfg.FS, from)
	}
	return r, errors.Join(err, saved.Close())
}

// compareNotes compares the sessions of the copy with the heads that the source
// noted. Saved is nil if the copy has none.
func (r *Repaired) compareNotes(ctx context.Context, saved *Log, disk vfs.FS, from string) error {
	var unread error // of the copy
	damage, err := storefile.ReadHeads(disk, disk.PathJoin(from, storefile.HeadsFile), func(_ int, n storefile.NotedHead) {
		i := slices.IndexFunc(r.Sessions, func(s verify.SessionReport) bool { return n.Named(s.Session) })
		deleted := slices.ContainsFunc(r.Tombstones, func(t Tombstone) bool {
			return n.Named(t.Session) && (n.Head.Seq < t.Head.Seq || n.Head == t.Head)
		})
		switch {
		case n.Head.Seq == 0 || i < 0 && deleted:
		case i < 0:
			r.doubt("session %q is missing; it had %d entries", n.Name, n.Head.Seq)
		case r.Sessions[i].Fault != nil && r.Sessions[i].Head.Seq < n.Head.Seq:
			r.doubt("the chain of session %q is whole up to entry %d, and it had %d entries", r.Sessions[i].Session, r.Sessions[i].Head.Seq, n.Head.Seq)
		case r.Sessions[i].Head.Seq < n.Head.Seq:
			r.doubt("session %q ends at entry %d, and had %d entries", r.Sessions[i].Session, r.Sessions[i].Head.Seq, n.Head.Seq)
		default:
			s, err := saved.Session(r.Sessions[i].Session)
			if err != nil {
				unread = err
				return
			}
			e, err := s.Entry(ctx, n.Head.Seq)
			if err != nil {
				unread = err
			} else if e.Hash != n.Head.Hash {
				r.doubt("entry %d of session %q is not the one that was noted", n.Head.Seq, s.Name())
			}
		}
	})
	if unread != nil {
		return unread
	}
	switch {
	case storefile.IsMissing(err) && r.notes:
		r.doubt("%s, which notes how far each session went, is missing", storefile.HeadsFile)
	case storefile.IsMissing(err):
	case err != nil:
		r.doubt("%s, which notes how far each session went, cannot be read: %s", storefile.HeadsFile, keyspace.FirstLine(err))
	case damage != "":
		r.doubt("%s, which notes how far each session went, is damaged: %s", storefile.HeadsFile, damage)
	}
	return nil
}

// markedFS shows a directory as if markers were in it.
type markedFS struct {
	storefile.ReadOnlyFS
	markers []string
}

// List implements [vfs.FS].
func (m markedFS) List(dir string) ([]string, error) {
	names, err := m.ReadOnlyFS.List(dir)
	return append(names, m.markers...), err
}

// survey determines which files should exist. It reads the MANIFEST; if the marker that
// names the current one is missing, it reads the newest one.
func (r *Repaired) survey(from string, cfg Config, lock *pebble.Lock, s storefile.Directory) error {
	disk := cfg.FS
	if format, err := storefile.ReadFormatFile(disk, from); err != nil {
		r.Rebuilt = append(r.Rebuilt, storefile.FormatFile)
	} else if noted, err := storefile.ReadFileList(disk, from); err == nil && noted.ID == format.ID {
		for name, l := range noted.Logs {
			if err := storefile.CheckExtent(disk, from, name, l.Extent); l.Must && err != nil {
				r.doubt("%s is missing, cut or changed: it held acknowledged entries", name)
			}
		}
		for name, e := range noted.Manifests {
			if m, ok := storefile.NewestMarker(s.Names, storefile.MarkerManifest); (!ok || m.Value == name) && storefile.CheckExtent(disk, from, name, e) != nil {
				r.doubt("%s, which lists the tables, is missing, cut or changed", name)
			}
		}
	} else if !format.NoFiles {
		r.Rebuilt = append(r.Rebuilt, storefile.FilesName)
	}
	marked := markedFS{ReadOnlyFS: storefile.ReadOnlyFS{FS: disk}}
	manifests := slices.DeleteFunc(slices.Clone(s.Names), func(name string) bool { return storefile.KindOf(name) != storefile.KindManifest })
	slices.SortFunc(manifests, func(a, b string) int { return int(storefile.FileNumber(a)) - int(storefile.FileNumber(b)) })
	if _, ok := storefile.NewestMarker(s.Names, storefile.MarkerManifest); !ok && len(manifests) > 0 {
		m := storefile.Marker{Name: storefile.MarkerManifest, Iteration: 1, Value: manifests[len(manifests)-1]}
		marked.markers = append(marked.markers, m.FileName())
	}
	if _, ok := storefile.NewestMarker(s.Names, storefile.MarkerVersion); !ok {
		m := storefile.Marker{Name: storefile.MarkerVersion, Iteration: 1, Value: pebble.FormatWALSyncChunks.String()}
		marked.markers = append(marked.markers, m.FileName())
	}
	r.Rebuilt = append(r.Rebuilt, marked.markers...)
	l := newLog(cfg)
	opts := l.pebbleOptions(marked, true)
	opts.Lock = lock
	opts.DisableConsistencyCheck = true
	return guardSurvey(func() error {
		db, err := pebble.Open(from, opts)
		if err != nil {
			r.doubt("the list of tables cannot be read, so a missing table would go undetected (%s)", keyspace.FirstLine(err))
			return nil
		}
		levels, err := db.SSTables()
		if err != nil {
			r.doubt("a table is missing: %s", keyspace.FirstLine(err))
		}
		for _, level := range levels {
			for _, table := range level {
				name := storefile.TableFile(table)
				info, err := disk.Stat(disk.PathJoin(from, name))
				if err != nil || uint64(info.Size()) != table.Size {
					r.doubt("table %s is missing or has another size", name)
				}
			}
		}
		if err := db.Close(); err != nil {
			r.doubt("a table is missing: %s", keyspace.FirstLine(err))
		}
		return nil
	}, r)
}

// guardSurvey runs f and records a panic of Pebble as a doubt.
func guardSurvey(f func() error, r *Repaired) error {
	err := storefile.GuardPebble(f)
	if errors.Is(err, ErrCorrupt) {
		r.doubt("the list of tables cannot be read: %s", keyspace.FirstLine(err))
		return nil
	}
	return err
}

// save copies every key that can be read.
func (r *Repaired) save(ctx context.Context, to *Log, from string, disk vfs.FS, s storefile.Directory) error {
	const maxPending = 4 << 20
	batch := to.db.NewIndexedBatch()
	defer func() { _ = batch.Close() }() // commits are explicit
	commit := func() error {
		if err := batch.Commit(pebble.NoSync); err != nil {
			return err
		}
		batch.Reset()
		return ctx.Err()
	}
	var failed error // of writing the copy; an error of reading a file is a doubt instead
	put := func(name string) func(key, value []byte) error {
		return func(key, value []byte) error {
			failed = r.put(batch, name, key, value)
			if failed == nil && batch.Len() > maxPending {
				failed = commit()
			}
			return failed
		}
	}
	for _, name := range s.Names {
		if storefile.KindOf(name) != storefile.KindTable {
			continue
		}
		damage, blocks, err := storefile.EachReadableKey(disk, disk.PathJoin(from, name), put(name))
		if failed != nil {
			return failed
		}
		if _, announced := s.Files.Tables[name]; announced {
			continue
		}
		if err != nil {
			r.unreadable(from, "table %s cannot be read: %s", name, keyspace.FirstLine(err))
		}
		if len(damage) > 0 {
			r.unreadable(from, "%d of the %d blocks of table %s cannot be read: %s", len(damage), blocks, name, keyspace.FirstLine(damage[0]))
		}
	}
	logs, err := wal.Scan(wal.Dir{FS: storefile.ReadOnlyFS{FS: disk}, Dirname: from})
	if err != nil {
		r.doubt("the write-ahead logs cannot be read: %s", keyspace.FirstLine(err))
	}
	for i, log := range logs {
		_, path := log.SegmentLocation(0)
		name := disk.PathBase(path)
		scan, err := storefile.EachLogKey(log, put(name))
		if failed != nil {
			return failed
		}
		if err != nil {
			r.doubt("%s cannot be read to its end: %s", name, keyspace.FirstLine(err))
		}
		// A killed process leaves the last log cut off, and FILES has the length
		// that it must reach. Logs before it end cleanly.
		if scan.Stopped != nil && i < len(logs)-1 {
			r.doubt("%s cannot be read to its end: %s", name, keyspace.FirstLine(scan.Stopped))
		}
	}
	if err := r.nameSessions(batch, disk, from); err != nil {
		return err
	}
	if err := commit(); err != nil {
		return err
	}
	if err := bury(to.db); err != nil {
		return err
	}
	return to.db.Flush()
}

// unreadable records that a table cannot be read as a whole.
func (r *Repaired) unreadable(from, format string, args ...any) {
	r.doubt(format, args...)
	if r.Found == nil {
		r.Found = storefile.Damaged(from, format, args...)
	}
}

// nameSessions makes the records again of the sessions whose entries can be read and whose
// records cannot: the source noted their names with their heads. The genesis of a chain
// proves the name.
func (r *Repaired) nameSessions(batch *pebble.Batch, disk vfs.FS, from string) error {
	records, err := keyspace.ReadRecords(batch)
	if err != nil {
		return err
	}
	numbers, names := map[uint32]bool{}, map[string]bool{}
	for _, s := range records.Sessions {
		numbers[s.Number], names[s.Name] = true, true
	}
	for _, t := range records.Tombstones {
		numbers[t.Number], names[t.Session] = true, true
	}
	for _, b := range records.Bad {
		numbers[b.Number], names[b.Name] = true, true
	}
	// compareNotes reports notes that cannot be read.
	_, _ = storefile.ReadHeads(disk, disk.PathJoin(from, storefile.HeadsFile), func(_ int, n storefile.NotedHead) {
		if err != nil || n.Head.Seq == 0 || numbers[n.Number] || names[n.Name] || !n.IsWhole() || chain.CheckName(n.Name) != nil {
			return
		}
		var has bool
		if has, err = keyspace.HasBatch(batch, n.Number); err != nil || !has {
			return
		}
		numbers[n.Number], names[n.Name] = true, true
		r.doubt("the record of session %q cannot be read; its name is that of its note in %s", n.Name, storefile.HeadsFile)
		err = batch.Set(keyspace.SessionKey(n.Name), binary.BigEndian.AppendUint32(nil, n.Number), nil)
	})
	return err
}

// bury removes what tables from before their deletion hold of deleted sessions.
func bury(db *pebble.DB) error {
	records, err := keyspace.ReadRecords(db)
	if err != nil || len(records.Tombstones) == 0 {
		return err
	}
	batch := db.NewBatch()
	for i := range records.Tombstones {
		t := &records.Tombstones[i]
		if slices.ContainsFunc(records.Sessions, func(s keyspace.SessionRecord) bool { return s.Number == t.Number }) {
			continue // damage that verify names: the entries may be the session's
		}
		if err := keyspace.AppendDeletion(batch, t); err != nil {
			return err
		}
	}
	return batch.Commit(pebble.NoSync)
}

// put adds one key to the copy.
func (r *Repaired) put(batch *pebble.Batch, name string, key, value []byte) error {
	switch {
	case bytes.Equal(key, keyspace.FormatKey()):
		if len(value) != 1 || value[0] != keyspace.FormatVersion && value[0] != keyspace.FormatDeletions {
			return fmt.Errorf("%w: %s has a format version %x", ErrVersion, name, value)
		}
		return nil
	case len(key) == 1:
		r.notes = r.notes || bytes.Equal(key, keyspace.HeadsKey())
		return nil // a key of the store itself, of which the copy has its own
	case len(key) == 0 || key[0] != keyspace.TagSession && key[0] != keyspace.TagBatch && key[0] != keyspace.TagOutcome:
		r.doubt("%s holds a key that is not of a store", name)
		return nil
	}
	have, closer, err := batch.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return batch.Set(key, value, nil)
	case err != nil:
		return err
	}
	same := bytes.Equal(have, value)
	buried, buries := keyspace.IsTombstone(have), keyspace.IsTombstone(value)
	if err := closer.Close(); err != nil {
		return err
	}
	if key[0] == keyspace.TagSession && buried != buries { // the session was deleted after the other record
		if buried {
			return nil
		}
		return batch.Set(key, value, nil)
	}
	if !same {
		r.doubt("%s holds another %s than the files before it; the later one was taken", name, keyspace.KeyText(key))
		return batch.Set(key, value, nil)
	}
	return nil
}

// verify checks the sessions of the copy.
func (r *Repaired) verify(ctx context.Context, l *Log) error {
	infos, err := l.Sessions()
	if err != nil {
		return err
	}
	for _, info := range infos {
		report, err := l.Verify(ctx, info.Name, verify.Options{})
		if err != nil {
			return err
		}
		r.Sessions = append(r.Sessions, report)
	}
	r.Tombstones, err = l.Tombstones()
	return err
}

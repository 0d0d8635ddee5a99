package eventlog

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
)

// examine opens the store in dir for reading and compares it with the entries that
// are known to have been written and to have been durable, before anything is
// changed: Pebble, opened for writing, drops records that it cannot read and deletes
// their files. s is the result of examining dir, whose lock is held. Afterwards l.db
// is the store, and l.loss its loss.
func (l *Log) examine(dir string, s storefile.Directory, lock *pebble.Lock) (*examination, error) {
	l.notes.path = l.cfg.FS.PathJoin(dir, storefile.HeadsFile)
	x := &examination{log: l, dir: dir, broken: -1, openDB: func(disk vfs.FS) (*pebble.DB, error) {
		return l.openPebble(dir, lock, storefile.ReadOnlyFS{FS: disk}, true)
	}, format: func(db *pebble.DB) error { return storefile.CheckFormat(db, dir, s.State) }}
	err := x.run()
	if err == nil && l.loss == nil {
		// The rest of a store with a loss is compared with the notes alone.
		if err = s.Short; err == nil {
			err = storefile.GuardPebble(func() error { return storefile.CheckContents(l.cfg.FS, x.db, dir, s) })
		}
	}
	if err == nil {
		err = l.firstFailure()
	}
	if err != nil {
		l.db = nil
		return nil, errors.Join(openError(dir, err), x.close())
	}
	for _, doubt := range l.doubts {
		l.cfg.Logger.Warn("a loss of entries could go undetected", slog.String("reason", doubt))
	}
	if l.loss != nil {
		l.cfg.Logger.Error("the store lost entries", slog.Any("err", l.loss))
	}
	return x, nil
}

// openReading opens the store for reading, and refuses one that lacks anything that
// was written to it. s is the result of examining dir, whose lock is held.
func (l *Log) openReading(dir string, s storefile.Directory, lock *pebble.Lock) (db *pebble.DB, err error) {
	db, err = l.openPebble(dir, lock, storefile.ReadOnlyFS{FS: l.cfg.FS}, true)
	if err != nil {
		return nil, openError(dir, err)
	}
	err = storefile.CheckFormat(db, dir, s.State)
	if err == nil {
		err = storefile.GuardPebble(func() error { return storefile.CheckContents(l.cfg.FS, db, dir, s) })
	}
	if err == nil {
		err = l.firstFailure()
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// pebbleError classifies Pebble's refusal to open a store. Apart from missing
// permissions and failed reads, Pebble refuses because files do not fit together.
func pebbleError(dir string, err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok && !storefile.IsMissing(err) {
		return fmt.Errorf("eventlog: open %s: %w", dir, err)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != syscall.ENOENT {
		return fmt.Errorf("eventlog: open %s: %w", dir, err)
	}
	return storefile.Damaged(dir, "%s", keyspace.FirstLine(err))
}

// openError returns the refusal of a store as an error of one of the log's classes.
func openError(dir string, err error) error {
	if _, classified := errors.AsType[*storefile.DirectoryError](err); classified {
		return err
	}
	for _, class := range []error{ErrVersion, ErrForeign, ErrLost, ErrClosed} {
		if errors.Is(err, class) {
			return err
		}
	}
	if errors.Is(err, ErrCorrupt) {
		return storefile.Damaged(dir, "%s", strings.TrimPrefix(keyspace.FirstLine(err), ErrCorrupt.Error()+": "))
	}
	return pebbleError(dir, err)
}

// openPebble opens Pebble's store in dir through a file system.
func (l *Log) openPebble(dir string, lock *pebble.Lock, disk vfs.FS, readOnly bool) (db *pebble.DB, err error) {
	opts := l.pebbleOptions(disk, readOnly)
	opts.Lock = lock
	err = storefile.GuardPebble(func() error {
		db, err = pebble.Open(dir, opts)
		return err
	})
	return db, err
}

// examination compares a store, which Pebble opens for reading only, with its files and
// notes.
type examination struct {
	log    *Log
	dir    string
	openDB func(disk vfs.FS) (*pebble.DB, error) // for reading
	format func(db *pebble.DB) error             // refuses a store of another program or of another version
	db     *pebble.DB                            // nil while Pebble refuses to open the store

	files  []walFile // of the write-ahead log that Pebble reads, oldest first
	broken int       // index of the file in which intact records end; -1: none

	stretches map[uint32]*walStretch // by session
	names     map[uint32]string      // of the sessions whose records are in the write-ahead log
	seen      map[uint32]Seq         // by session, the newest entry behind the break
	last      walBatch               // the last batch in front of the break
}

// walFile is one file of the write-ahead log.
type walFile struct {
	name   string
	number uint64
	scan   storefile.WALScan
}

// walStretch is the run of a session's entries in the intact records.
type walStretch struct {
	first, last Seq
	file        int   // index of the file that holds the batch of first
	offset      int64 // of the record of that batch
}

// run opens the store for reading, at its newest state without a hole, and sets the
// log's loss, doubts and notes.
func (x *examination) run() error {
	watch := &storefile.WatchFS{FS: x.log.disk}
	refused := x.open(watch)
	if refused != nil && (!pebble.IsCorruptionError(refused) || x.log.firstFailure() != nil) {
		return refused
	}
	err := x.scan(watch.Logs(), refused != nil)
	if err == nil && x.db == nil {
		if x.broken < 0 {
			return refused
		}
		err = x.reopen()
	}
	if err == nil {
		err = x.format(x.db)
	}
	if err == nil {
		err = x.findHole()
	}
	// At a break in the newest file Pebble stops, which loses nothing more. At a
	// break in an earlier file it would continue with the next file, and leave a hole.
	if err == nil && x.broken >= 0 && (x.broken < len(x.files)-1 || x.files[x.broken].scan.Hole) {
		err = x.reopen()
	}
	if err == nil {
		err = x.compare()
	}
	return err
}

func (x *examination) open(disk vfs.FS) error {
	db, err := x.openDB(disk)
	if err == nil {
		x.db, x.log.db = db, db
	}
	return err
}

func (x *examination) close() error {
	db := x.db
	if x.db = nil; db == nil {
		return nil
	}
	return db.Close()
}

// reopen opens the state in front of the break.
func (x *examination) reopen() error {
	if err := x.close(); err != nil {
		return err
	}
	f := &x.files[x.broken]
	hidden := map[string]bool{}
	for _, later := range x.files[x.broken+1:] {
		hidden[later.name] = true
	}
	return x.open(&storefile.CutFS{FS: x.log.disk, Hidden: hidden, Name: f.name, Size: f.scan.End})
}

// scan reads the files of the write-ahead log: those that Pebble opened and,
// when it refused them, the later ones, which it may not have reached.
func (x *examination) scan(opened []string, refused bool) error {
	x.stretches, x.names, x.seen = map[uint32]*walStretch{}, map[uint32]string{}, map[uint32]Seq{}
	names := slices.Clone(opened)
	if refused && len(opened) > 0 {
		newest, _ := storefile.WALNumber(slices.MaxFunc(opened, func(a, b string) int {
			m, _ := storefile.WALNumber(a)
			n, _ := storefile.WALNumber(b)
			return cmp.Compare(m, n)
		}))
		all, err := x.log.cfg.FS.List(x.dir)
		if err != nil {
			return fmt.Errorf("eventlog: list %s: %w", x.dir, err)
		}
		for _, name := range all {
			if number, ok := storefile.WALNumber(name); ok && number > newest {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		number, _ := storefile.WALNumber(name)
		x.files = append(x.files, walFile{name: name, number: number})
	}
	slices.SortFunc(x.files, func(a, b walFile) int { return cmp.Compare(a.number, b.number) })
	for i := range x.files {
		if err := x.scanFile(i); err != nil {
			return fmt.Errorf("eventlog: scan %s: %w", x.files[i].name, err)
		}
		// Pebble marks the end of a file before it begins the next one.
		s := &x.files[i].scan
		if x.broken < 0 && (s.Rotten() || s.Hole || i < len(x.files)-1 && !s.Closed) {
			x.broken = i
		}
	}
	return nil
}

func (x *examination) scanFile(i int) error {
	f := &x.files[i]
	file, err := x.log.cfg.FS.Open(x.log.cfg.FS.PathJoin(x.dir, f.name))
	if err != nil {
		return err
	}
	intactBefore := x.broken < 0
	f.scan, err = storefile.ScanWAL(file, f.number, func(offset int64, payload []byte, intact bool) bool {
		return x.record(i, offset, payload, intact && intactBefore)
	})
	return errors.Join(err, file.Close())
}

// record processes a record of the write-ahead log. It returns false when entries
// are missing between the records in front of it and this one.
func (x *examination) record(file int, offset int64, payload []byte, intact bool) bool {
	var batches []walBatch
	readWALRecord(payload, func(b walBatch) { batches = append(batches, b) }, func(number uint32, name string) { x.names[number] = name })
	if intact {
		tails := map[uint32]Seq{}
		for _, b := range batches {
			last, known := tails[b.number]
			if s := x.stretches[b.number]; !known && s != nil {
				last, known = s.last, true
			}
			intact = intact && (!known || b.first <= last+1)
			tails[b.number] = b.last
		}
		if !intact {
			x.behind(batches)
			return false
		}
	} else {
		x.behind(batches)
		return true
	}
	for _, b := range batches {
		s := x.stretches[b.number]
		if s == nil {
			s = &walStretch{first: b.first, file: file, offset: offset}
			x.stretches[b.number] = s
		}
		s.last = max(s.last, b.last)
		x.last = b
	}
	return true
}

// behind processes batches behind a break.
func (x *examination) behind(batches []walBatch) {
	for _, b := range batches {
		x.seen[b.number] = max(x.seen[b.number], b.last)
	}
}

// findHole checks that the entries that the write-ahead log continues are present:
// tables that an older manifest does not name, or a removed file of the log, leave a
// hole in front of it.
func (x *examination) findHole() error {
	deleted, err := keyspace.DeletedNumbers(x.db)
	if err != nil {
		return err
	}
	for number := range deleted { // the entries in front are gone
		delete(x.stretches, number)
	}
	for number, s := range x.stretches {
		if x.broken >= 0 && (s.file > x.broken || s.file == x.broken && s.offset >= x.files[x.broken].scan.End) {
			continue
		}
		end, err := x.endBefore(number, s.first)
		if err != nil {
			return err
		}
		if end+1 >= s.first {
			continue
		}
		x.broken = s.file
		f := &x.files[s.file].scan
		f.End, f.Hole = s.offset, true
		x.last = walBatch{} // unknown: the scan did not note which record precedes the hole
	}
	if x.broken >= 0 {
		for number, s := range x.stretches {
			if s.file > x.broken || s.file == x.broken && s.offset >= x.files[x.broken].scan.End {
				x.seen[number] = max(x.seen[number], s.last)
			}
		}
	}
	return nil
}

// endBefore returns the last Seq of the batch in front of the one that begins at
// seq.
func (x *examination) endBefore(number uint32, seq Seq) (Seq, error) {
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: keyspace.BatchKey(nil, number, 0), UpperBound: keyspace.BatchKey(nil, number, seq)})
	if err != nil {
		return 0, keyspace.ReadError("open", err)
	}
	end := Seq(0)
	if it.Last() {
		end = seq - 1 // an unreadable batch is another fault than a hole
		if b, err := keyspace.OpenBatch(it.Key(), it.Value()); err == nil {
			end = b.First + Seq(b.Count) - 1
		}
	} else if it.Error() != nil {
		end = seq - 1
	}
	_ = it.Close() // repeats the error of reading
	return end, nil
}

// compare compares the sessions of the store with the noted heads.
func (x *examination) compare() error {
	l := x.log
	records, err := keyspace.ReadRecords(l.db)
	if err != nil {
		return err
	}
	infos := records.Sessions
	_, closer, err := x.db.Get(keyspace.HeadsKey())
	switch {
	case err == nil:
		l.notes.kept = true
		if err := closer.Close(); err != nil {
			return err
		}
	case !errors.Is(err, pebble.ErrNotFound):
		return keyspace.ReadError("open", err)
	}
	have := make(map[uint32]*standing, len(infos))
	var shared map[string]*standing
	for _, info := range infos {
		s := &standing{name: info.Name, head: Head{Hash: Genesis(info.Name)}}
		if head, _, err := keyspace.LastEntry(l.db, info.Number, s.head.Hash); err == nil {
			s.head, s.readable = head, true
		}
		if have[info.Number] != nil { // a number that two session records have
			if shared == nil {
				shared = make(map[string]*standing)
			}
			shared[info.Name] = s
			continue
		}
		have[info.Number] = s
	}
	c := &comparison{log: l, have: have, shared: shared, deleted: map[uint32]*Tombstone{}, losses: map[uint32]*Loss{}}
	for i := range records.Tombstones {
		c.deleted[records.Tombstones[i].Number] = &records.Tombstones[i]
	}
	damage, err := storefile.ReadHeads(l.cfg.FS, l.notes.path, func(_ int, n storefile.NotedHead) { c.noted(n) })
	switch {
	case err == nil && damage != "":
		l.doubts = append(l.doubts, fmt.Sprintf("%s, the file of noted heads, is damaged: %s", storefile.HeadsFile, damage))
	case storefile.IsMissing(err) && l.notes.kept:
		l.doubts = append(l.doubts, fmt.Sprintf("%s, the file of noted heads, is missing", storefile.HeadsFile))
	case err != nil && !storefile.IsMissing(err):
		if !l.cfg.ReadOnly {
			return err
		}
		l.doubts = append(l.doubts, fmt.Sprintf("%s, the file of noted heads, cannot be read: %s", storefile.HeadsFile, keyspace.FirstLine(err)))
	}
	l.unreadEnds = make(map[uint32]Head)
	for number, s := range have {
		if !s.readable && s.noted.Seq > 0 {
			l.unreadEnds[number] = s.noted
		}
	}
	if x.broken >= 0 {
		for number, seq := range x.seen {
			c.found(number, seq, x.names[number])
		}
	}
	x.conclude(c)
	if !l.cfg.ReadOnly {
		l.notes.recent = c.recent()
	}
	return nil
}

// conclude sets the log's loss.
func (x *examination) conclude(c *comparison) {
	if x.broken < 0 && len(c.losses) == 0 {
		return
	}
	loss := &LossError{More: c.more}
	if x.broken >= 0 {
		f := &x.files[x.broken]
		loss.File, loss.Offset = f.name, f.scan.End
		if s := c.have[x.last.number]; s != nil && x.last.last > 0 {
			loss.Last, loss.At = s.name, x.last.last
		}
	}
	numbers := make([]uint32, 0, len(c.losses))
	for number := range c.losses {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		loss.Losses = append(loss.Losses, *c.losses[number])
	}
	x.log.loss = loss
}

// cut removes the files and bytes behind the break, so that Pebble opens the store for
// writing, and removes them from s, so that FILES no longer requires them.
func (x *examination) cut(s *storefile.Directory) error {
	for name, l := range s.Files.Logs {
		if storefile.CheckExtent(x.log.cfg.FS, x.dir, name, l.Extent) != nil {
			s.Files.Logs[name] = storefile.ListedLog{}
		}
	}
	if x.broken < 0 {
		return nil
	}
	s.Files.Logs[x.files[x.broken].name] = storefile.ListedLog{}
	disk := x.log.disk
	f := &x.files[x.broken]
	for _, later := range x.files[x.broken+1:] {
		if err := disk.Remove(disk.PathJoin(x.dir, later.name)); err != nil && !storefile.IsMissing(err) {
			return fmt.Errorf("eventlog: remove the damaged end of the write-ahead log: %w", err)
		}
		s.Names = slices.DeleteFunc(s.Names, func(name string) bool { return name == later.name })
	}
	path := disk.PathJoin(x.dir, f.name)
	if err := storefile.CopyBeginning(disk, path, x.log.notes.path+".cut", f.scan.End); err != nil {
		return fmt.Errorf("eventlog: remove the damaged end of the write-ahead log: %w", err)
	}
	return x.log.writable()
}

// standing is the position of a session in the store.
type standing struct {
	name     string
	head     Head
	readable bool // the newest batch can be read, and head is its end
	noted    Head
}

// comparison collects the losses of a store: the sessions that end before their noted
// heads.
type comparison struct {
	log     *Log
	have    map[uint32]*standing
	shared  map[string]*standing  // by name, the further sessions of a number that is in have
	deleted map[uint32]*Tombstone // by number
	losses  map[uint32]*Loss
	more    int // losses that are counted and not listed
}

// noted compares a session with its noted head.
func (c *comparison) noted(n storefile.NotedHead) {
	s := c.have[n.Number]
	if t := c.deleted[n.Number]; t != nil && s == nil && n.Named(t.Session) {
		if n.Head.Seq > t.Head.Seq || n.Head.Seq == t.Head.Seq && n.Head != t.Head {
			c.lost(n.Number, t.Session, t.Head, n.Head)
		}
		return
	}
	if other := c.shared[n.Name]; other != nil && s != nil && !n.Named(s.name) {
		s = other
	}
	if s == nil || !n.Named(s.name) {
		c.lost(n.Number, n.Name, Head{Hash: Genesis(n.Name)}, n.Head)
		return
	}
	s.noted = n.Head
	if !s.readable || n.Head.Seq == 0 {
		return // reading the session reports it
	}
	same := n.Head == s.head
	if n.Head.Seq < s.head.Seq {
		hash, err := keyspace.HashAt(context.Background(), c.log.db, n.Number, n.Head.Seq)
		same = err != nil || hash == n.Head.Hash // reading the session reports an error
	}
	if !same {
		c.lost(n.Number, s.name, s.head, n.Head)
	}
}

// lost returns the loss of a session, which it adds unless the list is full.
func (c *comparison) lost(number uint32, name string, have, noted Head) *Loss {
	loss := c.losses[number]
	switch {
	case loss != nil:
		if noted.Seq > loss.Noted.Seq {
			loss.Noted = noted
		}
	case len(c.losses) < maxLosses:
		loss = &Loss{Session: name, Have: have, Noted: noted}
		c.losses[number] = loss
	default:
		c.more++
		return &Loss{} // counted and not listed
	}
	return loss
}

// found records that entries of a session up to seq stand behind the break.
func (c *comparison) found(number uint32, seq Seq, name string) {
	s := c.have[number]
	if s == nil && c.deleted[number] != nil {
		return // a session has no entries behind its deletion
	}
	if s == nil {
		s = &standing{name: name, head: Head{Hash: Genesis(name)}, readable: true}
	}
	if s.readable && seq > s.head.Seq && s.name != "" {
		loss := c.lost(number, s.name, s.head, Head{})
		loss.Seen = max(loss.Seen, seq)
	}
}

// recent returns the heads to note before the first write: those in the store and, of
// sessions that cannot be read, those noted before.
func (c *comparison) recent() map[uint32]storefile.NotedHead {
	heads := make(map[uint32]storefile.NotedHead, len(c.have))
	for number, s := range c.have {
		head := s.head
		if !s.readable {
			head = s.noted
		}
		if head.Seq > 0 {
			heads[number] = storefile.NotedHead{Number: number, Name: s.name, Head: head}
		}
	}
	return heads
}

// removeFinished empties the newest file of the write-ahead log and removes the others.
// It is called after the store was flushed and closed, so all of their contents are in
// tables. Pebble would keep them until it opens the store again, and the newest at the
// length to which it was written before Pebble took it again. The newest stays, empty,
// because its number tells Pebble which numbers are used. Files that the store did not
// write stay as they are.
func (l *Log) removeFinished() error {
	names, err := l.disk.List(l.dir)
	if err != nil {
		return fmt.Errorf("eventlog: close: %w", err)
	}
	logs := make(map[string]uint64)
	newest := uint64(0)
	for _, name := range names {
		if number, ok := storefile.WALNumber(name); ok && l.disk.Note.HasLog(name) {
			logs[name], newest = number, max(newest, number)
		}
	}
	for _, name := range names {
		number, ours := logs[name]
		path := l.disk.PathJoin(l.dir, name)
		switch {
		case !ours:
			continue
		case number == newest:
			err = l.emptyLog(path)
		default:
			err = l.disk.Remove(path)
		}
		if err != nil {
			return fmt.Errorf("eventlog: close: %w", err)
		}
	}
	if len(logs) > 0 {
		err = storefile.SyncDirectory(l.disk, l.dir)
	}
	if err := cmp.Or(err, l.firstFailure()); err != nil {
		return fmt.Errorf("eventlog: close: %w", err)
	}
	return nil
}

// emptyLog makes a file of the write-ahead log empty. [storefile.FreezeFS] notes in
// FILES, before it truncates the file, that the store does not need its contents.
func (l *Log) emptyLog(path string) error {
	f, err := l.disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// walBatch identifies a sealed batch in a record of the write-ahead log.
type walBatch struct {
	number      uint32 // of its session
	first, last Seq
}

// readWALRecord calls batch and name with the batches and the session names that a
// record adds to the store, up to the first place that cannot be read.
func readWALRecord(payload []byte, batch func(walBatch), name func(uint32, string)) {
	if len(payload) < batchrepr.HeaderLen {
		return
	}
	r := batchrepr.Read(payload)
	for {
		_, key, value, ok, err := r.Next()
		if err != nil || !ok {
			return
		}
		if len(key) == 0 {
			continue
		}
		switch key[0] {
		case keyspace.TagBatch:
			seq, isBatch := keyspace.BatchSeq(key)
			if b, err := chain.OpenBatch(value); isBatch && err == nil && b.First == seq {
				batch(walBatch{binary.BigEndian.Uint32(key[1:]), b.First, b.First + Seq(b.Count) - 1})
			}
		case keyspace.TagSession:
			if len(value) == 4 {
				name(binary.BigEndian.Uint32(value), string(key[1:]))
			}
		}
	}
}

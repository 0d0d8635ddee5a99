package eventlog

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
)

// Bounds of the lag of the noted heads; see [Config].
const (
	// DefaultNoteEntries is the bound in entries.
	DefaultNoteEntries = 4096

	// DefaultNoteWithin is the bound in time.
	DefaultNoteWithin = time.Second
)

// notes writes the file of noted heads. The order of steps, and what a crash
// leaves after each:
//
//  1. When its first write is durable, and before it is acknowledged, a log
//     writes the whole file aside, syncs it, renames it and syncs the directory.
//  2. Its next write, or Close, sets the key 'd': the store has the file, so that
//     its absence is detected. A crash before leaves a file without the key.
//  3. Once a write is durable, the note of its session is handed to the
//     operating system, before the append is acknowledged. So the
//     notes that a killed process leaves cover every entry that it acknowledged,
//     and durable entries alone.
//  4. The file is synced when half of [Config.NoteEntries] or when
//     [Config.NoteWithin] has passed since the first note that is not synced;
//     and an append waits while the whole of NoteEntries is not synced. So a power
//     cut takes no more than these notes from the file, and nothing from the log.
//
// Every write goes through the log's file system, so a failed one makes the log
// read-only.
type notes struct {
	log   *Log
	path  string
	kept  bool        // the store says that it has the file; guarded by log.applyMu
	begun atomic.Bool // the file is there and open

	mu       sync.Mutex
	recent   map[uint32]storefile.NotedHead // heads at Open, until the file is written; guarded by mu
	idle     sync.Cond                      // signalled when a sync ends
	file     vfs.File                       // nil before the first write and after Close; guarded by mu
	cells    map[uint32]*cell               // by number of the session; guarded by mu
	unsynced int                            // entries noted since the last sync began; guarded by mu
	syncing  bool                           // guarded by mu
	stop     func() bool                    // takes the timer back; nil: none runs; guarded by mu
	syncs    sync.WaitGroup                 // syncs in the background
}

// cell is the place of a session's note.
type cell struct {
	at    int64 // offset in the file
	older int   // the slot to write next
	head  Head
}

func newNotes(l *Log) *notes {
	n := &notes{log: l, cells: make(map[uint32]*cell), recent: make(map[uint32]storefile.NotedHead)}
	n.idle.L = &n.mu
	return n
}

// mark adds the key 'd' to a write, once the file of noted heads exists. Called with
// log.applyMu held.
func (n *notes) mark(set func(key, value []byte, _ *pebble.WriteOptions) error) error {
	if n.kept || !n.begun.Load() {
		return nil
	}
	n.kept = true
	return set(keyspace.HeadsKey(), []byte{storefile.HeadsVersion}, pebble.Sync)
}

// rewrite writes the whole file, with the heads that the log had when it was opened,
// and opens it for notes. Called with n.mu held. The error is that of a log that has
// become read-only.
func (n *notes) rewrite() error {
	l := n.log
	content := storefile.HeadsHeader()
	for number, s := range n.recent {
		n.cells[number] = &cell{at: int64(len(content)), older: 1, head: s.Head}
		content = storefile.AppendHeadsCell(content, number, s.Name, s.Head)
	}
	n.recent = nil
	err := storefile.WriteAtomically(l.disk, l.dir, storefile.HeadsFile, content)
	if err == nil {
		n.file, err = l.disk.OpenReadWrite(n.path, vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		l.fail(fmt.Errorf("eventlog: note the heads: %w", err))
	}
	if err := l.writable(); err != nil {
		return err
	}
	n.begun.Store(true)
	return nil
}

// note records that a session is durable up to d. It returns the error of a log that
// has become read-only: the note may be missing then.
func (n *notes) note(name string, d *durable) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.unsynced >= n.log.cfg.NoteEntries && n.syncing {
		n.idle.Wait()
	}
	c := n.cells[d.number]
	if c != nil && c.head.Seq >= d.head.Seq {
		return nil // another append's note covers this one
	}
	if !n.begun.Load() {
		if err := n.rewrite(); err != nil {
			return err
		}
		c = n.cells[d.number]
	}
	if n.file == nil {
		return ErrClosed
	}
	entries := d.head.Seq
	var err error
	if c == nil {
		c = &cell{at: storefile.HeadsCellSize * int64(len(n.cells)+1), older: 1, head: d.head}
		n.cells[d.number] = c
		_, err = n.file.WriteAt(storefile.AppendHeadsCell(nil, d.number, name, d.head), c.at)
	} else {
		entries -= c.head.Seq
		var slot [storefile.HeadsSlotSize]byte
		storefile.PutHeadsSlot(slot[:], d.number, d.head)
		_, err = n.file.WriteAt(slot[:], c.at+storefile.HeadsSlotsAt+int64(c.older)*storefile.HeadsSlotSize)
		c.older, c.head = 1-c.older, d.head
	}
	if err != nil {
		n.log.fail(fmt.Errorf("eventlog: note the heads: %w", err))
	}
	if n.log.disk.Frozen.Load() {
		return n.log.writable() // the last write did not reach the disk
	}
	n.unsynced += int(min(entries, 1<<40))
	n.plan()
	return nil
}

// contents returns the file as it is between two notes; without a file, one without
// notes.
func (n *notes) contents() ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, err := n.log.cfg.FS.Open(n.path)
	if storefile.IsMissing(err) {
		return storefile.HeadsHeader(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("eventlog: read the noted heads: %w", err)
	}
	content, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("eventlog: read the noted heads: %w", err)
	}
	return content, nil
}

// forget leaves a deleted session out of the file that the first write makes. Otherwise
// its note stays in the file until the next process writes it; the tombstone explains it.
func (n *notes) forget(number uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.recent, number)
}

// plan schedules the next sync of the notes. Called with n.mu held.
func (n *notes) plan() {
	switch {
	case n.syncing || n.unsynced == 0 || n.file == nil:
	case n.unsynced >= n.log.cfg.NoteEntries/2:
		n.syncing = true
		n.syncs.Go(n.sync)
	case n.stop == nil:
		n.stop = n.log.cfg.AfterFunc(n.log.cfg.NoteWithin, n.due)
	}
}

// due is called when the timer has run.
func (n *notes) due() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop = nil
	if n.file != nil && !n.syncing && n.unsynced > 0 {
		n.syncing = true
		n.syncs.Go(n.sync)
	}
}

// sync brings the notes to stable storage. n.syncing is set.
func (n *notes) sync() {
	n.mu.Lock()
	file, covered := n.file, n.unsynced
	if n.stop != nil {
		n.stop()
		n.stop = nil
	}
	n.mu.Unlock()
	err := file.SyncData()
	if err != nil {
		n.log.fail(fmt.Errorf("eventlog: note the heads: %w", err))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.syncing = false
	n.unsynced -= covered
	n.idle.Broadcast()
	n.plan()
}

// close syncs the remaining notes. No note is written beside it or after it.
func (n *notes) close() error {
	n.mu.Lock()
	for n.syncing {
		n.idle.Wait()
	}
	if n.stop != nil {
		n.stop()
		n.stop = nil
	}
	file, unsynced := n.file, n.unsynced
	n.file = nil
	n.mu.Unlock()
	n.syncs.Wait()
	if file == nil {
		return nil
	}
	var err error
	if unsynced > 0 {
		err = file.SyncData()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("eventlog: note the heads: %w", err)
	}
	return nil
}

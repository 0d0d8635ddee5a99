// Package eventlog keeps append-only, hash-chained sequences of entries, one for
// each session, in one Pebble store.
//
// A [Log] is one store in one directory. It holds many sessions; each [Session] is
// one chain of numbered entries. An [Entry] has a [Kind] and a session time, and
// carries one msgpack value that this package does not interpret. Entries are
// appended as a [Batch] of one or more, as a whole or not at all.
//
// Package [github.com/sajou-dev/sajou-go/eventlog/chain] is the format of entries
// and sealed batches, byte for byte, and package verify finds what is wrong with a
// store. The layout of the keys inside Pebble, and the files of a store, are
// internal packages with their formats in their comments.
//
// # Carriers
//
// A batch is sealed before it is appended: turned into bytes that do not depend on
// the store. The writer of a session needs these things of this package, and another
// carrier of sealed batches would have to offer them:
//
//   - claim the session, so that nothing is appended past the writer: [Session.Claim];
//   - decide alone, in a round: [Appender.Write], [Appender.AppendIn], [Appender.StageIn]; there, seal a
//     batch and give it its place, under an expected Head if the caller likes
//     ([Round.Stage], [Batch.Expect]), look up an idempotency key ([Round.Repeat]), and
//     work on while the disk does ([Round.Then]);
//   - wait: [Ticket.Wait], [SessionReader.WaitDurable];
//   - read, and follow: [SessionReader.Entries], [SessionReader.Follow].
//
// # The directory
//
// Beside Pebble's files a store has three of its own. SAJOU names the format, its
// version and the store; it is written last when a store is created, and read
// before Pebble opens anything. FILES lists the files that must be present, with
// lengths and checksums, and is written between Pebble and the disk. [HeadsFile]
// notes how far each session is durable: Open compares it with the entries that
// Pebble recovers, and reads the write-ahead log to its last byte, before anything
// is changed. Every table has the store's id as a property.
//
// [Open] creates a store only in a directory that is absent or empty. A directory
// counts as empty if it holds nothing but an empty file LOCK and files that
// operating systems leave (lost+found, .DS_Store, desktop.ini, Thumbs.db). Any
// other directory without a whole store is refused and stays as it is; a
// [DirectoryError] says what was found. [Repair] saves the readable entries to a
// copy. A store from before SAJOU is recognised by its format version, which is
// read through Pebble without changing anything, and gets the files when it is
// opened for writing.
//
// Before a store is opened for writing it is opened for reading and compared with
// FILES, because Pebble deletes files that it does not know. Opening for reading
// changes no byte, makes no file and needs no permission to write: where LOCK is
// missing it takes no lock, and on a read-only medium it takes a shared one.
//
// # Invariants
//
//   - Sequence numbers start at 1 and have no gaps; session times never decrease.
//   - [Session.Append] returns only after the batch has reached stable storage.
//     Writers that arrive together share one write and its sync.
//   - No reader sees an entry before it is durable.
//   - Opening a log changes nothing in it and truncates nothing; a broken
//     chain is an error.
//   - If one file of a store is removed, emptied, cut or replaced, Open notices it,
//     or the store is whole without it. The limits are listed below.
//   - After a failed write the log is read-only until it is opened again:
//     every later append returns [ErrReadOnly] with the cause. The process goes
//     on, and nothing more is written to the disk, which stays as a crash at that
//     moment could have left it.
//   - The store keeps a record of the outcome of an idempotency key's first use. The
//     record is valid only if an entry carries the key: one that names another
//     batch, or an entry behind the newest, is [ErrCorrupt].
//   - A new session gets a number under which the store holds nothing, and which no
//     session had.
//   - A session is deleted as a whole or not at all ([Appender.Delete]). Its name stays
//     taken by a [Tombstone].
//   - A wait ends with its context. The batch then becomes durable, or fails,
//     without its caller. [Log.Close] has no context: it waits for the
//     disk.
//
// # Limits
//
// The chain shows that an entry was altered, dropped, moved or taken from
// another session. It does not stop a writer who can replace a whole session
// together with the noted heads, nor does it show that the whole store was replaced
// by an earlier copy: compare a [Head] kept elsewhere ([verify.Options]).
//
// Open reports entries that the disk lost at the end of a session as a [LossError]:
// every entry that a killed process acknowledged, wherever bytes of its write-ahead
// log rot; and after a power cut every entry that was durable when the notes were
// last synced ([Config.NoteEntries], [Config.NoteWithin]), or that later syncs of
// the write-ahead log prove. Undetected remains rot in the end of the write-ahead
// log that coincides with a power cut and lies within that lag. Close leaves no
// entries in the write-ahead log.
//
// A store from before SAJOU has no notes until it is opened for writing. Where
// Pebble alone has written to a store, FILES proves nothing until then, and only
// the chains do. A directory is open once at a time; sessions and goroutines share
// the one [Log].
//
// docs/glossary.md has the nouns of all packages.
package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
)

// Sentinel errors, one for each decision of a caller. Details are wrapped around
// them.
var (
	// ErrClosed is the error of every call on a closed log.
	ErrClosed = errors.New("eventlog: log is closed")

	// ErrReadOnly is the error of appends to a log that was opened read-only or
	// whose writing failed; the cause is wrapped beside it.
	ErrReadOnly = errors.New("eventlog: log is read-only")

	// ErrCorrupt marks bytes in the store that no writer of this format wrote.
	ErrCorrupt = chain.ErrCorrupt

	// ErrVersion marks a store or batch written by a newer format.
	ErrVersion = chain.ErrVersion

	// ErrConflict is the error of an append whose expected Head is not the
	// session's; [ConflictError] has both.
	ErrConflict = errors.New("eventlog: expected head differs")

	// ErrNoStore is the error of a read-only Open of a directory without a store.
	ErrNoStore = storefile.ErrNoStore

	// ErrForeign is the error of Open for a directory that holds something other
	// than a store; see [DirectoryError]. It matches [ErrNoStore].
	ErrForeign = storefile.ErrForeign

	// ErrNoSession is the error of a call about a session that does not exist.
	ErrNoSession = errors.New("eventlog: no such session")

	// ErrDeleted is the error of a call about a session that was deleted;
	// [DeletedError] has its tombstone.
	ErrDeleted = errors.New("eventlog: the session was deleted")

	// ErrInUse is the error of the deletion of a session that is in use.
	ErrInUse = errors.New("eventlog: the session is in use")

	// ErrLocked is the error of Open while another process has the store open.
	ErrLocked = storefile.ErrLocked

	// ErrTooLarge is the error of an append beyond a bound of [Config].
	ErrTooLarge = errors.New("eventlog: too large")

	// ErrInvalid is the error of an append or a session name that no log can hold.
	ErrInvalid = chain.ErrInvalid
)

// Config controls how a log is opened. The zero value is a good default.
type Config struct {
	// ReadOnly opens an existing store without changing a byte of it.
	ReadOnly bool

	// MaxEntry bounds the body of one entry, in bytes. Zero means 1 MiB.
	// Larger ones are refused before they are written and when read.
	MaxEntry int

	// MaxBatch bounds one sealed batch, in bytes. Zero means 16 MiB; it is
	// raised to hold at least one entry of MaxEntry.
	MaxBatch int

	// RemoveUnused makes Close remove the store again if this Open created it
	// and it holds no session.
	RemoveUnused bool

	// LockWait is how long Open waits for a store that another process has
	// open. Zero means not at all.
	LockWait time.Duration

	// NoteEntries and NoteWithin bound how far the noted heads on stable storage
	// lag behind the log, in entries and in time from the first one on; see
	// [HeadsFile]. A round of appends that goes over NoteEntries counts as a
	// whole. The lag matters when power is cut: a killed process leaves none.
	// Zero means [DefaultNoteEntries] and [DefaultNoteWithin].
	NoteEntries int
	NoteWithin  time.Duration

	// AcceptLoss opens a store that lost entries for writing, instead of returning
	// a [LossError]. The bytes behind a break of the write-ahead log are deleted,
	// and the remaining heads become the noted ones.
	AcceptLoss bool

	// AfterFunc waits for NoteWithin: it calls f once, d from now, on a goroutine
	// of its own; stop cancels the call. Nil means [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// FS is the file system. Nil means the operating system's.
	FS vfs.FS

	// Metrics receives measurements of appends and syncs. With nil, nothing is measured.
	Metrics LogMetrics

	// Now is the clock of Metrics; required with Metrics and otherwise never called.
	Now func() time.Time

	// Logger receives recovery notes and the store's own messages. Nil
	// discards them.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.MaxEntry < 0 || c.MaxBatch < 0 || c.MaxEntry > 1<<30 || c.MaxBatch > 1<<30 {
		return c, fmt.Errorf("%w: bounds are from 0 to 1 GiB", ErrInvalid)
	}
	if c.MaxEntry == 0 {
		c.MaxEntry = 1 << 20
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = 16 << 20
	}
	c.MaxBatch = max(c.MaxBatch, c.MaxEntry+chain.MaxBatchOverhead)
	if c.NoteEntries < 0 || c.NoteWithin < 0 {
		return c, fmt.Errorf("%w: the bounds of the noted heads must not be negative", ErrInvalid)
	}
	if c.Metrics != nil && c.Now == nil {
		return c, fmt.Errorf("%w: metrics need a clock; set Config.Now", ErrInvalid)
	}
	c.NoteEntries = cmp.Or(c.NoteEntries, DefaultNoteEntries)
	c.NoteWithin = cmp.Or(c.NoteWithin, DefaultNoteWithin)
	if c.AfterFunc == nil {
		c.AfterFunc = func(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Log is an open store. Its methods may be called from many goroutines.
type Log struct {
	cfg  Config              // immutable after Open
	db   *pebble.DB          // immutable after Open
	disk *storefile.FreezeFS // immutable after Open
	dir  string              // canonical; immutable after Open
	id   storefile.StoreID   // "" for a store from before SAJOU; immutable after Open
	lock *pebble.Lock        // of the directory; immutable after Open
	made *creation           // nil unless Open created the store; immutable after Open

	notes  *notes     // immutable after Open
	loss   *LossError // immutable after Open
	doubts []string   // immutable after Open

	// unreadEnds has by number the noted heads of the sessions whose end could not be read
	// when the log was opened; immutable after Open.
	unreadEnds map[uint32]Head

	// failure is the first failed write; set once, never cleared.
	failure  atomic.Pointer[failure]
	failedCh chan struct{} // closed with the first failure

	// applyMu serialises ApplyNoSyncWait over all sessions. Pebble's commit
	// pipeline never wakes a batch that entered behind one that failed, so
	// none may enter after a failure; its own queue is serial anyway.
	applyMu sync.Mutex

	// versionMu orders the writes of the format version, which never goes back.
	versionMu sync.Mutex

	// fatal says that Pebble took a failure for the end of the process: a wait
	// for its goroutines may never end.
	fatal atomic.Bool

	mu       sync.Mutex
	sessions map[string]weak.Pointer[Session] // those in use, by their users; guarded by mu
	next     uint32                           // next session number, 0 for none; guarded by applyMu
	shared   map[uint32]bool                  // numbers of more than one session record; immutable after Open
	wrote    bool                             // guarded by applyMu
	flushed  bool                             // all entries are in tables; set by Close before it closes the store
	closed   atomic.Bool
	readers  sync.WaitGroup // open iterators and staged batches
	lifeMu   sync.RWMutex   // held for reading while readers grows, for writing by Close
	done     chan struct{}  // closed by Close; wakes followers and idle leaders

	rounds      chan *Session  // unbuffered: to an idle leader
	idleLeaders atomic.Int32   // at most maxIdleLeaders wait on rounds
	leaders     sync.WaitGroup // goroutines that lead rounds, idle ones included
	idleTurns   sync.Pool      // of *turn
}

type failure struct{ cause error }

func newLog(cfg Config) *Log {
	l := &Log{cfg: cfg, sessions: make(map[string]weak.Pointer[Session]), next: 1, done: make(chan struct{}), rounds: make(chan *Session), failedCh: make(chan struct{})}
	l.disk = storefile.NewFreezeFS(cfg.FS, l.fail)
	if cfg.Metrics != nil {
		l.disk.Synced, l.disk.Now = cfg.Metrics.FileSynced, cfg.Now
	}
	l.notes = newNotes(l)
	return l
}

// Open opens the store in dir. Unless cfg.ReadOnly is set, it creates one where
// dir is absent or empty. A directory that holds anything other than a whole store
// is refused and stays as it is. Errors: [ErrNoStore], [ErrForeign], [ErrLocked],
// [ErrVersion], [ErrCorrupt], [ErrLost]; a [DirectoryError] says what was found.
// Read-only, a store that lost entries opens with the entries that are left; see
// [Log.Loss].
func Open(dir string, cfg Config) (*Log, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.FS == vfs.Default {
		if dir, err = storefile.Canonical(dir); err != nil {
			return nil, err
		}
	}
	l := newLog(cfg)
	if err := l.open(dir); err != nil {
		return nil, err
	}
	return l, nil
}

// firstFailure returns the cause that made the log read-only, if there is one.
func (l *Log) firstFailure() error {
	if f := l.failure.Load(); f != nil {
		return f.cause
	}
	return nil
}

func (l *Log) pebbleOptions(disk vfs.FS, readOnly bool) *pebble.Options {
	opts := &pebble.Options{
		FS:                 storefile.BlockFS{FS: disk},
		ReadOnly:           readOnly,
		FormatMajorVersion: pebble.FormatWALSyncChunks,
		MemTableSize:       16 << 20,
		// A writer waits while this many memtables wait for their flush. The wait
		// ends also on a disk that fails: the first failed flush freezes it, and the
		// flush is repeated into memory. Pebble keeps one file more of the
		// write-ahead log, to write it again.
		MemTableStopWritesThreshold: 4,
		L0StopWritesThreshold:       1 << 10,
		CacheSize:                   8 << 20,
		Logger:                      &storeLogger{log: l},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { l.backgroundError(err) },
			// A reader of the broken bytes gets the error as well.
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				l.cfg.Logger.Error("store is corrupt", slog.String("path", info.Path), slog.Any("err", info.Details))
			},
		},
	}
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionBalanced })
	opts.Experimental.CompactionScheduler = storefile.NewCompactions(l.disk)
	if l.id != "" {
		opts.BlockPropertyCollectors = []func() pebble.BlockPropertyCollector{func() pebble.BlockPropertyCollector { return storefile.TableMark(l.id) }}
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return opts
}

// countSessions finds the next free session number, which no session record, no
// tombstone, no batch and no outcome of a key has: entries under the number of a lost
// record must never be overwritten. It also records the numbers that several
// session records share.
func (l *Log) countSessions() error {
	all, err := keyspace.ReadRecords(l.db)
	if err != nil {
		return err
	}
	records := all.Sessions
	for _, s := range records {
		l.next = max(l.next, s.Number+1)
	}
	for _, t := range all.Tombstones {
		l.next = max(l.next, t.Number+1)
	}
	for i := 1; i < len(records); i++ {
		if records[i].Number == records[i-1].Number {
			if l.shared == nil {
				l.shared = make(map[uint32]bool)
			}
			l.shared[records[i].Number] = true
		}
	}
	if l.cfg.ReadOnly {
		return nil // no session begins, so damage elsewhere is no reason to refuse
	}
	for _, tag := range []byte{keyspace.TagBatch, keyspace.TagOutcome} {
		last, err := keyspace.LastNumber(l.db, tag)
		if err != nil {
			return err
		}
		if last == math.MaxUint32 {
			l.next = 0 // there is no number behind it
		} else if l.next > 0 {
			l.next = max(l.next, last+1)
		}
	}
	return nil
}

// reserveNumber takes the number of a session that is about to begin. If its first
// append fails, the number stays unused.
func (l *Log) reserveNumber() (uint32, error) {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	n := l.next
	if n == 0 || n == math.MaxUint32 {
		return 0, fmt.Errorf("%w: the store has keys of the last session number there is, so no session can begin; verify --all shows them", ErrCorrupt)
	}
	l.next++
	return n, nil
}

// SessionInfo names one session of a log.
type SessionInfo struct {
	Name string
}

// Sessions lists the sessions of the log in the order they were begun. A
// session record that cannot be read is left out; [Log.Survey] names it.
func (l *Log) Sessions() ([]SessionInfo, error) {
	if err := l.acquire(); err != nil {
		return nil, err
	}
	defer l.release()
	records, _, err := keyspace.Sessions(l.db)
	if err != nil {
		return nil, err
	}
	infos := make([]SessionInfo, len(records))
	for i, r := range records {
		infos[i] = SessionInfo{r.Name}
	}
	return infos, nil
}

// Session returns the session of that name. A session that does not exist yet begins
// with its first append and leaves no trace before; see [SessionReader.Exists]. The
// error is a [DeletedError] for one that was deleted.
func (l *Log) Session(name string) (*Session, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := l.acquire(); err != nil {
		return nil, err
	}
	defer l.release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[name].Value(); s != nil {
		if err := s.deletedErr(); err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := l.loadSession(name)
	if err != nil {
		return nil, err
	}
	l.sessions[name] = weak.Make(s)
	runtime.AddCleanup(s, l.forget, name)
	return s, nil
}

// forget drops the entry of an unused session from the table. A session lives as
// long as a caller, a reader or an append under way refers to it, so that all of them
// share one position.
func (l *Log) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions[name].Value() == nil {
		delete(l.sessions, name)
	}
}

// Err returns nil while the log can be written to, and otherwise the error that
// appends return.
func (l *Log) Err() error {
	if l.closed.Load() {
		return ErrClosed
	}
	return l.writable()
}

func (l *Log) writable() error {
	if f := l.failure.Load(); f != nil {
		return fmt.Errorf("%w after a failed write: %w", ErrReadOnly, f.cause)
	}
	if l.cfg.ReadOnly {
		return fmt.Errorf("%w: it was opened so", ErrReadOnly)
	}
	return nil
}

// fail makes the log read-only. Only the first cause is kept: later failures follow
// from it.
func (l *Log) fail(cause error) {
	if l.failure.CompareAndSwap(nil, &failure{cause}) {
		close(l.failedCh)
		l.cfg.Logger.Error("log is read-only after a failed write", slog.Any("err", cause))
		if l.cfg.Metrics != nil {
			l.cfg.Metrics.LogFailed(cause)
		}
	}
}

// Failed returns a channel that is closed when a write fails. From then on the log is
// read-only; see [Log.Err].
func (l *Log) Failed() <-chan struct{} { return l.failedCh }

// backgroundError is called by Pebble's goroutines for failed flushes and
// compactions. Pebble retries at once and forever; the pause keeps a broken table
// from taking a whole core.
func (l *Log) backgroundError(err error) {
	l.fail(err)
	<-time.After(backgroundPause)
}

const backgroundPause = 50 * time.Millisecond

// acquire registers a reader or writer, which Close waits for until it calls release.
func (l *Log) acquire() error {
	l.lifeMu.RLock()
	defer l.lifeMu.RUnlock()
	if l.closed.Load() {
		return ErrClosed
	}
	l.readers.Add(1)
	return nil
}

func (l *Log) release() { l.readers.Done() }

// Close waits for calls that are under way, and closes the store. Iterations
// that follow a session end with [ErrClosed]. Closing again does nothing. Close returns an
// error that no append or read has returned before, such as that of the last sync.
func (l *Log) Close() error {
	l.lifeMu.Lock()
	first := l.closed.CompareAndSwap(false, true)
	l.lifeMu.Unlock()
	if !first {
		return nil
	}
	close(l.done)
	l.readers.Wait()
	l.leaders.Wait()
	told := l.failure.Load() != nil // every affected caller has had its error
	err := l.notes.close()
	if l.failure.Load() != nil {
		_ = l.closeStore() // its errors add nothing
		if told {
			return nil
		}
		return fmt.Errorf("eventlog: close: %w", cmp.Or(err, l.firstFailure()))
	}
	if !l.cfg.ReadOnly {
		// Rot in the write-ahead log can cost entries; in tables it is detected.
		// Entries that a crash left in the log may not be in tables yet, so this
		// does not depend on writes of this process.
		err = errors.Join(err, l.notes.mark(l.db.Set), l.db.Flush())
		l.flushed = err == nil
	}
	err = errors.Join(err, l.closeStore(), l.firstFailure())
	if err != nil {
		return fmt.Errorf("eventlog: close: %w", err)
	}
	return nil
}

// Flush moves all durable entries into tables, so that [Log.DiskSize] counts them.
func (l *Log) Flush() error {
	if err := l.acquire(); err != nil {
		return err
	}
	defer l.release()
	if err := l.writable(); err != nil {
		return err
	}
	if err := l.db.Flush(); err != nil {
		return fmt.Errorf("eventlog: flush: %w", err)
	}
	return l.writable()
}

// DiskUsage is the space that a store takes on the disk, in bytes as the file system
// allocates them: Tables, Logs (the write-ahead log), Snapshots, and Other files.
type DiskUsage = storefile.DiskUsage

// DiskUsage returns the space that the whole store takes on the disk.
func (l *Log) DiskUsage() (DiskUsage, error) {
	if err := l.acquire(); err != nil {
		return DiskUsage{}, err
	}
	defer l.release()
	return storefile.MeasureUsage(l.cfg.FS, l.dir)
}

// DiskSize returns the bytes that a session's batches take in the tables of the store,
// as the store estimates them. Entries that are in the write-ahead log alone do not
// count; [Log.DiskUsage] is the size of the whole store.
func (l *Log) DiskSize(_ context.Context, name string) (uint64, error) {
	if err := l.acquire(); err != nil {
		return 0, err
	}
	defer l.release()
	number, ok, err := keyspace.SessionNumber(l.db, name)
	if err != nil || !ok {
		return 0, err
	}
	all := keyspace.BatchesOf(number)
	n, err := l.db.EstimateDiskUsage(all.LowerBound, all.UpperBound)
	if err != nil {
		return 0, keyspace.ReadError("estimate size", err)
	}
	return n, nil
}

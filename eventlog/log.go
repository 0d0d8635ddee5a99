// Package eventlog keeps append-only, hash-chained sequences of entries, one
// a session, in one Pebble store.
//
// A [Log] is one store in one directory. It holds many sessions; each
// [Session] is one chain of numbered entries. An [Entry] says of which [Kind]
// it is, at which session time it happened, and carries one msgpack value
// that this package does not interpret. Entries are appended as a [Batch] of
// one or more, which is all there or not there at all.
//
// # The sealed batch
//
// What is appended is sealed first: turned into bytes that do not depend on
// the store beneath, so that any other carrier can transport them unchanged.
// A sealed batch is
//
//	| version (1B, =1) | first Seq (uvarint) | count (uvarint) | count × link |
//
// and a link, the stored form of entry n, is
//
//	| length (uvarint) | body (length bytes) | hash (32B) |
//
// with uvarint as in encoding/binary: seven bits a byte, low ones first. The
// chain is
//
//	hash(0) = SHA-256("sajou.session/1\n" ‖ session name)
//	hash(n) = SHA-256(hash(n-1) ‖ length ‖ body)
//
// so what is hashed is what is stored, and a verifier decodes nothing. (The
// length stands between the hash before and the body, which makes the hashed
// bytes one run of memory inside a batch.) Two sessions of different names
// have different genesis hashes: no entry of one verifies in the other.
//
// The body is one msgpack value, an array of four:
//
//	[kind (int), at (int, ns since the session began), key (str) or nil, data]
//
// Kinds are 1 signal, 2 effect, 3 beat, 4 define, 5 session. Key is the
// idempotency key of the batch and stands on its first entry only. Data
// is the rest of the body: one msgpack value whose shape its kind decides.
// The arrays of the known shapes are told in package signal and in the root
// package.
//
// # The store
//
// Pebble holds four kinds of key, told apart by their first byte. Numbers
// are big-endian, so that keys sort as numbers do:
//
//	'f'                                      format version (1B, =1)
//	's' | session name                       session number (4B)
//	'e' | session number (4B) | Seq (8B)     sealed batch whose first entry has that Seq
//	'k' | session number (4B) | key          outcome: first Seq, last Seq (8B each), hash (32B)
//
// The session number is local to the store and is not part of any hash.
// Everything but the sealed batches and the names could be rebuilt from them.
//
// # Invariants
//
//   - Sequence numbers start at 1 and have no gaps; session times never decrease.
//   - [Session.Append] returns only after the batch has reached stable storage.
//     Writers that come together share one write and its sync.
//   - No reader sees an entry before it is durable.
//   - Opening a log changes nothing in it and truncates nothing; a broken
//     chain is an error.
//   - After a failed write the log is read-only until it is opened again:
//     every later append answers [ErrReadOnly] with the cause. The process
//     goes on, and nothing more is written to the disk: what is there is what
//     a crash at that moment could have left.
//   - An idempotency key is remembered for ever, with the outcome of its
//     first use.
//
// # Limits
//
// The chain shows that an entry was altered, dropped, moved or taken from
// another session. It does not stop someone who can rewrite a whole
// session, nor does it show that the newest entries were cut off: compare a
// [Head] kept elsewhere ([VerifyOptions]). Without one, bytes that rot in the
// last block (32 KiB) of the write-ahead log of a process that was killed look
// like a write that was cut off, and cost the entries behind them. A directory
// is open once at a time; sessions and goroutines share the one [Log].
package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Errors that callers decide on. Details come wrapped around them.
var (
	// ErrClosed answers every call on a closed log.
	ErrClosed = errors.New("eventlog: log is closed")

	// ErrReadOnly answers appends to a log that was opened read-only, or
	// whose writing failed; the cause is wrapped beside it.
	ErrReadOnly = errors.New("eventlog: log is read-only")

	// ErrCorrupt marks bytes in the store that cannot be what was written.
	ErrCorrupt = errors.New("eventlog: corrupt")

	// ErrVersion marks a store or batch written by a newer format.
	ErrVersion = errors.New("eventlog: unknown format version")

	// ErrConflict answers an append whose expected Head is not the Head; see
	// [ConflictError] for where the session stands.
	ErrConflict = errors.New("eventlog: expected head differs")

	// ErrNoStore answers a read-only Open of a directory that holds no store.
	ErrNoStore = errors.New("eventlog: no store")

	// ErrNoSession answers a question about a session that does not exist.
	ErrNoSession = errors.New("eventlog: no such session")

	// ErrLocked answers Open while another process has the store open.
	ErrLocked = errors.New("eventlog: store is in use by another process")

	// ErrTooLarge answers an append that is over a bound of [Config].
	ErrTooLarge = errors.New("eventlog: too large")

	// ErrInvalid answers an append or a session name that no log can hold.
	ErrInvalid = errors.New("eventlog: invalid")
)

// Bounds that are part of the format.
const (
	// MaxName bounds a session name, in bytes.
	MaxName = 255

	// MaxKey bounds an idempotency key, in bytes.
	MaxKey = 255

	// MaxBatchEntries bounds the number of entries of one batch.
	MaxBatchEntries = 1 << 16
)

// formatVersion is the version of the store's layout, under keyFormat.
const formatVersion = 1

// Config tells how a log is opened. The zero value is a good default.
type Config struct {
	// ReadOnly opens an existing store without changing a byte of it.
	ReadOnly bool

	// MaxEntry bounds the body of one entry, in bytes. Zero means 1 MiB.
	// Larger ones are refused before they are written and when read.
	MaxEntry int

	// MaxBatch bounds one sealed batch, in bytes. Zero means 16 MiB; it is
	// raised to hold at least one entry of MaxEntry.
	MaxBatch int

	// LockWait is how long Open waits for a store that another process has
	// open. Zero means not at all.
	LockWait time.Duration

	// FS is the file system. Nil means the operating system's.
	FS vfs.FS

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
	c.MaxBatch = max(c.MaxBatch, c.MaxEntry+maxBatchOverhead)
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
	cfg  Config     // immutable after Open
	db   *pebble.DB // immutable after Open
	disk *freezeFS  // immutable after Open

	// failure is the first failed write; set once, never cleared.
	failure  atomic.Pointer[failure]
	failedCh chan struct{} // closed with the first failure

	// applyMu serialises ApplyNoSyncWait over all sessions. Pebble's commit
	// pipeline never wakes a batch that entered behind one that failed, so
	// none may enter after a failure; its own queue is serial anyway.
	applyMu sync.Mutex

	// fatal says that Pebble took a failure for the end of the process, and
	// may have left behind what never finishes.
	fatal atomic.Bool

	mu       sync.Mutex
	sessions map[string]*Session // guarded by mu
	next     uint32              // next session number; guarded by applyMu
	wrote    bool                // guarded by applyMu
	closed   atomic.Bool
	readers  sync.WaitGroup // open iterators and staged batches
	lifeMu   sync.RWMutex   // held for reading while readers grows, for writing by Close
	done     chan struct{}  // closed by Close; wakes those who follow
}

type failure struct{ cause error }

// Open opens the store in dir, and creates it unless cfg.ReadOnly is set.
// Errors: [ErrNoStore], [ErrLocked], [ErrVersion], [ErrCorrupt].
func Open(dir string, cfg Config) (*Log, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.ReadOnly {
		// Pebble makes a lock file even when it only reads; look first, so
		// that a wrong path stays as it was.
		if names, err := cfg.FS.List(dir); err != nil || !holdsStore(names) {
			return nil, fmt.Errorf("%w in %s", ErrNoStore, dir)
		}
	} else if err := makeDirectory(cfg.FS, dir); err != nil {
		return nil, fmt.Errorf("eventlog: create %s: %w", dir, err)
	}
	if cfg.FS == vfs.Default {
		if dir, err = canonical(dir); err != nil {
			return nil, err
		}
	}
	l := &Log{cfg: cfg, sessions: make(map[string]*Session), next: 1, done: make(chan struct{}), failedCh: make(chan struct{})}
	l.disk = newFreezeFS(cfg.FS, l.fail)
	lock, err := lockDirectory(dir, cfg)
	if err != nil {
		return nil, err
	}
	opts := l.pebbleOptions()
	opts.Lock = lock
	l.db, err = pebble.Open(dir, opts)
	// Open took its own reference; the lock falls with the last one.
	lockErr := lock.Close()
	if err != nil {
		return nil, openError(dir, errors.Join(err, l.firstFailure()))
	}
	err = lockErr
	if failed := l.firstFailure(); failed != nil {
		err = openError(dir, failed)
	}
	if err == nil {
		err = errors.Join(l.checkFormat(), l.countSessions())
	}
	if err != nil {
		return nil, errors.Join(err, l.db.Close())
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

func openError(dir string, err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: store %s: %s", ErrCorrupt, dir, firstLine(err))
	}
	return fmt.Errorf("eventlog: open %s: %w", dir, err)
}

func (l *Log) pebbleOptions() *pebble.Options {
	opts := &pebble.Options{
		FS:                 l.disk,
		ReadOnly:           l.cfg.ReadOnly,
		FormatMajorVersion: pebble.FormatWALSyncChunks,
		MemTableSize:       16 << 20,
		// A full set of memtables must never stall a writer for good: when
		// flushing fails the log is failed long before these are reached.
		MemTableStopWritesThreshold: 16,
		L0StopWritesThreshold:       1 << 10,
		CacheSize:                   8 << 20,
		Logger:                      &storeLogger{log: l},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { l.backgroundError(err) },
			// Whoever reads the broken bytes gets the error, too.
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				l.cfg.Logger.Error("store is corrupt", slog.String("path", info.Path), slog.Any("err", info.Details))
			},
		},
	}
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionBalanced })
	opts.Experimental.CompactionScheduler = newCompactions(l.disk)
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return opts
}

// checkFormat reads the format version before anything else is judged, and
// writes it into a store that is new.
func (l *Log) checkFormat() error {
	v, closer, err := l.db.Get(keyFormat)
	switch {
	case err == nil:
		version := append([]byte(nil), v...)
		if err := closer.Close(); err != nil {
			return err
		}
		if len(version) != 1 {
			return fmt.Errorf("%w: the format record has %d bytes, want 1", ErrCorrupt, len(version))
		}
		if version[0] != formatVersion {
			return fmt.Errorf("%w: store has version %d, this program reads %d", ErrVersion, version[0], formatVersion)
		}
		return nil
	case !errors.Is(err, pebble.ErrNotFound):
		return fmt.Errorf("eventlog: read format: %w", err)
	}
	empty, err := l.empty()
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%w: the directory holds another program's Pebble store", ErrVersion)
	}
	if l.cfg.ReadOnly {
		return nil
	}
	if err := l.db.Set(keyFormat, []byte{formatVersion}, pebble.Sync); err != nil {
		return fmt.Errorf("eventlog: write format: %w", err)
	}
	// Pebble begins the first write-ahead log of a new store in its oldest
	// format, which cannot tell rot in the middle from a torn end. The next
	// one can.
	if err := l.db.Flush(); err != nil {
		return fmt.Errorf("eventlog: write format: %w", err)
	}
	if err := l.firstFailure(); err != nil {
		return fmt.Errorf("eventlog: write format: %w", err)
	}
	return nil
}

func (l *Log) empty() (bool, error) {
	it, err := l.db.NewIter(nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, errors.Join(it.Error(), it.Close())
}

// countSessions finds the next free session number.
func (l *Log) countSessions() error {
	infos, err := l.Sessions()
	if err != nil {
		return err
	}
	for _, s := range infos {
		if s.number == 0 || s.number == math.MaxUint32 {
			return fmt.Errorf("%w: session record %q has number %d", ErrCorrupt, s.Name, s.number)
		}
		l.next = max(l.next, s.number+1)
	}
	return nil
}

// reserveNumber takes the number of a session that is about to begin. Should
// its first append fail, the number stays unused.
func (l *Log) reserveNumber() uint32 {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	n := l.next
	l.next++
	return n
}

// SessionInfo names one session of a log.
type SessionInfo struct {
	Name string

	// number is the session's place in order of creation.
	number uint32
}

// Sessions lists the sessions of the log in the order they were begun.
func (l *Log) Sessions() ([]SessionInfo, error) {
	release, err := l.acquire()
	if err != nil {
		return nil, err
	}
	defer release()
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tagSession}, UpperBound: []byte{tagSession + 1}})
	if err != nil {
		return nil, fmt.Errorf("eventlog: list sessions: %w", err)
	}
	var infos []SessionInfo
	var bad error
	for it.First(); it.Valid() && bad == nil; it.Next() {
		v := it.Value()
		if len(v) != 4 {
			bad = fmt.Errorf("%w: session record %q has %d bytes, want 4", ErrCorrupt, it.Key(), len(v))
			break
		}
		infos = append(infos, SessionInfo{string(it.Key()[1:]), binary.BigEndian.Uint32(v)})
	}
	if err := errors.Join(bad, it.Error(), it.Close()); err != nil {
		return nil, readError("list sessions", err)
	}
	sortByNumber(infos)
	return infos, nil
}

// CheckName reports whether a session can have that name: 1 to [MaxName]
// bytes of UTF-8 without control characters or line breaks.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a session name must not be empty", ErrInvalid)
	case len(name) > MaxName:
		return fmt.Errorf("%w: session name has %d bytes, at most %d are allowed", ErrInvalid, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: session name %q is not UTF-8", ErrInvalid, name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%w: session name %q holds the unprintable character %U", ErrInvalid, name, r)
		}
	}
	return nil
}

// Session returns the session of that name. One that does not exist yet is
// begun by its first append and leaves no trace before; [Session.Exists]
// tells.
func (l *Log) Session(name string) (*Session, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	release, err := l.acquire()
	if err != nil {
		return nil, err
	}
	defer release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[name]; s != nil {
		return s, nil
	}
	s, err := l.loadSession(name)
	if err != nil {
		return nil, err
	}
	l.sessions[name] = s
	return s, nil
}

// sessionNumber looks a name up; ok is false when no such session exists.
func (l *Log) sessionNumber(name string) (number uint32, ok bool, err error) {
	v, closer, err := l.db.Get(sessionKey(name))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, readError("look up session "+name, err)
	}
	if len(v) != 4 {
		return 0, false, errors.Join(fmt.Errorf("%w: session record %q", ErrCorrupt, name), closer.Close())
	}
	number = binary.BigEndian.Uint32(v)
	return number, true, closer.Close()
}

// Err returns nil while the log can be written to, and otherwise the error
// that appends answer with.
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

// fail makes the log read-only. Only the first cause is kept: what fails
// later follows from it.
func (l *Log) fail(cause error) {
	if l.failure.CompareAndSwap(nil, &failure{cause}) {
		close(l.failedCh)
		l.cfg.Logger.Error("log is read-only after a failed write", slog.Any("err", cause))
	}
}

// Failed returns what is closed when a write fails, from when on the log is
// read-only; see [Log.Err].
func (l *Log) Failed() <-chan struct{} { return l.failedCh }

// backgroundError is called by the store's own goroutines for failed flushes
// and compactions. The store tries again at once and for ever; the pause
// keeps a broken table from taking a whole core as well.
func (l *Log) backgroundError(err error) {
	l.fail(err)
	<-time.After(backgroundPause)
}

const backgroundPause = 50 * time.Millisecond

// acquire notes a reader or writer that Close has to wait for.
func (l *Log) acquire() (release func(), err error) {
	l.lifeMu.RLock()
	defer l.lifeMu.RUnlock()
	if l.closed.Load() {
		return nil, ErrClosed
	}
	l.readers.Add(1)
	return l.readers.Done, nil
}

// Close waits for calls that are under way, and closes the store. Iterations
// that follow a session end with [ErrClosed]. Closing again does nothing.
func (l *Log) Close() error {
	l.lifeMu.Lock()
	first := l.closed.CompareAndSwap(false, true)
	l.lifeMu.Unlock()
	if !first {
		return nil
	}
	close(l.done)
	l.readers.Wait()
	if l.failure.Load() != nil {
		// What was lost has been told to those who lost it; what Pebble has
		// to say about it now is of no use.
		_ = l.db.Close()
		return nil
	}
	var err error
	if l.wrote {
		// Optional, but it spares every later read-only open the replay of
		// the write-ahead log.
		err = l.db.Flush()
	}
	err = errors.Join(err, l.db.Close(), l.firstFailure())
	if err != nil {
		return fmt.Errorf("eventlog: close: %w", err)
	}
	return nil
}

// DiskSize returns the bytes that a session's batches take in the store,
// estimated by the store from its tables.
func (l *Log) DiskSize(_ context.Context, name string) (uint64, error) {
	release, err := l.acquire()
	if err != nil {
		return 0, err
	}
	defer release()
	number, ok, err := l.sessionNumber(name)
	if err != nil || !ok {
		return 0, err
	}
	n, err := l.db.EstimateDiskUsage(batchKey(nil, number, 0), batchKey(nil, number+1, 0))
	if err != nil {
		return 0, readError("estimate size", err)
	}
	return n, nil
}

func readError(op string, err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %s: %s", ErrCorrupt, op, firstLine(err))
	}
	return fmt.Errorf("eventlog: %s: %w", op, err)
}

// firstLine drops what Pebble appends to errors for its own reports.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

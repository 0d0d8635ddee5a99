package sajou

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
	"weak"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
	"github.com/sajou-dev/sajou-go/stage"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// Config holds the options of an engine. The zero value is a good default.
type Config struct {
	// ReadOnly opens an existing store without changing it.
	ReadOnly bool

	// SnapshotEvery is the number of entries from one snapshot to the next.
	// Zero means 1000; less than zero means that none are taken.
	SnapshotEvery int

	// NoSnapshots neither reads nor takes snapshots or indexes: every state is folded from the
	// first entry. The chain proves the log, but nothing proves a snapshot; see
	// [Engine.VerifySnapshots].
	NoSnapshots bool

	// MaxEntry bounds one entry, in bytes. Zero means 1 MiB.
	MaxEntry int

	// IdleSessions is the number of sessions that the engine keeps ready after their
	// last use. One that was used less recently lets its state go, and computes it
	// again when it is used: a [Session] stays valid. A session with agents, a sink or
	// a call of the judge under way is not idle and does not count. Zero means 1024.
	IdleSessions int

	// RemoveUnused makes Close remove the store again if this Open created it
	// and no session was recorded.
	RemoveUnused bool

	// LockWait is how long Open waits for a store that another process has
	// open. Zero means not at all.
	LockWait time.Duration

	// NoteEntries and NoteWithin bound how far the noted heads on stable storage
	// lag behind the log; see [eventlog.Config]. Zero means its defaults.
	NoteEntries int
	NoteWithin  time.Duration

	// AcceptLoss opens the rest of a store that lost entries for writing;
	// see [eventlog.Config].
	AcceptLoss bool

	// Actions are actions that the embedding program adds to those of the stage, by
	// name. A store does not contain them: a program that opens the store without
	// them shows the same session without these actions.
	Actions map[string]stage.Action

	// World holds the kinds of effect, policies and validators that the program adds
	// to the agents' world. A program that opens the store without them computes
	// other states from the same entries.
	World agents.Options

	// Projections are folds that the embedding program adds to those of every session;
	// see [State]. Their images are kept apart from the engine's, by name and
	// version. Without one of them the program finds everything else as it was.
	Projections []projection.Projection

	// Migrate converts an intent of another schema_version to the present one,
	// SchemaVersion of package agents/world. Nil means that intents of other minor versions are
	// accepted unchanged and those of other major versions are refused.
	Migrate func(agents.Intent) (agents.Intent, error)

	// Judge answers the director's questions; see [directorlive.Director.With]. With nil they
	// are answered as unclear.
	Judge director.Judge

	// JudgeTimeout bounds the wait for the verdicts about a response.
	// Zero means [directorlive.DefaultJudgeTimeout].
	JudgeTimeout time.Duration

	// OmitText leaves the messages of the user and the character out of the log; the
	// director's events still have their digests. Such a session can be audited and
	// replayed, but not judged again.
	OmitText bool

	// RecordPrompts records the text of each prompt with its attempt at a generation.
	// Otherwise only its SHA-256 is recorded, and the log alone does not prove which
	// text an agent was sent.
	RecordPrompts bool

	// FrameRate is how often an attached sink gets updates or frames while
	// something moves, in frames a second from 1 to 1000, unless it asks for
	// another rate. Zero means 60.
	FrameRate int

	// CloseTimeout bounds the wait of Close for a running call of a sink. After it the
	// sink is abandoned; see [stagelive.Attachment]. Zero means 5 s; a negative value
	// means no wait.
	CloseTimeout time.Duration

	// Now is the wall clock. It paces frames, and rules session time: in a session of
	// [session.TimeWall] the time of each decision, and so of the entries that agents,
	// director and Broadcast record, is Now less the session's origin. It also bounds
	// the timestamps of signals, see MaxSkew. Nil means [time.Now].
	Now func() time.Time

	// MaxSkew bounds how far the timestamp of a signal may be ahead of Now, in a
	// session of [session.TimeWall]: session time never goes back, so that all later
	// entries would stand there. Such a signal is refused with a [*session.SkewError],
	// or, if the [Addition] is lenient, recorded with a problem and without moving
	// session time. Imports are not bounded, see Addition.Recording. Zero means 24 h; a
	// negative value means no bound.
	MaxSkew time.Duration

	// AfterFunc calls f once, d from now, on a goroutine of its own, unless stop is
	// called first. A program that sets Now must set AfterFunc too, so that both
	// follow the same clock. Nil means [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// FS is the file system of the log. Nil means the operating system's;
	// with any other no snapshots are kept.
	FS vfs.FS

	// IndexFrom is the number of entries from which questions about a session are answered
	// with an index; see [IndexFile]. Zero means 10,000: a pass over fewer takes no
	// noticeable time. Less than zero means never.
	IndexFrom int

	// OnIndex, unless nil, is called while an index of a long session is built for a
	// question, with the number of entries that were read and of all; see [IndexFile]. The
	// calls are on the goroutine of the question.
	OnIndex func(session string, done, total eventlog.Seq)

	// Metrics receives counts and durations of the engine's work. What is nil is not
	// measured.
	Metrics Metrics

	// Logger receives notes on recovery and snapshots and, at debug level, on the
	// requests and observations of agents. Nil discards them.
	Logger *slog.Logger

	// Redact wraps the Logger's handler in one that removes sensitive values.
	// Nil means [Redact]; see also [RedactAlso] and [Unredacted].
	Redact func(slog.Handler) slog.Handler
}

// SnapshotFile is the name of the snapshot store inside an engine's directory.
// It can be deleted whenever no process has the store open.
const SnapshotFile = "snapshots.db"

// unusableSuffix is appended to the name of a snapshot file that cannot be used.
// Further ones get a number, up to maxUnusable; then the last is replaced.
const (
	unusableSuffix = ".unusable"
	maxUnusable    = 9
)

func (c Config) withDefaults() (Config, error) {
	if c.FrameRate == 0 {
		c.FrameRate = 60
	}
	if err := stagelive.CheckRate(c.FrameRate); err != nil {
		return c, err
	}
	if _, err := agents.NewCore(c.World); err != nil {
		return c, err
	}
	if err := c.checkProjections(); err != nil {
		return c, err
	}
	if c.IdleSessions < 0 {
		return c, fmt.Errorf("sajou: negative IdleSessions %d", c.IdleSessions)
	}
	c.IdleSessions = cmp.Or(c.IdleSessions, 1024)
	if c.MaxSkew == 0 {
		c.MaxSkew = 24 * time.Hour
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = 5 * time.Second
	}
	if c.AfterFunc == nil {
		c.AfterFunc = stagelive.AfterFunc
	}
	if c.JudgeTimeout <= 0 {
		c.JudgeTimeout = directorlive.DefaultJudgeTimeout
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = snapshot.DefaultInterval
	}
	c.IndexFrom = cmp.Or(c.IndexFrom, 10_000)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Redact == nil {
		c.Redact = Redact
	}
	c.Logger = slog.New(c.Redact(c.Logger.Handler()))
	return c, nil
}

// Engine is one open store. Its methods may be called from many goroutines.
type Engine struct {
	cfg         Config                 // immutable after Open
	set         projection.Set         // the projections of every session; immutable after Open
	log         *eventlog.Log          // immutable after Open
	snaps       *snapshot.Store        // nil: none are kept; immutable after Open
	snapshotter *snapshot.Writer       // nil: none are written; immutable after Open
	digestMu    sync.Mutex             // held while the file of digests changes
	indexes     indexes                // derived tables that are open
	writers     *writer.Group          // immutable after Open
	attachments *stagelive.Attachments // immutable after Open

	snapsPath string // "" with a file system of the program; immutable after Open
	snapsMade bool   // this Open created the snapshot file; immutable after Open
	snapsErr  error  // why the engine works without snapshots; nil if it was asked to; immutable after Open

	mu       sync.Mutex
	sessions map[string]weak.Pointer[Session] // those in use; guarded by mu
	ready    []*Session                       // those that are kept although they may not be in use; guarded by mu
	closed   bool                             // guarded by mu

	deleting chan struct{} // holds one value while a call deletes sessions
}

// Open opens the store in dir. Unless cfg.ReadOnly is set, it creates one where
// dir is absent or empty; see [eventlog.Open]. Errors: [eventlog.ErrNoStore],
// [eventlog.ErrForeign], [eventlog.ErrLocked], [eventlog.ErrVersion],
// [eventlog.ErrCorrupt], [eventlog.ErrLost].
func Open(dir string, cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l, err := eventlog.Open(dir, eventlog.Config{
		ReadOnly:     cfg.ReadOnly,
		RemoveUnused: cfg.RemoveUnused,
		MaxEntry:     cfg.MaxEntry,
		LockWait:     cfg.LockWait,
		NoteEntries:  cfg.NoteEntries,
		NoteWithin:   cfg.NoteWithin,
		AcceptLoss:   cfg.AcceptLoss,
		FS:           cfg.FS,
		Metrics:      cfg.Metrics.Log,
		Now:          cfg.Now,
		Logger:       cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, set: cfg.set(), log: l,
		sessions: make(map[string]weak.Pointer[Session]), deleting: make(chan struct{}, 1),
	}
	if cfg.FS == nil {
		e.snapsPath = filepath.Join(dir, SnapshotFile)
	}
	if cfg.FS == nil && !cfg.NoSnapshots {
		e.openSnapshots()
	}
	e.attachments = stagelive.NewAttachments(stagelive.Config{
		FrameRate: cfg.FrameRate, CloseTimeout: cfg.CloseTimeout, Now: cfg.Now, AfterFunc: cfg.AfterFunc, Logger: cfg.Logger,
		Metrics: cfg.Metrics.Sinks,
	})
	e.writers = writer.NewGroup(writer.Config{
		Log: l, Snapshots: e.snaps, Snapshotter: e.snapshotter, Metrics: cfg.Metrics.Folds, Now: cfg.Now, Logger: cfg.Logger,
	})
	return e, nil
}

// asideName returns the first of path, path.2, … path.9 under which no file
// exists, or the last.
func asideName(path string) string {
	name := path
	for n := 2; n <= maxUnusable; n++ {
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			break
		}
		name = fmt.Sprintf("%s.%d", path, n)
	}
	return name
}

// openSnapshots opens the snapshot store beside the log. Snapshots only save time, so
// on any error the engine logs it and works without them.
func (e *Engine) openSnapshots() {
	path := e.snapsPath
	cfg := snapshot.Config{ReadOnly: e.cfg.ReadOnly, Interval: max(e.cfg.SnapshotEvery, 0)}
	_, before := os.Stat(path)
	e.snapsMade = !e.cfg.ReadOnly && errors.Is(before, os.ErrNotExist)
	store, err := snapshot.Open(path, cfg)
	if errors.Is(err, snapshot.ErrUnusable) && !e.cfg.ReadOnly {
		// It may be a file of another program, so it is renamed and not deleted.
		aside := asideName(path + unusableSuffix)
		e.cfg.Logger.Warn("the snapshot file is unusable; it is kept under another name, and a new one begun", slog.Any("err", err), slog.String("path", aside))
		if err = os.Rename(path, aside); err == nil {
			store, err = snapshot.Open(path, cfg)
		}
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return // read-only, and no snapshot was taken yet
	case err != nil:
		e.cfg.Logger.Warn("working without snapshots", slog.Any("err", err))
		e.snapsErr = err
		return
	}
	e.snaps = store
	if !e.cfg.ReadOnly && e.cfg.SnapshotEvery > 0 {
		e.snapshotter = snapshot.NewWriter(store, snapshot.WriterConfig{Logger: e.cfg.Logger, Metrics: e.cfg.Metrics.Snapshots, Now: e.cfg.Now})
	}
}

// maxEntry returns the bound of one entry, in bytes.
func (e *Engine) maxEntry() int { return cmp.Or(e.cfg.MaxEntry, 1<<20) }

// Log returns a reader of the engine's log: verification, surveys, entries.
func (e *Engine) Log() *eventlog.LogReader { return e.log.Reader() }

// RebuildKeys rebuilds the records of a session's idempotency keys from its entries;
// see [eventlog.Log.RebuildKeys].
func (e *Engine) RebuildKeys(ctx context.Context, name string, opts verify.Options) (verify.SessionReport, error) {
	return e.log.RebuildKeys(ctx, name, opts)
}

// Restore appends recorded batches to a session as they are, in one write, and returns
// the Head behind them. It folds nothing, so the session must not be open: the error
// is [eventlog.ErrClaimed] for a session that [Engine.Session] has returned and that
// is still referred to. Other
// errors are those of [eventlog.Session.Append].
func (e *Engine) Restore(ctx context.Context, name string, batches ...eventlog.Batch) (head eventlog.Head, err error) {
	log, err := e.log.Session(name)
	if err != nil {
		return head, err
	}
	appender, err := log.Claim()
	if err != nil {
		return head, err
	}
	defer appender.Release()
	var refused error
	err = appender.Write(ctx, func(r *eventlog.Round) {
		for _, batch := range batches {
			var t *eventlog.Ticket
			if t, refused = r.Stage(batch); refused != nil {
				return
			}
			head = t.Head()
		}
	})
	return head, errors.Join(refused, err)
}

// Projections returns the projections of every session of the engine:
// [session.Projections] with the Actions and the World of its [Config], and then the
// Projections of its [Config]. The caller must
// not change them.
func (e *Engine) Projections() projection.Set { return e.set }

// Sessions returns the names of all sessions in the order they were begun.
func (e *Engine) Sessions() ([]string, error) {
	infos, err := e.log.Sessions()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name
	}
	return names, nil
}

// Latest returns the name of the session that was begun last, or
// [eventlog.ErrNoSession].
func (e *Engine) Latest() (string, error) {
	names, err := e.Sessions()
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", fmt.Errorf("%w: the store has none yet", eventlog.ErrNoSession)
	}
	return names[len(names)-1], nil
}

// Close detaches all sinks, waits for calls under way and for snapshots that
// are being written, and closes the store. Closing again does nothing.
//
// A sink whose call does not return within [Config.CloseTimeout] is abandoned: the
// error then matches [stagelive.ErrSinkStuck] and names it, and the store is closed
// nevertheless.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.writers.Stop()
	err := e.attachments.Close()
	e.writers.Wait()
	if e.cfg.RemoveUnused && e.snapsMade && (e.log.Unused() || errors.Is(e.log.Err(), eventlog.ErrReadOnly)) {
		// If nothing became durable, the log removes its directory, and this file would
		// prevent that. Otherwise only states are lost that can be folded again.
		e.writers.WaitFolded()
		err = errors.Join(err, e.closeSnapshots(), os.Remove(e.snapsPath))
	}
	err = errors.Join(err, e.log.Close()) // after this nothing is recorded, and so nothing begins to be folded
	e.writers.WaitFolded()
	if e.snapshotter != nil {
		e.snapshotter.Close()
	}
	e.writers.NotePositions()
	return errors.Join(err, e.closeSnapshots())
}

func (e *Engine) closeSnapshots() error {
	if e.snapshotter != nil {
		e.snapshotter.Close()
	}
	err := e.indexes.close()
	if e.snaps != nil {
		err = errors.Join(err, e.snaps.Close())
	}
	return err
}

// Package sajou is an event-sourced engine for AI-agent sessions that are shown
// as animated scenes.
//
// Everything that happens in a session is an entry of one hash-chained log
// ([eventlog]). Everything else is a fold over that log and can be thrown away
// ([projection]): which choreographies are in force and which performances
// are under way ([choreography]). An [Engine] is one store in one directory;
// a [Session] records signals and drives sinks live; a [Replay] travels in
// time through what was recorded ([replay]).
//
//	eng, err := sajou.Open(dir, sajou.Config{})
//	ses, err := eng.Session(ctx, "release-42")
//	_, err = ses.Define(ctx, definitions...)
//	head, err := ses.Signal(ctx, sig)                        // durable when it returns
//	detach := ses.Attach(sink)                               // a choreography.CommandSink
//	state, err := eng.Replay("release-42").At(ctx, 812)
//
// # What a session records
//
// A session's first batch begins with an entry of kind session, data
//
//	["opened", {"time": "wall"}]
//
// which says where its time comes from ([TimeAuthority]). A choreography that
// comes into force is an entry of kind define, data
//
//	["choreography", definition]
//
// with the definition as it was written, so a log replays without any file
// beside it. Signals are entries whose data package signal describes. Nothing
// in a log depends on the clock, the machine or chance: the same records
// under the same session name give the same head hash in every store.
//
// # Live and replay
//
// Both go through one fold. An entry is applied by letting session time run up
// to and including its own, and then letting it happen; so the commands of a
// session, updates apart, do not depend on how often anybody looked. Frames
// are drawn from copies of the state and never reach it.
//
// # Guarantees
//
//   - A record is durable when the call returns, and all of it or none.
//   - Decisions see the newest state; sinks, subscribers and [Session.State] see
//     an entry only once it is durable.
//   - A slow or blocked sink or subscriber never delays a writer and loses
//     nothing: each reads the log at its own pace, and holds no queue.
//   - Opening after a crash continues from the newest good snapshot and the
//     entries behind it.
package sajou

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// ErrTime answers a signal whose timestamp the session's time cannot take in.
var ErrTime = errors.New("sajou: timestamp out of range")

// Config tells how an engine is opened. The zero value is a good default.
type Config struct {
	// ReadOnly opens an existing store without changing it.
	ReadOnly bool

	// SnapshotEvery is the number of entries from one snapshot to the next.
	// Zero means 1000; less than zero means that none are taken.
	SnapshotEvery int

	// MaxEntry bounds one entry, in bytes. Zero means 1 MiB.
	MaxEntry int

	// LockWait is how long Open waits for a store that another process has
	// open. Zero means not at all.
	LockWait time.Duration

	// FrameRate is how often an attached sink gets updates while something
	// moves, in frames a second from 1 to 1000. Zero means 60.
	FrameRate int

	// Now is the clock that frames are drawn by. Nil means time.Now.
	Now func() time.Time

	// FS is the file system of the log. Nil means the operating system's;
	// with any other no snapshots are kept.
	FS vfs.FS

	// Logger receives notes on recovery and on snapshots. Nil discards them.
	Logger *slog.Logger
}

// SnapshotFile is the name of the snapshot store inside an engine's directory.
// It can be deleted whenever no process has the store open.
const SnapshotFile = "snapshots.db"

func (c Config) withDefaults() (Config, error) {
	if c.FrameRate < 0 || c.FrameRate > 1000 {
		return c, fmt.Errorf("sajou: frame rate %d is not from 1 to 1000", c.FrameRate)
	}
	if c.FrameRate == 0 {
		c.FrameRate = 60
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = snapshot.DefaultInterval
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Engine is one open store. Its methods may be called from many goroutines.
type Engine struct {
	cfg    Config           // immutable after Open
	log    *eventlog.Log    // immutable after Open
	snaps  *snapshot.Store  // nil: none are kept; immutable after Open
	writer *snapshot.Writer // nil: none are written; immutable after Open

	mu       sync.Mutex
	sessions map[string]*Session // guarded by mu
	closed   bool                // guarded by mu
	sinks    sync.WaitGroup      // attached sinks
	folds    sync.WaitGroup      // sessions that are catching up
	stop     context.CancelFunc  // ends attached sinks
	live     context.Context     // done when the engine closes; for goroutines it owns
}

// Open opens the store in dir, and creates it unless cfg.ReadOnly is set.
// Errors: [eventlog.ErrNoStore], [eventlog.ErrLocked], [eventlog.ErrVersion],
// [eventlog.ErrCorrupt].
func Open(dir string, cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l, err := eventlog.Open(dir, eventlog.Config{
		ReadOnly: cfg.ReadOnly,
		MaxEntry: cfg.MaxEntry,
		LockWait: cfg.LockWait,
		FS:       cfg.FS,
		Logger:   cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, log: l, sessions: make(map[string]*Session)}
	e.live, e.stop = context.WithCancel(context.Background())
	if cfg.FS == nil {
		e.openSnapshots(filepath.Join(dir, SnapshotFile))
	}
	return e, nil
}

// openSnapshots opens the snapshot store beside the log. Snapshots save time
// and nothing else, so whatever is wrong with them is noted and the engine
// works without.
func (e *Engine) openSnapshots(path string) {
	cfg := snapshot.Config{ReadOnly: e.cfg.ReadOnly, Interval: max(e.cfg.SnapshotEvery, 0)}
	store, err := snapshot.Open(path, cfg)
	if errors.Is(err, snapshot.ErrUnusable) && !e.cfg.ReadOnly {
		e.cfg.Logger.Warn("snapshots are unusable and begun anew", slog.Any("err", err))
		if err = os.Remove(path); err == nil {
			store, err = snapshot.Open(path, cfg)
		}
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return // nothing was kept yet
	case err != nil:
		e.cfg.Logger.Warn("working without snapshots", slog.Any("err", err))
		return
	}
	e.snaps = store
	if !e.cfg.ReadOnly && e.cfg.SnapshotEvery > 0 {
		e.writer = snapshot.NewWriter(store, e.cfg.Logger)
	}
}

// Log returns the engine's log.
func (e *Engine) Log() *eventlog.Log { return e.log }

// Snapshots returns the engine's snapshots, or nil when it works without.
func (e *Engine) Snapshots() *snapshot.Store { return e.snaps }

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
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.stop()
	e.sinks.Wait()
	err := e.log.Close() // after this nobody records, and so nobody begins to fold
	e.folds.Wait()
	if e.writer != nil {
		e.writer.Close()
	}
	if e.snaps != nil {
		err = errors.Join(err, e.snaps.Close())
	}
	return err
}

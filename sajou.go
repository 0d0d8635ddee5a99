// Package sajou is an event-sourced engine for AI-agent sessions that are shown
// as animated scenes.
//
// Everything that happens in a session is an entry of one hash-chained log
// ([eventlog]). Everything else is a fold over that log and can be thrown away
// ([projection]): which choreographies are in force, which performances are
// under way ([choreography]), what a viewer sees of them ([stage]), and the world
// that agents share ([agents]). An [Engine] is one store in one directory; a
// [Session] records signals and drives sinks live; [Agents] decides what agents
// ask for and tells each what it may know; a [Replay] travels in time through
// what was recorded ([replay]).
//
//	eng, err := sajou.Open(dir, sajou.Config{})
//	ses, err := eng.Session(ctx, "release-42")
//	_, err = ses.Define(ctx, definitions...)
//	head, err := ses.Signal(ctx, sig)                        // durable when it returns
//	live := ses.Attach(ctx, sink, 60)                        // a choreography.CommandSink, 60 frames a second
//	scout, err := ses.Agents().Register(ctx, "scout", policy)
//	outcome, err := scout.Submit(ctx, intent)                // durable, or a typed rejection
//	seen, err := scout.NextObservation(ctx)
//	state, err := eng.Replay("release-42").At(ctx, 812)
//
// # What a session records
//
// A session's first batch begins with an entry of kind session, data
//
//	["opened", {"time": "wall"}]
//
// which says where its time comes from ([TimeAuthority]). A declaration that
// comes into force is an entry of kind define, data
//
//	[word, declaration]
//
// where the word is choreography, sequence, easing, binding or scene, and the
// declaration stands as it was written, so a log replays without any file
// beside it. What a declaration refers to by name is in force before it.
// Signals are entries whose data package signal describes. What is decided of the
// agents' world are entries of kind effect, data
//
//	[word, value]
//
// with the words of package agents. Two more entries of kind session go with
// them, ["clock", {"origin": ns}] where no signal has told when session time began,
// and ["tick", {}] where time alone has changed something. Nothing
// in a log depends on the clock, the machine or chance but what came in with it:
// the same records at the same times under the same session name give the same
// head hash in every store.
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
//     nothing but frames: each reads the log at its own pace, and holds no
//     queue. One that panics is detached, and one that never returns is given
//     up when it is closed ([Live]).
//   - Opening after a crash continues from the newest good snapshot and the
//     entries behind it.
package sajou

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
	"github.com/sajou-dev/sajou-go/stage"
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

	// Actions are what the embedding program adds to the actions of the stage,
	// by name. A store keeps nothing of them: whoever opens it without them
	// sees the same session without what they show.
	Actions map[string]stage.Action

	// World is what the program adds to the agents' world: kinds of effect,
	// policies, validators. Whoever opens the store without them folds the same
	// sessions differently.
	World agents.Options

	// Migrate brings an intent of another schema_version to the one that is
	// spoken here, [agents.SchemaVersion]. Nil means that other minor versions are
	// taken as they are and other major ones are refused.
	Migrate func(agents.Intent) (agents.Intent, error)

	// Judge answers the director's questions; see [Director.With]. With nil they
	// are answered as unclear.
	Judge Judge

	// Patience is how long the verdicts about a response are waited for. Zero
	// means [DefaultPatience].
	Patience time.Duration

	// OmitText keeps what user and character say to each other out of the log,
	// but for the digests that the director's events have. Such a session can be
	// audited and replayed, and not judged anew.
	OmitText bool

	// FrameRate is how often an attached sink gets updates or frames while
	// something moves, in frames a second from 1 to 1000, unless it asks for
	// another rate. Zero means 60.
	FrameRate int

	// SinkGrace is how long closing waits for a sink's call that is under way,
	// before the sink is given up; see [Live]. Zero means 5 s; less than zero
	// means not at all.
	SinkGrace time.Duration

	// Now is the clock that frames are drawn by. Nil means time.Now.
	Now func() time.Time

	// AfterFunc waits for frames and for sinks: it calls f once, d from now,
	// on a goroutine of its own, and stop takes that back. Nil means
	// [time.AfterFunc]. Whoever sets Now sets it too, so that both are of one
	// time.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// FS is the file system of the log. Nil means the operating system's;
	// with any other no snapshots are kept.
	FS vfs.FS

	// Metrics is told what goes on among agents. Nil means [DiscardMetrics].
	Metrics Metrics

	// Logger receives notes on recovery, on snapshots and, at debug level, on
	// what agents ask for and are told. Nil discards them.
	Logger *slog.Logger

	// Redact stands before the Logger's handler and takes out what is sensitive.
	// Nil means [Redact]; see also [RedactAlso] and [Unredacted].
	Redact func(slog.Handler) slog.Handler
}

// SnapshotFile is the name of the snapshot store inside an engine's directory.
// It can be deleted whenever no process has the store open.
const SnapshotFile = "snapshots.db"

func (c Config) withDefaults() (Config, error) {
	if c.FrameRate == 0 {
		c.FrameRate = 60
	}
	if err := checkRate(c.FrameRate); err != nil {
		return c, err
	}
	if _, err := agents.NewCore(c.World); err != nil {
		return c, err
	}
	if c.SinkGrace == 0 {
		c.SinkGrace = 5 * time.Second
	}
	if c.AfterFunc == nil {
		c.AfterFunc = afterFunc
	}
	if c.Patience <= 0 {
		c.Patience = DefaultPatience
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = snapshot.DefaultInterval
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Metrics == nil {
		c.Metrics = DiscardMetrics{}
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
	cfg    Config           // immutable after Open
	set    projection.Set   // what every session is folded with; immutable after Open
	log    *eventlog.Log    // immutable after Open
	snaps  *snapshot.Store  // nil: none are kept; immutable after Open
	writer *snapshot.Writer // nil: none are written; immutable after Open

	mu       sync.Mutex
	sessions map[string]*Session // guarded by mu
	closed   bool                // guarded by mu
	lives    map[*Live]struct{}  // attached sinks; guarded by mu
	worlds   []*Agents           // that are live; guarded by mu
	readers  sync.WaitGroup      // what reads the log for sinks
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
	e := &Engine{
		cfg: cfg, set: ProjectionsWith(ProjectionConfig{Actions: cfg.Actions, World: cfg.World}), log: l,
		sessions: make(map[string]*Session), lives: make(map[*Live]struct{}),
	}
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

// maxEntry returns the bound of one entry, in bytes.
func (e *Engine) maxEntry() int { return cmp.Or(e.cfg.MaxEntry, 1<<20) }

// employ has the engine tell a session's agents what concerns them, until it
// closes. It returns false if it has closed.
func (e *Engine) employ(a *Agents) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.worlds = append(e.worlds, a)
	e.readers.Go(func() { a.dispatch(e.live) })
	return true
}

// Log returns the engine's log.
func (e *Engine) Log() *eventlog.Log { return e.log }

// Snapshots returns the engine's snapshots, or nil when it works without.
func (e *Engine) Snapshots() *snapshot.Store { return e.snaps }

// Projections returns what the engine folds every session with: [Projections],
// with the stage that has the actions of its [Config]. It must not be changed.
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
// A sink whose call does not return within [Config.SinkGrace] is given up: the
// error then matches [ErrSinkStuck] and names it, and the store is closed all
// the same.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	lives, worlds := slices.Collect(maps.Keys(e.lives)), e.worlds
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.stop()
	err := e.await(lives...)
	e.readers.Wait()
	for _, a := range worlds {
		e.cfg.Metrics.Closed(a.session.Name())
	}
	err = errors.Join(err, e.log.Close()) // after this nobody records, and so nobody begins to fold
	e.folds.Wait()
	if e.writer != nil {
		e.writer.Close()
	}
	if e.snaps != nil {
		err = errors.Join(err, e.snaps.Close())
	}
	return err
}

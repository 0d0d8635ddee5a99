// Package writer is the one exclusive way to decide and append in a session of the
// log.
//
// A [Writer] is one session's, a [Group] all writers of one log. A decision runs
// in a [Turn]: alone, in a round of the log, with the fold at the newest entry. What
// it keeps is one batch or several, which reach the disk together and are folded at
// once, so that the next decision sees them. A plain record of signals is appended
// in a turn too, but does not wait for the fold: the writer knows in advance what
// such a record needs, its [Frontier], and folds it later, from a backlog.
//
// # When a session is folded
//
// Opening a session folds nothing if the writer knows its position: the one that the
// last writer noted beside the images ([Group.NotePositions]) counts if it is of the
// log's present Head, and a session without entries needs none. The fold is made when
// it is needed: by a decision, by a look, or because an image is due. From then on the
// backlog is folded when no entry has come for a moment, and at the latest when it is
// MaxBehind entries long. After [Writer.KeepCurrent] each batch is folded at once,
// because the live side of the agents learns from the fold what time has caused.
//
// The live sides of agents, director and stage are built on this package, and it
// knows none of them. The [Reactor] that extends batches comes from the door.
//
// # Invariants
//
//   - Every entry of the log was staged in a turn, and every staged entry is folded
//     once, in the order of the log.
//   - A turn sees the state at the newest staged entry, durable or not. What leaves
//     the engine ([Writer.State], [Writer.Entries]) is durable.
//   - Nothing waits for the disk while it holds the lock of the fold.
//   - When the log fails or the fold refuses an entry, nothing more is recorded.
//
// # What the writer needs of the log
//
// It claims the session and appends in rounds; package eventlog lists these calls under
// "Carriers". Of [eventlog.Log] it uses Err, Failed and DiskSize.
//
// docs/glossary.md has the nouns of all packages.
package writer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// Writer decides and appends in one session of the log. Its methods may be
// called from many goroutines.
//
// Two things order its work. A round of the log is exclusive: decisions run one
// after the other, each in its [Turn]. Inside a round, mu guards the fold. The
// order is always round, then mu; a holder of mu never waits for a round, for the
// disk or for a channel. The backlog has a lock of its own, which is taken inside
// mu and inside which nothing else is taken.
type Writer struct {
	group     *Group
	log       *eventlog.Session  // for reading
	appender  *eventlog.Appender // the sole right to append to log
	travel    *replay.Replay
	authority session.TimeAuthority // recorded, or of a session that has no entry yet; immutable after Open
	clock     SessionClock
	reactor   Reactor // immutable; nil: no batch is extended

	// next is the position after all staged batches. next and turn are owned by the
	// round of the log that runs.
	next position
	turn Turn

	// broken is set when the fold refused an entry of the log.
	broken atomic.Pointer[error]

	// backlog holds the batches that are staged and not folded yet, in order.
	backlog backlog

	// noted is the Head of the position that is stored or about to be; guarded by
	// group.mu once the writer is open.
	noted eventlog.Head

	// ctx ends when the group stops or the writer ends.
	ctx  context.Context    // immutable
	stop context.CancelFunc // of ctx
	ends bool               // Go refuses; guarded by group.mu
	work sync.WaitGroup     // of Go; Add only with group.mu held and ends false

	working atomic.Int64 // goroutines of Go
	owned   any          // see Own

	openedSeq eventlog.Seq  // the newest entry when the session was opened; immutable after Open
	openedAt  time.Duration // of that entry; immutable after Open

	mu       sync.Mutex
	warned   int              // references that did not resolve and were logged; guarded by mu
	fold     *projection.Fold // the newest state, perhaps not durable yet; nil before the first use; guarded by mu
	snapped  eventlog.Seq     // the newest snapshot, or the entry at which the session was opened; guarded by mu
	logBytes uint64           // estimated size of the session's log; guarded by mu

	failed     []string // the projections whose failure was logged; guarded by mu
	failures   atomic.Pointer[[]ProjectionFailure]
	snappedAt  uint64 // logBytes at the newest snapshot; guarded by mu
	imageBytes uint64 // size of the newest snapshot, if it is large; guarded by mu
}

// position is the state that a plain record of signals is decided by. It runs ahead of
// the fold, so that such a record does not wait for the fold.
type position struct {
	Frontier
	head   eventlog.Head // of the newest entry; Seq 0 before the first
	reacts bool          // the reactor extends batches of signals too
}

// Frontier is the part of a session's state that a plain record reads and moves
// on without the fold.
type Frontier struct {
	At   time.Duration // of the newest entry
	Time session.Time  // the source of the times of entries
}

// Reactor extends batches before they are sealed.
type Reactor interface {
	// Reacts reports whether batches of signals have to be extended in this state.
	// Such records then wait for the fold. It is false before the first entry, and only
	// a decision or a record with a declaration changes it.
	Reacts(f *projection.Fold) bool

	// React returns the drafts of a batch with reactions to them in between. The
	// fold is at the newest entry, and the n-th draft returned, from 0, gets the
	// number Fold().Head().Seq+n+1. It is called for every batch of a decision, and
	// for a record of signals while Reacts holds.
	React(t *Turn, drafts []eventlog.Draft) ([]eventlog.Draft, error)
}

// Open returns the writer of a session. It claims the session. Where the position of
// the session is not known, it folds the log from the newest snapshot that fits. On an
// error the session is not claimed.
func (g *Group) Open(ctx context.Context, log *eventlog.Session, authority session.TimeAuthority, travel *replay.Replay, reactor Reactor) (_ *Writer, err error) {
	w := &Writer{group: g, log: log, travel: travel, authority: authority, reactor: reactor, clock: SessionClock{wallNow: g.cfg.Now}}
	w.ctx, w.stop = context.WithCancel(g.ctx)
	// The claim precedes the fold, so that no entry is appended between the two and
	// then missing from the fold.
	if w.appender, err = log.Claim(); err != nil {
		w.stop()
		return nil, fmt.Errorf("sajou: open session %q: %w", w.Name(), err)
	}
	head := log.Head()
	w.next.head, w.next.At, w.snapped = head, log.At(), head.Seq
	w.openedSeq, w.openedAt = head.Seq, log.At()
	if known := head.Seq == 0 || g.position(w.Name(), &w.next); known {
		w.noted = head
	} else {
		err = w.begin(ctx, head.Seq)
	}
	if err != nil {
		w.stop()
		w.appender.Release()
		return nil, fmt.Errorf("sajou: open session %q: %w", w.Name(), err)
	}
	if recorded := w.next.Time.Authority; recorded != "" {
		w.authority = recorded
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writers[w.Name()] = weak.Make(w)
	runtime.AddCleanup(w, g.forget, w.Name())
	runtime.AddCleanup(w, func(stop context.CancelFunc) { stop() }, w.stop) // the group's context refers to that of w
	return w, nil
}

// begin folds the session up to its durable entry seq, and takes the position from the
// fold. Called by Open.
func (w *Writer) begin(ctx context.Context, seq eventlog.Seq) error {
	if err := w.loadFold(ctx, seq); err != nil {
		return err
	}
	state := session.StateOf(w.fold)
	switch {
	case state == nil:
		return fmt.Errorf("the projections lack %q", session.ProjectionSession)
	case session.PerformancesOf(w.fold) == nil:
		return fmt.Errorf("the projections lack %q", session.ProjectionPerformances)
	}
	w.next.Frontier = Frontier{At: w.fold.At(), Time: state.Time()}
	w.next.reacts = w.reactor != nil && w.reactor.Reacts(w.fold)
	return nil
}

// loadFold makes the fold at the durable entry seq.
func (w *Writer) loadFold(ctx context.Context, seq eventlog.Seq) error {
	cfg := &w.group.cfg
	size, err := cfg.Log.DiskSize(ctx, w.Name())
	if err != nil {
		return err
	}
	var began time.Time
	if cfg.Metrics != nil {
		began = cfg.Now()
	}
	fold, err := w.travel.Fold(ctx, seq)
	if err != nil {
		return err
	}
	if state := session.StateOf(fold); state != nil && state.Rules() > session.Rules {
		return &session.RulesError{Session: w.Name(), Recorded: state.Rules(), Present: session.Rules}
	}
	if p := session.PerformancesOf(fold); p != nil {
		if refused, skipped := p.Scheduler().Refused(); refused > 0 || skipped > 0 {
			w.group.cfg.Logger.Warn("the session asks for more than its budget", slog.String("session", w.Name()),
				slog.Uint64("declarations_not_in_force", refused), slog.Uint64("performances_not_made", skipped))
		}
	}
	w.fold, w.logBytes, w.snappedAt = fold, size, min(w.snappedAt, size)
	if st := session.StageOf(fold); st != nil {
		// Those of the entries before the opening were logged by the program that recorded them.
		recorded := 0
		for _, u := range st.Unresolved(0) {
			if u.Signal > uint64(w.openedSeq) || u.At > w.openedAt {
				break
			}
			recorded++
		}
		w.warned = max(w.warned, recorded) // more if the fold was dropped after they were logged
	}
	w.warnUnresolved()
	w.backlog.keepAll()
	if cfg.Metrics != nil {
		cfg.Metrics.FoldLoaded(w.Name(), seq, max(cfg.Now().Sub(began), 0))
	}
	w.reportFailed()
	return nil
}

// load makes the fold at the newest durable entry, when it is needed for the first
// time. If that fails, the fold is that of a session without entries, and nothing more
// is recorded. Called with mu held.
func (w *Writer) load() {
	w.backlog.keepAll() // before the head is read: batches that become durable later are not in the fold
	err := w.Broken()   // after Delete it stays so
	if err == nil {
		err = w.loadFold(context.Background(), w.log.Head().Seq)
	}
	if err != nil {
		w.fail(err)
		w.fold, err = w.travel.Fold(context.Background(), 0)
		if err != nil {
			panic("sajou: a fold without entries: " + err.Error())
		}
		return
	}
	w.snapshot() // one may have become due before the fold was made
}

// Release gives up the claim on the session. The writer must not be used afterwards.
func (w *Writer) Release() {
	w.stop()
	w.appender.Release()
	w.group.mu.Lock()
	defer w.group.mu.Unlock()
	delete(w.group.writers, w.Name())
}

// Name returns the session's name.
func (w *Writer) Name() string { return w.log.Name() }

// Clock returns the session's clock.
func (w *Writer) Clock() *SessionClock { return &w.clock }

// Go has f run on a goroutine that closing the engine and deleting the session wait for.
// The context of f ends when either begins. Go returns false if it has begun.
func (w *Writer) Go(f func(ctx context.Context)) bool {
	g := w.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || w.ends {
		return false
	}
	w.working.Add(1)
	w.work.Add(1)
	g.work.Go(func() {
		defer w.work.Done()
		defer w.working.Add(-1)
		f(w.ctx)
	})
	return true
}

// Own has v live as long as the writer. It is called once, before the writer is used.
func (w *Writer) Own(v any) { w.owned = v }

// Rest lets the fold of a session go that is not in use, and notes its position. The
// next use makes the fold again. Rest returns false, and does nothing, while the
// session has agents in use, work under way (see [Writer.Go]), a turn or a look, or
// entries that are not durable.
func (w *Writer) Rest(ctx context.Context) bool {
	var p position
	err := w.appender.Write(ctx, func(*eventlog.Round) { p = w.next })
	if err != nil || w.working.Load() > 0 || p.head != w.log.Head() || !w.mu.TryLock() {
		return false
	}
	defer w.mu.Unlock()
	if w.broken.Load() != nil || !w.backlog.letGo(p.head.Seq) {
		return false
	}
	w.fold = nil
	w.group.note(w, &p)
	return true
}

// Context ends when the engine closes or the session is deleted.
func (w *Writer) Context() context.Context { return w.ctx }

// Replay returns the replay of the durable entries.
func (w *Writer) Replay() *replay.Replay { return w.travel }

// Head returns the place of the newest durable entry.
func (w *Writer) Head() eventlog.Head { return w.log.Head() }

// Absent returns a Seq up to which no entry carries an idempotency key; see
// [eventlog.SessionReader.Absent].
func (w *Writer) Absent(key string) (upTo eventlog.Seq, ok bool) { return w.log.Absent(key) }

// Entry returns one durable entry.
func (w *Writer) Entry(ctx context.Context, seq eventlog.Seq) (eventlog.Entry, error) {
	return w.log.Entry(ctx, seq)
}

// Entries iterates over the durable entries from a Seq on; see
// [eventlog.SessionReader.Entries].
func (w *Writer) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return w.log.Entries(ctx, from)
}

// Follow iterates over the durable entries from a Seq on and waits for those to
// come; see [eventlog.SessionReader.Follow].
func (w *Writer) Follow(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return w.log.Follow(ctx, from)
}

// WaitDurable waits until a staged entry is durable; see
// [eventlog.SessionReader.WaitDurable].
func (w *Writer) WaitDurable(ctx context.Context, seq eventlog.Seq) error {
	return w.log.WaitDurable(ctx, seq)
}

// Err returns why nothing more can be recorded, or nil.
func (w *Writer) Err() error { return w.group.cfg.Log.Err() }

// Failed is closed when nothing more can be recorded.
func (w *Writer) Failed() <-chan struct{} { return w.group.cfg.Log.Failed() }

// Broken returns why the fold refused an entry of the log, or nil.
func (w *Writer) Broken() error {
	if broken := w.broken.Load(); broken != nil {
		return *broken
	}
	return nil
}

// ProjectionFailure is a projection of the program that is out of use in a session.
type ProjectionFailure struct {
	Projection string
	Err        error // the panic
}

// ProjectionFailures returns the projections of the program that have failed in the
// newest state. It does not wait for a fold.
func (w *Writer) ProjectionFailures() []ProjectionFailure {
	if failures := w.failures.Load(); failures != nil {
		return *failures
	}
	return nil
}

// Behind returns the number of entries that are staged and that no call has begun to
// fold; 0 while the session has no fold. Up to MaxBehind entries wait by design. It does
// not wait for a fold.
func (w *Writer) Behind() int { return w.backlog.size() }

// Authority returns the source of the session's time.
func (w *Writer) Authority() session.TimeAuthority { return w.authority }

// KeepCurrent has every batch folded as soon as it is staged, from now on.
func (w *Writer) KeepCurrent() {
	w.backlog.mu.Lock()
	w.backlog.eager = true
	w.backlog.mu.Unlock()
	w.catchUp()
}

// Look runs f with the newest state, which it may read and must not keep. No
// other state than the fold's is exclusive in f.
func (w *Writer) Look(f func(*projection.Fold)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.foldBacklog()
	f(w.fold)
}

// State returns a copy of the state at the newest entry, complete at its instant,
// once that entry is durable.
func (w *Writer) State(ctx context.Context) (*projection.Fold, error) {
	w.catchUp()
	if broken := w.broken.Load(); broken != nil {
		return nil, *broken
	}
	w.mu.Lock()
	f, err := w.fold.Clone()
	w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := w.log.WaitDurable(ctx, f.Head().Seq); err != nil {
		return nil, err
	}
	f.Advance(f.At())
	return f, nil
}

// Decide runs f in a round of the log, alone, with the fold at the newest entry.
// It returns once the batches that f kept are durable, or when ctx ends; see
// [eventlog.Appender.Write]. The error of f takes precedence.
func (w *Writer) Decide(ctx context.Context, f func(*Turn) error) error {
	w.prepare()
	var refused error
	err := w.appender.Write(ctx, func(round *eventlog.Round) {
		t := w.enter(round)
		defer t.end()
		if refused = t.CatchUp(); refused == nil {
			refused = f(t)
		}
	})
	return cmp.Or(refused, err)
}

// prepare makes the fold before a round needs it, so that no other writer of the
// session waits for it.
func (w *Writer) prepare() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fold == nil {
		w.load()
	}
}

// Append runs f in a round of the log, alone, and returns the ticket that f
// returned once its batch is durable. The fold may be behind: f calls [Turn.CatchUp] if
// it needs it.
func (w *Writer) Append(ctx context.Context, f func(*Turn) (*eventlog.Ticket, error)) (*eventlog.Ticket, error) {
	return w.appender.AppendIn(ctx, func(round *eventlog.Round) (*eventlog.Ticket, error) { return w.appending(round, f) })
}

// AppendAsync is [Writer.Append] that does not wait for the disk; see
// [eventlog.Appender.StageIn].
func (w *Writer) AppendAsync(ctx context.Context, f func(*Turn) (*eventlog.Ticket, error)) (*eventlog.Ticket, error) {
	return w.appender.StageIn(ctx, func(round *eventlog.Round) (*eventlog.Ticket, error) { return w.appending(round, f) })
}

func (w *Writer) appending(round *eventlog.Round, f func(*Turn) (*eventlog.Ticket, error)) (*eventlog.Ticket, error) {
	if broken := w.broken.Load(); broken != nil {
		return nil, *broken
	}
	t := w.enter(round)
	defer t.end()
	return f(t)
}

// enter returns the turn of a function that runs in a round. Only one runs at a time,
// so that all share one Turn.
func (w *Writer) enter(round *eventlog.Round) *Turn {
	w.turn = Turn{writer: w, round: round}
	return &w.turn
}

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
	"sync"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/choreography/language"
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
	authority session.TimeAuthority // of a session that has no entry yet
	clock     SessionClock
	reactor   Reactor // immutable after Open; nil: no batch is extended

	// next is the position after all staged batches. next and turn are owned by the
	// round of the log that runs.
	next position
	turn Turn

	// broken is set when the fold refused an entry of the log.
	broken atomic.Pointer[error]

	// backlog holds the batches that are staged and not folded yet, in order.
	backlog backlog

	mu       sync.Mutex
	warned   int              // references that did not resolve and were logged; guarded by mu
	fold     *projection.Fold // the newest state, perhaps not durable yet; guarded by mu
	snapped  eventlog.Seq     // the newest snapshot; guarded by mu
	logBytes uint64           // estimated size of the session's log; guarded by mu

	snappedAt  uint64 // logBytes at the newest snapshot; guarded by mu
	imageBytes uint64 // size of the newest snapshot, if it is large; guarded by mu
}

// position is the state that a plain record of signals is decided by. It runs ahead of
// the fold, so that such a record does not wait for the fold.
type position struct {
	Frontier
	seq    eventlog.Seq
	begun  bool // the session has its first entry
	reacts bool // the reactor extends batches of signals too
}

// Frontier is the part of a session's state that a plain record reads and moves
// on without the fold.
type Frontier struct {
	At      time.Duration // of the newest entry
	Time    session.Time  // the source of the times of entries
	Catalog *language.Catalog
}

// Reactor extends batches before they are sealed.
type Reactor interface {
	// Reacts reports whether batches of signals have to be extended in this state.
	// Such records then wait for the fold.
	Reacts(f *projection.Fold) bool

	// React returns the drafts of a batch with reactions to them in between. The
	// fold is at the newest entry, and the n-th draft returned, from 0, gets the
	// number Fold().Head().Seq+n+1. It is called for every batch of a decision, and
	// for a record of signals while Reacts holds.
	React(t *Turn, drafts []eventlog.Draft) ([]eventlog.Draft, error)
}

// Open returns the writer of a session. It claims the session and folds its log from
// the newest snapshot that fits. On an error the session is not claimed.
func (g *Group) Open(ctx context.Context, log *eventlog.Session, authority session.TimeAuthority, travel *replay.Replay) (_ *Writer, err error) {
	w := &Writer{group: g, log: log, travel: travel, authority: authority, clock: SessionClock{wallNow: g.cfg.Now}}
	// The claim precedes the fold, so that no entry is appended between the two and
	// then missing from the fold.
	if w.appender, err = log.Claim(); err != nil {
		return nil, fmt.Errorf("sajou: open session %q: %w", w.Name(), err)
	}
	defer func() {
		if err != nil {
			w.appender.Release()
		}
	}()
	if w.fold, err = travel.Fold(ctx, log.Head().Seq); err != nil {
		return nil, fmt.Errorf("sajou: open session %q: %w", w.Name(), err)
	}
	state, ok := w.fold.State(session.ProjectionSession).(*session.State)
	if !ok {
		return nil, fmt.Errorf("sajou: the projections lack %q", session.ProjectionSession)
	}
	if state.Rules() > session.Rules {
		return nil, &session.RulesError{Session: w.Name(), Recorded: state.Rules(), Present: session.Rules}
	}
	performances := session.PerformancesOf(w.fold)
	if performances == nil {
		return nil, fmt.Errorf("sajou: the projections lack %q", session.ProjectionPerformances)
	}
	w.next = position{
		Frontier: Frontier{At: w.fold.At(), Time: state.Time(), Catalog: performances.Scheduler().Catalog()},
		seq:      w.fold.Head().Seq, begun: w.fold.Head().Seq > 0,
	}
	w.snapped = w.fold.Head().Seq
	if st := session.StageOf(w.fold); st != nil {
		w.warned = len(st.Unresolved(0)) // the program that recorded them has logged them
	}
	if w.logBytes, err = g.cfg.Log.DiskSize(ctx, w.Name()); err != nil {
		return nil, fmt.Errorf("sajou: open session %q: %w", w.Name(), err)
	}
	return w, nil
}

// Release gives up the claim on the session. The writer must not be used afterwards.
func (w *Writer) Release() { w.appender.Release() }

// SetReactor installs the session's reactor. It is called once, before the first
// turn.
func (w *Writer) SetReactor(r Reactor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reactor, w.next.reacts = r, r.Reacts(w.fold)
}

// Name returns the session's name.
func (w *Writer) Name() string { return w.log.Name() }

// Clock returns the session's clock.
func (w *Writer) Clock() *SessionClock { return &w.clock }

// Go has f run on a goroutine that closing the engine waits for. The context of f
// ends when the engine closes. Go returns false if it has closed.
func (w *Writer) Go(f func(ctx context.Context)) bool { return w.group.Go(f) }

// Context ends when the engine closes.
func (w *Writer) Context() context.Context { return w.group.ctx }

// Replay returns the replay of the durable entries.
func (w *Writer) Replay() *replay.Replay { return w.travel }

// Head returns the place of the newest durable entry.
func (w *Writer) Head() eventlog.Head { return w.log.Head() }

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

// Authority returns the source of the session's time.
func (w *Writer) Authority() session.TimeAuthority {
	authority := w.authority
	w.Look(func(f *projection.Fold) {
		if state, ok := f.State(session.ProjectionSession).(*session.State); ok && state.Time().Authority != "" {
			authority = state.Time().Authority
		}
	})
	return authority
}

// Look runs f with the newest state, which it may read and must not keep. No
// other state than the fold's is exclusive in f.
func (w *Writer) Look(f func(*projection.Fold)) {
	w.catchUp()
	w.mu.Lock()
	defer w.mu.Unlock()
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
	var refused error
	err := w.appender.Write(ctx, func(round *eventlog.Round) {
		refused = w.inTurn(round, func(t *Turn) error {
			if err := t.CatchUp(); err != nil {
				return err
			}
			return f(t)
		})
	})
	return cmp.Or(refused, err)
}

// Append runs f in a round of the log, alone, and returns the ticket that f
// returned once its batch is durable or has failed; the outcome is in the ticket.
// The fold may be behind: f calls [Turn.CatchUp] if it needs it.
func (w *Writer) Append(ctx context.Context, f func(*Turn) (*eventlog.Ticket, error)) (*eventlog.Ticket, error) {
	var ticket *eventlog.Ticket
	var refused error
	err := w.appender.Write(ctx, func(round *eventlog.Round) { ticket, refused = w.appending(round, f) })
	switch {
	case refused != nil:
		return nil, refused
	case ticket == nil:
		return nil, err
	}
	return ticket, nil
}

// AppendAsync is [Writer.Append] that does not wait for the disk; see
// [eventlog.Appender.StageIn].
func (w *Writer) AppendAsync(ctx context.Context, f func(*Turn) (*eventlog.Ticket, error)) (*eventlog.Ticket, error) {
	return w.appender.StageIn(ctx, func(round *eventlog.Round) (*eventlog.Ticket, error) { return w.appending(round, f) })
}

func (w *Writer) appending(round *eventlog.Round, f func(*Turn) (*eventlog.Ticket, error)) (ticket *eventlog.Ticket, err error) {
	if broken := w.broken.Load(); broken != nil {
		return nil, *broken
	}
	err = w.inTurn(round, func(t *Turn) (err error) {
		ticket, err = f(t)
		return err
	})
	return ticket, err
}

// inTurn runs f in a turn. Only one runs at a time, so that all share one Turn.
func (w *Writer) inTurn(round *eventlog.Round, f func(*Turn) error) error {
	t := &w.turn
	*t = Turn{writer: w, round: round}
	defer t.end()
	return f(t)
}

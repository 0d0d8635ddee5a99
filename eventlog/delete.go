package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// This file deletes sessions. The order of steps, and what a crash leaves after each:
//
//  1. One write removes all entries and outcomes of the session, and puts its tombstone
//     in the place of its record. It is one record of the store's write-ahead log, so a
//     crash leaves the whole session or the whole tombstone.
//  2. The memtable is flushed: the deletion no longer depends on the write-ahead log.
//  3. The tables that overlap the session are compacted. Before this they still hold the
//     bytes of the entries, which no reader sees; a crash leaves them until the store
//     compacts these tables, or until the session is deleted again.

// Tombstone is the record that a deleted session leaves: its name, its number in the
// store, the Head that it had, and the time of the deletion.
type Tombstone = keyspace.Tombstone

// DeletedError is the error of a call about a deleted session. It matches [ErrDeleted]
// and [ErrNoSession].
type DeletedError struct{ Tombstone Tombstone }

func (e *DeletedError) Error() string {
	t := &e.Tombstone
	return fmt.Sprintf("%v: %q, on %s, at %v", ErrDeleted, t.Session, t.At.UTC().Format(time.RFC3339), t.Head)
}

// Unwrap returns [ErrDeleted] and [ErrNoSession].
func (e *DeletedError) Unwrap() []error { return []error{ErrDeleted, ErrNoSession} }

// Delete deletes a session that no [Appender] has claimed; see [Appender.Delete]. The
// session may have been deleted before.
func (l *Log) Delete(ctx context.Context, name string, at time.Time) (Tombstone, error) {
	s, err := l.Session(name)
	if deleted, ok := errors.AsType[*DeletedError](err); ok {
		return deleted.Tombstone, l.discard(ctx, deleted.Tombstone.Number)
	}
	if err != nil {
		return Tombstone{}, err
	}
	a, err := s.Claim()
	if err != nil {
		return Tombstone{}, err
	}
	defer a.Release()
	return a.Delete(ctx, at)
}

// Delete removes all entries of the session and the outcomes of its idempotency keys, and
// leaves a tombstone with the Head that the session had and with at, the time of the
// deletion. It is durable when Delete returns, and the store's tables no longer have the
// bytes of the entries, unless a [Log.Backup] or an iteration was reading them. The files
// of the write-ahead log are emptied when the log is closed.
//
// The name stays taken: every later call about the session is a [DeletedError], also on
// handles from before, and iterations that follow the session end with it. Deleting again
// returns the same tombstone, and removes what an earlier call left because it was
// interrupted. With a tombstone and an error, the session is deleted and the removal of
// its bytes was interrupted.
//
// Errors: [ErrNoSession], [ErrInUse] for a session with entries that are not durable yet,
// [ErrCorrupt] for one whose entries may be another session's, [ErrReadOnly],
// [ErrClosed], that of ctx. After a failed write it is unknown whether the session was
// deleted until the log is opened again.
func (a *Appender) Delete(ctx context.Context, at time.Time) (Tombstone, error) {
	s := a.session
	if err := s.log.acquire(); err != nil {
		return Tombstone{}, err
	}
	defer s.log.release()
	if err := ctx.Err(); err != nil {
		return Tombstone{}, err
	}
	t, err := s.delete(at)
	if err != nil {
		return Tombstone{}, err
	}
	return t, s.log.discard(ctx, t.Number)
}

// delete makes the deletion durable.
func (s *Session) delete(at time.Time) (Tombstone, error) {
	l := s.log
	s.mu.Lock() // no round runs, so no entry is appended meanwhile
	defer s.mu.Unlock()
	d := s.durable.Load()
	deleted := s.gone.Load()
	switch err := l.writable(); {
	case deleted != nil:
		return deleted.Tombstone, err
	case err != nil:
		return Tombstone{}, err
	case s.number == 0:
		return Tombstone{}, fmt.Errorf("%w: %q", ErrNoSession, s.name)
	case d.head != s.head:
		return Tombstone{}, fmt.Errorf("%w: session %q has entries up to %d that are not durable yet", ErrInUse, s.name, s.head.Seq)
	case s.misfit != nil:
		return Tombstone{}, s.misfit
	}
	t := Tombstone{Session: s.name, Number: s.number, Head: s.head, At: time.Unix(0, at.UnixNano()).UTC()}
	batch := l.db.NewBatch()
	if err := keyspace.AppendDeletion(batch, &t); err != nil {
		return Tombstone{}, fmt.Errorf("eventlog: delete: %w", err)
	}
	l.notes.forget(t.Number)
	// Before the write: a reader that finds no entries because of it knows why.
	s.gone.Store(&DeletedError{t})
	l.versionMu.Lock()
	err := l.writeSync(batch, true)
	l.versionMu.Unlock()
	if err != nil {
		return Tombstone{}, err // the store may still use the batch: its sync may never end
	}
	s.wake()
	return t, batch.Close()
}

// discard removes the bytes of a deleted session from the tables.
func (l *Log) discard(ctx context.Context, number uint32) error {
	if err := l.acquire(); err != nil {
		return err
	}
	defer l.release()
	if err := l.writable(); err != nil {
		return err
	}
	// On a disk that has failed no compaction begins, so nothing would end the wait.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-l.Failed():
			cancel(l.writable())
		case <-l.done:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	err := l.db.Flush()
	for _, bounds := range keyspace.Ranges(number) {
		if err == nil {
			err = l.db.Compact(ctx, bounds.LowerBound, bounds.UpperBound, false)
		}
	}
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case l.writable() != nil:
		return l.writable()
	}
	return fmt.Errorf("eventlog: remove the bytes of a deleted session: %w", err)
}

// writeSync writes a batch and returns when it is durable. appended says that the
// log is in use from now on. After an error the store may still use the batch, because its
// sync may never end; the log is read-only then.
func (l *Log) writeSync(batch *pebble.Batch, appended bool) error {
	l.applyMu.Lock()
	err := l.writable()
	if err == nil {
		if err = l.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
			l.fail(err)
		}
	}
	fatal := l.fatal.Load()
	l.wrote = l.wrote || appended
	l.applyMu.Unlock()
	if err == nil && !fatal {
		if err = batch.SyncWait(); err != nil {
			l.fail(err)
		}
	}
	if err != nil || fatal || l.disk.Lost.Load() {
		return l.writable()
	}
	return nil
}

// Tombstones lists the deleted sessions in the order in which they were begun.
func (l *Log) Tombstones() ([]Tombstone, error) {
	if err := l.acquire(); err != nil {
		return nil, err
	}
	defer l.release()
	return keyspace.Tombstones(l.db)
}

// Tombstones is [Log.Tombstones].
func (r *LogReader) Tombstones() ([]Tombstone, error) { return r.log.Tombstones() }

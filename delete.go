package sajou

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// Delete deletes a session: its entries, the outcomes of its idempotency keys and its
// snapshots. What stays is a tombstone, which Delete returns: name, number, the Head that
// the session had, and the time ([Config.Now]). The name cannot be used again; calls about
// it get an [*eventlog.DeletedError]. Deleting again returns the same tombstone.
//
// A session that is in use is ended first, as [Engine.Close] would end it: its sinks are
// detached with [eventlog.ErrDeleted], its agents' generations and the director's judgments under way end, and calls
// that wait return [eventlog.ErrDeleted] or [eventlog.ErrClosed]. Handles on it stay
// without use. A session with records that are not durable yet is not deleted, and goes
// on: the error is [eventlog.ErrInUse].
//
// The deletion is durable when Delete returns, and a crash leaves the whole session or the
// whole tombstone. The snapshots are deleted first, so a crash can leave a session without
// snapshots, which are computed again. No table and no snapshot has the bytes of the
// session any more; the write-ahead log may have some until the engine is closed. A
// tombstone beside an error says that the session is deleted, and that the removal of its
// bytes was interrupted: delete it again.
//
// Other errors: [eventlog.ErrNoSession], [eventlog.ErrClaimed] during a Restore,
// [eventlog.ErrCorrupt] for a damaged session, [snapshot.ErrUnusable] if the snapshots
// cannot be deleted, [eventlog.ErrReadOnly], [eventlog.ErrClosed] and that of ctx.
func (e *Engine) Delete(ctx context.Context, name string) (eventlog.Tombstone, error) {
	if err := e.beginDeleting(ctx); err != nil {
		return eventlog.Tombstone{}, err
	}
	defer func() { <-e.deleting }()
	t, err := e.delete(ctx, name, false)
	if err == nil {
		err = e.withSnapshots((*snapshot.Store).Rewrite)
	}
	return t, err
}

// Tombstones lists the deleted sessions in the order in which they were begun.
func (e *Engine) Tombstones() ([]eventlog.Tombstone, error) { return e.log.Tombstones() }

// beginDeleting waits until no other call deletes. The caller takes a value from deleting
// at its end.
func (e *Engine) beginDeleting(ctx context.Context) error {
	select {
	case e.deleting <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// delete deletes a session, but leaves the bytes of its snapshots in free pages. With idle
// it refuses one that is in use.
func (e *Engine) delete(ctx context.Context, name string, idle bool) (eventlog.Tombstone, error) {
	if err := e.log.Err(); err != nil {
		return eventlog.Tombstone{}, err
	}
	e.mu.Lock()
	s := e.sessions[name].Value()
	e.mu.Unlock()
	if s == nil {
		return e.deleteUnopened(ctx, name)
	}
	t, err := s.w.Delete(ctx, writer.Deletion{
		At: e.cfg.Now(), Idle: idle,
		Ended:  func() { _ = e.attachments.Detach(name) }, // the attachment of a sink that does not return has the error
		Forget: func() error { return e.forgetSnapshots(name) },
	})
	if t.Number != 0 {
		e.mu.Lock()
		if e.sessions[name].Value() == s {
			delete(e.sessions, name)
		}
		e.ready = slices.DeleteFunc(e.ready, func(r *Session) bool { return r == s })
		e.mu.Unlock()
	}
	return t, err
}

// deleteUnopened deletes a session that has no Session.
func (e *Engine) deleteUnopened(ctx context.Context, name string) (eventlog.Tombstone, error) {
	log, err := e.log.Session(name)
	if errors.Is(err, eventlog.ErrDeleted) {
		if err := e.forgetSnapshots(name); err != nil {
			return eventlog.Tombstone{}, err
		}
		return e.log.Delete(ctx, name, e.cfg.Now())
	}
	if err != nil {
		return eventlog.Tombstone{}, err
	}
	if !log.Exists() {
		return eventlog.Tombstone{}, fmt.Errorf("%w: %q", eventlog.ErrNoSession, name)
	}
	appender, err := log.Claim()
	if err != nil {
		return eventlog.Tombstone{}, err
	}
	defer appender.Release()
	if err := e.forgetSnapshots(name); err != nil {
		return eventlog.Tombstone{}, err
	}
	return appender.Delete(ctx, e.cfg.Now())
}

// forgetSnapshots deletes the snapshots, the indexes and the kept digests of a session, durably.
func (e *Engine) forgetSnapshots(name string) error {
	if e.snapshotter != nil {
		e.snapshotter.Discard(name)
	}
	return errors.Join(e.DropIndexes(name), e.forgetDigests(name), e.withSnapshots(func(s *snapshot.Store) error { return s.Forget(name) }))
}

// withSnapshots runs f on the snapshots. An engine that works without them opens the file
// for it, if there is one.
func (e *Engine) withSnapshots(f func(*snapshot.Store) error) error {
	if e.snaps != nil {
		return f(e.snaps)
	}
	if e.snapsPath == "" {
		return nil
	}
	if _, err := os.Stat(e.snapsPath); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := snapshot.Open(e.snapsPath, snapshot.Config{})
	if err != nil {
		return fmt.Errorf("sajou: the snapshots cannot be deleted: %w", err)
	}
	return errors.Join(f(s), s.Close())
}

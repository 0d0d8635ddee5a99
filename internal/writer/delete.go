package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Deletion is how a session is to be deleted.
type Deletion struct {
	At time.Time // the time in the tombstone

	// Idle refuses a session that has agents or work under way; see [Writer.Rest].
	Idle bool

	// Ended is called when all work has been asked to end, before it is waited for.
	Ended func()

	// Forget is called when no fold of the session can be made any more, and so no image
	// of it, before its entries are deleted. Its error ends the deletion.
	Forget func() error
}

// Delete deletes the session. First it ends the session, as closing the engine would: no
// more entries are recorded, the work under way ends, and every call gets
// [eventlog.ErrDeleted] or [eventlog.ErrClosed]; once the session is deleted, later calls
// get an [*eventlog.DeletedError]. A session with entries that are not
// durable is in use, [eventlog.ErrInUse], and goes on. After another error it has ended
// and not been deleted; Delete can be called again.
func (w *Writer) Delete(ctx context.Context, d Deletion) (eventlog.Tombstone, error) {
	if err := w.Err(); err != nil {
		return eventlog.Tombstone{}, err
	}
	if err := w.end(ctx, d.Idle); err != nil {
		return eventlog.Tombstone{}, err
	}
	w.stop()
	d.Ended()
	if err := w.waitWork(ctx); err != nil {
		return eventlog.Tombstone{}, err
	}
	w.mu.Lock() // a fold that was under way has taken its last image
	w.group.forgetNote(w)
	w.mu.Unlock()
	if err := d.Forget(); err != nil {
		return eventlog.Tombstone{}, err
	}
	t, err := w.appender.Delete(ctx, d.At)
	if t.Number != 0 {
		deleted := error(&eventlog.DeletedError{Tombstone: t})
		w.broken.Store(&deleted)
	}
	return t, err
}

// Deleted returns an error that matches [eventlog.ErrDeleted] once a deletion has ended
// the session, and nil before. It is set before the context of the work ends.
func (w *Writer) Deleted() error {
	if err := w.Broken(); errors.Is(err, eventlog.ErrDeleted) {
		return err
	}
	return nil
}

// end makes the writer refuse everything, unless the session is in use.
func (w *Writer) end(ctx context.Context, idle bool) error {
	return w.inRound(ctx, func() error {
		if err := w.inUse(idle); err != nil {
			return err
		}
		broken := fmt.Errorf("sajou: session %q: %w", w.Name(), eventlog.ErrDeleted)
		w.broken.Store(&broken)
		w.ends = true
		return nil
	})
}

// CheckIdle returns [eventlog.ErrInUse] for a session that an idle [Deletion] would refuse
// now.
func (w *Writer) CheckIdle(ctx context.Context) error {
	return w.inRound(ctx, func() error { return w.inUse(true) })
}

// inRound runs f in a round, with the lock of the group.
func (w *Writer) inRound(ctx context.Context, f func() error) error {
	var refused error
	err := w.appender.Write(ctx, func(*eventlog.Round) {
		w.group.mu.Lock()
		defer w.group.mu.Unlock()
		refused = f()
	})
	return cmp.Or(refused, err)
}

// inUse returns why the session cannot be deleted. Called in a round, with the lock of the
// group.
func (w *Writer) inUse(idle bool) error {
	switch {
	case w.next.head.Seq == 0:
		return fmt.Errorf("%w: %q", eventlog.ErrNoSession, w.Name())
	case w.next.head != w.log.Head():
		return fmt.Errorf("%w: session %q has entries that are not durable yet", eventlog.ErrInUse, w.Name())
	case idle && (w.working.Load() > 0 || w.backlog.current()):
		return fmt.Errorf("%w: session %q has agents, a sink or other work under way", eventlog.ErrInUse, w.Name())
	}
	return nil
}

// waitWork returns when no goroutine of Go runs.
func (w *Writer) waitWork(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		w.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forgetNote drops the position of a writer that has ended.
func (g *Group) forgetNote(w *Writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.notes, w.Name())
	delete(g.writers, w.Name()) // NotePositions notes it no more, and Health does not ask it
}

// current reports whether every batch is folded at once.
func (b *backlog) current() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eager
}

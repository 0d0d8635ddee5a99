package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// Session is one chain of a log. Its methods may be called from many
// goroutines.
type Session struct {
	SessionReader

	misfit error // what its first or its last entry says against appending to it; immutable

	// claim is the [Appender] that has the sole right to append; nil for none.
	claim atomic.Pointer[weak.Pointer[Appender]]

	turns turns // the queue of writers

	// mu is held by the round that appends, and never during a wait for the
	// disk.
	mu     sync.Mutex
	number uint32        // guarded by mu; 0 until the first append begins the session
	head   Head          // newest appended, perhaps not durable yet; guarded by mu
	at     time.Duration // session time of head; guarded by mu
	sealed arena         // memory of sealed batches; guarded by mu
}

// loadSession reads the position of a session. Called with l.mu held.
func (l *Log) loadSession(name string) (*Session, error) {
	s := &Session{SessionReader: SessionReader{log: l, name: name, genesis: Genesis(name)}}
	s.head = Head{Hash: s.genesis}
	number, ok, err := keyspace.SessionNumber(l.db, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		if t, deleted, err := keyspace.FindTombstone(l.db, name); deleted || err != nil {
			return nil, cmp.Or(err, error(&DeletedError{t}))
		}
	}
	if ok {
		s.number = number
		var unread error
		if s.head, s.at, unread, err = l.lastEntry(number, s.genesis); err != nil {
			return nil, fmt.Errorf("session %q: %w", name, err)
		}
		if s.misfit, err = l.misfit(name, number); err != nil {
			return nil, err
		}
		if s.misfit != nil && l.shared[number] {
			return nil, s.misfit // the entries are another session's
		}
		if s.misfit == nil && unread != nil {
			s.misfit = fmt.Errorf("session %q: %w", name, unread)
		}
	}
	s.durable.Store(&durable{s.number, s.head, s.at})
	return s, nil
}

// lastEntry returns the end of a session. If the last entries are in a damaged block, the
// end is the one that was noted as durable, so that a reader meets an error behind those
// that can be read; at is then the time of the last of these, and unread the error. With
// neither a last entry nor a note the error is err.
func (l *Log) lastEntry(number uint32, genesis Hash) (head Head, at time.Duration, unread, err error) {
	head, at, err = keyspace.LastEntry(l.db, number, genesis)
	if !errors.Is(err, keyspace.ErrDamagedBlock) { // a last batch that can be read and is wrong is the end
		return head, at, nil, err
	}
	it, other := l.readAround(context.Background(), number)
	if other != nil {
		return Head{}, 0, nil, keyspace.ReadError("find the last entry", other)
	}
	defer func() { _ = it.Close() }() // reading: the error that counts is it.Error
	bounds := keyspace.BatchesOf(number)
	if it.SeekLE(bounds.UpperBound, bounds.LowerBound) {
		var bad error
		if head, at, bad = keyspace.BatchEnd(it.Key(), it.Value()); bad != nil {
			return Head{}, 0, nil, err
		}
	}
	noted, ok := l.unreadEnds[number]
	switch {
	case it.Error() != nil:
		return Head{}, 0, nil, keyspace.ReadError("find the last entry", it.Error())
	case !ok:
		return Head{}, 0, nil, err
	case noted.Seq > head.Seq:
		return noted, at, err, nil
	}
	return head, at, nil, nil
}

// misfit is the reason why nothing may be appended to a session: the entries under
// its number do not begin with its genesis hash, so they belong to another session
// or were changed. It is nil if they do.
func (l *Log) misfit(name string, number uint32) (misfit, err error) {
	v, closer, err := l.db.Get(keyspace.BatchKey(nil, number, 1))
	if errors.Is(err, pebble.ErrNotFound) {
		return fmt.Errorf("%w: session %q has a record, but not its first entry", ErrCorrupt, name), nil
	}
	if pebble.IsCorruptionError(err) { // the other entries may be readable
		return fmt.Errorf("session %q: %w", name, &EntryError{Seq: 1, Op: "read", Err: keyspace.ReadError("read the first entry", err)}), nil
	}
	if err != nil {
		return nil, keyspace.ReadError("read the first entry of session "+name, err)
	}
	b, bad := chain.OpenBatch(v)
	if bad == nil {
		stored, _, hash, linkErr := b.Next()
		if bad = linkErr; bad == nil && chain.Link(Genesis(name), stored) != *hash {
			bad = fmt.Errorf("%w: it does not follow from the session's name", ErrCorrupt)
		}
	}
	if bad != nil {
		misfit = fmt.Errorf("session %q: %w", name, &EntryError{Seq: 1, Op: "read", Err: bad})
	}
	return misfit, closer.Close()
}

// ConflictError has the Head of a session that is not the one that the caller
// expected. It matches [ErrConflict].
type ConflictError struct {
	Expected, Head Head
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: expected %v, the session stands at %v", ErrConflict, e.Expected, e.Head)
}

func (e *ConflictError) Unwrap() error { return ErrConflict }

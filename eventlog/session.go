package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Session is one chain of a log. Its methods may be called from many
// goroutines.
type Session struct {
	log     *Log
	name    string
	genesis Hash

	turns turns // who appends next, and with whom

	// mu is held by the round that appends, and never while the disk is waited
	// for.
	mu     sync.Mutex
	number uint32        // guarded by mu; 0 until the first append begins the session
	head   Head          // newest appended, perhaps not durable yet; guarded by mu
	at     time.Duration // session time of head; guarded by mu
	sealed arena         // memory of sealed batches; guarded by mu

	// durable is the newest entry that readers may see, and its number tells
	// them where to look; replaced, never changed.
	durable atomic.Pointer[durable]

	// changed is closed when durable moves, and is nil while nobody waits.
	waitMu  sync.Mutex
	changed chan struct{} // guarded by waitMu
}

type durable struct {
	number uint32
	head   Head
	at     time.Duration
}

// loadSession finds where a session stands. Called with l.mu held.
func (l *Log) loadSession(name string) (*Session, error) {
	s := &Session{log: l, name: name, genesis: Genesis(name)}
	s.head = Head{0, s.genesis}
	number, ok, err := l.sessionNumber(name)
	if err != nil {
		return nil, err
	}
	if ok {
		s.number = number
		if s.head, s.at, err = l.lastEntry(number, s.genesis); err != nil {
			return nil, fmt.Errorf("session %q: %w", name, err)
		}
	}
	s.durable.Store(&durable{s.number, s.head, s.at})
	return s, nil
}

// lastEntry reads the newest batch of a session. Its links are read and its
// last entry decoded; its chain is the business of [Log.Verify].
func (l *Log) lastEntry(number uint32, genesis Hash) (Head, time.Duration, error) {
	it, err := l.db.NewIter(&pebble.IterOptions{
		LowerBound: batchKey(nil, number, 0),
		UpperBound: batchKey(nil, number+1, 0),
	})
	if err != nil {
		return Head{}, 0, readError("find the last entry", err)
	}
	head, at, err := lastOf(it, genesis)
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return Head{}, 0, readError("find the last entry", err)
	}
	return head, at, nil
}

func lastOf(it *pebble.Iterator, genesis Hash) (Head, time.Duration, error) {
	if !it.Last() {
		return Head{0, genesis}, 0, nil
	}
	b, err := openBatchAt(it.Key(), it.Value())
	if err != nil {
		return Head{}, 0, err
	}
	var e Entry
	for i := range b.count {
		_, body, hash, err := b.link()
		if err != nil {
			return Head{}, 0, &EntryError{b.first + Seq(i), "read", err}
		}
		if i == b.count-1 {
			e = Entry{Seq: b.first + Seq(i), Hash: *hash}
			if err := decodeBody(&e, body); err != nil {
				return Head{}, 0, &EntryError{e.Seq, "decode", err}
			}
		}
	}
	if len(b.rest) != 0 {
		return Head{}, 0, &EntryError{e.Seq, "read", fmt.Errorf("%w: %d bytes behind the entry", ErrCorrupt, len(b.rest))}
	}
	return e.Head(), e.At, nil
}

// EntryError says at which entry something failed.
type EntryError struct {
	Seq Seq
	Op  string // what was being attempted: "read", "decode", "verify"
	Err error  // the cause; often ErrCorrupt
}

func (e *EntryError) Error() string {
	return fmt.Sprintf("eventlog: %s entry %d: %v", e.Op, e.Seq, e.Err)
}

func (e *EntryError) Unwrap() error { return e.Err }

// ConflictError says where a session stands when it is not where the caller
// expected it. It matches [ErrConflict].
type ConflictError struct {
	Expected, Head Head
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: expected %v, the session stands at %v", ErrConflict, e.Expected, e.Head)
}

func (e *ConflictError) Unwrap() error { return ErrConflict }

// Name returns the session's name.
func (s *Session) Name() string { return s.name }

// Genesis returns hash(0) of the session.
func (s *Session) Genesis() Hash { return s.genesis }

// Exists reports whether the session has durable entries.
func (s *Session) Exists() bool { return s.Head().Seq > 0 }

// Head returns the newest durable entry's place.
func (s *Session) Head() Head { return s.durable.Load().head }

// At returns the session time of the newest durable entry.
func (s *Session) At() time.Duration { return s.durable.Load().at }

// publish shows readers what has become durable. Waiters of one session may
// come here in any order.
func (s *Session) publish(next *durable) {
	for {
		old := s.durable.Load()
		if old.head.Seq >= next.head.Seq {
			return
		}
		if s.durable.CompareAndSwap(old, next) {
			break
		}
	}
	s.waitMu.Lock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	s.waitMu.Unlock()
}

// watch returns what is durable and a channel that is closed when that is no
// longer the newest.
func (s *Session) watch() (*durable, <-chan struct{}) {
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	// Read after the channel is in place: a publish in between closes it.
	return s.durable.Load(), s.changed
}

// WaitDurable waits until the entry at seq is durable. The entry must have
// been staged; the error is the context's, [ErrClosed], or the one that made
// the log read-only.
func (s *Session) WaitDurable(ctx context.Context, seq Seq) error {
	return s.waitFor(ctx, seq)
}

// appendOutcome appends the record that an idempotency key leads to.
func appendOutcome(dst []byte, first Seq, head Head) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(first))
	dst = binary.BigEndian.AppendUint64(dst, uint64(head.Seq))
	return append(dst, head.Hash[:]...)
}

// outcome looks an idempotency key up.
func (l *Log) outcome(number uint32, key string) (first Seq, head Head, ok bool, err error) {
	v, closer, err := l.db.Get(idempotencyKey(nil, number, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, Head{}, false, nil
	}
	if err != nil {
		return 0, Head{}, false, readError("look up key", err)
	}
	if len(v) != 8+8+HashSize {
		return 0, Head{}, false, errors.Join(fmt.Errorf("%w: outcome of key %q", ErrCorrupt, key), closer.Close())
	}
	first = Seq(binary.BigEndian.Uint64(v))
	head = Head{Seq(binary.BigEndian.Uint64(v[8:])), Hash(v[16:])}
	return first, head, true, closer.Close()
}

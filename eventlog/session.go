package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
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

	// mu orders the appends of this session; it is not held while an append
	// waits for its sync.
	mu     sync.Mutex
	number uint32        // guarded by mu; 0 until the first append begins the session
	head   Head          // newest appended, perhaps not durable yet; guarded by mu
	at     time.Duration // session time of head; guarded by mu

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

// Append writes a batch and returns the Head behind it once it is durable.
//
// When b.Key was seen before, nothing is written and the Head behind the
// first append with that key is returned. Errors: [ErrInvalid],
// [ErrTooLarge], [ErrConflict], [ErrReadOnly], [ErrClosed]. After an error
// of the last write the outcome is unknown until the log is opened again;
// append again then with the same Key.
func (s *Session) Append(ctx context.Context, b Batch) (Head, error) {
	if err := ctx.Err(); err != nil {
		return Head{}, err
	}
	t, err := s.Stage(b)
	if err != nil {
		return Head{}, err
	}
	return t.Wait()
}

// Ticket is an append that has its place in the log and waits to become
// durable.
type Ticket struct {
	session *Session
	batch   *pebble.Batch // nil for a repeat
	sealed  []byte        // the sealed batch; nil for a repeat; immutable
	first   Seq
	head    Head
	at      time.Duration
	release func()
}

// Head returns the place behind the append, durable or not.
func (t *Ticket) Head() Head { return t.head }

// First returns the Seq of the first entry of the append.
func (t *Ticket) First() Seq { return t.first }

// Repeat reports whether the batch's key had been seen before, so that the
// ticket is the first outcome and nothing was written.
func (t *Ticket) Repeat() bool { return t.batch == nil }

// Entries iterates over the entries of the append, durable or not. For a
// repeat there are none.
func (t *Ticket) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if t.sealed == nil {
			return
		}
		b, err := openBatch(t.sealed)
		for i := 0; i < b.count; i++ {
			var e Entry
			var body []byte
			var hash *Hash
			if err == nil {
				_, body, hash, err = b.link()
			}
			if err == nil {
				e = Entry{Seq: b.first + Seq(i), Hash: *hash}
				err = decodeBody(&e, body)
			}
			if err != nil {
				panic("eventlog: a batch that was just sealed does not open: " + err.Error())
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Stage gives a batch its place in the log, in the order of the calls, and
// returns without waiting for the disk. Every ticket must be waited for, once,
// and those of one goroutine in the order they were staged. Errors are those
// of [Session.Append].
//
// It exists for callers that decide under a lock of their own and must not
// hold it while the disk works.
func (s *Session) Stage(b Batch) (*Ticket, error) {
	l := s.log
	release, err := l.acquire()
	if err != nil {
		return nil, err
	}
	t, err := s.stage(&b)
	if err != nil {
		release()
		return nil, err
	}
	t.release = release
	return t, nil
}

func (s *Session) stage(b *Batch) (*Ticket, error) {
	l := s.log
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := l.writable(); err != nil {
		return nil, err
	}
	if len(b.Key) > MaxKey {
		return nil, fmt.Errorf("%w: idempotency key has %d bytes, at most %d are allowed", ErrTooLarge, len(b.Key), MaxKey)
	}
	if b.Key != "" && s.number != 0 {
		first, head, ok, err := l.outcome(s.number, b.Key)
		if err != nil {
			return nil, err
		}
		if ok {
			return &Ticket{session: s, first: first, head: head}, nil
		}
	}
	if !b.Expect.IsZero() && b.Expect != s.head {
		return nil, &ConflictError{b.Expect, s.head}
	}
	if err := checkDrafts(b, &l.cfg, s.at); err != nil {
		return nil, err
	}
	t := &Ticket{session: s, first: s.head.Seq + 1, head: s.head, at: b.Drafts[len(b.Drafts)-1].At}
	t.sealed = sealHeader(make([]byte, 0, sealedSize(b)), t.first, len(b.Drafts))
	key := b.Key
	for i := range b.Drafts {
		t.sealed, t.head.Hash = sealEntry(t.sealed, &b.Drafts[i], key, t.head.Hash, i > 0)
		key = ""
	}
	t.head.Seq += Seq(len(b.Drafts))
	if err := s.apply(t, b.Key); err != nil {
		return nil, err
	}
	s.head, s.at = t.head, t.at
	return t, nil
}

// apply hands the sealed batch to the store, in order. From here on the
// batch is in the log if the sync that [Ticket.Wait] waits for succeeds; a
// crash before leaves all of it or nothing, since it is one record of the
// store's write-ahead log.
func (s *Session) apply(t *Ticket, key string) error {
	l := s.log
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	// Asked again, now that nothing can fail in between; see applyMu.
	if err := l.writable(); err != nil {
		return err
	}
	t.batch = l.db.NewBatchWithSize(len(t.sealed) + 64)
	number := s.number
	if number == 0 {
		number = l.next
		if err := t.batch.Set(sessionKey(s.name), binary.BigEndian.AppendUint32(nil, number), nil); err != nil {
			return fmt.Errorf("eventlog: append: %w", err)
		}
	}
	var scratch [batchKeySize]byte
	err := t.batch.Set(batchKey(scratch[:0], number, t.first), t.sealed, nil)
	if err == nil && key != "" {
		err = t.batch.Set(idempotencyKey(nil, number, key), appendOutcome(nil, t.first, t.head), nil)
	}
	if err != nil {
		return fmt.Errorf("eventlog: append: %w", err)
	}
	if err := l.db.ApplyNoSyncWait(t.batch, pebble.Sync); err != nil {
		l.fail(err)
		return l.writable()
	}
	if l.fatal.Load() {
		return l.writable() // its sync may never end
	}
	if number == l.next {
		l.next++
	}
	s.number, l.wrote = number, true
	return nil
}

// Wait returns once the append is durable, with the Head behind it, or with
// the error that made the log read-only.
func (t *Ticket) Wait() (Head, error) {
	s := t.session
	if t.release != nil {
		defer t.release()
		t.release = nil
	}
	if t.batch == nil {
		return t.head, s.waitFor(context.Background(), t.head.Seq)
	}
	err := t.batch.SyncWait()
	if err != nil {
		s.log.fail(err)
	}
	if err := errors.Join(err, t.batch.Close()); err != nil || s.log.disk.lost.Load() {
		return Head{}, s.log.writable()
	}
	// A sync covers everything that was written before it, so what is
	// durable is whatever was newest when this batch was applied.
	s.publish(t)
	return t.head, nil
}

// publish shows readers what has become durable. Waiters of one session may
// come here in any order.
func (s *Session) publish(t *Ticket) {
	next := &durable{0, t.head, t.at}
	for {
		old := s.durable.Load()
		if old.head.Seq >= t.head.Seq {
			return
		}
		if next.number = old.number; next.number == 0 {
			s.mu.Lock()
			next.number = s.number
			s.mu.Unlock()
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

package eventlog

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// SessionReader reads one session of a log: its durable entries, and those to come.
// Its methods may be called from many goroutines.
type SessionReader struct {
	log     *Log   // immutable
	name    string // immutable
	genesis Hash   // immutable

	// durable is the newest entry that readers may see, and the number under
	// which they find it; replaced, never changed.
	durable atomic.Pointer[durable]

	// gone is set just before the session is deleted, and stays.
	gone atomic.Pointer[DeletedError]

	// changed is closed when durable moves or the session is deleted, and is nil while
	// no reader waits.
	waitMu  sync.Mutex
	changed chan struct{} // guarded by waitMu
}

type durable struct {
	number uint32
	head   Head
	at     time.Duration
}

// Name returns the session's name.
func (s *SessionReader) Name() string { return s.name }

// Genesis returns hash(0) of the session.
func (s *SessionReader) Genesis() Hash { return s.genesis }

// Exists reports whether the session has durable entries.
func (s *SessionReader) Exists() bool { return s.Head().Seq > 0 && s.gone.Load() == nil }

// deletedErr returns a [DeletedError] once the session is deleted, and nil before.
func (s *SessionReader) deletedErr() error {
	if deleted := s.gone.Load(); deleted != nil {
		return deleted
	}
	return nil
}

// Head returns the position of the newest durable entry; after a deletion of the last
// one that there was.
func (s *SessionReader) Head() Head { return s.durable.Load().head }

// At returns the session time of the newest durable entry.
func (s *SessionReader) At() time.Duration { return s.durable.Load().at }

// publish shows durable entries to readers. The waiters of one session may call it in
// any order.
func (s *SessionReader) publish(next *durable) {
	for {
		old := s.durable.Load()
		if old.head.Seq >= next.head.Seq {
			return
		}
		if s.durable.CompareAndSwap(old, next) {
			break
		}
	}
	s.wake()
}

// wake wakes the readers that wait.
func (s *SessionReader) wake() {
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// watch returns the newest durable position and a channel that is closed when it
// moves.
func (s *SessionReader) watch() (*durable, <-chan struct{}) {
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	// Read after the channel is in place: a publish in between closes it.
	return s.durable.Load(), s.changed
}

// checkEvery is the number of entries that an iteration yields between two looks at
// its context.
const checkEvery = 256

// Entries iterates over the durable entries from Seq from (0 and 1 both mean
// the first) to the Head at the moment when it starts. It ends with an [EntryError]
// at the first entry that cannot be read, after it has yielded those before. It does
// not check the chain; see [Log.Verify].
func (s *SessionReader) Entries(ctx context.Context, from Seq) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s.entries(ctx, max(from, 1), yield)
	}
}

// Follow is [SessionReader.Entries] that does not end at the Head: it waits for further
// entries, without gap or repeat, until ctx ends, the session is deleted ([ErrDeleted])
// or the log is closed ([ErrClosed]).
// A failed write, which makes the log read-only, ends it after the last durable
// entry.
func (s *SessionReader) Follow(ctx context.Context, from Seq) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		next := max(from, 1)
		for {
			var ok bool
			if next, ok = s.entries(ctx, next, yield); !ok {
				return
			}
			if err := s.WaitDurable(ctx, next); err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}

// WaitDurable waits until the entry at seq is durable. The entry must have
// been staged; the error is the context's, [ErrClosed], [ErrDeleted], or the one that
// made the log read-only.
func (s *SessionReader) WaitDurable(ctx context.Context, seq Seq) error {
	for {
		d, changed := s.watch()
		if err := s.deletedErr(); err != nil {
			return err
		}
		if d.head.Seq >= seq {
			return nil
		}
		if f := s.log.failure.Load(); f != nil {
			return s.log.writable()
		}
		select {
		case <-changed:
		case <-s.log.Failed():
		case <-s.log.done:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Entry returns one entry.
func (s *SessionReader) Entry(ctx context.Context, seq Seq) (Entry, error) {
	if head := s.Head(); seq == 0 || seq > head.Seq && s.gone.Load() == nil {
		return Entry{}, fmt.Errorf("%w: session %q has no entry %d, its last is %d", ErrInvalid, s.name, seq, head.Seq)
	}
	for e, err := range s.Entries(ctx, seq) {
		return e, err
	}
	return Entry{}, &EntryError{Seq: seq, Op: "read", Err: ErrCorrupt}
}

// Absent returns a Seq up to which no entry carries an idempotency key, and true. It
// returns false if one does, or if that cannot be found out without a round: an append
// with the key, or [Round.Repeat], then tells more.
func (s *SessionReader) Absent(key string) (upTo Seq, ok bool) {
	d := s.durable.Load()
	if err := s.log.acquire(); err != nil {
		return 0, false
	}
	defer s.log.release()
	if s.gone.Load() != nil {
		return 0, false
	}
	if d.head.Seq == 0 {
		return 0, true
	}
	// An outcome is written together with its entries, so one of an entry that is durable
	// is found.
	_, found, err := keyspace.FindOutcome(s.log.db, d.number, key)
	return d.head.Seq, err == nil && !found
}

// entries yields the entries that are durable now, from next on. It returns the Seq
// after the last one, and false when the iteration is over.
func (s *SessionReader) entries(ctx context.Context, next Seq, yield func(Entry, error) bool) (Seq, bool) {
	d := s.durable.Load()
	fail := func(err error) {
		if deleted := s.deletedErr(); deleted != nil {
			err = deleted
		}
		yield(Entry{}, err)
	}
	if err := s.deletedErr(); err != nil {
		fail(err)
		return next, false
	}
	if next > d.head.Seq {
		return next, true
	}
	if err := s.log.acquire(); err != nil {
		yield(Entry{}, err)
		return next, false
	}
	defer s.log.release()
	next, ok, err := s.whole(ctx, d, next, yield)
	if err == nil || !ok {
		return next, ok
	}
	if pebble.IsCorruptionError(err) {
		next, ok, err = s.around(ctx, d, next, yield, err)
		if err == nil || !ok {
			return next, ok
		}
		if pebble.IsCorruptionError(err) {
			err = &EntryError{Seq: next, Op: "read", Err: keyspace.ReadError("read entries", err)}
		}
	}
	fail(err)
	return next, false
}

// whole is [SessionReader.entries] for a store without damaged blocks. With an error the
// iteration may go on in another way, from the Seq on that it returns, if the error is
// Pebble's.
func (s *SessionReader) whole(ctx context.Context, d *durable, next Seq, yield func(Entry, error) bool) (Seq, bool, error) {
	it, err := keyspace.SeekBatch(ctx, s.log.db, d.number, next)
	if pebble.IsCorruptionError(err) {
		return next, true, err
	}
	if err != nil {
		return next, true, keyspace.ReadError("read entries", err)
	}
	defer func() { _ = it.Close() }() // reading: the error that counts is it.Error, in batches
	return s.batches(ctx, d, it, next, yield, fmt.Errorf("%w: missing", ErrCorrupt))
}

// around is [SessionReader.entries] for a store of which a block is damaged. It yields the
// entries outside of the damaged blocks that follow next without a gap.
func (s *SessionReader) around(ctx context.Context, d *durable, next Seq, yield func(Entry, error) bool, damage error) (Seq, bool, error) {
	it, err := s.log.readAround(ctx, d.number)
	if err != nil {
		return next, true, keyspace.ReadError("read entries", err)
	}
	defer func() { _ = it.Close() }() // reading: the error that counts is it.Error, in batches
	it.SeekLE(keyspace.BatchKey(nil, d.number, next), keyspace.BatchesOf(d.number).LowerBound)
	return s.batches(ctx, d, it, next, yield, keyspace.ReadError("read entries", damage))
}

// readAround returns an iterator over what can be read of a session's batches, whatever
// blocks are damaged.
func (l *Log) readAround(ctx context.Context, number uint32) (*storefile.AroundDamage, error) {
	return storefile.ReadAround(ctx, l.db, l.cfg.FS, l.dir, keyspace.BatchesOf(number))
}

// batchIterator iterates over the keys of a session's batches.
type batchIterator interface {
	Valid() bool
	Next() bool
	Key() []byte
	Value() []byte
	Error() error
}

// batches yields the durable entries from next on. The iterator stands at the batch that
// holds next, or where it would be. The error missing is that of an entry which is not
// there. The results are those of [SessionReader.entries]; an error was not yielded.
func (s *SessionReader) batches(ctx context.Context, d *durable, it batchIterator, next Seq, yield func(Entry, error) bool, missing error) (Seq, bool, error) {
	var mem arena
	for ; it.Valid(); it.Next() {
		// A batch can become visible a moment before it is durable.
		if seq, ok := keyspace.BatchSeq(it.Key()); ok && seq > d.head.Seq {
			break
		}
		b, err := keyspace.OpenBatch(it.Key(), it.Value())
		if err == nil && b.First > next {
			err = missing
		}
		if err != nil {
			return next, true, &EntryError{Seq: next, Op: "read", Err: err}
		}
		for i := range b.Count {
			seq := b.First + Seq(i)
			_, body, hash, err := b.Next()
			if err == nil && len(body) > s.log.cfg.MaxEntry {
				err = fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrTooLarge, len(body), s.log.cfg.MaxEntry)
			}
			if err != nil {
				return seq, true, &EntryError{Seq: seq, Op: "read", Err: err}
			}
			if seq < next {
				continue
			}
			e := Entry{Seq: seq, Hash: *hash}
			if err := chain.DecodeBody(&e, mem.copy(body)); err != nil {
				return seq, true, &EntryError{Seq: seq, Op: "decode", Err: err}
			}
			if seq%checkEvery == 0 && ctx.Err() != nil {
				return seq, true, ctx.Err()
			}
			if i == 0 {
				e.Batch = b.Count
			}
			next = seq + 1
			if !yield(e, nil) {
				return next, false, nil
			}
		}
		if len(b.Rest) != 0 {
			return next, true, &EntryError{Seq: next - 1, Op: "read", Err: fmt.Errorf("%w: %d bytes behind the entry", ErrCorrupt, len(b.Rest))}
		}
	}
	switch err := it.Error(); {
	case next > d.head.Seq:
		return next, true, nil // what is behind the end does not matter
	case pebble.IsCorruptionError(err):
		return next, true, err
	case err != nil:
		return next, true, &EntryError{Seq: next, Op: "read", Err: keyspace.ReadError("read entries", err)}
	}
	return next, true, &EntryError{Seq: next, Op: "read", Err: missing}
}

// LogReader reads a log: it neither appends nor closes it.
type LogReader struct{ log *Log }

// Reader returns a reader of the log.
func (l *Log) Reader() *LogReader { return &LogReader{l} }

// Sessions is [Log.Sessions].
func (r *LogReader) Sessions() ([]SessionInfo, error) { return r.log.Sessions() }

// Session returns a reader of the session of that name; see [Log.Session].
func (r *LogReader) Session(name string) (*SessionReader, error) {
	s, err := r.log.Session(name)
	if err != nil {
		return nil, err
	}
	return &s.SessionReader, nil
}

// Verify is [Log.Verify].
func (r *LogReader) Verify(ctx context.Context, name string, opts verify.Options) (verify.SessionReport, error) {
	return r.log.Verify(ctx, name, opts)
}

// Survey is [Log.Survey].
func (r *LogReader) Survey(ctx context.Context) ([]verify.StoreFault, error) {
	return r.log.Survey(ctx)
}

// Loss is [Log.Loss].
func (r *LogReader) Loss() *LossError { return r.log.Loss() }

// Doubts is [Log.Doubts].
func (r *LogReader) Doubts() []string { return r.log.Doubts() }

// DiskUsage is [Log.DiskUsage].
func (r *LogReader) DiskUsage() (DiskUsage, error) { return r.log.DiskUsage() }

// DiskSize is [Log.DiskSize].
func (r *LogReader) DiskSize(ctx context.Context, name string) (uint64, error) {
	return r.log.DiskSize(ctx, name)
}

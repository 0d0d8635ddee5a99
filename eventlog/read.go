package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"
)

// checkEvery is how many entries an iteration hands out between two looks at
// its context.
const checkEvery = 256

// Entries iterates over the durable entries from Seq from (0 and 1 both mean
// the first) to the Head of the moment when it starts. It ends with an
// [EntryError] at the first entry that cannot be read; entries before it
// have been handed out. The chain is not checked: that is [Log.Verify].
func (s *Session) Entries(ctx context.Context, from Seq) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s.entries(ctx, max(from, 1), yield)
	}
}

// Follow is [Session.Entries] that does not end at the Head: it waits for
// what comes, without gap or repeat, until ctx ends or the log is closed
// ([ErrClosed]). A log that has become read-only by a failed write ends it,
// too, after the last durable entry.
func (s *Session) Follow(ctx context.Context, from Seq) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		next := max(from, 1)
		for {
			var ok bool
			if next, ok = s.entries(ctx, next, yield); !ok {
				return
			}
			if err := s.waitFor(ctx, next); err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}

// waitFor waits until the entry at seq is durable.
func (s *Session) waitFor(ctx context.Context, seq Seq) error {
	for {
		d, changed := s.watch()
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
func (s *Session) Entry(ctx context.Context, seq Seq) (Entry, error) {
	if head := s.Head(); seq == 0 || seq > head.Seq {
		return Entry{}, fmt.Errorf("%w: session %q has no entry %d, its last is %d", ErrInvalid, s.name, seq, head.Seq)
	}
	for e, err := range s.Entries(ctx, seq) {
		return e, err
	}
	return Entry{}, &EntryError{seq, "read", ErrCorrupt}
}

// entries hands out what is durable now, from next on. It returns the Seq
// after the last one, and false when the iteration is over.
func (s *Session) entries(ctx context.Context, next Seq, yield func(Entry, error) bool) (Seq, bool) {
	d := s.durable.Load()
	if next > d.head.Seq {
		return next, true
	}
	release, err := s.log.acquire()
	if err != nil {
		yield(Entry{}, err)
		return next, false
	}
	defer release()
	it, err := s.log.batches(ctx, d.number, next)
	if err != nil {
		yield(Entry{}, readError("read entries", err))
		return next, false
	}
	defer func() { _ = it.Close() }() // reading: the error that counts is it.Error, below

	var mem arena
	for ; it.Valid(); it.Next() {
		// A batch can become visible a moment before it is durable.
		if seq, ok := keySeq(it.Key()); ok && seq > d.head.Seq {
			break
		}
		b, err := openBatchAt(it.Key(), it.Value())
		if err == nil && b.first > next {
			err = fmt.Errorf("%w: missing", ErrCorrupt)
		}
		if err != nil {
			yield(Entry{}, &EntryError{next, "read", err})
			return next, false
		}
		for i := range b.count {
			seq := b.first + Seq(i)
			_, body, hash, err := b.link()
			if err == nil && len(body) > s.log.cfg.MaxEntry {
				err = fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrTooLarge, len(body), s.log.cfg.MaxEntry)
			}
			if err != nil {
				yield(Entry{}, &EntryError{seq, "read", err})
				return seq, false
			}
			if seq < next {
				continue
			}
			e := Entry{Seq: seq, Hash: *hash}
			if err := decodeBody(&e, mem.copy(body)); err != nil {
				yield(Entry{}, &EntryError{seq, "decode", err})
				return seq, false
			}
			if seq%checkEvery == 0 && ctx.Err() != nil {
				yield(Entry{}, ctx.Err())
				return seq, false
			}
			next = seq + 1
			if !yield(e, nil) {
				return next, false
			}
		}
		if len(b.rest) != 0 {
			yield(Entry{}, &EntryError{next - 1, "read", fmt.Errorf("%w: %d bytes behind the entry", ErrCorrupt, len(b.rest))})
			return next, false
		}
	}
	if err := it.Error(); err != nil {
		yield(Entry{}, &EntryError{next, "read", readError("read entries", err)})
		return next, false
	}
	if next <= d.head.Seq {
		yield(Entry{}, &EntryError{next, "read", fmt.Errorf("%w: missing", ErrCorrupt)})
		return next, false
	}
	return next, true
}

// batches returns an iterator that stands at the batch holding seq.
func (l *Log) batches(ctx context.Context, number uint32, seq Seq) (*pebble.Iterator, error) {
	it, err := l.db.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: batchKey(nil, number, 0),
		UpperBound: batchKey(nil, number+1, 0),
	})
	if err != nil {
		return nil, err
	}
	// The batch that holds seq is the last one that begins at or before it.
	it.SeekLT(batchKey(nil, number, seq+1))
	for it.Valid() && len(it.Key()) != batchKeySize {
		it.Prev() // no batch; whoever reads past it will meet it
	}
	if !it.Valid() && it.Error() == nil {
		it.First()
	}
	if err := it.Error(); err != nil {
		return nil, errors.Join(err, it.Close())
	}
	return it, nil
}

// openBatchAt opens a batch and compares its first Seq with its key's.
func openBatchAt(key, value []byte) (sealed, error) {
	seq, ok := keySeq(key)
	if !ok {
		return sealed{}, fmt.Errorf("%w: key %x is not a batch's", ErrCorrupt, key)
	}
	b, err := openBatch(value)
	if err != nil {
		return sealed{}, err
	}
	if b.first != seq {
		return sealed{}, fmt.Errorf("%w: batch of entry %d stands at the place of entry %d", ErrCorrupt, b.first, seq)
	}
	return b, nil
}

// arena copies bodies into memory that is written once, so that entries can
// point into it and stay valid. Bodies share blocks: one allocation an entry
// would be most of the cost of reading it. The first block is small, for those
// who read one entry and stop.
type arena struct {
	block []byte
}

const (
	firstArenaBlock = 2 << 10
	maxArenaBlock   = 64 << 10
)

func (a *arena) copy(b []byte) []byte {
	c := append(a.room(len(b)), b...)
	a.take(c)
	return c[:len(c):len(c)]
}

// room returns an empty slice to which n bytes can be appended. What is kept
// of it is told to take, before room is called again.
func (a *arena) room(n int) []byte {
	if free := cap(a.block) - len(a.block); free < n {
		size := min(max(2*cap(a.block), firstArenaBlock), maxArenaBlock)
		if n >= size/4 {
			return make([]byte, 0, n)
		}
		a.block = make([]byte, 0, size)
	}
	start := len(a.block)
	return a.block[start : start : start+n]
}

// take keeps what was appended to the last room.
func (a *arena) take(b []byte) {
	start := len(a.block)
	if end := start + len(b); end <= cap(a.block) && len(b) > 0 && &a.block[start:end][0] == &b[0] {
		a.block = a.block[:end]
	}
}

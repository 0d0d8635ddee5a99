package eventlog

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// Readable returns the first entry from a Seq on that can be read, up to the Head, or false
// if there is none. So a reader can go on behind an [EntryError]. It does not check the
// chain: entries behind damage are not proven to follow from those in front of it. The
// error is that of ctx, or of a disk that cannot be read.
func (s *SessionReader) Readable(ctx context.Context, from Seq) (Seq, bool, error) {
	from = max(from, 1)
	for {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		var failed error
		found := false
		for _, err := range s.Entries(ctx, from) {
			found, failed = err == nil, err
			break
		}
		broken, isBroken := errors.AsType[*EntryError](failed)
		switch {
		case failed == nil:
			return from, found, nil
		case !isBroken || !errors.Is(failed, ErrCorrupt) && !errors.Is(failed, ErrTooLarge):
			return 0, false, failed
		case broken.Seq > from || broken.Op == "decode":
			from = broken.Seq + 1 // the others of its batch can be read
			continue
		}
		next, ok, err := s.batchAfter(ctx, from)
		if err != nil || !ok {
			return 0, false, err
		}
		from = next
	}
}

// batchAfter returns the first entry of the next batch that begins behind an entry.
func (s *SessionReader) batchAfter(ctx context.Context, seq Seq) (next Seq, ok bool, err error) {
	d := s.durable.Load()
	if err := s.log.acquire(); err != nil {
		return 0, false, err
	}
	defer s.log.release()
	it, err := s.log.db.NewIterWithContext(ctx, keyspace.BatchesOf(d.number))
	if err != nil {
		return 0, false, keyspace.ReadError("read entries", err)
	}
	defer func() { _ = it.Close() }() // reading: the error that counts is it.Error
	from := keyspace.BatchKey(nil, d.number, seq+1)
	it.SeekGE(from)
	next, ok = nextBatch(it, seq)
	err = it.Error()
	if !ok && pebble.IsCorruptionError(err) {
		around, other := s.log.readAround(ctx, d.number)
		if other != nil {
			return 0, false, keyspace.ReadError("read entries", other)
		}
		defer func() { _ = around.Close() }() // as above
		around.SeekGE(from)
		next, ok = nextBatch(around, seq)
		err = around.Error()
	}
	if !ok && err != nil {
		return 0, false, keyspace.ReadError("read entries", err)
	}
	return next, ok && next <= d.head.Seq, nil
}

// nextBatch moves to the first batch that begins behind an entry.
func nextBatch(it batchIterator, seq Seq) (Seq, bool) {
	for ; it.Valid(); it.Next() {
		if first, isBatch := keyspace.BatchSeq(it.Key()); isBatch && first > seq {
			return first, true
		}
	}
	return 0, false
}

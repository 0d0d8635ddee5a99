package keyspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// SeekBatch returns an iterator over a session's batches that stands at the batch
// holding seq.
func SeekBatch(ctx context.Context, reader pebble.Reader, number uint32, seq chain.Seq) (*pebble.Iterator, error) {
	it, err := reader.NewIterWithContext(ctx, BatchesOf(number))
	if err != nil {
		return nil, err
	}
	// The batch that holds seq is the last one that begins at or before it.
	it.SeekLT(BatchKey(nil, number, seq+1))
	for it.Valid() && len(it.Key()) != BatchKeySize {
		it.Prev() // not a batch; a reader that passes it reports it
	}
	if !it.Valid() && it.Error() == nil {
		it.First()
	}
	if err := it.Error(); err != nil {
		return nil, errors.Join(err, it.Close())
	}
	return it, nil
}

// HasBatch reports whether a batch stands under a session number.
func HasBatch(reader pebble.Reader, number uint32) (bool, error) {
	it, err := reader.NewIter(BatchesOf(number))
	if err != nil {
		return false, ReadError("look for entries", err)
	}
	has := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return false, ReadError("look for entries", err)
	}
	return has, nil
}

// OpenBatch opens the batch under a key and compares its first Seq with the
// key's.
func OpenBatch(key, value []byte) (chain.Sealed, error) {
	seq, ok := BatchSeq(key)
	if !ok {
		return chain.Sealed{}, fmt.Errorf("%w: key %x is not a batch's", chain.ErrCorrupt, key)
	}
	b, err := chain.OpenBatch(value)
	if err != nil {
		return chain.Sealed{}, err
	}
	if b.First != seq {
		return chain.Sealed{}, fmt.Errorf("%w: batch of entry %d stands at the place of entry %d", chain.ErrCorrupt, b.First, seq)
	}
	return b, nil
}

// HashAt reads the stored hash of one entry.
func HashAt(ctx context.Context, reader pebble.Reader, number uint32, seq chain.Seq) (chain.Hash, error) {
	it, err := SeekBatch(ctx, reader, number, seq)
	if err != nil {
		return chain.Hash{}, err
	}
	hash, err := hashIn(it, seq)
	return hash, errors.Join(err, it.Close())
}

func hashIn(it *pebble.Iterator, seq chain.Seq) (chain.Hash, error) {
	if !it.Valid() {
		return chain.Hash{}, &chain.EntryError{Seq: seq, Op: "read", Err: chain.ErrCorrupt}
	}
	b, err := OpenBatch(it.Key(), it.Value())
	if err != nil {
		return chain.Hash{}, err
	}
	for i := range b.Count {
		_, _, hash, err := b.Next()
		if err != nil {
			return chain.Hash{}, err
		}
		if b.First+chain.Seq(i) == seq {
			return *hash, nil
		}
	}
	return chain.Hash{}, &chain.EntryError{Seq: seq, Op: "read", Err: chain.ErrCorrupt}
}

// LastEntry reads the newest batch of a session, and returns the position and the
// session time of its last entry. It reads the links and decodes the last entry;
// it does not check the chain. A session without entries ends at its genesis.
func LastEntry(reader pebble.Reader, number uint32, genesis chain.Hash) (chain.Head, time.Duration, error) {
	it, err := reader.NewIter(BatchesOf(number))
	if err != nil {
		return chain.Head{}, 0, ReadError("find the last entry", err)
	}
	head, at, err := lastOf(it, genesis)
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return chain.Head{}, 0, ReadError("find the last entry", err)
	}
	return head, at, nil
}

func lastOf(it *pebble.Iterator, genesis chain.Hash) (chain.Head, time.Duration, error) {
	if !it.Last() {
		return chain.Head{Hash: genesis}, 0, nil
	}
	return BatchEnd(it.Key(), it.Value())
}

// BatchEnd reads the links of the batch under a key, and returns the position and the
// session time of its last entry.
func BatchEnd(key, value []byte) (chain.Head, time.Duration, error) {
	b, err := OpenBatch(key, value)
	if err != nil {
		return chain.Head{}, 0, err
	}
	var e chain.Entry
	for i := range b.Count {
		_, body, hash, err := b.Next()
		if err != nil {
			return chain.Head{}, 0, &chain.EntryError{Seq: b.First + chain.Seq(i), Op: "read", Err: err}
		}
		if i == b.Count-1 {
			e = chain.Entry{Seq: b.First + chain.Seq(i), Hash: *hash}
			if err := chain.DecodeBody(&e, body); err != nil {
				return chain.Head{}, 0, &chain.EntryError{Seq: e.Seq, Op: "decode", Err: err}
			}
		}
	}
	if len(b.Rest) != 0 {
		return chain.Head{}, 0, &chain.EntryError{Seq: e.Seq, Op: "read", Err: fmt.Errorf("%w: %d bytes behind the entry", chain.ErrCorrupt, len(b.Rest))}
	}
	return e.Head(), e.At, nil
}

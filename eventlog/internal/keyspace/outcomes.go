package keyspace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// KeyOutcome is the record of an idempotency key: the batch that was appended first
// with the key. It is stored as
//
//	| first Seq (8B) | last Seq (8B) | hash of the last entry (32B) |
//
// Outcomes are derived: the chain covers the keys, which stand in the entries,
// and not the outcomes. A missing outcome lets a repeated append be recorded
// twice; an invented one makes a new append look like a repeat.
type KeyOutcome struct {
	First     chain.Seq
	Head      chain.Head
	Malformed bool // the value has another length; the other fields mean nothing
}

// OutcomeSize is the length of a stored outcome.
const OutcomeSize = 8 + 8 + chain.HashSize

// AppendOutcome appends the stored form of an outcome.
func AppendOutcome(dst []byte, first chain.Seq, head chain.Head) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(first))
	dst = binary.BigEndian.AppendUint64(dst, uint64(head.Seq))
	return append(dst, head.Hash[:]...)
}

// DecodeOutcome reads the stored form of an outcome.
func DecodeOutcome(v []byte) KeyOutcome {
	if len(v) != OutcomeSize {
		return KeyOutcome{Malformed: true}
	}
	return KeyOutcome{
		First: chain.Seq(binary.BigEndian.Uint64(v)),
		Head:  chain.Head{Seq: chain.Seq(binary.BigEndian.Uint64(v[8:])), Hash: chain.Hash(v[16:])},
	}
}

// FindOutcome looks the outcome of a key up.
func FindOutcome(reader pebble.Reader, number uint32, key string) (o KeyOutcome, found bool, err error) {
	v, closer, err := reader.Get(OutcomeKey(number, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return KeyOutcome{}, false, nil
	}
	if err != nil {
		return KeyOutcome{}, false, ReadError("look up key", err)
	}
	o = DecodeOutcome(v)
	return o, true, closer.Close()
}

// FirstAppend returns the outcome of a key, for an append that may be a repeat.
// An outcome that the entries do not confirm is [chain.ErrCorrupt]: using it
// would swallow the append, and could name entries that do not exist.
func FirstAppend(reader pebble.Reader, number uint32, key string) (o KeyOutcome, found bool, err error) {
	o, found, err = FindOutcome(reader, number, key)
	if err != nil || !found {
		return KeyOutcome{}, false, err
	}
	holds, err := o.Holds(reader, number, []byte(key))
	if err != nil {
		return KeyOutcome{}, false, err
	}
	if !holds {
		return KeyOutcome{}, false, fmt.Errorf("%w: the record of key %q names entry %d, which does not carry it; verify --rebuild-keys makes the records again from the entries", chain.ErrCorrupt, key, o.First)
	}
	return o, true, nil
}

// Holds reports whether the batch that the outcome names carries the key and has
// that outcome.
func (o KeyOutcome) Holds(reader pebble.Reader, number uint32, key []byte) (bool, error) {
	if o.Malformed || o.First == 0 {
		return false, nil
	}
	v, closer, err := reader.Get(BatchKey(nil, number, o.First))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, ReadError("look up the batch of a key", err)
	}
	carried, outcome, ok := batchOutcome(v)
	ok = ok && outcome == o && bytes.Equal(carried, key)
	return ok, closer.Close()
}

// batchOutcome returns the key that a sealed batch carries and the outcome that
// the key must have; ok is false when the batch carries no key or cannot be read.
func batchOutcome(sealed []byte) (key []byte, outcome KeyOutcome, ok bool) {
	b, err := chain.OpenBatch(sealed)
	if err != nil {
		return nil, KeyOutcome{}, false
	}
	outcome.First = b.First
	for i := range b.Count {
		_, body, hash, err := b.Next()
		if err != nil {
			return nil, KeyOutcome{}, false
		}
		if i == 0 {
			var e chain.Entry
			if err := chain.DecodeBody(&e, body); err != nil || e.Key == "" {
				return nil, KeyOutcome{}, false
			}
			key = []byte(e.Key)
		}
		outcome.Head = chain.Head{Seq: b.First + chain.Seq(i), Hash: *hash}
	}
	return key, outcome, true
}

// EachOutcome calls f with the key and the stored outcome of every idempotency
// key of a session, in the order of the keys.
func EachOutcome(ctx context.Context, reader pebble.Reader, number uint32, f func(key, outcome []byte) error) error {
	return each(ctx, reader, outcomesOf(number), func(key, value []byte) error {
		return f(key[NumberedSize:], value)
	})
}

// EachCarriedKey calls f with every key that a session's batches carry and the
// outcome that the key must have, in the order of the batches.
func EachCarriedKey(ctx context.Context, reader pebble.Reader, number uint32, f func(key []byte, outcome KeyOutcome) error) error {
	return each(ctx, reader, BatchesOf(number), func(_, sealed []byte) error {
		key, outcome, ok := batchOutcome(sealed)
		if !ok {
			return nil
		}
		return f(key, outcome)
	})
}

// each calls f with every key and value within bounds, in the order of the keys.
// The slices are valid during the call.
func each(ctx context.Context, reader pebble.Reader, bounds *pebble.IterOptions, f func(key, value []byte) error) error {
	const checkEvery = 256 // values between two looks at the context
	it, err := reader.NewIterWithContext(ctx, bounds)
	if err != nil {
		return ReadError("compare keys", err)
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return errors.Join(ctx.Err(), it.Close())
		}
		if err := f(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return ReadError("compare keys", err)
	}
	return nil
}

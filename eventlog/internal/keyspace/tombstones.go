package keyspace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// Tombstone is the record that a deleted session leaves under its name. It is stored
// as
//
//	| session number (4B) | last Seq (8B) | hash of the last entry (32B) | time of the deletion, ns since 1970 (8B) |
//
// and so differs in length from the record of a session that exists. Neither the name
// nor the number is used again.
type Tombstone struct {
	Session string
	Number  uint32     // of the session in the store
	Head    chain.Head // the end that the session had
	At      time.Time  // of the deletion
}

// TombstoneSize is the length of a stored tombstone.
const TombstoneSize = 4 + 8 + chain.HashSize + 8

// AppendTombstone appends the stored form of a tombstone.
func AppendTombstone(dst []byte, t *Tombstone) []byte {
	dst = binary.BigEndian.AppendUint32(dst, t.Number)
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.Head.Seq))
	dst = append(dst, t.Head.Hash[:]...)
	return binary.BigEndian.AppendUint64(dst, uint64(t.At.UnixNano()))
}

// IsTombstone reports whether the value of a session record has the length of a
// tombstone.
func IsTombstone(v []byte) bool { return len(v) == TombstoneSize }

// decodeTombstone reads the stored form of a tombstone.
func decodeTombstone(name string, v []byte) (Tombstone, error) {
	number, err := recordNumber(v[:4])
	if err != nil {
		return Tombstone{}, err
	}
	t := Tombstone{
		Session: name, Number: number,
		Head: chain.Head{Seq: chain.Seq(binary.BigEndian.Uint64(v[4:])), Hash: chain.Hash(v[12:])},
		At:   time.Unix(0, int64(binary.BigEndian.Uint64(v[12+chain.HashSize:]))).UTC(),
	}
	if t.Head.Seq == 0 {
		return Tombstone{}, errors.New("a tombstone of a session without entries")
	}
	return t, nil
}

// FindTombstone returns the tombstone of a name; ok is false when no session of that
// name was deleted.
func FindTombstone(reader pebble.Reader, name string) (t Tombstone, ok bool, err error) {
	v, closer, err := reader.Get(SessionKey(name))
	if errors.Is(err, pebble.ErrNotFound) {
		return Tombstone{}, false, nil
	}
	if err != nil {
		return Tombstone{}, false, ReadError("look up session "+name, err)
	}
	if IsTombstone(v) {
		t, err = decodeTombstone(name, v)
		if ok = err == nil; !ok {
			err = fmt.Errorf("%w: the record of session %q: %w", chain.ErrCorrupt, name, err)
		}
	}
	return t, ok, errors.Join(err, closer.Close())
}

// Tombstones reads the tombstones of a store, by number and name.
func Tombstones(reader pebble.Reader) ([]Tombstone, error) {
	r, err := ReadRecords(reader)
	return r.Tombstones, err
}

// DeletedNumbers returns the numbers of the deleted sessions.
func DeletedNumbers(reader pebble.Reader) (map[uint32]bool, error) {
	tombs, err := Tombstones(reader)
	deleted := make(map[uint32]bool, len(tombs))
	for _, t := range tombs {
		deleted[t.Number] = true
	}
	return deleted, err
}

// IsOf reports whether a key is an entry or an outcome under one of the numbers.
func IsOf(numbers map[uint32]bool, key []byte) bool {
	number, ok := Number(key)
	return ok && (key[0] == TagBatch || key[0] == TagOutcome) && numbers[number]
}

// AppendDeletion adds to a batch what deletes a session: its entries and outcomes go, and
// the tombstone takes the place of its record. The store gets [FormatDeletions], so that
// programs which do not know of tombstones refuse it.
func AppendDeletion(batch *pebble.Batch, t *Tombstone) error {
	return errors.Join(AppendRemoval(batch, t.Number),
		batch.Set(SessionKey(t.Session), AppendTombstone(nil, t), nil),
		batch.Set(FormatKey(), []byte{FormatDeletions}, nil))
}

// AppendRemoval adds to a batch the removal of all entries and outcomes of a number.
func AppendRemoval(batch *pebble.Batch, number uint32) error {
	var errs []error
	for _, bounds := range Ranges(number) {
		errs = append(errs, batch.DeleteRange(bounds.LowerBound, bounds.UpperBound, nil))
	}
	return errors.Join(errs...)
}

// Ranges bounds all keys under a session number.
func Ranges(number uint32) []*pebble.IterOptions {
	return []*pebble.IterOptions{BatchesOf(number), outcomesOf(number)}
}

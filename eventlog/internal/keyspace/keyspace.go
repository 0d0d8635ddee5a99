// Package keyspace is the layout of a log inside Pebble: the keys of a store and
// the values under them.
//
// A store holds five kinds of key, distinguished by their first byte. Numbers are
// big-endian, so that keys sort as numbers do:
//
//	'f'                                      format version (1B, =1; 2 once a session was deleted)
//	'd'                                      the store has a file of noted heads; its version (1B, =1)
//	's' | session name                       session number (4B), or a [Tombstone] (52B)
//	'e' | session number (4B) | Seq (8B)     sealed batch whose first entry has that Seq
//	'k' | session number (4B) | key          outcome: first Seq, last Seq (8B each), hash (32B)
//
// The session number is local to the store and is not part of any hash. The
// package only reads; it takes any [pebble.Reader], so that a caller can read the
// newest state, a snapshot or an indexed batch. It never trusts a stored value:
// malformed ones are [chain.ErrCorrupt].
package keyspace

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// The first byte of the keys of which a store has many.
const (
	TagBatch   = 'e'
	TagOutcome = 'k'
	TagSession = 's'
)

// The versions of the layout, the value under [FormatKey].
const (
	// FormatVersion is that of a store in which no session was deleted.
	FormatVersion = 1

	// FormatDeletions is that of a store with tombstones. A program that does not know
	// them would take the numbers of deleted sessions again, and their noted heads for
	// losses.
	FormatDeletions = 2
)

// FormatKey is the key of the format version.
func FormatKey() []byte { return []byte{'f'} }

// HeadsKey is the key whose presence says that the store has a file of noted
// heads.
func HeadsKey() []byte { return []byte{'d'} }

// SessionKey is the key of a session's record.
func SessionKey(name string) []byte {
	return append([]byte{TagSession}, name...)
}

// BatchKeySize is the length of a [BatchKey].
const BatchKeySize = 1 + 4 + 8

// BatchKey appends the key of the batch that begins at seq.
func BatchKey(dst []byte, number uint32, seq chain.Seq) []byte {
	dst = append(dst, TagBatch)
	dst = binary.BigEndian.AppendUint32(dst, number)
	return binary.BigEndian.AppendUint64(dst, uint64(seq))
}

// BatchSeq reads the Seq of a [BatchKey].
func BatchSeq(key []byte) (chain.Seq, bool) {
	if len(key) != BatchKeySize || key[0] != TagBatch {
		return 0, false
	}
	return chain.Seq(binary.BigEndian.Uint64(key[5:])), true
}

// OutcomeKey is the key of the outcome of an idempotency key.
func OutcomeKey(number uint32, key string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{TagOutcome}, number)
	return append(b, key...)
}

// NumberedSize is the length of a tag and a session number, with which the keys
// of batches and outcomes begin.
const NumberedSize = 1 + 4

// Number reads the session number of a key of a batch or an outcome.
func Number(key []byte) (uint32, bool) {
	if len(key) < NumberedSize {
		return 0, false
	}
	return binary.BigEndian.Uint32(key[1:]), true
}

// BatchesOf bounds all keys of a session's batches. The bounds hold the number
// alone, so that a malformed key is met by the session whose number it has.
func BatchesOf(number uint32) *pebble.IterOptions { return numbered(TagBatch, number) }

// outcomesOf bounds all keys of a session's outcomes.
func outcomesOf(number uint32) *pebble.IterOptions { return numbered(TagOutcome, number) }

func numbered(tag byte, number uint32) *pebble.IterOptions {
	upper := []byte{tag + 1}
	if number < math.MaxUint32 {
		upper = binary.BigEndian.AppendUint32([]byte{tag}, number+1)
	}
	return &pebble.IterOptions{LowerBound: binary.BigEndian.AppendUint32([]byte{tag}, number), UpperBound: upper}
}

// KeyText describes a key of the store in a message.
func KeyText(key []byte) string {
	if len(key) == 0 {
		return "an empty key"
	}
	switch key[0] {
	case TagSession:
		return fmt.Sprintf("session record %q", key[1:])
	case TagBatch:
		if seq, ok := BatchSeq(key); ok {
			number, _ := Number(key)
			return fmt.Sprintf("the batch of entry %d of session number %d", seq, number)
		}
	case TagOutcome:
		if len(key) > NumberedSize {
			return fmt.Sprintf("the outcome of key %q", key[NumberedSize:])
		}
	}
	return fmt.Sprintf("key %x", key[:min(len(key), 32)])
}

// ErrDamagedBlock is the [chain.ErrCorrupt] of a block that Pebble cannot read. What other
// blocks hold may be readable.
var ErrDamagedBlock = fmt.Errorf("%w", chain.ErrCorrupt)

// ReadError wraps an error of Pebble that reading met. Damage becomes
// [ErrDamagedBlock].
func ReadError(op string, err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %s: %s", ErrDamagedBlock, op, FirstLine(err))
	}
	return fmt.Errorf("eventlog: %s: %w", op, err)
}

// FirstLine returns the text of an error without the lines that Pebble appends
// for its own reports.
func FirstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Package chain is the format of the log: numbered entries, the sealed batches
// that carry them, and the hashes that link them.
//
// It is pure. It knows neither the store that keeps sealed batches nor the
// meaning of an entry's data, so that any carrier can transport a sealed batch
// unchanged and any reader can check it.
//
// # The sealed batch
//
// A batch holds one or more entries, all of which a log takes, or none.
// A sealed batch is
//
//	| version (1B, =1) | first Seq (uvarint) | count (uvarint) | count × link |
//
// and a link, the stored form of entry n, is
//
//	| length (uvarint) | body (length bytes) | hash (32B) |
//
// with uvarint as in encoding/binary: seven bits a byte, low ones first. The
// two numbers of the header have their shortest form. The chain is
//
//	hash(0) = SHA-256("sajou.session/1\n" ‖ session name)
//	hash(n) = SHA-256(hash(n-1) ‖ length ‖ body)
//
// The hashed bytes are the stored bytes, so checking the chain decodes nothing.
// (The length stands between the previous hash and the body, which makes the
// hashed bytes one run of memory inside a batch.) Two sessions of different
// names have different genesis hashes: no entry of one verifies in the other.
//
// The body is one msgpack value, an array of four:
//
//	[kind (int), at (int, ns since the session began), key (str) or nil, data]
//
// Kinds are 1 signal, 2 effect, 3 beat, 4 define, 5 session. Key is the
// idempotency key of the batch and stands on its first entry only. Data is the
// rest of the body: one msgpack value whose shape depends on the kind. The root
// package and package signal define these shapes.
//
// # Invariants
//
//   - [OpenBatch] and [Sealed.Next] compare every length with the bytes that are
//     present before they use it, and allocate nothing in proportion to a length
//     that they read.
//   - A batch that [AppendBatch] sealed opens again with the same entries.
//
// The chain shows that an entry was altered, dropped, moved or taken from
// another session. It does not stop a writer who can replace a whole session:
// compare a [Head] kept elsewhere.
package chain

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// The classes of error that a reader of the format distinguishes. Package
// eventlog returns the same values, and their texts name it.
var (
	// ErrCorrupt marks bytes that no writer of this format wrote.
	ErrCorrupt = errors.New("eventlog: corrupt")

	// ErrVersion marks bytes that a newer version of the format wrote.
	ErrVersion = errors.New("eventlog: unknown format version")

	// ErrInvalid marks an entry or a session name that no log can hold.
	ErrInvalid = errors.New("eventlog: invalid")
)

// Bounds that are part of the format.
const (
	// MaxName bounds a session name, in bytes.
	MaxName = 255

	// MaxKey bounds an idempotency key, in bytes.
	MaxKey = 255

	// MaxBatchEntries bounds the number of entries of one batch.
	MaxBatchEntries = 1 << 16
)

// EntryError names the entry at which an operation failed.
type EntryError struct {
	Seq Seq
	Op  string // the operation: "read", "decode", "verify"
	Err error  // the cause; often [ErrCorrupt]
}

func (e *EntryError) Error() string {
	return fmt.Sprintf("eventlog: %s entry %d: %v", e.Op, e.Seq, e.Err)
}

func (e *EntryError) Unwrap() error { return e.Err }

// CheckName reports whether a session can have that name: 1 to [MaxName] bytes
// of UTF-8 without control characters or line breaks. The error matches
// [ErrInvalid].
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a session name must not be empty", ErrInvalid)
	case len(name) > MaxName:
		return fmt.Errorf("%w: session name has %d bytes, at most %d are allowed", ErrInvalid, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: session name %q is not UTF-8", ErrInvalid, name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%w: session name %q holds the unprintable character %U", ErrInvalid, name, r)
		}
	}
	return nil
}

// genesisPrefix separates genesis hashes from every other use of SHA-256 and
// carries the version of the chain.
const genesisPrefix = "sajou.session/1\n"

// Genesis returns hash(0) of the session of that name. It binds the whole chain
// to the name.
func Genesis(name string) Hash {
	return sha256.Sum256(append([]byte(genesisPrefix), name...))
}

// Link returns hash(n) of the chain, from hash(n-1) and the stored bytes of
// entry n: its length as a uvarint and its body.
func Link(prev Hash, stored []byte) Hash {
	// One run of bytes through Sum256 is faster than two writes to a digest,
	// as long as the copy is short and needs no allocation.
	var buf [1024]byte
	if len(stored) <= len(buf)-HashSize {
		n := copy(buf[:], prev[:])
		n += copy(buf[n:], stored)
		return sha256.Sum256(buf[:n])
	}
	d := sha256.New()
	d.Write(prev[:])
	d.Write(stored)
	return Hash(d.Sum(nil))
}

// LinkInPlace is [Link] over one run of bytes: the hash of the entry before, and
// right behind it the stored bytes, as they stand in a sealed batch. It copies
// nothing.
func LinkInPlace(prevAndStored []byte) Hash {
	return sha256.Sum256(prevAndStored)
}

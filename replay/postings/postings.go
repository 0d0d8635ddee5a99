// Package postings keeps, in a file beside a recording, at which entries a key occurs:
// derived tables that make questions fast whose answer would take a pass over all entries.
//
// A [Table] has one part of what can be asked about one session. It maps a key, such as
// a correlation id, to the numbers of the entries at which it occurs, and can hold chunks
// of bytes, each about a stretch of entries. It is filled in one pass ([Update]), and
// continued when the session has grown.
//
// # Trust
//
// A table is disposable: it may be deleted at any time, and a table that is damaged, torn,
// or of another session or another program is built anew. A key is stored as a hash, so
// an entry of a posting is a candidate, which the caller reads and checks. That no posting
// is missing cannot be proven so; checksums find accidents, not forgery.
//
// # Format
//
// A file begins with a header, and segments follow, each about the entries behind those
// of the one before:
//
//	| "sajou-postings/1\n" (17B) | genesis hash (32B) | identity (8B) | checksum (8B) |
//
//	segment:
//	| from (8B) | to (8B) | hash of entry to (32B) | pages (4B) | chunks (4B) | checksum (8B) |
//	page   in the directory: | first key (8B) | length (4B) | checksum (8B) |
//	chunk  in the directory: | last entry (8B) | length (4B) | checksum (8B) |
//	the pages, then the chunks
//
// The identity is the hash of what the table is about and of the version of the program
// that fills it. The checksum of a header covers all of the header before it, that of a
// segment the 56 bytes before it and the directory. A page holds groups, ordered by key:
//
//	| key (8B) | count (uvarint) | first entry - from (uvarint) | distance to the next (uvarint) … |
//
// A key with many entries continues in the next group or page. Chunks are zstd frames.
// Integers are big-endian, and all hashes and checksums xxhash64.
//
// # Cost
//
// Opening reads the directories, 20 bytes a page of up to 4 KiB. A question reads the
// pages that can have its key: in each segment as many steps as a binary search takes.
// A segment has at most some 260,000 postings, which bounds the memory of a build.
//
// docs/glossary.md has the nouns of all packages.
package postings

import (
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// ErrDamaged says that a file is not a table, or is damaged, torn or of something else.
// It can be deleted.
var ErrDamaged = errors.New("postings: not a usable table")

// TailEntries is the number of entries that a session may grow until [Update] continues its
// table.
const TailEntries = 8192

const magic = "sajou-postings/1\n"

// The sizes of the fixed parts.
const (
	headerSize    = len(magic) + eventlog.HashSize + 8 + 8
	segmentHeader = 8 + 8 + eventlog.HashSize + 4 + 4 + 8
	directoryItem = 8 + 4 + 8
)

// The bounds of what is written.
const (
	pageSize     = 4096     // a page is complete at this size
	groupEntries = 1024     // of one key
	maxPage      = 1 << 16  // of what is read
	maxChunk     = 64 << 20 // of what is read, before compression and after
)

// The size at which a segment is complete. The tests use smaller ones.
var (
	segmentPostings = 1 << 18
	segmentBytes    = 16 << 20 // of chunks
	segmentEntries  = eventlog.Seq(1 << 18)
)

// Identity says what a table is about. A file of another identity is not used.
type Identity struct {
	Genesis eventlog.Hash // of the session
	What    string        // the part, with the versions of all that its contents depend on
}

func keyOf(key string) uint64 { return xxhash.Sum64String(key) }

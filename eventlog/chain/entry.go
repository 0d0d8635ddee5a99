package chain

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Seq is an entry's number in its session: 1, 2, 3, … without gaps. Zero is
// the place before the first entry.
type Seq uint64

// HashSize is the length of a [Hash] in bytes.
const HashSize = 32

// Hash is one link of a session's chain, a SHA-256.
type Hash [HashSize]byte

// String returns the hash as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Head is a position in a session: the Seq of the last entry up to there and
// that entry's hash. At Seq 0 the hash is the session's [Genesis].
type Head struct {
	Seq  Seq
	Hash Hash
}

// IsZero reports whether h is the zero Head. No session has it: the Head of an
// empty session carries its genesis hash.
func (h Head) IsZero() bool { return h == Head{} }

// String returns the head as "SEQ:HASH", the form [ParseHead] reads.
func (h Head) String() string {
	return strconv.FormatUint(uint64(h.Seq), 10) + ":" + h.Hash.String()
}

// ParseHead reads the form that [Head.String] writes.
func ParseHead(s string) (Head, error) {
	seq, hash, ok := strings.Cut(s, ":")
	if !ok {
		return Head{}, fmt.Errorf("eventlog: head %q: want SEQ:HASH", s)
	}
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return Head{}, fmt.Errorf("eventlog: head %q: the part before the colon is not a sequence number", s)
	}
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) != HashSize {
		return Head{}, fmt.Errorf("eventlog: head %q: the hash is not %d hexadecimal digits", s, 2*HashSize)
	}
	return Head{Seq(n), Hash(b)}, nil
}

// Kind is the kind of fact that an entry records.
type Kind uint8

// The kinds of entry. Their numbers are part of the format and never change.
const (
	KindSignal  Kind = 1 // a signal of an outside source
	KindEffect  Kind = 2 // an effect that the world accepted
	KindBeat    Kind = 3 // a transition of the director
	KindDefine  Kind = 4 // a definition that came into force
	KindSession Kind = 5 // the session itself: opened, closed, forked, ticks
)

var kindNames = [...]string{
	KindSignal:  "signal",
	KindEffect:  "effect",
	KindBeat:    "beat",
	KindDefine:  "define",
	KindSession: "session",
}

// String returns the kind's name, or "kind(N)" for any other number.
func (k Kind) String() string {
	if k.Valid() {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Valid reports whether k is one of the five kinds.
func (k Kind) Valid() bool { return k >= KindSignal && k <= KindSession }

// ParseKind returns the kind whose name [Kind.String] gives.
func ParseKind(name string) (Kind, error) {
	for k := KindSignal; k.Valid(); k++ {
		if kindNames[k] == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("eventlog: no kind %q: the kinds are signal, effect, beat, define, session", name)
}

// Draft is an entry without its place in a log.
type Draft struct {
	// Kind determines the meaning of Data.
	Kind Kind

	// At is the session time, since the session began. It must not be
	// negative nor smaller than that of the entry before.
	At time.Duration

	// Data is one well-formed msgpack value. The log copies it; the caller
	// keeps the slice. The log accepts every well-formed value, also one that no
	// JSON text has (a NaN, an extension, a map with a repeated name): the
	// packages that define the entries of a session check their values before
	// they append, and their folds ignore the others.
	Data []byte
}

// Entry is one numbered record of a session.
//
// Its slices are views of an immutable batch: they stay valid without limit, and
// must not be written to.
type Entry struct {
	Seq  Seq
	Hash Hash          // the link that ends with this entry
	Kind Kind          // determines the meaning of Data
	At   time.Duration // session time, since the session began
	Key  string        // idempotency key of the batch, on its first entry

	// Batch is the number of entries of the batch, on its first entry; 0 on the others.
	Batch int

	Data []byte // one msgpack value
	Body []byte // the stored body; hashed are its length as a uvarint and then these bytes, see [Link]
}

// Head returns the position behind e.
func (e *Entry) Head() Head { return Head{e.Seq, e.Hash} }

// Package bookmark keeps named moments of recorded sessions, with notes.
//
// A [Bookmark] names a moment in a session: an entry by its number and hash, and a span
// of session time after it. The hash says of which history the entry is, so that a
// bookmark is not used for another session that has the same name. A [Book] holds the
// bookmarks of any number of sessions. [replay.Replay] resolves the address @NAME with
// one of them; see [Book.Find] and [replay.Anchors].
//
// # Format
//
// A book is written as JSON Lines, one bookmark a line, in the order of sessions and
// then of moments:
//
//	{"session":"night","name":"glow","seq":36,"offset":"350ms","hash":"1f0c…","note":"still gold"}
//
// The offset is a duration in Go's notation. An offset of zero and an empty note are
// left out. The format is the same in a file beside a store and in an export. A member
// "status" is ignored: listings add it.
//
// # Limits
//
// Bookmarks are not part of the audited log: nothing proves who wrote one, or when.
//
// docs/glossary.md has the nouns of all packages.
package bookmark

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// The bounds of a book.
const (
	MaxNote = 4096    // bytes of a note
	MaxBook = 100_000 // bookmarks
	maxLine = 32 << 10
)

// ErrMalformed is wrapped by the errors for a bookmark that no book holds: its name,
// note or moment is out of bounds, or its line is not JSON.
var ErrMalformed = errors.New("not a bookmark")

// Bookmark is a named moment of a session.
type Bookmark struct {
	Session string
	Name    string // as in the address @NAME; see [replay.Address]
	replay.Anchor
	Note string // any text of at most MaxNote bytes
}

// Moment returns the moment that b names.
func (b *Bookmark) Moment() replay.Moment { return replay.Moment{Seq: b.Head.Seq, Offset: b.Offset} }

// Check returns an [ErrMalformed] if b is out of bounds.
func (b *Bookmark) Check() error {
	a, err := replay.ParseAddress("@" + b.Name)
	name, ok := a.Bookmark()
	switch {
	case b.Session == "":
		return malformed("the session is missing")
	case err != nil || !ok || name != b.Name || a.String() != "@"+b.Name:
		return malformed("the name %.80q is not one of letters, digits, - and _ that begins with none of + and -", b.Name)
	case b.Offset < 0:
		return malformed("the offset %v is negative", b.Offset)
	case len(b.Note) > MaxNote:
		return malformed("the note has %d bytes; at most %d are kept", len(b.Note), MaxNote)
	case !utf8.ValidString(b.Note) || !utf8.ValidString(b.Session):
		return malformed("it is not UTF-8")
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// line is a bookmark as it is written.
type line struct {
	Session string          `json:"session"`
	Name    string          `json:"name"`
	Seq     uint64          `json:"seq"`
	Offset  string          `json:"offset,omitempty"`
	Hash    string          `json:"hash"`
	Note    string          `json:"note,omitempty"`
	Status  json.RawMessage `json:"status,omitempty"`
}

// MarshalJSON writes b as a line of a book, without the line feed.
func (b Bookmark) MarshalJSON() ([]byte, error) {
	l := line{Session: b.Session, Name: b.Name, Seq: uint64(b.Head.Seq), Hash: b.Head.Hash.String(), Note: b.Note}
	if b.Offset != 0 {
		l.Offset = b.Offset.String()
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(l)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}

// UnmarshalJSON reads a line of a book. The error is an [ErrMalformed].
func (b *Bookmark) UnmarshalJSON(data []byte) error {
	var l line
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return malformed("%v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return malformed("there is more after the object")
	}
	*b = Bookmark{Session: l.Session, Name: l.Name, Note: l.Note}
	b.Head.Seq = eventlog.Seq(l.Seq)
	hash, err := hex.DecodeString(l.Hash)
	if err != nil || len(hash) != eventlog.HashSize {
		return malformed("the hash %.80q does not have %d hexadecimal digits", l.Hash, 2*eventlog.HashSize)
	}
	copy(b.Head.Hash[:], hash)
	if l.Offset != "" {
		if b.Offset, err = time.ParseDuration(l.Offset); err != nil {
			return malformed("the offset %.80q is not a duration", l.Offset)
		}
	}
	return b.Check()
}

// Book is a set of bookmarks, one for each session and name. The zero Book is empty.
type Book struct {
	all []Bookmark // in the order of compare
}

// compare orders bookmarks by session, moment and name.
func compare(a, b Bookmark) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), a.Moment().Compare(b.Moment()), cmp.Compare(a.Name, b.Name))
}

// Read reads a book. The error for a bad line is an [ErrMalformed] with the number of
// the line. Of two bookmarks with the same session and name the second is kept.
func Read(r io.Reader) (*Book, error) {
	found := map[[2]string]Bookmark{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var b Bookmark
		if err := b.UnmarshalJSON(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if found[[2]string{b.Session, b.Name}] = b; len(found) > MaxBook {
			return nil, fmt.Errorf("line %d: %w", n, malformed("a book has at most %d bookmarks", MaxBook))
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: %w", n+1, malformed("it has more than %d bytes", maxLine))
	case err != nil:
		return nil, err
	}
	book := &Book{all: make([]Bookmark, 0, len(found))}
	for _, b := range found {
		book.all = append(book.all, b)
	}
	slices.SortFunc(book.all, compare)
	return book, nil
}

// WriteTo implements [io.WriterTo]. The same bookmarks give the same bytes.
func (k *Book) WriteTo(w io.Writer) (n int64, err error) {
	for _, b := range k.all {
		data, err := b.MarshalJSON()
		if err != nil {
			return n, err
		}
		m, err := w.Write(append(data, '\n'))
		if n += int64(m); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Len returns the number of bookmarks.
func (k *Book) Len() int { return len(k.all) }

// All yields the bookmarks of a session in the order of their moments, or with the
// empty name those of all sessions.
func (k *Book) All(session string) iter.Seq[Bookmark] {
	return func(yield func(Bookmark) bool) {
		for _, b := range k.all {
			if (session == "" || b.Session == session) && !yield(b) {
				return
			}
		}
	}
}

// Find returns the bookmark of a session with that name.
func (k *Book) Find(session, name string) (Bookmark, bool) {
	for b := range k.All(session) {
		if b.Name == name {
			return b, true
		}
	}
	return Bookmark{}, false
}

// Put adds b, in place of one with the same session and name. The error is an
// [ErrMalformed].
func (k *Book) Put(b Bookmark) error {
	if err := b.Check(); err != nil {
		return err
	}
	k.Remove(b.Session, b.Name)
	if len(k.all) == MaxBook {
		return malformed("the book is full: it has %d bookmarks", MaxBook)
	}
	at, _ := slices.BinarySearchFunc(k.all, b, compare)
	k.all = slices.Insert(k.all, at, b)
	return nil
}

// Remove removes a bookmark, and reports whether there was one.
func (k *Book) Remove(session, name string) bool {
	before := len(k.all)
	k.all = slices.DeleteFunc(k.all, func(b Bookmark) bool { return b.Session == session && b.Name == name })
	return len(k.all) < before
}

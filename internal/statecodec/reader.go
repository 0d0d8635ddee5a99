// Package statecodec reads the canonical bytes of states. They are msgpack as the
// AppendState methods of the pure packages write it. They come from snapshots,
// which may have been changed, so a [Reader] trusts nothing: it checks every
// length against the bytes that are left before it allocates, and [Canonical]
// refuses bytes that encode a state in another way than AppendState does.
package statecodec

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// Reader reads from the front. After the first failure every read returns zero,
// so only the end of a stretch has to look at Err.
type Reader struct {
	Rest []byte // what is not read yet; never changed
	Err  error  // the first failure
}

// Fail notes a failure, unless one is noted already.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, args...)
		r.Rest = nil
	}
}

// End fails if anything is left, and returns the first failure.
func (r *Reader) End() error {
	if r.Err == nil && len(r.Rest) > 0 {
		r.Fail("bytes after the end")
	}
	return r.Err
}

// read takes one value off the front by means of a reader of msgp.
func read[T any](r *Reader, from func([]byte) (T, []byte, error)) (v T) {
	if r.Err != nil {
		return v
	}
	got, rest, err := from(r.Rest)
	if err != nil {
		r.Fail("%w", err)
		return v
	}
	r.Rest = rest
	return got
}

// Begin reads the head of the whole, an array, and the version in it. The
// version comes before any judgement: another one may have another number of
// elements. Unknown is what a failure of the version wraps.
func (r *Reader) Begin(version int64, elements int, unknown error) {
	n := read(r, msgp.ReadArrayHeaderBytes)
	if v := r.Int(); r.Err == nil && v != version {
		r.Fail("%w %d, this program knows %d", unknown, v, version)
	}
	if r.Err == nil && int64(n) != int64(elements) {
		r.Fail("want an array of %d", elements)
	}
}

// Array reads the head of an array. Each element takes at least one byte, so a
// count that the rest cannot hold is refused before anything is made for it.
func (r *Reader) Array() int {
	n := read(r, msgp.ReadArrayHeaderBytes)
	if r.Err == nil && uint64(n) > uint64(len(r.Rest)) {
		r.Fail("an array of %d in %d bytes", n, len(r.Rest))
	}
	if r.Err != nil {
		return 0
	}
	return int(n)
}

// Fields reads the head of an array that has so many elements.
func (r *Reader) Fields(want int, what string) {
	if n := r.Array(); r.Err == nil && n != want {
		r.Fail("%s of %d fields", what, n)
	}
}

// Int reads a number.
func (r *Reader) Int() int64 { return read(r, msgp.ReadInt64Bytes) }

// Uint reads a number that is not negative.
func (r *Reader) Uint() uint64 { return read(r, msgp.ReadUint64Bytes) }

// Between reads a number within limits.
func (r *Reader) Between(low, high int64, what string) int64 {
	i := r.Int()
	if r.Err == nil && (i < low || i > high) {
		r.Fail("%s %d", what, i)
	}
	if r.Err != nil {
		return low
	}
	return i
}

// Below reads a number from 0 on that must be less than n.
func (r *Reader) Below(n int, what string) int {
	i := r.Uint()
	if r.Err == nil && i >= uint64(n) {
		r.Fail("%s %d of %d", what, i, n)
	}
	if r.Err != nil {
		return 0
	}
	return int(i)
}

// Bool reads true or false.
func (r *Reader) Bool() bool { return read(r, msgp.ReadBoolBytes) }

// Float reads a number of the kind float64.
func (r *Reader) Float() float64 { return read(r, msgp.ReadFloat64Bytes) }

// Text reads a text in UTF-8, as memory of its own.
func (r *Reader) Text() string {
	b := read(r, msgp.ReadStringZC)
	if r.Err == nil && !utf8.Valid(b) {
		r.Fail("a text that is not UTF-8")
	}
	if r.Err != nil {
		return ""
	}
	return string(b)
}

// Bytes reads bytes, which belong to what is read.
func (r *Reader) Bytes() []byte { return read(r, msgp.ReadBytesZC) }

// Value reads a JSON value, checked through and through. It belongs to what is
// read.
func (r *Reader) Value() signal.Value { return read(r, signal.CheckValue) }

// None passes a nil, if one comes next.
func (r *Reader) None() bool {
	if r.Err != nil || !msgp.IsNil(r.Rest) {
		return false
	}
	r.Rest = r.Rest[1:]
	return true
}

// errForm answers bytes that mean a state, but are not what it is written as.
var errForm = errors.New("not in canonical form")

// Canonical refuses data that the state read from it is not written as. It
// catches, all at once, whatever can be written in two ways: the digest of a
// state is taken over these bytes.
func Canonical(data []byte, appendState func(dst []byte) []byte) error {
	if !bytes.Equal(appendState(make([]byte, 0, len(data))), data) {
		return errForm
	}
	return nil
}

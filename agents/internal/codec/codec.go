// Package codec reads the states of worlds, observers and cores. It trusts nothing in
// the bytes: the caller bounds every length.
package codec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/internal/statecodec"
	"github.com/sajou-dev/sajou-go/signal"
)

// StateReader reads a state. After the first error every method returns a zero value.
type StateReader struct {
	statecodec.Reader
}

// NewStateReader returns a reader of b.
func NewStateReader(b []byte) *StateReader { return &StateReader{statecodec.Reader{Rest: b}} }

// ArrayOf reads the head of an array of at most so many elements.
func (r *StateReader) ArrayOf(most int) int {
	n := r.Array()
	if n > most {
		r.Fail("an array of %d, more than %d", n, most)
		return 0
	}
	return n
}

// Finite reads a finite number.
func (r *StateReader) Finite() float64 {
	f := r.Float()
	if !jsonvalue.Finite(f) {
		r.Fail("no finite number")
		return 0
	}
	return f
}

// Text reads a string of at most so many bytes.
func (r *StateReader) Text(most int) string {
	v := r.Value()
	s, ok := v.Text()
	if r.Err == nil && (!ok || len(s) > most) {
		r.Fail("want a string of at most %d bytes", most)
		return ""
	}
	return strings.Clone(s)
}

// ID reads an id of 1 to so many bytes.
func (r *StateReader) ID(most int) string {
	id := r.Text(most)
	if r.Err == nil && id == "" {
		r.Fail("an id has 1 to %d bytes", most)
	}
	return id
}

// Object reads an object into bytes of its own.
func (r *StateReader) Object() signal.Value {
	v := r.Value()
	if r.Err == nil && v.Kind() != signal.KindObject {
		r.Fail("%v, want an object", v.Kind())
	}
	return slices.Clone(v)
}

// Duration reads a whole number that is not negative.
func (r *StateReader) Duration() time.Duration {
	return time.Duration(r.Between(0, math.MaxInt64, "a length or a count,"))
}

// Key reads what can be a part of a key, see [CheckKey].
func (r *StateReader) Key(most int) string {
	s := r.Text(most)
	if r.Err == nil {
		if err := CheckKey(s, most); err != nil {
			r.Fail("%q: %w", s, err)
		}
	}
	return s
}

// Names reads at most count strings of at most size bytes; a size of 0 means that
// only the input bounds them.
func (r *StateReader) Names(count, size int) []string {
	if size == 0 {
		size = len(r.Rest)
	}
	var list []string
	for range r.ArrayOf(count) {
		list = append(list, r.Text(size))
	}
	return list
}

// CheckKey refuses what cannot be part of a key: NUL separates the parts.
func CheckKey(s string, most int) error {
	if s == "" || len(s) > most {
		return fmt.Errorf("want 1 to %d bytes", most)
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return errors.New("want UTF-8 without NUL")
	}
	return nil
}

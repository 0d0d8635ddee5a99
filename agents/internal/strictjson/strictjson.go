// Package strictjson reads the members of JSON that people write: policies and
// configurations. It refuses unknown members and values out of range. A reader keeps the
// first error, with its place, and goes on, so that callers need no check after each one.
package strictjson

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// MaxNames bounds the elements of an array of names, and the members of an
// object by name.
const MaxNames = 1024

// MemberReader reads members. Each method takes the object, the JSON pointer of the
// object and the name of the member, and returns the given value if the member is
// absent. After an error the results of the methods have no meaning.
type MemberReader struct {
	Err error // the first one

	newError func(path, reason string) error
}

// NewMemberReader returns a reader whose errors newError makes.
func NewMemberReader(newError func(path, reason string) error) *MemberReader {
	return &MemberReader{newError: newError}
}

// Fail notes an error at a JSON pointer, unless there is one.
func (r *MemberReader) Fail(path, format string, args ...any) {
	if r.Err == nil {
		r.Err = r.newError(path, fmt.Sprintf(format, args...))
	}
}

// Demand refuses an object without a member.
func (r *MemberReader) Demand(v signal.Value, path, name string) {
	if _, ok := v.Get(name); !ok {
		r.Fail(path+"/"+name, "missing")
	}
}

// Number reads a number from least to most.
func (r *MemberReader) Number(v signal.Value, path, name string, absent, least, most float64) float64 {
	m, ok := v.Get(name)
	if !ok {
		return absent
	}
	f, ok := m.Float64()
	if !ok || f < least || f > most {
		r.Fail(path+"/"+name, "want a number from %g to %g", least, most)
		return absent
	}
	return f
}

// Bool reads a truth value.
func (r *MemberReader) Bool(v signal.Value, path, name string, absent bool) bool {
	m, ok := v.Get(name)
	if !ok {
		return absent
	}
	b, ok := m.Bool()
	if !ok {
		r.Fail(path+"/"+name, "%v, want true or false", m.Kind())
	}
	return b
}

// Word reads one of some words; the first is the default.
func (r *MemberReader) Word(v signal.Value, path, name string, words ...string) string {
	m, ok := v.Get(name)
	if !ok {
		return words[0]
	}
	s, _ := m.Text()
	if !slices.Contains(words, s) {
		r.Fail(path+"/"+name, "%v, want one of %s", m.Kind(), strings.Join(words, ", "))
		return words[0]
	}
	return s
}

// Names reads an array of strings.
func (r *MemberReader) Names(v signal.Value, path, name string) []string {
	m, ok := v.Get(name)
	if !ok || m.Kind() == signal.KindNull {
		return nil
	}
	if m.Kind() != signal.KindArray || m.Len() > MaxNames {
		r.Fail(path+"/"+name, "want an array of at most %d names", MaxNames)
		return nil
	}
	var list []string
	for e := range m.Elements() {
		s, ok := e.Text()
		if !ok {
			r.Fail(path+"/"+name+"/"+strconv.Itoa(len(list)), "%v, want a name", e.Kind())
			return nil
		}
		list = append(list, strings.Clone(s))
	}
	return list
}

// Flags reads an object of truth values.
func (r *MemberReader) Flags(v signal.Value, path, name string) map[string]bool {
	m, ok := v.Get(name)
	if !ok || m.Kind() == signal.KindNull {
		return nil
	}
	if m.Kind() != signal.KindObject || m.Len() > MaxNames {
		r.Fail(path+"/"+name, "want an object of at most %d truths", MaxNames)
		return nil
	}
	flags := make(map[string]bool, min(m.Len(), len(m)))
	for field, e := range m.Members() {
		b, ok := e.Bool()
		if !ok {
			r.Fail(path+"/"+name+"/"+jsonpointer.Escape(field), "%v, want true or false", e.Kind())
		}
		flags[strings.Clone(field)] = b
	}
	return flags
}

// Millis reads milliseconds from 0 up to most, fractions included.
func (r *MemberReader) Millis(v signal.Value, path, name string, absent, most time.Duration) time.Duration {
	ms := r.Number(v, path, name, -1, 0, float64(most/time.Millisecond))
	if ms < 0 {
		return absent
	}
	return time.Duration(math.Round(float64(ms * 1e6)))
}

// Only refuses all members but the named ones.
func (r *MemberReader) Only(v signal.Value, path string, names ...string) {
	for m := range v.Members() {
		if !slices.Contains(names, m) {
			r.Fail(path+"/"+jsonpointer.Escape(m), "unknown member")
		}
	}
}

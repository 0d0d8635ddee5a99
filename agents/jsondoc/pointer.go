package jsondoc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrPointer is wrapped by the errors of [ParsePointer].
var ErrPointer = errors.New("no JSON pointer")

// Pointer is a JSON pointer (RFC 6901): the names on the way, without escapes.
// The empty one is the whole document.
type Pointer []string

// ParsePointer reads a pointer by the letter of the RFC: empty, or each name
// behind a slash, with ~0 for a tilde and ~1 for a slash.
func ParsePointer(s string) (Pointer, error) {
	var t tree
	p := t.pointer(s)
	if t.why != "" {
		return nil, fmt.Errorf("agents: %w: %s", ErrPointer, t.why)
	}
	return append(Pointer{}, p...), nil
}

func (p Pointer) String() string { return jsonpointer.Join(p) }

// In returns what p leads to in v.
func (p Pointer) In(v signal.Value) (signal.Value, bool) {
	for _, name := range p {
		var next signal.Value
		found := false
		switch v.Kind() {
		case signal.KindObject:
			next, found = v.Get(name)
		case signal.KindArray:
			i, ok := ElementIndex(name)
			if !ok {
				return nil, false
			}
			for e := range v.Elements() {
				if i == 0 {
					next, found = e, true
					break
				}
				i--
			}
		default:
		}
		if !found {
			return nil, false
		}
		v = next
	}
	return v, v.Kind() != signal.KindAbsent
}

// pointer splits a JSON pointer (RFC 6901) into its segments.
func (t *tree) pointer(s string) []string {
	if s == "" {
		return nil
	}
	if s[0] != '/' {
		t.fail("%q is no JSON pointer", s)
		return nil
	}
	segments := strings.Split(s[1:], "/")
	if len(segments) > signal.MaxDepth+1 {
		t.fail("a path of more than %d levels", signal.MaxDepth)
		return nil
	}
	for i, segment := range segments {
		if !strings.Contains(segment, "~") {
			continue
		}
		for j := 0; j < len(segment); j++ {
			if segment[j] == '~' && (j+1 == len(segment) || segment[j+1] != '0' && segment[j+1] != '1') {
				t.fail("%q is no JSON pointer", s)
				return nil
			}
		}
		segments[i] = jsonpointer.Unescape(segment)
	}
	return segments
}

// ElementIndex reads an index: decimal, without sign and leading zeros.
func ElementIndex(s string) (int, bool) {
	if s == "" || len(s) > 9 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	i := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		i = i*10 + int(c-'0')
	}
	return i, true
}

// Within reports whether a path, written as a JSON pointer, is another one or
// lies below it.
func Within(path, other string) bool {
	return strings.HasPrefix(path, other) && (len(path) == len(other) || path[len(other)] == '/')
}

package jsonpointer_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
)

// Split is the inverse of Join, and no escaped name has a slash.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.StringOfN(rapid.SampledFrom([]rune("a~/01é")), 0, 6, -1)).Draw(t, "names")
		pointer := jsonpointer.Join(names)
		if got := jsonpointer.Split(pointer); !slices.Equal(got, names) {
			t.Fatalf("%q splits into %q, want %q", pointer, got, names)
		}
		for _, name := range names {
			if strings.Contains(jsonpointer.Escape(name), "/") {
				t.Fatalf("%q is escaped as %q", name, jsonpointer.Escape(name))
			}
		}
	})
}

func TestSplit(t *testing.T) {
	for pointer, want := range map[string][]string{
		"":          nil,
		"/":         {""},
		"/a~1b~0c":  {"a/b~c"},
		"a/b":       {"a", "b"},
		"/~01/~2/~": {"~1", "~2", "~"},
	} {
		if got := jsonpointer.Split(pointer); !slices.Equal(got, want) {
			t.Errorf("%q splits into %q, want %q", pointer, got, want)
		}
	}
}

type lazy struct{}

func (lazy) Member(name string) (any, bool) { return name, name == "a" }

func TestMember(t *testing.T) {
	for _, c := range []struct {
		view any
		name string
		want any
		ok   bool
	}{
		{map[string]any{"a": 1, "0": nil}, "a", 1, true},
		{map[string]any{"0": nil}, "0", nil, true},
		{map[string]any{}, "a", nil, false},
		{[]any{"x", "y"}, "1", "y", true},
		{[]any{"x", "y"}, "2", nil, false},
		{[]any{"x", "y"}, "-1", nil, false},
		{[]any{"x", "y"}, "a", nil, false},
		{lazy{}, "a", "a", true},
		{"text", "0", nil, false},
		{nil, "a", nil, false},
	} {
		if got, ok := jsonpointer.Member(c.view, c.name); ok != c.ok || ok && got != c.want {
			t.Errorf("%v of %v: %v %v, want %v %v", c.name, c.view, got, ok, c.want, c.ok)
		}
	}
}

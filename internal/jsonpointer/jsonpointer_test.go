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

package find_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/internal/find"
)

func TestWildcard(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"", "", true},
		{"*", "", true},
		{"*", "anything", true},
		{"**", "x", true},
		{"a*", "a", true},
		{"a*", "ba", false},
		{"*a", "ba", true},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"*ab*ab", "abab", true},
		{"*ab*ab", "ab", false},
		{"*ab*b", "abcb", true},
		{"é*", "été", true},
	} {
		if got := find.Wildcard(c.pattern, c.text); got != c.want {
			t.Errorf("%q, %q: got %t", c.pattern, c.text, got)
		}
	}
}

// TestWildcardOracle compares with a matcher that tries every way to match.
func TestWildcardOracle(t *testing.T) {
	var plain func(pattern, text string) bool
	plain = func(pattern, text string) bool {
		switch {
		case pattern == "":
			return text == ""
		case pattern[0] == '*':
			return plain(pattern[1:], text) || text != "" && plain(pattern, text[1:])
		default:
			return text != "" && pattern[0] == text[0] && plain(pattern[1:], text[1:])
		}
	}
	letters := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*"}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		pattern, text := strings.Join(letters.Draw(t, "pattern"), ""), strings.Join(letters.Draw(t, "text"), "")
		if got, want := find.Wildcard(pattern, text), plain(pattern, text); got != want {
			t.Fatalf("%q, %q: got %t", pattern, text, got)
		}
	})
}

// TestWildcardIsLinear matches a pattern on which a matcher with backtracking would
// take exponential time.
func TestWildcardIsLinear(t *testing.T) {
	pattern := strings.Repeat("a*", 120) + "b"
	text := strings.Repeat("a", 1<<20)
	for range 10 {
		if find.Wildcard(pattern, text) {
			t.Fatal("it ends with b")
		}
	}
}

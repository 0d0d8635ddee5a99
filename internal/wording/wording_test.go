package wording_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/internal/wording"
)

func TestQuoted(t *testing.T) {
	if got := wording.Quoted("a\"b\n"); got != `"a\"b\n"` {
		t.Errorf("quoted %s", got)
	}
	if got := wording.Quoted(strings.Repeat("ü", 100)); !utf8.ValidString(got) || len(got) > 70 || !strings.HasSuffix(got, `…"`) {
		t.Errorf("shortened %s", got)
	}
}

// Truncate keeps what fits, and of a longer text the longest valid prefix.
func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"aü", 2, "a"},
		{"aü", 3, "aü"},
		{"ü", 1, ""},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{"a\x80b", 3, "a\x80b"}, // fits, and so is not looked at
		{"a\x80bc", 3, "a"},
	} {
		if got := wording.Truncate(tt.text, tt.most); got != tt.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, most := rapid.String().Draw(t, "text"), rapid.IntRange(0, 20).Draw(t, "most")
		got := wording.Truncate(s, most)
		if len(got) > most && got != s || !strings.HasPrefix(s, got) || !utf8.ValidString(got) || len(s) > most && len(got) < most-3 {
			t.Fatalf("Truncate(%q, %d) = %q", s, most, got)
		}
	})
}

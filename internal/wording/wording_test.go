package wording_test

import (
	"strings"
	"testing"
	"time"
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

// A span has the units that fit its size, and no zeros behind them.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 20*time.Millisecond + 1: "20ms", 1500 * time.Millisecond: "1.5s", time.Minute: "1m", 320 * time.Second: "5m20s",
		24 * time.Hour: "24h", 90*time.Minute + time.Second: "1h30m", 49 * time.Hour: "2 days", -36500 * 24 * time.Hour: "-36500 days",
	} {
		if got := wording.Span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
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

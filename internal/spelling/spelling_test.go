package spelling_test

import (
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/internal/spelling"
)

// A suggestion needs a mistake that is small for the length of the word.
func TestNearest(t *testing.T) {
	names := []string{"submit", "generate", "cancel", "at", "on", "good", "skip"}
	for _, c := range []struct{ written, want string }{
		{"sumbit", "submit"},
		{"submits", "submit"},
		{"generat", "generate"},
		{"cancle", "cancel"},
		{"a", ""},   // one letter of one is all of it
		{"ad", ""},  // and one of two the half
		{"foo", ""}, // two letters of four
		{"god", "good"},
		{"skpi", "skip"}, // two letters that are exchanged are one mistake
		{"tool", ""},
		{"gnerat", "generate"},
		{"gnrat", ""},
		{"leave", ""},
		{"", ""},
		{strings.Repeat("x", 1000), ""},
	} {
		got, ok := spelling.Nearest(c.written, names)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q: %q, %t, want %q", c.written, got, ok, c.want)
		}
	}
}

package spelling_test

import (
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/internal/spelling"
)

func TestNearest(t *testing.T) {
	names := []string{"submit", "generate", "cancel", "at", "on"}
	for _, c := range []struct{ written, want string }{
		{"sumbit", "submit"},
		{"submits", "submit"},
		{"generat", "generate"},
		{"cancle", "cancel"},
		{"a", ""}, // one letter of one is all of it
		{"ad", "at"},
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

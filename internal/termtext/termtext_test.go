package termtext_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// acted is what a terminal acts on, or hides, when it stands in a text raw.
var acted = []rune{
	0x7f, 0x80, 0x85, 0x90, 0x9b, 0x9d, 0x9f, // DEL and C1
	0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, // soft hyphen, marks, separators
	0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2066, 0x2067, 0x2068, 0x2069,
	0xfeff, 0xe000, 0xe0001, 0xe0041, 0x10ffff, // a byte order mark, private use, tags
}

// shows reports the first rune of a text that a terminal would act on.
func shows(text string) (rune, bool) {
	for _, r := range text {
		if r != '\n' && r != ' ' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return r, true
		}
	}
	return 0, false
}

// Whatever the text, what is printed is UTF-8 that a terminal shows, and JSON
// keeps its value.
func FuzzPrintable(f *testing.F) {
	f.Add(string(acted))
	f.Add("bytes \x9b31m that are not UTF-8 \xff")
	f.Fuzz(func(t *testing.T, s string) {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if err := json.Unmarshal(data, &before); err != nil {
			t.Fatal(err)
		}
		out := termtext.PrintableJSON(data)
		if err := json.Unmarshal(out, &after); err != nil || after != before {
			t.Fatalf("%q became %q: %v", before, after, err)
		}
		for _, text := range []string{string(out), string(termtext.PrintableJSON([]byte(s)))} {
			if text = strings.Map(ascii, text); !utf8.ValidString(text) {
				t.Fatalf("%q is not UTF-8", text)
			}
			if hidden, yes := shows(text); yes {
				t.Fatalf("%q holds %U", text, hidden)
			}
		}
		if hidden, yes := shows(termtext.Printable(s)); yes || !utf8.ValidString(termtext.Printable(s)) {
			t.Fatalf("%q is printed with %U", s, hidden)
		}
	})
}

// ascii drops the control characters below the space, which JSON escapes itself.
func ascii(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
}

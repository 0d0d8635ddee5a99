package authored_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/authored"
)

const text = `{
  "a": [1, {"b/c": "x, \"y\"]"}, null],
  "é\u0041": {"": 7}
}`

// placeOf returns the place at the end of a way: names and indexes separated by
// spaces.
func placeOf(way string, isKey bool) (p *authored.Location) {
	if way == "" {
		return nil
	}
	for name := range strings.SplitSeq(way, " ") {
		p = p.At(name)
	}
	if isKey {
		p = p.Key()
	}
	return p
}

// Locate finds a value and its name; for a missing value it finds the nearest one
// around it.
func TestLocate(t *testing.T) {
	for _, c := range []struct {
		way    string // segments, separated by spaces
		name   bool
		want   string // line:column of the text
		before string // what stands there
	}{
		{"", false, "1:1", "{"},
		{"a", false, "2:8", "[1"},
		{"a", true, "2:3", `"a"`},
		{"a 0", false, "2:9", "1,"},
		{"a 1 b/c", false, "2:20", `"x,`},
		{"a 1 b/c", true, "2:13", `"b/c"`},
		{"a 2", false, "2:34", "null"},
		{"éA ", false, "3:20", "7"}, // the last segment is the empty name
		{"a 9", false, "2:8", "[1"},
		{"a 0 deeper", true, "2:9", "1,"},
		{"missing", true, "1:1", "{"},
	} {
		p := placeOf(c.way, c.name)
		offset := authored.Locate([]byte(text), []*authored.Location{nil, p})[1]
		line, column := authored.LineColumn([]byte(text), offset)
		if got := fmt.Sprintf("%d:%d", line, column); got != c.want || !strings.HasPrefix(text[offset:], c.before) {
			t.Errorf("%q (name: %t): got %s, %.10q; want %s, %q", c.way, c.name, got, text[offset:], c.want, c.before)
		}
	}
}

// No text, JSON or not, makes Locate panic or return an offset outside of the text.
func FuzzLocate(f *testing.F) {
	f.Add([]byte(text), "a 1 b/c")
	f.Add([]byte(`[[[`), "0 0")
	f.Add([]byte(`{"a":"\`), "a")
	f.Fuzz(func(t *testing.T, text []byte, way string) {
		if !json.Valid(text) && strings.Count(string(text), "[")+strings.Count(string(text), "{") > 1000 {
			return // it recurses as deep as the text nests
		}
		offset := authored.Locate(text, []*authored.Location{placeOf(way, false)})[0]
		if offset < 0 || offset > len(text) {
			t.Errorf("offset %d in a text of %d bytes", offset, len(text))
		}
		authored.LineColumn(text, offset)
	})
}

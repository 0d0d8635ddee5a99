package jsonplace_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/internal/jsonplace"
)

const text = `{
  "a": [1, {"b/c": "x, \"y\"]"}, null],
  "é\u0041": {"": 7}
}`

// A value is found by the way to it, its name likewise, and of what is not
// there the nearest value around it.
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
		m := jsonplace.Mark{AtName: c.name}
		if c.way != "" {
			m.Segments = strings.Split(c.way, " ")
		}
		jsonplace.Locate([]byte(text), []*jsonplace.Mark{{}, &m})
		line, column := jsonplace.LineColumn([]byte(text), m.Offset)
		if got := fmt.Sprintf("%d:%d", line, column); got != c.want || !strings.HasPrefix(text[m.Offset:], c.before) {
			t.Errorf("%q (name: %t): got %s, %.10q; want %s, %q", c.way, c.name, got, text[m.Offset:], c.want, c.before)
		}
	}
	if got, want := jsonplace.Pointer([]string{"a", "0", "b/c~", ""}), "/a/0/b~1c~0/"; got != want {
		t.Errorf("pointer: got %s, want %s", got, want)
	}
}

// No text, JSON or not, makes it fail or leave the text.
func FuzzLocate(f *testing.F) {
	f.Add([]byte(text), "a 1 b/c")
	f.Add([]byte(`[[[`), "0 0")
	f.Add([]byte(`{"a":"\`), "a")
	f.Fuzz(func(t *testing.T, text []byte, way string) {
		if !json.Valid(text) && strings.Count(string(text), "[")+strings.Count(string(text), "{") > 1000 {
			return // it recurses as deep as the text nests
		}
		m := jsonplace.Mark{Segments: strings.Split(way, " ")}
		jsonplace.Locate(text, []*jsonplace.Mark{&m})
		if m.Offset < 0 || m.Offset > len(text) {
			t.Errorf("offset %d in a text of %d bytes", m.Offset, len(text))
		}
		jsonplace.LineColumn(text, m.Offset)
	})
}

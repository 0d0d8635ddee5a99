package yaml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/yaml"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestRead shows the JSON of YAML texts.
func TestRead(t *testing.T) {
	for _, tc := range []struct{ yaml, json string }{
		{"a: 1\nb: [true, no, ~, 2.5, 'x']\n", `{"a":1,"b":[true,"no",null,2.5,"x"]}`},
		{"- 2026-01-02\n- |\n  two\n  lines\n- >-\n  one\n  line\n", `["2026-01-02","two\nlines\n","one line"]`},
		{"base: &b {x: 1}\nagain: [*b, *b]\n", `{"base":{"x":1},"again":[{"x":1},{"x":1}]}`},
		{`{"is": "json", "as": ["well"]}`, `{"is":"json","as":["well"]}`},
		{"on: yes\n\"1\": 0\n", `{"on":"yes","1":0}`},
	} {
		text, err := yaml.Read([]byte(tc.yaml))
		if err != nil {
			t.Errorf("%q: %v", tc.yaml, err)
		} else if string(text.JSON) != tc.json {
			t.Errorf("%q: got %s, want %s", tc.yaml, text.JSON, tc.json)
		}
	}
}

// Read refuses values that JSON cannot represent, and reports their position.
func TestReadRefuses(t *testing.T) {
	for _, tc := range []struct{ yaml, want string }{
		{"", "1:1: the text is empty"},
		{"a: 1\n---\nb: 2\n", "2:1: a second document"},
		{"a:\n  <<: {x: 1}\n", "2:3: merge keys"},
		{"a: 010\n", "1:4: 010 is not a JSON number"},
		{"ä: 0x10\n", "1:5: 0x10 is not"},
		{"a: .inf\n", "1:4: .inf is not"},
		{"a: !!binary aGk=\n", "1:4: the tag !!binary"},
		{"a: !mine x\n", "1:4: the tag !mine"},
		{"1: x\n", `1:1: a name must be a string; write "1" in quotes`},
		{"[a]: x\n", "1:1: a name must be a string"},
		{"a: &a [*a]\n", "1:8: "},
		{"a: [1\nb: 2\n", "2:"},
		{"a: \"x\xff\"\n", "1:6: the text is not valid UTF-8"},
	} {
		_, err := yaml.Read([]byte(tc.yaml))
		e, ok := errors.AsType[*yaml.SyntaxError](err)
		if !ok || !strings.HasPrefix(strings.TrimPrefix(e.Error(), "yaml: "), tc.want) {
			t.Errorf("%q: got %v, want %s", tc.yaml, err, tc.want)
		}
	}
}

// Read refuses a few lines that expand to a billion values, and does so quickly.
func TestReadBounds(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := range 9 {
		alias := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", ")
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i+1, i+1, alias)
	}
	for name, text := range map[string]string{
		"bomb": bomb.String(), "nested": strings.Repeat("[", 10_000), "long": strings.Repeat(" ", 2<<20),
		"blocks": strings.Repeat("- ", 10_000),
	} {
		if _, err := yaml.Read([]byte(text)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

// Place finds each name and value at its position in the YAML.
func TestPlace(t *testing.T) {
	const text = "id: x\nbeats:\n  - id: ä\n    größe: 1\n  - {id: b}\n"
	read, err := yaml.Read([]byte(text))
	require.NoError(t, err)
	for part, want := range map[string][2]int{
		`{"id":"x"`: {1, 1}, `"x"`: {1, 5}, `"beats"`: {2, 1}, `[`: {3, 3}, `"größe"`: {4, 5}, `1}`: {4, 14}, `"b"`: {5, 10}, `ä`: {3, 9},
	} {
		line, column := read.Place(strings.Index(string(read.JSON), part))
		if line != want[0] || column != want[1] {
			t.Errorf("%s: %d:%d, want %v in %s", part, line, column, want, read.JSON)
		}
	}
}

// FuzzRead checks that no text causes a panic and that an accepted one gives one line
// of JSON.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"a: 1\n", "- *x\n", "a: &a [*a]\n", "? [a]\n: b", "{a: [b, c]}", "%YAML 1.1\n---\n", "\"\\ud800\"", "#\n-\n-\n0", "a: |+2\n  x\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := yaml.Read(text)
		if err != nil {
			if _, ok := errors.AsType[*yaml.SyntaxError](err); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		for offset := range len(read.JSON) {
			if line, column := read.Place(offset); line < 1 || column < 1 {
				t.Fatalf("%d is at %d:%d", offset, line, column)
			}
		}
		if strings.Contains(string(read.JSON), "\n") {
			t.Fatalf("several lines: %s", read.JSON)
		}
		_, err = signal.ParseValue(read.JSON)
		if _, ok := errors.AsType[*signal.SyntaxError](err); err != nil && !ok {
			t.Fatalf("%v: %s", err, read.JSON)
		}
	})
}

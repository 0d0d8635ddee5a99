package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// acted has characters that a terminal executes or hides.
var acted = []rune{
	0x7f, 0x80, 0x85, 0x90, 0x9b, 0x9d, 0x9f, // DEL and C1
	0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, // soft hyphen, marks, separators
	0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2066, 0x2067, 0x2068, 0x2069,
	0xfeff, 0xe000, 0xe0001, 0xe0041, 0x10ffff, // a byte order mark, private use, tags
}

// shows returns the first rune of a text that a terminal would execute.
func shows(text string) (rune, bool) {
	for _, r := range text {
		if r != '\n' && r != ' ' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return r, true
		}
	}
	return 0, false
}

// JSON output escapes every character that a terminal executes; its value stays the
// same.
func TestJSONShowsNoControls(t *testing.T) {
	var all strings.Builder
	for _, r := range acted {
		fmt.Fprintf(&all, "%04x(%c)", r, r)
	}
	text := all.String()
	line, err := json.Marshal(map[string]any{
		"id": "s" + text, "type": "no" + text, "timestamp": 1000, "source": "adapter:" + text,
		"correlationId": text, "payload": map[string]any{"k" + text: []any{text, "é😀漢 stays"}},
	})
	require.NoError(t, err)
	store := filepath.Join(t.TempDir(), "store")
	if r := sajouReplay(t.Context(), t, strings.NewReader(string(line)+"\n"), "-C", store, "import", "-", "-s", "a", "--lenient"); r.code != 0 {
		t.Fatalf("import: %+v", r)
	}
	for _, args := range []string{
		"export", "export --all", "cat -o json", "cat -o jsonl", "show 2 -o json", "show 2 -o jsonl", "state -o json", "state -o jsonl",
		"info -o json", "ls -o json", "diff 1 2 -o json", "scan --where true -o jsonl", "tail -o jsonl", "cat", "show 2", "state", "diff 1 2",
	} {
		r := sajouReplay(t.Context(), t, nil, append([]string{"-C", store}, strings.Fields(args)...)...)
		if hidden, yes := shows(r.stdout); yes || !utf8.ValidString(r.stdout) {
			t.Errorf("%s prints %U: %.200q", args, hidden, r.stdout)
		}
		if args != "export" {
			continue
		}
		var got, want any
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &got))
		require.NoError(t, json.Unmarshal(line, &want))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("exported %v, want %v", got, want)
		}
		if !strings.Contains(r.stdout, "é😀漢 stays") {
			t.Errorf("what a terminal shows is escaped: %s", r.stdout)
		}
	}
}

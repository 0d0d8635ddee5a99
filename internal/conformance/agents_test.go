package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ownFiles returns our own scenarios as documents.
func ownFiles(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob("../../testdata/agents/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := map[string]map[string]any{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var doc map[string]any
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber() // 2.0 stays 2.0
		require.NoError(t, decoder.Decode(&doc))
		all[filepath.Base(file)] = doc
	}
	return all
}

// judged reads a document as the suite reads a file, and judges it.
func judged(t *testing.T, doc any) error {
	t.Helper()
	data, err := json.Marshal(doc)
	require.NoError(t, err)
	c, err := readAgent(data)
	if err != nil {
		return err
	}
	if c.Inapplicable != "" {
		return fmt.Errorf("%w: %s", ErrInapplicable, c.Inapplicable)
	}
	return c.Judge()
}

// free are the expectations that another value need not contradict: what must
// not be, bounds, one of several that are allowed, and a word about how sets compare.
var free = regexp.MustCompile(`^/(not_visible|forbidden_ops|max_ops|excluding_self|fourth/|allowed/|step_results/\d+/|tokens/\d+/at_event/|tokens/\d+/not_cancelled_at_event|early_not_held_until_ms)`)

// TestAgentsNotice alters every single thing that a scenario expects, and the
// scenario must no longer pass: no expectation is ignored.
func TestAgentsNotice(t *testing.T) {
	for name, doc := range ownFiles(t) {
		t.Run(name, func(t *testing.T) {
			alter(doc["expected"], func(v any) { doc["expected"] = v }, "", func(path string) {
				if err := judged(t, doc); err == nil && !free.MatchString(path) {
					t.Errorf("%s may be anything: %v", path, doc["expected"])
				}
			})
		})
	}
}

// alter puts another value in the place of each scalar below v in turn, and
// calls then.
func alter(v any, set func(any), path string, then func(path string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			alter(m, func(m any) { v[name] = m }, path+"/"+name, then)
		}
		return
	case []any:
		for i, e := range v {
			alter(e, func(e any) { v[i] = e }, fmt.Sprint(path, "/", i), then)
		}
		return
	case bool:
		set(!v)
	case json.Number:
		set("9" + json.Number(strings.TrimPrefix(string(v), "-")))
	case string:
		set("not " + v)
	case nil:
		set(7)
	}
	then(path)
	set(v)
}

// TestAgentsName adds an unknown member to each part of a scenario, or
// takes away all that it expects: it must be named, and neither pass nor fail.
func TestAgentsName(t *testing.T) {
	for name, doc := range ownFiles(t) {
		t.Run(name, func(t *testing.T) {
			for _, part := range []map[string]any{doc, doc["input"].(map[string]any), doc["expected"].(map[string]any)} {
				part["moon"] = "full"
				if err := judged(t, doc); !errors.Is(err, ErrInapplicable) || !strings.Contains(err.Error(), "moon") {
					t.Errorf("with a member moon: %v", err)
				}
				delete(part, "moon")
			}
			doc["expected"] = map[string]any{}
			assert.Error(t, judged(t, doc), "it passes with nothing expected")
			doc["kind"] = "moon"
			assert.ErrorIs(t, judged(t, doc), ErrInapplicable, "with another kind")
		})
	}
}

// TestAgentsEndure gives the harness scenarios in which one thing is missing or
// is of another type. Whatever it says, no panic is behind it.
func TestAgentsEndure(t *testing.T) {
	for name, doc := range ownFiles(t) {
		t.Run(name, func(t *testing.T) {
			check := func(path string) {
				if err := judged(t, doc); err != nil && strings.Contains(err.Error(), "panic") {
					t.Errorf("%s: %v", path, err)
				}
			}
			others, turn := []any{nil, -1, 1e300, "", []any{nil}, map[string]any{}}, 0
			replace(doc, func(any) {}, func() any { turn++; return others[turn%len(others)] }, "", check)
		})
	}
}

// replace puts another value in the place of each value below v in turn, and calls
// then. Of long lists the rest is like the beginning.
func replace(v any, set func(any), other func() any, path string, then func(path string)) {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		for _, name := range names[:min(len(names), 20)] {
			replace(v[name], func(m any) { v[name] = m }, other, path+"/"+name, then)
		}
	case []any:
		for i := range min(len(v), 3) {
			replace(v[i], func(e any) { v[i] = e }, other, fmt.Sprint(path, "/", i), then)
		}
	}
	set(other())
	then(path)
	set(v)
}

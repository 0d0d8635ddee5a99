package simulate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// maxFilled bounds the bytes that placeholders may put into one text or payload: an
// agent that repeats another's words could double them with each turn.
const maxFilled = 64 << 10

// filler puts values in the place of placeholders.
type filler struct {
	view   signal.Value
	answer string
	left   int // bytes that may still be put in; beyond it nothing is
}

func newFiller(view signal.Value, answer string) *filler { return &filler{view, answer, maxFilled} }

// placeholder returns the text before the first placeholder, its name, and the text
// behind it.
func placeholder(text string) (before, name, behind string, ok bool) {
	before, rest, ok := strings.Cut(text, "{{")
	if !ok {
		return text, "", "", false
	}
	if name, behind, ok = strings.Cut(rest, "}}"); !ok {
		return text, "", "", false
	}
	return before, strings.TrimSpace(name), behind, true
}

// wrongPlaceholder returns the first placeholder of a text that means nothing.
func wrongPlaceholder(text string, answered bool) (string, bool) {
	for {
		_, name, behind, ok := placeholder(text)
		if !ok {
			return "", false
		}
		if !strings.HasPrefix(name, "/") && (name != "answer" || !answered) {
			return name, true
		}
		text = behind
	}
}

// value returns the value of a placeholder, nil if the agent does not see it.
func (f *filler) value(name string) (text string, v signal.Value, ok bool) {
	if name == "answer" {
		return f.answer, nil, true
	}
	if v, ok = lookup(f.view, jsonpointer.Split(name)); !ok {
		return "", nil, false
	}
	if text, isText := v.Text(); isText {
		return text, nil, true
	}
	return string(v.AppendJSON(nil)), v, true
}

func (f *filler) text(text string) string {
	var b strings.Builder
	for {
		before, name, behind, ok := placeholder(text)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		filled, _, _ := f.value(name)
		b.WriteString(f.take(filled))
		text = behind
	}
}

func (f *filler) take(s string) string {
	if len(s) > f.left {
		return ""
	}
	f.left -= len(s)
	return s
}

// payload fills the strings of a payload. What it makes is JSON, so that values
// keep their kind.
func (f *filler) payload(v signal.Value) signal.Value {
	if !bytes.Contains(v, []byte("{{")) {
		return v
	}
	made, err := signal.ParseValue(f.json(nil, v))
	if err != nil {
		return v // two members that have become one name cannot be: names are not filled
	}
	return made
}

func (f *filler) json(dst []byte, v signal.Value) []byte {
	switch v.Kind() {
	case signal.KindObject:
		dst = append(dst, '{')
		comma := false
		for name, m := range v.Members() {
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			dst = append(appendText(dst, name), ':')
			dst = f.json(dst, m)
		}
		return append(dst, '}')
	case signal.KindArray:
		dst = append(dst, '[')
		comma := false
		for e := range v.Elements() {
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			dst = f.json(dst, e)
		}
		return append(dst, ']')
	case signal.KindString:
		text, _ := v.Text()
		if before, name, behind, ok := placeholder(text); ok && before == "" && behind == "" {
			if whole, value, ok := f.value(name); ok && value != nil && f.take(whole) != "" {
				return append(dst, whole...)
			}
		}
		return appendText(dst, f.text(text))
	default:
		return v.AppendJSON(dst)
	}
}

func appendText(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("simulate: a string that JSON cannot hold") // json.Marshal holds any string
	}
	return append(dst, b...)
}

// lookup follows a JSON pointer.
func lookup(v signal.Value, path []string) (signal.Value, bool) {
	for _, name := range path {
		var ok bool
		if v.Kind() != signal.KindArray {
			if v, ok = v.Get(name); !ok {
				return nil, false
			}
			continue
		}
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= v.Len() || strconv.Itoa(i) != name {
			return nil, false
		}
		v = slices.Collect(v.Elements())[i]
	}
	return v, true
}

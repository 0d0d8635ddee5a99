// Package yaml converts YAML to JSON and records the position in the YAML of each part
// of that JSON. A reader of JSON can thus read YAML too, and report errors with their
// line and column in the YAML.
//
// It accepts the values that JSON has: objects whose names are strings, arrays,
// strings, numbers in JSON's notation, true, false and null. A date is a string.
// Anchors and aliases are expanded, up to a bound. Everything else is refused: several
// documents, merge keys, tags, names that are not strings, and numbers in other
// notations, which may be meant as strings.
package yaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/sajou-dev/sajou-go/signal"
)

const (
	// maxText bounds a YAML text, in bytes.
	maxText = 1 << 20
	// maxJSON bounds the resulting JSON, because aliases may repeat a value often.
	maxJSON = 4 << 20
)

// SyntaxError describes why a text is refused, with the position.
type SyntaxError struct {
	Line   int // from 1
	Column int // in bytes, from 1
	Reason string
}

// Error returns "line:column: reason".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("yaml: %d:%d: %s", e.Line, e.Column, e.Reason)
}

// Conversion is a YAML text as JSON.
type Conversion struct {
	// JSON is the equivalent JSON, in one line.
	JSON []byte

	places []place // in the order of their offsets
}

// place maps the offset of a name or value in the JSON to its position in the YAML.
type place struct{ offset, line, column int }

// Place returns the position in the YAML of the name or value at an offset of the JSON,
// or of the last one that begins before it.
func (t *Conversion) Place(offset int) (line, column int) {
	i, exact := slices.BinarySearchFunc(t.places, offset, func(p place, offset int) int { return p.offset - offset })
	if !exact {
		i--
	}
	if i < 0 {
		return 1, 1
	}
	return t.places[i].line, t.places[i].column
}

// Read parses a text with one document. The error is a [*SyntaxError].
func Read(text []byte) (*Conversion, error) {
	if len(text) > maxText {
		return nil, &SyntaxError{1, 1, fmt.Sprintf("the text exceeds %d MiB", maxText>>20)}
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, &SyntaxError{1 + strings.Count(string(text[:i]), "\n"), i - strings.LastIndex(string(text[:i]), "\n"), "the text is not valid UTF-8"}
		}
		i += size
	}
	var root yaml.Node
	w := writer{lines: strings.SplitAfter(string(text), "\n"), rulers: map[int]ruler{}}
	limits := loaderlimits.New(loaderlimits.DepthValue(signal.MaxDepth))
	loader, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithPlugin(limits))
	if err == nil {
		err = loader.Load(&root)
	}
	if errors.Is(err, io.EOF) || err == nil && (root.Kind != yaml.DocumentNode || len(root.Content) != 1) {
		return nil, &SyntaxError{1, 1, "the text is empty"}
	}
	if err != nil {
		return nil, w.refusal(err)
	}
	var more yaml.Node
	if err := loader.Load(&more); err == nil {
		return nil, w.refuse(&more, "a second document begins here; write one document")
	} else if !errors.Is(err, io.EOF) {
		return nil, w.refusal(err)
	}
	if err := w.value(root.Content[0], 0); err != nil {
		return nil, err
	}
	return &Conversion{w.json, w.places}, nil
}

// writer writes JSON and notes the places of its parts.
type writer struct {
	lines  []string
	rulers map[int]ruler // by line
	json   []byte
	places []place
	inside []*yaml.Node // anchors that are being written out
}

// refusal converts an error of the library to a [*SyntaxError].
func (w *writer) refusal(err error) error {
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		line, column := w.place(e.Mark.Line, e.Mark.Column)
		reason := e.Message
		if e.ContextMsg != "" {
			reason = e.ContextMsg + ": " + reason
		}
		return &SyntaxError{line, column, reason}
	}
	return &SyntaxError{1, 1, err.Error()}
}

// stride is the number of code points between the marks of a [ruler].
const stride = 64

// ruler maps code points to byte offsets: it has the offset of every stride-th one.
type ruler []int

// place converts a column that the library counts in code points to bytes.
func (w *writer) place(line, column int) (int, int) {
	line = min(max(line, 1), len(w.lines))
	text := w.lines[line-1]
	marks, ok := w.rulers[line]
	if !ok {
		n := 0
		for i := range text {
			if n%stride == 0 {
				marks = append(marks, i)
			}
			n++
		}
		w.rulers[line] = marks
	}
	column = max(column, 1) - 1
	if column/stride >= len(marks) {
		return line, len(text) + 1
	}
	at := marks[column/stride]
	for range column % stride {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return line, at + 1
}

func (w *writer) refuse(n *yaml.Node, format string, args ...any) error {
	line, column := w.place(n.Line, n.Column)
	return &SyntaxError{line, column, fmt.Sprintf(format, args...)}
}

// note records the position of n as that of the next name or value written.
func (w *writer) note(n *yaml.Node) {
	line, column := w.place(n.Line, n.Column)
	w.places = append(w.places, place{len(w.json), line, column})
}

// value writes a node. It recurses once for each level of nesting, which is bounded.
func (w *writer) value(n *yaml.Node, depth int) error {
	if len(w.json) > maxJSON {
		return w.refuse(n, "the expanded aliases exceed %d MiB", maxJSON>>20)
	}
	if n.Kind == yaml.AliasNode {
		if n.Alias == nil || slices.Contains(w.inside, n.Alias) {
			return w.refuse(n, "the alias %s refers to a value that contains it", n.Value)
		}
		w.inside = append(w.inside, n.Alias)
		err := w.value(n.Alias, depth)
		w.inside = w.inside[:len(w.inside)-1]
		return err
	}
	if depth > signal.MaxDepth {
		return w.refuse(n, "the nesting exceeds %d levels", signal.MaxDepth)
	}
	if n.Anchor != "" && !slices.Contains(w.inside, n) {
		w.inside = append(w.inside, n)
		defer func() { w.inside = w.inside[:len(w.inside)-1] }()
	}
	w.note(n)
	switch n.Kind {
	case yaml.MappingNode:
		return w.object(n, depth)
	case yaml.SequenceNode:
		if tag := n.ShortTag(); tag != "!!seq" {
			return w.refuse(n, "the tag %s is not supported; remove it", tag)
		}
		w.json = append(w.json, '[')
		for i, e := range n.Content {
			if i > 0 {
				w.json = append(w.json, ',')
			}
			if err := w.value(e, depth+1); err != nil {
				return err
			}
		}
		w.json = append(w.json, ']')
		return nil
	default:
		return w.scalar(n)
	}
}

func (w *writer) object(n *yaml.Node, depth int) error {
	if tag := n.ShortTag(); tag != "!!map" {
		return w.refuse(n, "the tag %s is not supported; remove it", tag)
	}
	w.json = append(w.json, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		switch {
		case name.Kind != yaml.ScalarNode:
			return w.refuse(name, "a name must be a string")
		case name.ShortTag() == "!!merge":
			return w.refuse(name, "merge keys are not supported; write the members out")
		case name.ShortTag() != "!!str":
			return w.refuse(name, "a name must be a string; write %q in quotes", name.Value)
		}
		if i > 0 {
			w.json = append(w.json, ',')
		}
		w.note(name)
		if err := w.text(name); err != nil {
			return err
		}
		w.json = append(w.json, ':')
		if err := w.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	w.json = append(w.json, '}')
	return nil
}

func (w *writer) scalar(n *yaml.Node) error {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		w.json = append(w.json, "null"...)
	case "!!bool":
		word := strings.ToLower(n.Value)
		if word != "true" && word != "false" {
			return w.refuse(n, "write %q in quotes, or true or false", n.Value)
		}
		w.json = append(w.json, word...)
	case "!!int", "!!float":
		// Other notations are ambiguous: some readers take 010 for eight.
		if !json.Valid([]byte(n.Value)) {
			return w.refuse(n, "%s is not a JSON number; if it is a string, write it in quotes", n.Value)
		}
		w.json = append(w.json, n.Value...)
	case "!!str", "!!timestamp":
		return w.text(n)
	default:
		return w.refuse(n, "the tag %s is not supported; remove it", tag)
	}
	return nil
}

func (w *writer) text(n *yaml.Node) error {
	if !utf8.ValidString(n.Value) {
		return w.refuse(n, "the text is not valid UTF-8")
	}
	text, err := json.Marshal(n.Value)
	if err != nil {
		return w.refuse(n, "%v", err)
	}
	w.json = append(w.json, text...)
	return nil
}

package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// document is a text of JSON with the places of its values.
type document struct {
	text []byte
	root *node
}

// node is one value: its place, and for objects and arrays its parts.
type node struct {
	kind       byte   // the first byte
	name       string // of a member
	from       int    // of the member with its name; start for other values
	start, end int
	parts      []*node
}

// member returns the member of an object, or nil.
func (n *node) member(name string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for _, p := range n.parts {
		if p.name == name {
			return p
		}
	}
	return nil
}

// text returns the text of a string, "" for other values.
func (n *node) text(text []byte) string {
	var s string
	if n.kind != '"' || json.Unmarshal(text[n.start:n.end], &s) != nil {
		return ""
	}
	return s
}

// maxDepth bounds how deep the values of settings may stand inside each other.
const maxDepth = 200

// parse finds the values of a text that is one JSON object.
func parse(text []byte) (*document, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("%w: they have more than %d MiB", ErrSettings, MaxText>>20)
	}
	var check any
	if err := json.Unmarshal(text, &check); err != nil {
		line := 0
		if syntax, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // Unmarshal returns it as it is
			until := text[:min(int(syntax.Offset), len(text))]
			line = 1 + bytes.Count(until, []byte("\n"))
			remedy := ""
			switch {
			case bytes.HasPrefix(text, []byte("\ufeff")):
				remedy = "; save it without a byte order mark"
			case bytes.HasSuffix(until, []byte("/")):
				remedy = "; remove the comments, which JSON does not have"
			}
			return nil, fmt.Errorf("%w: line %d: not JSON: %v%s", ErrSettings, line, err, remedy)
		}
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	s := &scanner{text: text}
	root, err := s.value(0)
	if err != nil {
		return nil, err
	}
	if root.kind != '{' {
		return nil, fmt.Errorf("%w: they are not an object", ErrSettings)
	}
	return &document{text, root}, nil
}

// scanner reads text that is known to be JSON.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d levels", ErrSettings, maxDepth)
	}
	s.space()
	n := &node{kind: s.text[s.at], from: s.at, start: s.at}
	switch n.kind {
	case '{', '[':
		closing := n.kind + 2 // } and ]
		names := map[string]bool{}
		s.at++
		for s.space(); s.text[s.at] != closing; s.space() {
			if s.text[s.at] == ',' {
				s.at++
				s.space()
			}
			from, name := s.at, ""
			if n.kind == '{' {
				if err := json.Unmarshal(s.string(), &name); err != nil {
					return nil, fmt.Errorf("%w: %w", ErrSettings, err)
				}
				if names[name] {
					return nil, fmt.Errorf("%w: line %d: the member %q is there twice", ErrSettings, 1+bytes.Count(s.text[:from], []byte("\n")), name)
				}
				names[name] = true
				s.space()
				s.at++ // the colon
			}
			part, err := s.value(depth + 1)
			if err != nil {
				return nil, err
			}
			if n.kind == '{' {
				part.from, part.name = from, name
			}
			n.parts = append(n.parts, part)
		}
		s.at++
	case '"':
		s.string()
	default:
		for s.at < len(s.text) && strings.IndexByte(" \t\r\n,]}", s.text[s.at]) < 0 {
			s.at++
		}
	}
	n.end = s.at
	return n, nil
}

// string passes a string and returns its text with the quotes.
func (s *scanner) string() []byte {
	from := s.at
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	return s.text[from:s.at]
}

// replace returns the text with another value in the place of one.
func (d *document) replace(n *node, value []byte) []byte {
	return join(d.text[:n.start], value, d.text[n.end:])
}

// delete returns the text without a part of an object or array.
func (d *document) delete(in, part *node) []byte {
	for i, p := range in.parts {
		switch {
		case p != part:
		case i > 0:
			return join(d.text[:in.parts[i-1].end], d.text[part.end:])
		case len(in.parts) > 1:
			return join(d.text[:part.from], d.text[in.parts[1].from:])
		default:
			return join(d.text[:in.start+1], d.text[in.end-1:])
		}
	}
	return d.text
}

// insert returns the text with a further part at the end of an object or array. Name is
// empty for an array.
func (d *document) insert(in *node, name string, value any) ([]byte, error) {
	var label []byte
	if name != "" {
		label = append(quoted(name), ':')
	}
	oneLine := func(n *node) bool { return len(n.parts) > 0 && !bytes.Contains(d.text[n.start:n.end], []byte("\n")) }
	if oneLine(in) || oneLine(d.root) {
		text, err := compact(value)
		if err != nil {
			return nil, err
		}
		at, comma := in.start+1, ""
		if len(in.parts) > 0 {
			at, comma = in.parts[len(in.parts)-1].end, ", "
		}
		return join(d.text[:at], []byte(comma), spaced(label), text, d.text[at:]), nil
	}
	outer := d.indentOf(in)
	inner := outer + d.unit()
	text := join([]byte(d.lineEnd()+inner), spaced(label), d.format(value, inner))
	if len(in.parts) == 0 {
		return join(d.text[:in.start+1], text, []byte(d.lineEnd()+outer), d.text[in.end-1:]), nil
	}
	at := in.parts[len(in.parts)-1].end
	return join(d.text[:at], []byte(","), text, d.text[at:]), nil
}

func spaced(label []byte) []byte {
	if label == nil {
		return nil
	}
	return append(label, ' ')
}

// format returns a value as indented JSON whose first line has the given indentation.
func (d *document) format(value any, indent string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(indent, d.unit())
	_ = e.Encode(value) // structures of this package can be encoded
	text := bytes.TrimRight(b.Bytes(), "\n")
	if d.lineEnd() != "\n" {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte(d.lineEnd()))
	}
	return text
}

func compact(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func quoted(name string) []byte {
	text, _ := json.Marshal(name) // a string can be encoded
	return text
}

// unit returns the indentation of one level: that of the first member of the settings.
func (d *document) unit() string {
	if len(d.root.parts) > 0 {
		first := d.root.parts[0].from
		if line := bytes.LastIndexByte(d.text[:first], '\n'); line >= d.root.start {
			if indent := string(d.text[line+1 : first]); indent != "" {
				return indent
			}
		}
	}
	return "  "
}

// indentOf returns the white space at the beginning of the line in which a value begins.
func (d *document) indentOf(n *node) string {
	line := d.text[bytes.LastIndexByte(d.text[:n.from], '\n')+1 : n.from]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

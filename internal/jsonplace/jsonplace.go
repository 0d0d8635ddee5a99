// Package jsonplace finds where values stand in a JSON text, so that a remark
// about a value can name its line and column. Values are asked for by the names
// and indexes that lead to them, all at once: the text is read one time, and
// only when there is something to remark.
package jsonplace

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Mark asks for one value of a text.
type Mark struct {
	Segments []string // the names and indexes from the root on
	AtName   bool     // the name of the member is meant, not its value
	Offset   int      // in bytes; set by Locate
}

// Locate sets the offsets of marks in a text that is known to be JSON and nests
// no deeper than recursion may go. Of a value that is not there the nearest one
// around it is meant.
func Locate(text []byte, marks []*Mark) {
	var root place
	for _, m := range marks {
		root.want(m.Segments, m.AtName, &m.Offset)
	}
	l := locator{text: text}
	l.space()
	l.value(&root)
}

// Pointer returns the names and indexes that lead to a value as a JSON pointer.
func Pointer(segments []string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(s))
	}
	return b.String()
}

// place is what is asked about one value of a text, and about those inside it.
type place struct {
	inside map[string]*place
	value  []*int // to be set to the value's offset
	name   []*int // to be set to the offset of the member's name
}

// want asks for an offset under a place. Of a value that is not there the
// nearest one around it is meant, so the offset of each on the way is set.
func (p *place) want(segments []string, atName bool, offset *int) {
	for i, s := range segments {
		p.value = append(p.value, offset)
		if p.inside == nil {
			p.inside = make(map[string]*place)
		}
		if p.inside[s] == nil {
			p.inside[s] = new(place)
		}
		p = p.inside[s]
		if i == len(segments)-1 && atName {
			p.name = append(p.name, offset)
			return
		}
	}
	p.value = append(p.value, offset)
}

type locator struct {
	text []byte
	i    int
}

func (l *locator) space() {
	for l.i < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.i]) >= 0 {
		l.i++
	}
}

// value passes one value and the space after it. Nothing is asked about it if p
// is nil. It recurses once for each nesting, which the parser has bounded.
func (l *locator) value(p *place) {
	if p != nil {
		for _, o := range p.value {
			*o = l.i
		}
	}
	if l.i >= len(l.text) {
		return
	}
	switch l.text[l.i] {
	case '{':
		l.list('}', func(int) {
			start := l.i
			l.quoted()
			name := l.text[start:l.i]
			l.space()
			l.skip() // the colon
			l.space()
			if p == nil || p.inside == nil {
				l.value(nil)
				return
			}
			inner := p.inside[unquote(name)]
			l.value(inner)
			if inner != nil {
				for _, o := range inner.name {
					*o = start
				}
			}
		})
	case '[':
		l.list(']', func(i int) {
			if p == nil || p.inside == nil {
				l.value(nil)
				return
			}
			l.value(p.inside[strconv.Itoa(i)])
		})
	case '"':
		l.quoted()
	default:
		for l.i < len(l.text) && strings.IndexByte(",]} \t\r\n", l.text[l.i]) < 0 {
			l.i++
		}
	}
	l.space()
}

// list passes an object or array, calling each for each item.
func (l *locator) list(end byte, each func(i int)) {
	l.i++
	l.space()
	for i := 0; l.i < len(l.text) && l.text[l.i] != end; i++ {
		before := l.i
		each(i)
		if l.i < len(l.text) && l.text[l.i] == ',' {
			l.i++
			l.space()
		}
		if l.i == before {
			return // no JSON after all
		}
	}
	l.skip()
}

// skip passes one byte, if there is one: of what is no JSON any part may lack.
func (l *locator) skip() { l.i = min(l.i+1, len(l.text)) }

// quoted passes one string.
func (l *locator) quoted() {
	for l.i++; l.i < len(l.text) && l.text[l.i] != '"'; l.i++ {
		if l.text[l.i] == '\\' {
			l.i++
		}
	}
	l.skip()
}

func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 && len(quoted) >= 2 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}

// LineColumn turns an offset into a line and a column in bytes, from 1.
func LineColumn(text []byte, offset int) (line, column int) {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	return 1 + bytes.Count(before, []byte("\n")), offset - bytes.LastIndexByte(before, '\n')
}

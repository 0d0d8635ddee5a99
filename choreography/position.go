package choreography

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// path leads from the root of a JSON text to one of its values. Nil is the root.
type path struct {
	parent *path
	name   string // of a member
	index  int    // of an element, if name is not used
	member bool
}

func (p *path) at(name string) *path { return &path{parent: p, name: name, member: true} }

func (p *path) element(i int) *path { return &path{parent: p, index: i} }

// segments returns the names and indexes from the root on.
func (p *path) segments() []string {
	if p == nil {
		return nil
	}
	if p.member {
		return append(p.parent.segments(), p.name)
	}
	return append(p.parent.segments(), strconv.Itoa(p.index))
}

// pointer returns the segments as a JSON pointer.
func pointer(segments []string) string {
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

// locate finds the offsets that were asked for in one pass over a text that is
// known to be JSON.
func locate(text []byte, root *place) {
	l := locator{text: text}
	l.space()
	l.value(root)
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
			l.i++ // the colon
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
	l.i++
}

// quoted passes one string.
func (l *locator) quoted() {
	for l.i++; l.i < len(l.text) && l.text[l.i] != '"'; l.i++ {
		if l.text[l.i] == '\\' {
			l.i++
		}
	}
	l.i = min(l.i+1, len(l.text))
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

// lineColumn turns an offset into a line and a column in bytes, from 1.
func lineColumn(text []byte, offset int) (line, column int) {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	return 1 + bytes.Count(before, []byte("\n")), offset - bytes.LastIndexByte(before, '\n')
}

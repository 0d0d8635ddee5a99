package authored

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
)

// Location leads from the root of a JSON text to one of its values. Nil is the root.
type Location struct {
	parent *Location
	name   string // of a member
	index  int    // of an element, unless it is a member
	member bool
	isName bool // the location of the member's name, not of its value
}

// At returns the location of a member.
func (p *Location) At(name string) *Location { return &Location{parent: p, name: name, member: true} }

// Key returns the location of a member's name; p is the location of its value.
func (p *Location) Key() *Location {
	if p == nil {
		return nil
	}
	key := *p
	key.isName = true
	return &key
}

// Element returns the location of an element.
func (p *Location) Element(i int) *Location { return &Location{parent: p, index: i} }

// IsKey reports whether p is the location of a member's name.
func (p *Location) IsKey() bool { return p != nil && p.isName }

// Segments returns the names and indexes from the root to p.
func (p *Location) Segments() []string {
	var segments []string
	for ; p != nil; p = p.parent {
		if p.member {
			segments = append(segments, p.name)
		} else {
			segments = append(segments, strconv.Itoa(p.index))
		}
	}
	slices.Reverse(segments)
	return segments
}

// Pointer returns p as a JSON pointer.
func (p *Location) Pointer() string { return jsonpointer.Join(p.Segments()) }

// Locate returns the offsets, in bytes, of locations in a text that [signal.ParseValue]
// accepts. It reads the text once. A location without a value has the offset of the
// nearest value around it.
func Locate(text []byte, places []*Location) []int {
	offsets := make([]int, len(places))
	if len(places) == 0 {
		return offsets
	}
	var root wanted
	for i, p := range places {
		root.want(p.Segments(), p.IsKey(), &offsets[i])
	}
	l := locator{text: text}
	l.space()
	l.value(&root)
	return offsets
}

// wanted holds the offsets to find of one value of a text and of the values inside it.
type wanted struct {
	inside map[string]*wanted
	value  []*int // to be set to the value's offset
	name   []*int // to be set to the offset of the member's name
}

// want registers an offset to find. Every value on the path sets it, so that the
// nearest value around a missing one remains.
func (p *wanted) want(segments []string, atName bool, offset *int) {
	for i, s := range segments {
		p.value = append(p.value, offset)
		if p.inside == nil {
			p.inside = make(map[string]*wanted)
		}
		if p.inside[s] == nil {
			p.inside[s] = new(wanted)
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

// value skips one value and the space after it, and sets the offsets in p, which may
// be nil. It recurses once for each nesting, which the parser has bounded.
func (l *locator) value(p *wanted) {
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

// list skips an object or array, calling each for each item.
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
			return // not JSON
		}
	}
	l.skip()
}

// skip skips one byte, unless the text ends: a text that is not JSON may be cut.
func (l *locator) skip() { l.i = min(l.i+1, len(l.text)) }

// quoted skips one string.
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

// LineColumn converts an offset to a line and a column in bytes, both from 1.
func LineColumn(text []byte, offset int) (line, column int) {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	return 1 + bytes.Count(before, []byte("\n")), offset - bytes.LastIndexByte(before, '\n')
}

package signal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/wording"
)

// ErrSyntax is wrapped by the errors about text that is not JSON, or JSON
// that cannot be kept exactly.
var ErrSyntax = errors.New("not exact JSON")

// SyntaxError is the place at which a text stops being exact JSON. It wraps [ErrSyntax].
type SyntaxError struct {
	Offset int    // in bytes from the start of the text
	Reason string // what is wrong there
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("signal: byte %d: %s", e.Offset, e.Reason)
}
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// maxText bounds a JSON text. No value takes more than 9/4 of its text, so
// the offsets of a span fit their 32 bits.
const maxText = 1 << 30

// ParseValue reads one JSON text, of at most 1 GiB, into an exact value. The
// order of members is kept.
//
// A literal without fraction and exponent becomes the integer that it names; -0
// is the integer 0. A literal with a fraction or an exponent becomes the nearest
// double. For a decimal such as 0.1 that is an approximation, and the double is
// written with the fewest digits that name it, so a decimal of 15 significant
// digits is written as the same number. An integral literal keeps its value:
// 9007199254740993.0, between two doubles, is refused; 1e23, also between two
// doubles, is kept, because the nearest double is written as 1e+23.
//
// ParseValue refuses with a [*SyntaxError] text that is not JSON, and values that it
// cannot keep in this way: an integer literal beyond int64 and uint64; a number
// with a fraction or an exponent that overflows a double, is not zero but would
// become zero, is integral but would be written as another integer, or has more
// than 17 significant digits without being exactly a double (or more than 800 in
// any case); a duplicate key in an object; text that is not UTF-8; half a
// surrogate pair; nesting beyond [MaxDepth]; anything but white space after the
// value.
func ParseValue(json []byte) (Value, error) {
	if len(json) > maxText {
		return nil, &SyntaxError{0, "a text of more than 1 GiB"}
	}
	p := parser{src: json, dst: make([]byte, 0, len(json))}
	p.space()
	if p.value(MaxDepth) {
		p.space()
		if p.i < len(json) {
			p.fail(p.i, "something after the end of the value")
		}
	}
	if p.why != "" {
		return nil, &SyntaxError{p.at, p.why}
	}
	return p.dst[:len(p.dst):len(p.dst)], nil
}

// parser turns JSON into msgpack in one pass.
type parser struct {
	src  []byte
	i    int
	dst  []byte
	keys keyStack // places in dst
	at   int      // where it failed
	why  string   // why it failed; "" if it did not
}

func (p *parser) fail(at int, why string) bool {
	p.at, p.why = at, why
	return false
}

// peek returns the byte at p.i, 0 at the end (which no JSON token starts with).
func (p *parser) peek() byte {
	if p.i < len(p.src) {
		return p.src[p.i]
	}
	return 0
}

func (p *parser) space() {
	for p.i < len(p.src) {
		switch p.src[p.i] {
		case ' ', '\n', '\r', '\t':
			p.i++
		default:
			return
		}
	}
}

// value reads the value at p.i. depth is how many levels may be opened.
func (p *parser) value(depth int) bool {
	switch c := p.peek(); c {
	case '"':
		_, ok := p.text()
		return ok
	case '{', '[':
		if depth == 0 {
			return p.fail(p.i, "nested deeper than "+strconv.Itoa(MaxDepth)+" levels")
		}
		if c == '{' {
			return p.object(depth - 1)
		}
		return p.array(depth - 1)
	case 't':
		return p.word("true", 0xc3)
	case 'f':
		return p.word("false", 0xc2)
	case 'n':
		return p.word("null", 0xc0)
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return p.number()
		}
		return p.unexpected("a value")
	}
}

func (p *parser) unexpected(want string) bool {
	if p.i >= len(p.src) {
		return p.fail(p.i, "the text ends where "+want+" should be")
	}
	r, _ := utf8.DecodeRune(p.src[p.i:])
	return p.fail(p.i, fmt.Sprintf("%q where %s should be", r, want))
}

func (p *parser) word(word string, code byte) bool {
	if len(p.src)-p.i < len(word) || string(p.src[p.i:p.i+len(word)]) != word {
		return p.unexpected("a value")
	}
	p.i += len(word)
	p.dst = append(p.dst, code)
	return true
}

func (p *parser) array(depth int) bool {
	p.i++
	head := len(p.dst)
	p.dst = append(p.dst, 0)
	p.space()
	if p.peek() == ']' {
		p.i++
		p.dst[head] = 0x90
		return true
	}
	for n := 1; ; n++ {
		p.space()
		if !p.value(depth) {
			return false
		}
		p.space()
		switch p.peek() {
		case ',':
			p.i++
		case ']':
			p.i++
			if n <= 15 {
				p.dst[head] = 0x90 | byte(n)
			} else {
				var b [5]byte
				p.widen(head, msgp.AppendArrayHeader(b[:0], uint32(n)))
			}
			return true
		default:
			return p.unexpected("',' or ']'")
		}
	}
}

func (p *parser) object(depth int) bool {
	p.i++
	head := len(p.dst)
	p.dst = append(p.dst, 0)
	p.space()
	if p.peek() == '}' {
		p.i++
		p.dst[head] = 0x80
		return true
	}
	open := p.i
	first := p.keys.len()
	for n := 1; ; n++ {
		p.space()
		if p.peek() != '"' {
			return p.unexpected("a key")
		}
		key, ok := p.text()
		if !ok {
			return false
		}
		p.keys.push(key)
		p.space()
		if p.peek() != ':' {
			return p.unexpected("':'")
		}
		p.i++
		p.space()
		if !p.value(depth) {
			return false
		}
		p.space()
		switch p.peek() {
		case ',':
			p.i++
		case '}':
			p.i++
			if key, twice := duplicate(p.dst, p.keys.from(first)); twice {
				return p.twice(open, key)
			}
			p.keys.cut(first)
			if n <= 15 {
				p.dst[head] = 0x80 | byte(n)
			} else {
				var b [5]byte
				p.widen(head, msgp.AppendMapHeader(b[:0], uint32(n)))
			}
			return true
		default:
			return p.unexpected("',' or '}'")
		}
	}
}

// twice reports a duplicate key of the object whose first member starts at
// open: it reads the members once more to find the place of the second one.
func (p *parser) twice(open int, key span) bool {
	name := string(key.of(p.dst))
	again := parser{src: p.src, i: open}
	for found := false; ; {
		again.space()
		at := again.i
		k, ok := again.text()
		if !ok {
			break
		}
		if string(k.of(again.dst)) == name {
			if found {
				return p.fail(at, fmt.Sprintf("the key %q stands twice in one object", clip(name)))
			}
			found = true
		}
		again.space()
		again.i++ // the colon
		again.space()
		if !again.value(MaxDepth) {
			break
		}
		again.dst = again.dst[:0]
		again.space()
		again.i++ // the comma
	}
	return p.fail(open, fmt.Sprintf("the key %q stands twice in one object", clip(name)))
}

// clip shortens a name for a message. Messages of [FieldError] are kept in logs,
// so the bound is part of the format of entry data.
func clip(name string) string { return wording.Clip(name, 64) }

// widen replaces the one byte kept free at head by a longer head.
func (p *parser) widen(head int, b []byte) {
	p.dst = slices.Replace(p.dst, head, head+1, b...)
}

// text reads a string and returns where its bytes stand in p.dst.
func (p *parser) text() (span, bool) {
	open := p.i
	start := p.i + 1
	i, ascii := start, true
	for ; ; i++ {
		if i >= len(p.src) {
			return span{}, p.fail(open, "a string that does not end")
		}
		c := p.src[i]
		if c == '"' || c == '\\' {
			break
		}
		if c < ' ' {
			return span{}, p.fail(i, "a control character in a string")
		}
		if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	if p.src[i] == '\\' {
		return p.escaped(start, i)
	}
	raw := p.src[start:i]
	if !ascii && !utf8.Valid(raw) {
		return span{}, p.invalid(start, i)
	}
	p.i = i + 1
	p.dst = msgp.AppendStringFromBytes(p.dst, raw)
	return span{uint32(len(p.dst) - len(raw)), uint32(len(p.dst))}, true
}

// invalid fails at the first byte of src[start:end] that is not UTF-8.
func (p *parser) invalid(start, end int) bool {
	for start < end {
		r, size := utf8.DecodeRune(p.src[start:end])
		if r == utf8.RuneError && size == 1 {
			break
		}
		start += size
	}
	return p.fail(start, "a string that is not UTF-8")
}

// escaped reads a string that starts at start and has its first backslash at i.
func (p *parser) escaped(start, i int) (span, bool) {
	head := len(p.dst)
	p.dst = append(p.dst, 0)
	run := start // start of the plain bytes not copied yet
	for {
		if i >= len(p.src) {
			return span{}, p.fail(start-1, "a string that does not end")
		}
		c := p.src[i]
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		if c < ' ' {
			return span{}, p.fail(i, "a control character in a string")
		}
		if !utf8.Valid(p.src[run:i]) {
			return span{}, p.invalid(run, i)
		}
		p.dst = append(p.dst, p.src[run:i]...)
		if c == '"' {
			break
		}
		size := p.escape(i)
		if size == 0 {
			return span{}, false
		}
		i += size
		run = i
	}
	p.i = i + 1
	n := len(p.dst) - head - 1
	if n <= 31 {
		p.dst[head] = 0xa0 | byte(n)
	} else {
		var b [5]byte
		p.widen(head, appendTextHead(b[:0], n))
	}
	return span{uint32(len(p.dst) - n), uint32(len(p.dst))}, true
}

// appendTextHead appends the head of a string of n > 31 bytes.
func appendTextHead(dst []byte, n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(dst, 0xd9, byte(n))
	case n <= math.MaxUint16:
		return append(dst, 0xda, byte(n>>8), byte(n))
	default:
		return append(dst, 0xdb, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
}

// escape appends the character that the escape at i means and returns the size of
// the escape, 0 if it is not one.
func (p *parser) escape(i int) int {
	const plain = "\"\"\\\\//b\bf\fn\nr\rt\t" // pairs: the letter, its meaning
	if i+1 >= len(p.src) {
		p.fail(i, "the text ends inside an escape")
		return 0
	}
	c := p.src[i+1]
	for j := 0; j < len(plain); j += 2 {
		if plain[j] == c {
			p.dst = append(p.dst, plain[j+1])
			return 2
		}
	}
	if c != 'u' {
		p.fail(i, "an escape that JSON does not have")
		return 0
	}
	r, ok := hex4(p.src, i+2)
	if !ok {
		p.fail(i, "\\u without four hexadecimal digits")
		return 0
	}
	size := 6
	if r >= 0xd800 && r < 0xe000 {
		low, ok := rune(0), false
		if r < 0xdc00 && i+8 <= len(p.src) && p.src[i+6] == '\\' && p.src[i+7] == 'u' {
			low, ok = hex4(p.src, i+8)
		}
		if !ok || low < 0xdc00 || low > 0xdfff {
			p.fail(i, "half a surrogate pair")
			return 0
		}
		r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
		size = 12
	}
	p.dst = utf8.AppendRune(p.dst, r)
	return size
}

// hex4 reads four hexadecimal digits at i.
func hex4(b []byte, i int) (r rune, ok bool) {
	if i+4 > len(b) {
		return 0, false
	}
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

package query

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

// needle is a text to find in other texts.
type needle struct {
	text   string
	whole  bool // as a whole word
	number *signal.Number
}

func newNeedle(text string, whole bool) needle {
	n := needle{text: text, whole: whole}
	if v, err := signal.ParseValue([]byte(text)); err == nil && !whole {
		if number, ok := v.Number(); ok {
			n.number = &number
		}
	}
	return n
}

// maxEscapes bounds how often a text is unescaped as the inside of a JSON string.
const maxEscapes = 8

// in reports whether a text contains the needle, also below the escapes of JSON: a
// text may quote a JSON document whose texts quote others.
func (n needle) in(s string) bool {
	if n.text == "" {
		return false
	}
	for range maxEscapes {
		if n.within(s) {
			return true
		}
		plain, ok := unquoted(s)
		if !ok {
			return false
		}
		s = plain
	}
	return n.within(s)
}

func (n needle) within(s string) bool {
	if !n.whole {
		return strings.Contains(s, n.text)
	}
	for at := 0; ; {
		i := strings.Index(s[at:], n.text)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(n.text)
		if !(begin > 0 && wordByte(s[begin-1]) && wordByte(n.text[0])) &&
			!(end < len(s) && wordByte(s[end]) && wordByte(n.text[len(n.text)-1])) {
			return true
		}
		at = begin + 1
	}
}

// wordByte reports whether a byte continues a word. Letters beyond ASCII do not: in
// scripts without spaces between words a name may begin anywhere.
func wordByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// inScalar reports whether a text, a number, true, false or null contains the
// needle.
func (n needle) inScalar(v signal.Value) bool {
	if s, ok := v.Text(); ok {
		return n.in(s)
	}
	if n.whole {
		return false // an id is always a text
	}
	if number, ok := v.Number(); ok && n.number != nil && jsondoc.SameNumber(number, *n.number) {
		return true
	}
	return n.text != "" && strings.Contains(string(v.AppendJSON(nil)), n.text)
}

// unquoted replaces the escapes of JSON strings in a text, and returns false if
// there are none. A malformed escape stays as it is.
func unquoted(s string) (string, bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, false
	}
	var b strings.Builder
	b.Grow(len(s))
	changed := false
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		if at := strings.IndexByte(`"\/bfnrt`, s[i+1]); at >= 0 {
			b.WriteByte("\"\\/\b\f\n\r\t"[at])
			i, changed = i+2, true
			continue
		}
		r, size := unicodeEscape(s[i:])
		if size == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteRune(r)
		i, changed = i+size, true
	}
	return b.String(), changed
}

// unicodeEscape reads \uXXXX, or a surrogate pair of them. It returns size 0 if s
// does not begin with an escape.
func unicodeEscape(s string) (r rune, size int) {
	high, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(high) {
		if low, ok := hex4(s[6:]); ok {
			if r = utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r, 12
			}
		}
		return utf8.RuneError, 6
	}
	return high, 6
}

func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		r <<= 4
		switch {
		case '0' <= c && c <= '9':
			r |= rune(c - '0')
		case 'a' <= c && c <= 'f':
			r |= rune(c-'a') + 10
		case 'A' <= c && c <= 'F':
			r |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	return r, true
}

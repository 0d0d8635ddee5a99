package definition

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxPattern bounds the length of a pattern in bytes, since a compiled
	// expression is many times as large as its text.
	maxPattern = 4096
	// maxProgram bounds the instructions that counted repetitions, "x{1000}", expand to.
	maxProgram = 20_000

	jsSpace    = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	jsNotSpace = `\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	jsNewline = `\n\r\x{2028}\x{2029}`
)

// CompilePattern compiles a JavaScript regular expression (no flags) for Go's
// engine. It rewrites constructs that have another meaning in Go. It refuses those
// that Go lacks (lookaround, back references) and those that only Go has.
func CompilePattern(js string) (*regexp.Regexp, error) {
	if len(js) > maxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	text, err := translatePattern(js)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the RE2 engine of Go refuses it: %w", err)
	}
	if programSize(tree) > maxProgram {
		return nil, fmt.Errorf("the pattern expands to more than %d instructions", maxProgram)
	}
	return regexp.MustCompile(text), nil // what is parsed compiles
}

// programSize estimates how many instructions a pattern compiles to. It stops
// counting above maxProgram. The parser bounds the depth of the tree.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		if size > maxProgram {
			return size
		}
		size += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return size
}

func translatePattern(js string) (string, error) {
	var out strings.Builder
	inClass := false
	for i := 0; i < len(js); {
		switch c := js[i]; {
		case c == '\\':
			n, err := translateEscape(&out, js[i:], inClass)
			if err != nil {
				return "", err
			}
			if e := js[i : i+n]; !inClass && (e == `\b` || e == `\B`) && quantified(js[i+n:]) {
				return "", errRepeatedAssertion
			}
			i += n
			continue
		case (c == '^' || c == '$') && !inClass && quantified(js[i+1:]):
			return "", errRepeatedAssertion
		case inClass && c == '[':
			out.WriteString(`\[`) // no [:alpha:] in JavaScript
		case inClass && c == ']':
			inClass = false
			out.WriteByte(c)
		case inClass:
			out.WriteByte(c)
		case c == '[':
			switch rest := js[i:]; {
			case strings.HasPrefix(rest, "[^]"):
				out.WriteString(`[\x{0}-\x{10ffff}]`)
				i += 3
				continue
			case strings.HasPrefix(rest, "[]"):
				out.WriteString(`[^\x{0}-\x{10ffff}]`)
				i += 2
				continue
			}
			inClass = true
			out.WriteByte(c)
			if strings.HasPrefix(js[i+1:], "^") {
				out.WriteByte('^')
				i++
			}
		case c == '.':
			out.WriteString(`[^` + jsNewline + `]`)
		case c == '(' && strings.HasPrefix(js[i:], "(?"):
			if err := checkGroup(js[i:]); err != nil {
				return "", err
			}
			out.WriteByte(c)
		default:
			out.WriteByte(c)
		}
		i++
	}
	return out.String(), nil
}

var errRepeatedAssertion = errors.New("JavaScript cannot repeat an assertion")

// quantified reports whether s begins with a quantifier.
func quantified(s string) bool {
	if s == "" || s[0] != '{' {
		return s != "" && strings.IndexByte("*+?", s[0]) >= 0
	}
	inner, _, closed := strings.Cut(s[1:], "}")
	least, most, _ := strings.Cut(inner, ",")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	return closed && least != "" && digits(least) && digits(most)
}

// checkGroup refuses the groups that only one of the two languages has.
func checkGroup(s string) error {
	switch {
	case strings.HasPrefix(s, "(?:"):
		return nil
	case strings.HasPrefix(s, "(?="), strings.HasPrefix(s, "(?!"), strings.HasPrefix(s, "(?<="), strings.HasPrefix(s, "(?<!"):
		return errors.New("lookaround does not exist in Go's RE2 engine")
	case strings.HasPrefix(s, "(?<"):
		return nil
	default:
		return fmt.Errorf("%.3q is no group in JavaScript", s)
	}
}

// translateEscape writes the escape at the start of s and returns its length.
func translateEscape(out *strings.Builder, s string, inClass bool) (int, error) {
	if len(s) < 2 {
		return 0, errors.New(`a lone \ at the end`)
	}
	switch c := s[1]; c {
	case 'd', 'D', 'w', 'W', 'f', 'n', 'r', 't', 'v':
		out.WriteString(s[:2])
	case 'b':
		if inClass {
			out.WriteString(`\x08`)
		} else {
			out.WriteString(`\b`)
		}
	case 'B':
		if inClass {
			out.WriteByte('B')
		} else {
			out.WriteString(`\B`)
		}
	case 's':
		if inClass {
			out.WriteString(jsSpace)
		} else {
			out.WriteString(`[` + jsSpace + `]`)
		}
	case 'S':
		if inClass {
			out.WriteString(jsNotSpace) // most often in [\s\S], any character
		} else {
			out.WriteString(`[^` + jsSpace + `]`)
		}
	case 'u':
		r, n := unicodeEscape(s)
		if n == 0 {
			out.WriteByte('u')
			return 2, nil
		}
		if utf16.IsSurrogate(r) {
			return 0, errors.New("half of a surrogate pair never occurs in a payload")
		}
		fmt.Fprintf(out, `\x{%x}`, r)
		return n, nil
	case 'x':
		if h, ok := hex(s, 2, 2); ok {
			fmt.Fprintf(out, `\x{%x}`, h)
			return 4, nil
		}
		out.WriteByte('x')
	case 'c':
		if len(s) > 2 && isLetter(s[2]) {
			fmt.Fprintf(out, `\x{%x}`, s[2]&0x1f)
			return 3, nil
		}
		out.WriteString(`\\c`)
	case '0':
		if len(s) > 2 && s[2] >= '0' && s[2] <= '9' {
			return 0, errors.New("octal escapes do not exist in Go's RE2 engine")
		}
		out.WriteString(`\x{0}`)
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return 0, errors.New("back references do not exist in Go's RE2 engine")
	case 'k':
		return 0, errors.New("back references do not exist in Go's RE2 engine")
	default:
		// Any other escaped character means itself. Go wants letters bare and takes a \
		// before any other ASCII.
		r, n := utf8.DecodeRuneInString(s[1:])
		if r < utf8.RuneSelf && !isLetter(c) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
		return 1 + n, nil
	}
	return 2, nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// unicodeEscape reads \uXXXX, two of them for a surrogate pair.
func unicodeEscape(s string) (r rune, n int) {
	high, ok := hex(s, 2, 4)
	if !ok {
		return 0, 0
	}
	r, n = rune(high), 6
	if utf16.IsSurrogate(r) && strings.HasPrefix(s[n:], `\u`) {
		if low, ok := hex(s, 8, 4); ok {
			if pair := utf16.DecodeRune(r, rune(low)); pair != utf8.RuneError {
				return pair, 12
			}
		}
	}
	return r, n
}

func hex(s string, from, digits int) (uint64, bool) {
	if len(s) < from+digits {
		return 0, false
	}
	for i := from; i < from+digits; i++ {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s[from:from+digits], 16, 32)
	return n, err == nil
}

// pattern is a compiled regular expression; with a nil re it matches nothing.
type pattern struct {
	re   *regexp.Regexp
	size int // see [patternSize]
}

// patternSize estimates how many instructions a JavaScript pattern compiles to, from 1
// to [maxProgram]. It depends on the text alone, so that the estimate, and with it the
// fold of a log, is the same under every version of the regular expression engine.
func patternSize(js string) int {
	if len(js) > maxPattern {
		return 1 // it is not compiled
	}
	const space = 24 // ranges of white space
	limited := func(n int) int { return min(n, maxProgram) }
	type group struct{ size, last int } // last: the size of the item that a quantifier would repeat
	groups := []group{{}}
	for i := 0; i < len(js); {
		g := &groups[len(groups)-1]
		atom := func(size, length int) {
			g.size, g.last = limited(g.size+g.last), size
			i += length
		}
		switch c := js[i]; c {
		case '\\':
			size := 2
			if i+1 < len(js) && (js[i+1] == 's' || js[i+1] == 'S') {
				size = space
			}
			atom(size, 2)
		case '[':
			size, end := 1, i+1
			for ; end < len(js) && js[end] != ']'; end++ {
				if size++; js[end] == '\\' && end+1 < len(js) {
					if end++; js[end] == 's' || js[end] == 'S' {
						size += space
					}
				}
			}
			atom(limited(size), end+1-i)
		case '(':
			i++
			groups = append(groups, group{})
		case ')':
			i++
			if len(groups) > 1 {
				inner := limited(g.size + g.last + 2)
				groups = groups[:len(groups)-1]
				g = &groups[len(groups)-1]
				g.size, g.last = limited(g.size+g.last), inner
			}
		case '*', '+', '?':
			i++
			g.last = limited(g.last + 1)
		case '{':
			times, length := repetition(js[i:])
			if length == 0 {
				atom(1, 1)
				break
			}
			i += length
			g.last = limited(g.last * times)
		case '.':
			atom(6, 1)
		default:
			atom(1, 1)
		}
	}
	size := 1
	for _, g := range groups {
		size = limited(size + g.size + g.last)
	}
	return size
}

// repetition reads a counted quantifier at the start of s. It returns the largest
// number of repetitions and the length of the quantifier, 0 if s begins with none.
func repetition(s string) (times, length int) {
	inner, _, closed := strings.Cut(s[1:], "}")
	if !closed || !quantified(s) {
		return 0, 0
	}
	n := 0
	times = 1
	for _, c := range []byte(inner) {
		if c == ',' {
			times, n = max(times, n), 0
			continue
		}
		n = min(n*10+int(c-'0'), maxProgram)
	}
	return max(times, n), len(inner) + 2
}

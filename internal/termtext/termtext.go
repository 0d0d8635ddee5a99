// Package termtext makes text that others wrote, such as the payload of a
// recorded signal, safe and short enough to show on a terminal.
package termtext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable replaces every rune that a terminal acts on or hides, including line
// ends, with its escape in Go syntax.
func Printable(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PrintableLines is [Printable] for each line of a text.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// PrintableJSON escapes in JSON every rune that a terminal acts on or hides. The
// value of the JSON stays the same. Outside of strings JSON is printable ASCII,
// and in strings JSON itself escapes what is below the space, so only DEL and
// the runes after it are escaped here.
func PrintableJSON(data []byte) []byte {
	const hex = "0123456789abcdef"
	var out []byte // nil while nothing was escaped
	done := 0
	for i := 0; i < len(data); {
		if data[i] < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		if !hidden(r) && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		out = append(out, data[done:i]...)
		for _, unit := range utf16.AppendRune(nil, r) {
			out = append(out, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
		}
		i += size
		done = i
	}
	if out == nil {
		return data
	}
	return append(out, data[done:]...)
}

func hidden(r rune) bool {
	return r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r)
}

// Clip cuts a text to a width in runes, the last of which is then an ellipsis.
func Clip(s string, width int) string {
	if len(s) <= width {
		return s
	}
	n := 0
	for i := range s {
		if n == width-1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// Quote returns a text in quotation marks, printable and clipped to 60 runes.
func Quote(s string) string { return `"` + Clip(Printable(s), 60) + `"` }

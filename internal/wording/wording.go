// Package wording shortens and quotes text for messages.
package wording

import (
	"strconv"
	"unicode/utf8"
)

// Truncate returns s if it has at most so many bytes. Of a longer text it
// returns the longest prefix within the bound that is valid UTF-8.
//
// Several texts in log entries are cut by it, so its result is part of their
// format.
func Truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[:max(most, 0)]
	if utf8.ValidString(s) {
		return s
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return s[:i]
		}
		i += size
	}
	return s
}

// Clip is Truncate with an ellipsis after a text that was cut. The ellipsis is
// not counted.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Truncate(s, most) + "…"
}

// Quoted returns a text from an authored file as a message quotes it: clipped to
// 60 bytes and in quotation marks.
func Quoted(s string) string { return strconv.Quote(Clip(s, 60)) }

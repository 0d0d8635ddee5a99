// Package wording shortens and quotes text for messages.
package wording

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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

// Span returns a span of time in one or two units, as in "36500 days", "5m20s" or "20ms".
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	unit := time.Millisecond
	switch size := d.Abs(); {
	case size >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case size >= time.Hour:
		unit = time.Minute
	case size >= time.Minute:
		unit = time.Second
	}
	text := d.Round(unit).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// Quoted returns a text from an authored file as a message quotes it: clipped to
// 60 bytes and in quotation marks.
func Quoted(s string) string { return strconv.Quote(Clip(s, 60)) }

package query

import "github.com/sajou-dev/sajou-go/signal"

// Unquoted replaces the escapes of JSON strings.
var Unquoted = unquoted

// Contains reports whether a text contains another one, as a whole word or anywhere.
func Contains(s, text string, whole bool) bool { return newNeedle(text, whole).in(s) }

// ScalarContains reports whether a scalar value contains a text.
func ScalarContains(v signal.Value, text string, whole bool) bool {
	return newNeedle(text, whole).inScalar(v)
}

// SameValue reports whether two values are equal as written.
func SameValue(a, b signal.Value) bool { return sameValue(a, b) }

// MaxEscapes is the number of times that a text is unescaped.
const MaxEscapes = maxEscapes

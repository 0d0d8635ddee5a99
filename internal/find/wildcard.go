package find

import "strings"

// Wildcard reports whether the whole text matches a pattern in which each * matches
// any text, also the empty one. Each part between two stars is matched where it first
// occurs, so the search never goes back.
func Wildcard(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	for ok {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		_, text, ok = strings.Cut(text, part)
		rest = after
	}
	return false
}

package redact

import (
	"regexp"
	"strings"
)

// pairName is a name in free text with what stands between it and its value.
var pairName = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.\-]{1,63})(\\*["']?)[ \t]{0,4}(=>|:=|==|[:=])[ \t]{0,4}`)

// pairs redacts the values of sensitive names in free text, as password=x,
// api-key: x, "token":"x", also in JSON within a string. Personal data is told
// by its name only if that is quoted, as in JSON; otherwise it is prose more
// often than data.
func (r *rules) pairs(s string) string {
	var b strings.Builder
	done := 0
	for at := 0; at < len(s); {
		m := pairName.FindStringSubmatchIndex(s[at:])
		if m == nil {
			break
		}
		name, quoted, sep := s[at+m[2]:at+m[3]], m[4] < m[5], s[at+m[6]:at+m[7]]
		at += m[1]
		l := r.level(name)
		if l == plain || l < token && !quoted || marked(s[at:]) > 0 {
			continue
		}
		from, to := valueAt(s, at, name)
		value := s[from:to]
		if value == "" || marked(value) == len(value) || l == place && !postal(value) {
			continue
		}
		if l == token && !tokenLike(value, from > at || sep == "=") || quoted && telling(value) {
			continue
		}
		b.WriteString(s[done:from])
		b.WriteString(Mark)
		done, at = to, to
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// marked returns the length of the mark that s begins with, 0 if none.
func marked(s string) int {
	for _, mark := range marks {
		if strings.HasPrefix(s, mark) {
			return len(mark)
		}
	}
	return 0
}

// tokenLike reports whether what is called a token is one, and not a word of
// whoever writes about tokens.
func tokenLike(value string, strict bool) bool {
	if strings.Trim(value, "0123456789.,") == "" {
		return false // a number of them
	}
	return len(value) >= 6 && (strict || len(value) >= 16 || strings.ContainsAny(value, "0123456789"))
}

// telling reports whether a value of JSON says nothing beyond that there is one.
func telling(value string) bool { return value == "true" || value == "false" || value == "null" }

// postal reports whether an address can be one of a person's: those of
// networks and files have no spaces in them. A bracket is theirs, or of a mark
// that stands where something was redacted already.
func postal(address string) bool {
	return strings.ContainsAny(address, " \t\n") || !strings.ContainsAny(address, ":./@#[0123456789")
}

// valueAt returns where the value is that begins at s[i], without its quotes. What
// is not closed reaches to the end.
func valueAt(s string, i int, name string) (from, to int) {
	slashes := 0
	for i+slashes < len(s) && s[i+slashes] == '\\' {
		slashes++
	}
	if q := i + slashes; q < len(s) && (s[q] == '"' || s[q] == '\'') {
		return q + 1, closing(s, q+1, slashes, s[q])
	}
	if i < len(s) && (s[i] == '{' || s[i] == '[') {
		return i, balanced(s, i)
	}
	to = i + len(scheme.FindString(s[i:]))
	if n := marked(s[to:]); n > 0 {
		return i, to + n
	}
	return i, to + bare(s[to:], name)
}

var scheme = regexp.MustCompile(`^(?i:bearer|basic|digest|token|negotiate) +`)

// bare returns the length of a value without quotes.
func bare(s, name string) int {
	stop := " \t\r\n,;&\"'<>()[]{}|"
	if strings.HasSuffix(strings.ToLower(name), "cookie") {
		stop = "\r\n\"'"
	}
	if i := strings.IndexAny(s, stop); i >= 0 {
		return i
	}
	return len(s)
}

// closing returns where the text that begins at s[i] ends: at a quote behind as
// many backslashes as there were before the first.
func closing(s string, i, slashes int, quote byte) int {
	run := 0
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			run++
			continue
		case s[i] == quote && (slashes == 0 && run%2 == 0 || slashes > 0 && run == slashes):
			return i - run*min(slashes, 1)
		}
		run = 0
	}
	return len(s)
}

// balanced returns the end of the object or array that begins at s[i].
func balanced(s string, i int) int {
	depth, text := 0, false
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && text:
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

package redact

import (
	"strings"
)

// pairName matches a name in free text with the separator before its value.
var pairName = express(`^([A-Za-z][A-Za-z0-9_.\-]{1,63})(\\*["']?)[ \t]{0,4}(=>|:=|==|[:=]|：)[ \t]{0,4}`)

// dialled matches a phone number behind the name of one.
var dialled = express(`^["']?(?:00|\+)?\(?\d[\d ().\-/]{5,20}\d`)

// pairs redacts the values of sensitive names in free text, as password=x, api-key: x,
// "token":"x", also in JSON within a string. The name of personal data counts only if
// it is quoted, as in JSON; otherwise the text is more often prose than data.
func (f *finder) pairs(s string) string {
	out := f.patch(s)
	for at := 0; at < len(s); {
		start, ok := nextPair(s, at)
		if !ok {
			break
		}
		at = start
		m := pairName().FindStringSubmatchIndex(s[at:])
		if m == nil {
			break
		}
		name, quoted, sep := s[at+m[2]:at+m[3]], m[4] < m[5], s[at+m[6]:at+m[7]]
		at += m[1]
		l := f.level(name)
		if quoted {
			at += len(s[at:]) - len(strings.TrimLeft(s[at:], " \t\r\n"))
		}
		if n := len(dialled().FindString(s[at:])); n > 0 && f.on[kindPhone] && !quoted && called(name) && number(7, 15)(s, at, at+n) {
			if isQuote(s[at]) {
				at, n = at+1, n-1
			}
			out.put(at, at+n, kindPhone)
			at += n
			continue
		}
		if l == plain || l < token && !quoted || f.marked(s[at:]) > 0 {
			continue
		}
		from, to := f.valueAt(s, at, name)
		if from, to := f.indented(s, at); sep == ":" && l == secret && from < to {
			out.named(from, to, l)
			at = to
			continue
		}
		value := s[from:to]
		if value == "" || f.marked(value) == len(value) || l == place && !postal(value) {
			continue
		}
		if l == token && !tokenLike(value, from > at || sep == "=") || quoted && telling(value) {
			continue
		}
		out.named(from, to, l)
		at = to
	}
	return out.text()
}

// nextPair returns the place at or behind s[at] where [pairName] matches next. It looks
// for the separator and goes back to the name, which is much faster than the pattern.
func nextPair(s string, at int) (start int, ok bool) {
	const longest = 64 // bytes of a name
	for i := at; i < len(s); i++ {
		if s[i] != ':' && s[i] != '=' && !strings.HasPrefix(s[i:], "：") {
			continue
		}
		end := i
		for end > at && i-end < 4 && (s[end-1] == ' ' || s[end-1] == '\t') {
			end--
		}
		if end > at && isQuote(s[end-1]) {
			end--
		}
		for end > at && s[end-1] == '\\' {
			end--
		}
		found := end
		for k := end - 1; k >= at && end-k <= longest && (isWord(s[k]) || s[k] == '.' || s[k] == '-'); k-- {
			if isUpper(s[k]) || isLower(s[k]) {
				found = k
			}
		}
		if end-found > 1 {
			return found, true
		}
	}
	return 0, false
}

// marked returns the length of the mark that s begins with, 0 if none. A mark in a key of
// an object may have a number: [EMAIL-2].
func (r *rules) marked(s string) int {
	_, long := r.markAt(s)
	return long
}

// markAt returns the length of the mark that s begins with, and of its part before the
// number or the closing bracket.
func (r *rules) markAt(s string) (word, long int) {
	if s == "" || s[0] != '[' {
		return 0, 0
	}
	for _, mark := range r.marks {
		word := len(mark) - 1
		if !strings.HasPrefix(s, mark[:word]) {
			continue
		}
		end := word
		if end < len(s) && s[end] == '-' {
			end++
			for end < len(s) && isDigit(s[end]) {
				end++
			}
		}
		if end < len(s) && s[end] == ']' && end-word != 1 {
			return word, end + 1
		}
	}
	return 0, 0
}

// tokenLike reports whether a value named as a token is one, and not a word of prose
// about tokens.
func tokenLike(value string, strict bool) bool {
	if strings.Trim(value, "0123456789.,") == "" {
		return false // a count of tokens
	}
	return len(value) >= 6 && (strict || len(value) >= 16 || strings.ContainsAny(value, "0123456789"))
}

// telling reports whether a JSON value reveals only that a value is present.
func telling(value string) bool { return value == "true" || value == "false" || value == "null" }

// postal reports whether an address can be a person's: network addresses and file paths
// have no spaces. A bracket belongs to one of those, or to a mark of an earlier
// redaction.
func postal(address string) bool {
	return strings.ContainsAny(address, " \t\n") || !strings.ContainsAny(address, ":./@#[0123456789")
}

// valueAt returns the range of the value that begins at s[i], without its quotes. An
// unclosed value extends to the end.
func (f *finder) valueAt(s string, i int, name string) (from, to int) {
	slashes := 0
	for i+slashes < len(s) && s[i+slashes] == '\\' {
		slashes++
	}
	if slashes == 0 && (strings.HasPrefix(s[i:], `"""`) || strings.HasPrefix(s[i:], "'''")) {
		if n := strings.Index(s[i+3:], s[i:i+3]); n >= 0 {
			return i + 3, i + 3 + n
		}
		return i + 3, len(s)
	}
	if q := i + slashes; q < len(s) && (s[q] == '"' || s[q] == '\'') {
		return q + 1, closing(s, q+1, slashes, s[q])
	}
	if i < len(s) && (s[i] == '{' || s[i] == '[') {
		return i, balanced(s, i)
	}
	i += len(property().FindString(s[i:]))
	if parameters().MatchString(s[i:]) && strings.HasSuffix(strings.ToLower(name), "authorization") {
		if n := strings.IndexAny(s[i:], "\r\n'"); n >= 0 {
			return i, i + n
		}
		return i, len(s)
	}
	to = i + len(scheme().FindString(s[i:]))
	if n := f.marked(s[to:]); n > 0 {
		return i, to + n
	}
	return i, to + bare(s[to:], name)
}

var scheme = express(`^(?i:bearer|basic|digest|token|negotiate) +`)

// property matches an anchor or a tag of YAML before a value.
var property = express(`^(?:(?:![!A-Za-z]*|&[A-Za-z0-9_\-]+)[ \t]{1,4}){1,2}`)

// isQuote reports whether c is a quote.
func isQuote(c byte) bool { return c == '"' || c == '\'' }

// header matches the end of a YAML line whose value is on the following lines.
var header = express(`^(?:[|>][+\-0-9]{0,3})?[ \t]{0,4}\r?\n`)

// indented returns the lines behind s[i] that are the YAML value of the name before
// them: the lines that begin with more spaces, or with a dash.
func (f *finder) indented(s string, i int) (from, to int) {
	n := len(header().FindString(s[i:]))
	if n == 0 {
		return i, i
	}
	line := s[strings.LastIndexByte(s[:i], '\n')+1 : i]
	indent := len(line) - len(strings.TrimLeft(line, " -"))
	from, to = i+n, i+n
	for to < len(s) {
		next := s[to:]
		if end := strings.IndexByte(next, '\n'); end >= 0 {
			next = next[:end]
		}
		text := strings.TrimLeft(next, " ")
		spaces := len(next) - len(text)
		if strings.TrimSpace(text) != "" && spaces <= indent && !(spaces == indent && strings.HasPrefix(text, "- ")) {
			break
		}
		if to == from {
			if text == "" || text[0] == '[' && f.marked(text) > 0 {
				return i, i
			}
			from += spaces
		}
		to = min(to+len(next)+1, len(s))
	}
	return from, max(from, from+len(strings.TrimRight(s[from:max(from, to)], " \r\n")))
}

// bare returns the length of an unquoted value.
func bare(s, name string) int {
	stop := " \t\r\n,;&\"'<>()[]{}|"
	if strings.HasSuffix(strings.ToLower(name), "cookie") {
		stop = "\r\n\"'"
	}
	if last := strings.ToLower(name); strings.HasSuffix(last, "passphrase") || strings.HasSuffix(last, "mnemonic") {
		stop = "\r\n\"',;{}[]()" // some words
	}
	if i := strings.IndexAny(s, stop); i >= 0 {
		return i
	}
	return len(s)
}

// parameters matches the beginning of credentials in the form of names and values.
var parameters = express(`^(?i:digest|oauth|hawk|mac|signature|aws4-[a-z0-9\-]+) `)

// closing returns the end of the quoted text that begins at s[i]: a quote behind as
// many backslashes as the opening quote has.
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

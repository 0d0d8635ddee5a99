package redact

import (
	"regexp"
	"strings"
)

// rules are options, made ready; immutable.
type rules struct {
	options Options
	fields  map[string]bool // names, as words joined by "_"
	keep    map[string]bool // likewise
	maxText int
}

func newRules(o Options) *rules {
	r := &rules{options: o, fields: map[string]bool{}, keep: map[string]bool{}, maxText: max(o.MaxText, 64)}
	if o.MaxText == 0 {
		r.maxText = 16 << 10
	}
	for _, name := range o.Fields {
		r.fields[strings.Join(split(name), "_")] = true
	}
	for _, name := range o.Keep {
		r.keep[strings.Join(split(name), "_")] = true
	}
	return r
}

// Text returns a text redacted by the options.
func Text(s string, o Options) string { return newRules(o).text(s, false) }

// maxPasses bounds how often a text is searched until nothing more is found. One
// pass finds all but in contrived texts, where a mark makes room for a look
// that was none before.
const maxPasses = 8

// text redacts s; id says that it is an identifier. What it returns is what it
// would be redacted to itself: that is what it waits for.
func (r *rules) text(s string, id bool) string {
	for range maxPasses {
		next := r.pass(r.cut(s), id)
		if next == s {
			return s
		}
		s = next
	}
	return Mark
}

// cut shortens a text that is too long, at the end of a word, so that no half
// of a secret remains that nobody recognises.
func (r *rules) cut(s string) string {
	if len(s) <= r.maxText {
		return s
	}
	s = s[:r.maxText-len(Cut)]
	return s[:strings.LastIndexAny(s, " \t\r\n")+1] + Cut
}

// look is how something is recognised.
type look struct {
	mark string
	re   *regexp.Regexp
	// is judges a match s[i:j]; nil agrees.
	is func(s string, i, j int) bool
}

// replace puts a look's mark in the place of its first group, or of all of it.
func (l *look) replace(s string) string {
	var b strings.Builder
	done := 0
	for _, m := range l.re.FindAllStringSubmatchIndex(s, -1) {
		i, j := m[0], m[1]
		if len(m) > 2 {
			i, j = m[2], m[3]
		}
		if l.is != nil && !l.is(s, i, j) {
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString(l.mark)
		done = j
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// signs are what a text has, found in one go, to know which looks are worth a
// search.
type signs struct {
	at, colon, equals, percent bool
	digits                     int
	longest                    int // run without white space
}

func survey(s string) signs {
	var g signs
	run := 0
	for i := range len(s) {
		c := s[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			run = 0
			continue
		}
		run++
		g.longest = max(g.longest, run)
		switch {
		case c == '@':
			g.at = true
		case c == ':':
			g.colon = true
		case c == '=':
			g.equals = true
		case c == '%':
			g.percent = true
		case '0' <= c && c <= '9':
			g.digits++
		}
	}
	return g
}

// pass searches a text once.
func (r *rules) pass(s string, id bool) string {
	g := survey(s)
	if g.longest >= 10 && strings.Contains(s, "-----BEGIN ") {
		s = privateKey.replace(s)
	}
	if g.at && g.colon {
		s = userInfo.replace(s)
	}
	if g.colon || g.equals {
		s = r.pairs(s)
	}
	if g.longest >= 8 {
		s = bearer.replace(s)
	}
	if g.longest >= 14 {
		s = shapes.replace(s)
	}
	if g.at || g.percent {
		s = email.replace(s)
	}
	if g.longest >= minOpaque && !id {
		s = opaque(s)
	}
	if g.digits >= 5 && !id {
		for i := range phones {
			s = phones[i].replace(s)
		}
	}
	if g.digits >= 1 && len(s) >= 8 && !id {
		for i := range addresses {
			s = addresses[i].replace(s)
		}
	}
	return s
}

var email = look{
	mark: Email,
	re: regexp.MustCompile(`[\pL\pN_%+](?:[\pL\pN._%+'\-]*[\pL\pN_%+\-])?(?:@|%40)` +
		`(?:[\pL\pN](?:[\pL\pN\-]*[\pL\pN])?\.)+(?:\pL{2,}|xn--[a-z0-9\-]+)`),
	is: func(s string, i, j int) bool {
		local, domain, ok := strings.Cut(s[i:j], "@")
		// A module and its version, or the user of every git server, is nobody.
		return !ok || local != "git" && (domain[0] != 'v' || domain[1] < '0' || domain[1] > '9')
	},
}

// userInfo is the password in a URL, and who it is of.
var userInfo = look{
	mark: Mark,
	re:   regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.\-]*://([^\s/@:?#\[\]]*:[^\s/@?#\[\]]+)@`),
}

// phones are looks of phone numbers. Bare digits are none, unless a word before
// says so: they may number anything.
var phones = []look{
	{Phone, regexp.MustCompile(`\+\d{1,3}(?:[ .\-/]?\(?\d{1,5}\)?){2,6}`), number(8, 15)},
	{Phone, regexp.MustCompile(`\(\d{2,5}\) ?\d{3,4}[ .\-]?\d{3,8}`), number(8, 15)},
	{Phone, regexp.MustCompile(`[2-9]\d{2}[.\-][2-9]\d{2}[.\-]\d{4}`), number(10, 10)},
	{Phone, regexp.MustCompile(`0[1-9]\d{0,4}[ /\-]\d{2,8}(?:[ \-]?\d{2,4}){0,4}`), number(9, 13)},
	{Phone, regexp.MustCompile(`(?i)\b(?:tel|telephone|phone|mobile|cell|fax|telefon|t[eé]l[eé]phone)(?: (?:no|nr|number)\b)?[.:]? {0,2}` +
		`(?:is |= ?)?([+(]?\d[\d ().\-/]{4,20}\d)`), number(7, 15)},
}

// number returns a judge of phone numbers by how many digits they have. They
// stand alone: not in a word, a date, a UUID or a longer number.
func number(least, most int) func(s string, i, j int) bool {
	return func(s string, i, j int) bool {
		digits := 0
		for k := i; k < j; k++ {
			if isDigit(s[k]) {
				digits++
			}
		}
		if digits < least || digits > most {
			return false
		}
		if i > 0 {
			if before := s[i-1]; isWord(before) || before == '-' || i > 1 && strings.IndexByte(".,:/+", before) >= 0 && isWord(s[i-2]) && isDigit(s[i-2]) {
				return false
			}
		}
		if j < len(s) {
			if after := s[j]; isWord(after) || after == '-' || j+1 < len(s) && strings.IndexByte(".,:/", after) >= 0 && isDigit(s[j+1]) {
				return false
			}
		}
		return true
	}
}

// addresses are looks of postal addresses: of streets with numbers.
var addresses = []look{
	{mark: Address, re: regexp.MustCompile(`\b\d{1,5}[A-Za-z]?(?: (?:N|S|E|W|NE|NW|SE|SW)\.?)?(?: \p{Lu}[\pL'.\-]*){1,4} ` +
		`(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Square|Terrace|Highway|Hwy|Parkway|Pkwy|Place|Way)\b\.?` +
		`(?:,? (?:Apt|Suite|Unit)\.? \w{1,6})?(?:, \p{Lu}[\pL .'\-]{1,30}(?:,? [A-Z]{2})?,? \d{5}(?:-\d{4})?)?`)},
	{mark: Address, re: regexp.MustCompile(`\p{Lu}(?:[\pL\-]*(?:straße|strasse|str\.|weg|platz|allee|gasse)|\pL* (?:Straße|Strasse|Str\.|Weg|Platz|Allee|Gasse))` +
		` \d{1,4} ?[a-z]?\b(?:,? \d{4,5} \p{Lu}[\pL\-]+)?`)},
	{mark: Address, re: regexp.MustCompile(`\b\d{1,4}(?: ?(?:bis|ter))?,? (?i:rue|avenue|boulevard|chemin|impasse|quai|allée) ` +
		`(?:de la |de l'|de |des |du |d')?\p{Lu}[\pL'\-]*(?: \p{Lu}[\pL'\-]*){0,3}(?:,? \d{5} \p{Lu}[\pL\-]+)?`)},
	{mark: Address, re: regexp.MustCompile(`\b(?i:P\.? ?O\.? Box) \d{1,6}\b`)},
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isWord(c byte) bool  { return isDigit(c) || isUpper(c) || isLower(c) || c == '_' }

package redact

import (
	"strconv"
	"strings"
)

// rules are prepared options; immutable.
type rules struct {
	options  Options
	fields   map[string]bool // names, as words joined by "_"
	keep     map[string]bool // names, as words joined by "_"
	maxText  int
	on       [kinds]bool   // the kinds that are searched for
	mark     [kinds]string // what replaces a match of the kind
	marks    []string      // every mark that a text may have
	patterns []pattern
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
	for k := range kinds {
		r.on[k], r.mark[k] = true, table[k].Mark
	}
	r.marks = marks
	return r
}

// finder searches texts by rules and counts what it replaces.
type finder struct {
	*rules
	counts [kinds]int
	owned  []int // the counts of the rules' patterns
}

// Text returns text redacted with the options.
func Text(s string, o Options) string { return (&finder{rules: newRules(o)}).text(s, false) }

// maxPasses bounds the passes over a text. One pass finds everything, except in
// contrived texts in which a mark creates a new match.
const maxPasses = 8

// text redacts s; id says that it is an identifier. It repeats passes until the result
// no longer changes, so that redaction is idempotent.
func (f *finder) text(s string, id bool) string {
	for range maxPasses {
		next := f.pass(f.cut(s), id)
		if next == s {
			return s
		}
		s = next
	}
	return Mark
}

// cut shortens a text that is too long at the end of a word, so that no unrecognizable
// part of a secret remains.
func (r *rules) cut(s string) string {
	if len(s) <= r.maxText {
		return s
	}
	s = s[:r.maxText-len(Cut)]
	return s[:strings.LastIndexAny(s, " \t\r\n")+1] + Cut
}

// look is a pattern of sensitive text.
type look struct {
	kind kind
	re   expression
	// Every text with a match contains one of the words; nil requires none. The words of
	// the looks that are searched line by line are in lower case and match any case.
	words []string
	// is reports whether a match s[i:j] is accepted; nil accepts every match.
	is func(s string, i, j int) bool
}

// replace replaces the first group of each match, or the whole match, by the mark of
// the look's kind.
func (f *finder) replace(l *look, s string) string {
	if !f.on[l.kind] {
		return s
	}
	out := f.patch(s)
	for _, m := range l.re().FindAllStringSubmatchIndex(s, -1) {
		i, j := m[0], m[1]
		if len(m) > 2 {
			i, j = m[2], m[3]
		}
		if l.is != nil && !l.is(s, i, j) {
			continue
		}
		out.put(i, j, l.kind)
	}
	return out.text()
}

// patched is a text in which parts are replaced in order.
type patched struct {
	f    *finder
	s    string
	b    strings.Builder
	done int // s[:done] is in b
}

func (f *finder) patch(s string) patched { return patched{f: f, s: s} }

// put replaces s[from:to] by the mark of a kind.
func (p *patched) put(from, to int, k kind) {
	if p.f.on[k] {
		p.f.counts[k]++
		p.write(from, to, p.f.mark[k])
	}
}

// named replaces the value of a name of level l.
func (p *patched) named(from, to int, l level) {
	if l >= token {
		p.put(from, to, kindSecret)
	} else {
		p.put(from, to, kindPersonal)
	}
}

func (p *patched) write(from, to int, mark string) {
	p.b.WriteString(p.s[p.done:from])
	p.b.WriteString(mark)
	p.done = to
}

// text returns the text with its replacements.
func (p *patched) text() string {
	if p.done == 0 {
		return p.s
	}
	p.b.WriteString(p.s[p.done:])
	return p.b.String()
}

// signs are the characters and runs of a text, collected in one scan. They decide which
// looks are searched.
type signs struct {
	at, colon, equals, percent bool
	tag, flag                  bool // the beginning of an element, and of a flag
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
		case c == '<' && i+1 < len(s) && s[i+1] != ' ', c == '&' && strings.HasPrefix(s[i:], "&lt;"):
			g.tag = true
		case c == '-' && (i == 0 || strings.IndexByte(" \t\r\n\v\f\"'-", s[i-1]) >= 0):
			g.flag = true
		case '0' <= c && c <= '9':
			g.digits++
		}
	}
	return g
}

// pass searches a text once verbatim and once unescaped. If the second search finds
// more, pass returns its result, without the escapes.
func (f *finder) pass(s string, id bool) string {
	for i := range f.patterns {
		s = f.own(i, s)
	}
	s = f.search(s, id)
	for _, c := range escapes {
		if !strings.Contains(s, c.sign) {
			continue
		}
		if plain := c.re().ReplaceAllStringFunc(s, c.plain); plain != s {
			if found := f.search(plain, id); found != plain {
				s = found
			}
		}
	}
	return s
}

// own replaces the matches of one of the author's patterns. Marks are never parts of what
// is matched: a match inside of marks is none, and one that cuts a mark takes all of it.
func (f *finder) own(i int, s string) string {
	p := &f.patterns[i]
	matches := p.re.FindAllStringSubmatchIndex(s, -1)
	if matches == nil {
		return s
	}
	out := f.patch(s)
	var held [][2]int // the marks of s
	for k := 0; k < len(s); k++ {
		if n := f.marked(s[k:]); n > 0 {
			held = append(held, [2]int{k, k + n})
			k += n - 1
		}
	}
	for _, m := range matches {
		from, to := m[0], m[1]
		if len(m) > 2 {
			from, to = m[2], m[3]
		}
		if from = max(from, out.done); from >= to {
			continue // empty, or in what was replaced already
		}
		within := 0
		for len(held) > 0 && held[0][1] <= from {
			held = held[1:]
		}
		for _, h := range held {
			if h[0] >= to {
				break
			}
			within += min(h[1], to) - max(h[0], from)
		}
		if within == to-from {
			continue
		}
		for _, h := range held {
			if h[0] >= to {
				break
			}
			from, to = min(from, h[0]), max(to, h[1])
		}
		f.owned[i]++
		out.write(from, to, p.mark)
	}
	return out.text()
}

// escapes match escaped characters of JSON, URLs, HTML and XML.
var escapes = []struct {
	sign  string
	re    expression
	plain func(string) string
}{
	{`\`, express(`\\+(?:u00[0-9a-fA-F]{2}|/)`), func(s string) string {
		if strings.HasSuffix(s, "/") {
			return "/"
		}
		return unescape(s, s[len(s)-2:])
	}},
	{"%", express(`%(?:25)?(?:[Cc]2%(?:25)?[Aa]0|[0-9a-fA-F]{2})`), func(s string) string { return unescape(s, s[len(s)-2:]) }},
	{"&", express(`&(?:nbsp|amp|quot|apos|#0{0,4}\d{2,3}|#[xX]0{0,4}[0-9a-fA-F]{2});`), func(s string) string {
		switch name := s[1 : len(s)-1]; name {
		case "nbsp":
			return " "
		case "amp":
			return "&"
		case "quot", "apos":
			return "'"
		default:
			if digits := strings.TrimLeft(name, "#0"); name[1]|0x20 != 'x' {
				n, _ := strconv.Atoi(digits)
				return unescape(s, strconv.FormatInt(int64(n), 16))
			}
			return unescape(s, name[len(name)-2:])
		}
	}},
}

// unescape returns the character of a hexadecimal code, or else the escape unchanged.
// Quotes become ' and white space becomes a plain space, so that the structure of the
// surrounding text does not change; unescape never produces a control character.
func unescape(written, code string) string {
	n, err := strconv.ParseUint(code, 16, 8)
	switch {
	case err != nil || n < ' ' || n == '\\' || n >= 0x7f && n != 0xa0:
		return written
	case n == '"':
		return "'"
	case n == 0xa0:
		return " "
	}
	return string(rune(n))
}

// search searches a text verbatim: first for what may extend over several lines, then
// line by line.
func (f *finder) search(s string, id bool) string {
	g := survey(s)
	if g.longest >= 7 && strings.Contains(s, "PRIVATE") {
		s = f.replace(&privateKey, s)
	}
	if g.at && g.colon {
		s = f.replace(&userInfo, s)
		if strings.Contains(s, "://") {
			s = f.replace(&oddUserInfo, s)
		}
	}
	if g.colon || g.equals {
		s = f.members(s)
		s = f.pairs(s)
		if strings.ContainsAny(s, "?&") {
			s = f.replace(&signed, s)
		}
		if strings.Contains(s, "auth") {
			s = f.replace(&joinedAuth, s)
		}
	}
	if g.tag && len(s) >= 8 {
		if !g.colon && !g.equals {
			s = f.members(s)
		}
		s = f.elements(s)
		s = f.nested(s)
	}
	if g.flag && len(s) >= 8 {
		for i := range commands {
			if hasAny(s, commands[i].words) {
				s = f.replace(&commands[i], s)
			}
		}
		s = f.flags(s)
	}
	if strings.Contains(s, "login ") {
		s = f.replace(&netrc, s)
	}
	return f.lines(s, id)
}

// lines searches each line of a text for the looks that never extend over a line end.
// Most lines of a long text lack the signs of most looks, and are not searched for these.
func (f *finder) lines(s string, id bool) string {
	var b strings.Builder
	done := 0 // s[:done] is in b
	for from := 0; from < len(s); {
		to := len(s)
		if n := strings.IndexByte(s[from:], '\n'); n >= 0 {
			to = from + n + 1
		}
		if line := f.line(s[from:to], id); line != s[from:to] {
			b.WriteString(s[done:from])
			b.WriteString(line)
			done = to
		}
		from = to
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// line searches one line, or a text without line ends.
func (f *finder) line(s string, id bool) string {
	g := survey(s)
	if g.percent && g.digits >= minCard {
		s = f.replace(&track, s)
	}
	if g.longest >= 6 && hasAnyFold(s, bearer.words) {
		s = f.replace(&bearer, s)
	}
	if g.longest >= 14 && (hasAny(s, shapes.words) || g.longest >= 45) {
		s = f.replace(&shapes, s)
	}
	if g.at || g.percent {
		s = f.replace(&email, s)
	}
	if g.longest >= minOpaque && !id {
		s = f.opaque(s)
	}
	if g.digits >= minCard-1 && !id {
		s = f.numbers(s, kindIBAN, iban)
		s = f.numbers(s, kindCard, card)
	}
	if g.digits >= 5 && !id {
		for i := range phones {
			if hasAnyFold(s, phones[i].words) {
				s = f.replace(&phones[i], s)
			}
		}
	}
	if g.digits >= 1 && len(s) >= 8 && !id {
		for i := range addresses {
			if hasAnyFold(s, addresses[i].words) {
				s = f.replace(&addresses[i], s)
			}
		}
	}
	return s
}

var email = look{
	kind: kindEmail,
	re: express(`[\pL\pN_%+](?:[\pL\pN._%+'\-]*[\pL\pN_%+\-])?(?:@|%40)` +
		`(?:[\pL\pN](?:[\pL\pN\-]*[\pL\pN])?\.)+(?:\pL{2,}|xn--[a-z0-9\-]+)`),
	is: func(s string, i, j int) bool {
		local, domain, ok := strings.Cut(s[i:j], "@")
		// A module with its version, the user of git servers, and an image for
		// high-density screens, a@2x.png, are not mail addresses.
		return !ok || local != "git" && (domain[0] != 'v' || domain[1] < '0' || domain[1] > '9') && (!isDigit(domain[0]) || domain[1:3] != "x.")
	},
}

// userInfo matches the user and password of a URL.
var userInfo = look{
	kind: kindURL,
	re:   express(`[A-Za-z][A-Za-z0-9+.\-]*://([^\s/@:?#\[\]]*:[^\s/?#\[\]]+)@`),
}

// oddUserInfo matches a password with characters that end it elsewhere. A port may
// follow a host too, so a match must have more than digits.
var oddUserInfo = look{
	kind: kindURL,
	re:   express(`[A-Za-z][A-Za-z0-9+.\-]*://([^\s/@:?#\[\]]*:[^\s/@?#\[\]"'<>]*[^\s/@?#\[\]"'<>\d][^\s/@?#\[\]"'<>]*[/?#][^\s@\[\]"'<>]*)@`),
}

// signed matches the signature of a URL, which grants access like a password.
var signed = look{
	kind: kindURL,
	re:   express(`[?&](?i:x-(?:amz|goog)-(?:signature|security-token)|sig|signature)=([^\s&#"'<>\[\]]{8,})`),
}

// joinedAuth matches a user and password in base64, in files of package managers.
var joinedAuth = look{
	kind: kindSecret,
	re:   express(`(?:_auth[ \t]{0,4}=[ \t]{0,4}"?|"auth"[ \t]{0,4}:[ \t]{0,4}")([A-Za-z0-9+/]{6,}={0,2})`),
	is:   func(s string, i, j int) bool { return strings.ContainsAny(s[i:j], "0123456789=") },
}

// netrc matches the password in a .netrc file.
var netrc = look{kind: kindSecret, re: express(`\blogin\s+\S+\s+password\s+([^\s\[]\S*)`)}

// track matches the first track of a card's magnetic stripe.
var track = look{kind: kindCard, re: express(`%B(\d{13,19}\^[^?\r\n]*)`)}

// phones are the looks of phone numbers. Bare digits match only behind a word such as
// tel: they may be any number.
var phones = []look{
	{kind: kindPhone, words: []string{"+", "＋"}, re: express(`(?:\+|＋) ?\(?\d{1,3}\)?(?:(?:[ .\-/]|[\x{a0}\x{2009}\x{202f}\x{2010}-\x{2013}])?\(?\d{1,5}\)?){2,6}`), is: number(8, 15)},
	{kind: kindPhone, words: []string{"00"}, re: express(`00[1-9]\d{0,2}[ .\-/]\(?\d{1,5}\)?(?:[ .\-/]?\(?\d{1,5}\)?){1,6}`), is: number(10, 17)},
	{kind: kindPhone, words: []string{"("}, re: express(`\(\d{2,5}\) ?\d{3,4}[ .\-]?\d{3,8}`), is: number(8, 15)},
	{kind: kindPhone, re: express(`(?:1[.\-])?[2-9]\d{2}[.\-][2-9]\d{2}[.\-]\d{4}`), is: number(10, 11)},
	{kind: kindPhone, words: []string{"."}, re: express(`0[1-9](?:\.\d{2}){4}`), is: number(10, 10)},
	{kind: kindPhone, words: []string{"0"}, re: express(`0[1-9]\d{0,4}[ /\-]\d{2,8}(?:[ \-]?\d{2,4}){0,4}`), is: number(9, 13)},
	{kind: kindPhone, words: []string{"tel", "phone", "mobile", "cell", "fax", "tél", "tÉl"}, re: express(`(?i)\b(?:tel|telephone|phone|mobile|cell|fax|telefon|t[eé]l[eé]phone)(?: (?:no|nr|number)\b)?[.:]? {0,2}` +
		`(?:is |= ?)?([+(]?\d[\d ().\-/]{4,20}\d)`), is: number(7, 15)},
}

// number returns a function that accepts phone numbers by their number of digits. They
// must stand alone: not in a word, a date, a UUID or a longer number.
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

// addresses are the looks of postal addresses: streets with numbers.
var addresses = []look{
	{kind: kindAddress, words: []string{"st", "ave", "road", "rd", "boulevard", "blvd", "lane", "ln", "dr", "court", "ct", "square", "terrace", "highway", "hwy", "parkway", "pkwy", "place", "way"}, re: express(`\b\d{1,5}[A-Za-z]?(?: (?:N|S|E|W|NE|NW|SE|SW)\.?)?(?: \p{Lu}[\pL'.\-]*){1,4} ` +
		`(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Square|Terrace|Highway|Hwy|Parkway|Pkwy|Place|Way)\b\.?` +
		`(?:,? (?:Apt|Suite|Unit)\.? \w{1,6})?(?:, \p{Lu}[\pL .'\-]{1,30}(?:,? [A-Z]{2})?,? \d{5}(?:-\d{4})?)?`)},
	{kind: kindAddress, words: []string{"stra", "str.", "weg", "platz", "allee", "gasse"}, re: express(`\p{Lu}(?:[\pL\-]*(?:straße|strasse|str\.|weg|platz|allee|gasse)|\pL* (?:Straße|Strasse|Str\.|Weg|Platz|Allee|Gasse))` +
		` \d{1,4} ?[a-z]?\b(?:,? \d{4,5} \p{Lu}[\pL\-]+)?`)},
	{kind: kindAddress, words: []string{"rue ", "avenue ", "boulevard ", "chemin ", "impasse ", "quai ", "allée ", "allÉe "}, re: express(`\b\d{1,4}(?: ?(?:bis|ter))?,? (?i:rue|avenue|boulevard|chemin|impasse|quai|allée) ` +
		`(?:de la |de l'|de |des |du |d')?\p{Lu}[\pL'\-]*(?: \p{Lu}[\pL'\-]*){0,3}(?:,? \d{5} \p{Lu}[\pL\-]+)?`)},
	{kind: kindAddress, words: []string{"box "}, re: express(`\b(?i:P\.? ?O\.? Box) \d{1,6}\b`)},
}

// hasAny reports whether s has any of the words.
func hasAny(s string, words []string) bool {
	for _, word := range words {
		if strings.Contains(s, word) {
			return true
		}
	}
	return false
}

// hasAnyFold reports whether s has any of the words, which are in lower case, in any
// case of ASCII letters. It returns true if there are no words.
func hasAnyFold(s string, words []string) bool {
	if words == nil {
		return true
	}
	for _, word := range words {
		for i := 0; i+len(word) <= len(s); i++ {
			n := 0
			for n < len(word) && (s[i+n] == word[n] || isUpper(s[i+n]) && s[i+n]|0x20 == word[n]) {
				n++
			}
			if n == len(word) {
				return true
			}
		}
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isWord(c byte) bool  { return isDigit(c) || isUpper(c) || isLower(c) || c == '_' }

package redact

import (
	"strings"
	"unicode/utf8"
)

// separator returns the width of the separator between groups of digits at the
// beginning of s, 0 if there is none.
func separator(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case ' ', '-', '.', '+', '_', '/': // + is a space in forms
		return 1
	}
	switch r, size := utf8.DecodeRuneInString(s); r {
	case '\u00a0', '\u2007', '\u2009', '\u202f', '\u2010', '\u2011', '\u2012', '\u2013': // spaces and hyphens of typesetters
		return size
	}
	return 0
}

// stands reports whether s[i:j] stands alone: not in a word, nor joined to one by a
// separator.
func stands(s string, i, j int) bool {
	joins := func(c byte) bool { return c == '-' || c == '.' || c == ',' || c == ':' || c == '+' }
	if i > 0 && (isWord(s[i-1]) || s[i-1] >= utf8.RuneSelf || i > 1 && joins(s[i-1]) && isWord(s[i-2]) && (isDigit(s[i-2]) || s[i-1] == '-')) {
		return false
	}
	return j == len(s) || !isWord(s[j]) && (j+1 == len(s) || !joins(s[j]) || !isWord(s[j+1]) || s[j] != '-' && !isDigit(s[j+1]))
}

// numbers replaces the numbers that a function finds. The function is called wherever a
// word begins, and returns the length of the number there, or 0.
func (f *finder) numbers(s string, k kind, at func(s string, i int) int) string {
	if !f.on[k] {
		return s
	}
	out := f.patch(s)
	for i := 0; i < len(s); i++ {
		if !isWord(s[i]) || i > 0 && isWord(s[i-1]) {
			continue
		}
		n := at(s, i)
		if n == 0 || !stands(s, i, i+n) {
			continue
		}
		out.put(i, i+n, k)
		i += n - 1
	}
	return out.text()
}

// The bounds of the number of digits of a card.
const (
	minCard = 13
	maxCard = 19
)

// card returns the length of the number of a payment card at s[i:]: an issuer's prefix
// and number of digits, with the right check digit, in one group or several.
func card(s string, i int) int {
	if (s[i] < '2' || s[i] > '6') && s[i] != '9' {
		return 0
	}
	var digits [maxCard]byte
	n, group, groups := 0, 0, 0
	best := 0
	for j := i; j < len(s) && n < maxCard; {
		if isDigit(s[j]) {
			digits[n] = s[j] - '0'
			n++
			group++
			j++
			if end := j == len(s) || !isDigit(s[j]); end && n >= minCard && (groups == 0 || group >= 1) && issued(digits[:n]) && luhn(digits[:n]) {
				best = j - i
			}
			continue
		}
		w := separator(s[j:])
		if w == 0 || j+w >= len(s) || !isDigit(s[j+w]) || groups == 0 && group != 4 || groups > 0 && (group < 3 || group > 7) {
			break
		}
		groups++
		group = 0
		j += w
	}
	return best
}

// issuers are the prefixes of card numbers and their numbers of digits.
var issuers = []struct{ from, to, digits, least, most int }{
	{4, 4, 1, 13, 19}, {51, 55, 2, 16, 16}, {2221, 2720, 4, 16, 16}, // Visa, Mastercard
	{34, 34, 2, 15, 15}, {37, 37, 2, 15, 15}, // American Express
	{6011, 6011, 4, 16, 19}, {644, 649, 3, 16, 19}, {65, 65, 2, 16, 19}, // Discover
	{300, 305, 3, 14, 19}, {309, 309, 3, 14, 19}, {36, 36, 2, 14, 19}, {38, 39, 2, 14, 19}, // Diners Club
	{3528, 3589, 4, 16, 19}, {62, 62, 2, 16, 19}, {2200, 2204, 4, 16, 19}, // JCB, UnionPay, Mir
	{5018, 5020, 4, 13, 19}, {5038, 5038, 4, 13, 19}, {5893, 5893, 4, 13, 19}, {6304, 6304, 4, 13, 19}, {6759, 6763, 4, 13, 19}, // Maestro
	{508, 508, 3, 16, 16}, {6069, 6085, 4, 16, 16}, // RuPay
	{504175, 504175, 6, 16, 16}, {5060, 5061, 4, 16, 19}, {5066, 5067, 4, 16, 16}, {636297, 636297, 6, 16, 16}, {636368, 636369, 6, 16, 16}, // Verve, Elo
	{9792, 9792, 4, 16, 16}, // Troy
}

func issued(digits []byte) bool {
	for _, is := range issuers {
		prefix := 0
		for _, d := range digits[:is.digits] {
			prefix = 10*prefix + int(d)
		}
		if is.from <= prefix && prefix <= is.to && is.least <= len(digits) && len(digits) <= is.most {
			return true
		}
	}
	return false
}

// luhn verifies the check digit, the last one, by ISO/IEC 7812.
func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i])
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// accounts are the lengths of the IBANs of a country.
var accounts = map[string]int{}

func init() {
	for length, countries := range map[int]string{
		15: "NO", 16: "BE", 18: "DK FI FO GL NL SD FK", 19: "MK SI", 20: "AT BA EE KZ LT LU XK MN", 21: "CH HR LI LV",
		22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ TL OM SO", 24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST",
		26: "IS TR", 27: "FR GR IT MC MR SM BI DJ", 28: "AL AZ BY CY DO GT HN HU LB NI PL SV", 29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC",
		32: "LC", 33: "RU",
	} {
		for country := range strings.FieldsSeq(countries) {
			accounts[country] = length
		}
	}
}

// iban returns the length of an IBAN at s[i:], in one group or several: with the
// country's length and the right check digits.
func iban(s string, i int) int {
	if len(s)-i < 15 {
		return 0
	}
	if strings.EqualFold(s[i:i+4], "iban") && isUpper(s[i+4]&^0x20) {
		if n := iban(s, i+4); n > 0 {
			return 4 + n
		}
	}
	want := accounts[strings.ToUpper(s[i:i+2])]
	if want == 0 {
		return 0
	}
	upper := isUpper(s[i])
	rest, have := 0, 0 // the remainder by 97 of the number so far
	var head [4]byte
	take := func(c byte) {
		if c >= 'A' {
			rest = (100*rest + int(c-'A') + 10) % 97
		} else {
			rest = (10*rest + int(c-'0')) % 97
		}
	}
	j := i
	for ; have < want && j < len(s); j++ {
		c := s[j]
		if w := separator(s[j:]); w > 0 && have >= 4 {
			j += w
			if j == len(s) {
				return 0
			}
			c = s[j]
		}
		if isLower(c) && !upper {
			c -= 'a' - 'A'
		}
		if !isDigit(c) && !isUpper(c) || have < 2 && !isUpper(c) || have >= 2 && have < 4 && !isDigit(c) {
			return 0
		}
		if have < 4 {
			head[have] = c
		} else {
			take(c)
		}
		have++
	}
	for _, c := range head {
		take(c)
	}
	if have < want || rest != 1 {
		return 0
	}
	return j - i
}

// Package secret finds configured secrets in texts and replaces them.
//
// A [Secrets] holds the secrets. It finds each of them verbatim and in the encodings in
// which programs repeat it:
//
//   - with characters escaped as in URLs (%2F, also %252F), in JSON (\/, \u002f,
//     also with more backslashes), in HTML and XML (&#47;, &#x2f;, &amp;), in C
//     (\x2f) and in quoted-printable (=2F), each character in its own way or not
//     at all;
//   - in base64 with either alphabet, at each of the three alignments that it may
//     have among other bytes. Characters that also hold bits of the surrounding bytes
//     stay;
//   - in hexadecimal.
//
// [Secrets.Replace] searches a whole text. A [Stream] searches a text in pieces, and holds
// back the end of a piece if it may be the beginning of a secret.
//
// # Bounds
//
// The search takes time in the length of the text times that of the secrets. A
// stream holds back no more than a secret's longest form, 16 bytes a character.
//
// # Limits
//
// Parts of a secret are not found, nor forms that are not listed: compressed,
// encrypted, reversed, with spaces between the characters.
package secret

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// minEncoded is the minimum length of a secret that is also searched in base64 and
// hexadecimal. A shorter one would match by chance.
const minEncoded = 6

// Secrets is a set of secrets. It is immutable. The nil Secrets holds none.
type Secrets struct {
	// A function, because fmt prints the target of a pointer, even in an enclosing
	// value, but never prints the values that a function holds.
	forms func() *forms
}

type forms struct {
	plain   []string // searched with escapes
	encoded []string // searched verbatim
}

// New returns a set of the secrets that are not empty and have at least least bytes.
func New(least int, secrets ...string) *Secrets {
	s := &forms{}
	for _, secret := range secrets {
		if len(secret) < max(least, 1) {
			continue
		}
		s.plain = append(s.plain, secret)
		if len(secret) < minEncoded {
			continue
		}
		lower := hex.EncodeToString([]byte(secret))
		s.encoded = append(s.encoded, lower, strings.ToUpper(lower))
		for before := range 3 {
			s.encoded = append(s.encoded, aligned(base64.RawStdEncoding, secret, before), aligned(base64.RawURLEncoding, secret, before))
		}
	}
	return &Secrets{func() *forms { return s }}
}

// aligned returns the base64 characters that hold only bits of the secret, if before
// bytes precede it.
func aligned(e *base64.Encoding, secret string, before int) string {
	bits := 8 * (before + len(secret))
	text := e.EncodeToString(append(make([]byte, before), secret...))
	return text[(8*before+5)/6 : bits/6]
}

// Replace returns text with each secret replaced by mark.
func (s *Secrets) Replace(text, mark string) string {
	out, _ := s.replace(text, mark, false)
	return out
}

// ReplaceCut is [Secrets.Replace] for a truncated text: it drops an end that may be the
// beginning of a secret.
func (s *Secrets) ReplaceCut(text, mark string) string {
	out, _ := s.replace(text, mark, true)
	return out
}

// replace replaces secrets. With open, it returns as rest the end of the text that may
// be the beginning of a longer secret.
func (s *Secrets) replace(text, mark string, open bool) (out, rest string) {
	if s == nil || len(s.forms().plain) == 0 {
		return text, ""
	}
	all := s.forms()
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		n, _, partial := all.at(text[i:])
		switch {
		case partial && open: // even if a shorter form already matches
			b.WriteString(text[done:i])
			return b.String(), text[i:]
		case n > 0:
			b.WriteString(text[done:i])
			b.WriteString(mark)
			i += n
			done = i
		default:
			i++
		}
	}
	if done == 0 {
		return text, ""
	}
	b.WriteString(text[done:])
	return b.String(), ""
}

// at returns the length of the longest form of a secret that text begins with. If
// there is none, partial says that the whole text may be the beginning of one, and
// most says that it holds most of it.
func (s *forms) at(text string) (n int, most, partial bool) {
	for _, secret := range s.plain {
		size, units, open := escaped(text, secret)
		n = max(n, size)
		partial = partial || open
		most = most || open && units >= 8 && 2*units >= len(secret)
	}
	for _, form := range s.encoded {
		switch {
		case strings.HasPrefix(text, form):
			n = max(n, len(form))
		case strings.HasPrefix(form, text):
			partial = true
			most = most || len(text) >= 8 && 2*len(text) >= len(form)
		}
	}
	return n, most, partial
}

// escaped compares the beginning of text with a secret in which any character may be
// escaped. It returns the length of the matching text and the number of matching
// characters of the secret. open says that more text may change the result.
func escaped(text, secret string) (n, units int, open bool) {
	for units < len(secret) {
		if n == len(text) {
			return 0, units, true
		}
		size, more := unit(text[n:], secret[units])
		if size == 0 {
			return 0, units, more || open
		}
		n += size
		units++
		open = open || more
	}
	return n, units, open
}

// unit returns the number of bytes at the beginning of text that encode the character
// c. more says that text is too short to decide: a longer one may encode c with more
// bytes.
func unit(text string, c byte) (n int, more bool) {
	switch text[0] {
	case '%':
		n, more = percent(text, c)
	case '=':
		n, more = digits(text, 1, 2, c)
	case '\\':
		n, more = backslash(text, c)
	case '&':
		n, more = entity(text, c)
	}
	if n == 0 && text[0] == c {
		n = 1
	}
	return n, more
}

const maxRun = 8 // levels of escaping

// percent reads %2F, and %252F for repeated escaping.
func percent(text string, c byte) (n int, more bool) {
	i := 1
	for range maxRun {
		if !strings.HasPrefix(text[i:], "25") || c == '%' {
			break
		}
		i += 2
	}
	return digits(text, i, 2, c)
}

// backslash reads \/ and \u002f and \x2f, also behind more backslashes.
func backslash(text string, c byte) (n int, more bool) {
	i := 0
	for i < len(text) && i < maxRun && text[i] == '\\' {
		i++
	}
	switch {
	case i == len(text):
		return 0, i < maxRun
	case text[i] == c:
		return i + 1, false
	case text[i] == 'u' || text[i] == 'U':
		return digits(text, i+1, 4, c)
	case text[i] == 'x':
		return digits(text, i+1, 2, c)
	}
	return 0, false
}

// digits reads the code of c in width hexadecimal digits from text[i] on.
func digits(text string, i, width int, c byte) (n int, more bool) {
	have := text[min(i, len(text)):min(i+width, len(text))]
	for k := range len(have) {
		if !isHex(have[k]) {
			return 0, false
		}
	}
	if len(have) < width {
		return 0, true
	}
	code, err := strconv.ParseUint(have, 16, 32)
	if err != nil || code != uint64(c) {
		return 0, false
	}
	return i + width, false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

const maxEntity = 12 // bytes between & and ;

var entities = map[string]byte{
	"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "sol": '/', "bsol": '\\', "plus": '+', "equals": '=',
	"colon": ':', "semi": ';', "comma": ',', "period": '.', "num": '#', "percnt": '%', "dollar": '$', "commat": '@', "lowbar": '_',
	"excl": '!', "quest": '?', "ast": '*', "lpar": '(', "rpar": ')', "lsqb": '[', "rsqb": ']', "lcub": '{', "rcub": '}',
	"verbar": '|', "Hat": '^', "grave": '`',
}

// entity reads &#47; and &#x2f; and &amp;.
func entity(text string, c byte) (n int, more bool) {
	end := strings.IndexByte(text[:min(len(text), maxEntity+2)], ';')
	if end < 0 {
		within := func(r rune) bool { return r < '0' || r > 'z' }
		return 0, len(text) < maxEntity+2 && strings.IndexFunc(strings.TrimPrefix(text[1:], "#"), within) < 0
	}
	name := text[1:end]
	code, isNumber := strings.CutPrefix(name, "#")
	if !isNumber {
		if entities[name] == c {
			return end + 1, false
		}
		return 0, false
	}
	base := 10
	if code != "" && (code[0] == 'x' || code[0] == 'X') {
		base, code = 16, code[1:]
	}
	if v, err := strconv.ParseUint(code, base, 32); err != nil || v != uint64(c) {
		return 0, false
	}
	return end + 1, false
}

// Stream replaces secrets in a text that comes in pieces.
type Stream struct {
	set  *Secrets
	mark string
	held string // the end of the input, which may be the beginning of a secret
}

// Stream returns a stream that replaces each secret by mark.
func (s *Secrets) Stream(mark string) *Stream { return &Stream{set: s, mark: mark} }

// Next processes a piece and returns the text that is ready for output.
func (t *Stream) Next(piece string) string {
	out, rest := t.set.replace(t.held+piece, t.mark, true)
	t.held = rest
	return out
}

// End returns the held text after the last piece, or the mark if that text has most of
// a secret.
func (t *Stream) End() string {
	held := t.held
	if held == "" {
		return ""
	}
	t.held = ""
	all := t.set.forms()
	for i := range len(held) {
		if n, most, _ := all.at(held[i:]); n == 0 && most {
			return t.set.Replace(held[:i], t.mark) + t.mark
		}
	}
	return t.set.Replace(held, t.mark)
}

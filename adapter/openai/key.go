package openai

import (
	"encoding/json"
	"net/url"
	"strings"
)

// Key is a secret that is sent and never shown. It is kept behind a pointer,
// because fmt follows no pointer inside a struct: not even a Config that is an
// unexported field of something printed shows its key. The zero Key is none.
type Key struct{ secret *string }

// NewKey returns a key. An empty secret is none.
func NewKey(secret string) Key {
	if secret == "" {
		return Key{}
	}
	return Key{&secret}
}

// String says whether there is a key.
func (k Key) String() string {
	if k.secret == nil {
		return "no key"
	}
	return redacted
}

const redacted = "[redacted]"

// sendable reports whether it can stand in a header: visible ASCII.
func (k Key) sendable() bool {
	return k.secret == nil || !strings.ContainsFunc(*k.secret, func(r rune) bool { return r <= ' ' || r > '~' })
}

// redact takes the key out of a text, also as JSON and URLs write it.
func (k Key) redact(text string) string {
	if k.secret == nil {
		return text
	}
	key := *k.secret
	forms := []string{key, redacted, strings.ReplaceAll(key, "/", `\/`), redacted, url.QueryEscape(key), redacted}
	if quoted, err := json.Marshal(key); err == nil {
		forms = append(forms, strings.Trim(string(quoted), `"`), redacted)
	}
	return strings.NewReplacer(forms...).Replace(text)
}

const (
	maxExcerpt = 512     // bytes of an error's text that are another's
	maxLook    = 4 << 10 // bytes that an excerpt is made of
)

// excerpt makes of what a server sent, of which cut says that there is more,
// something that an error may carry.
func (k Key) excerpt(raw []byte, cut bool) string {
	if len(raw) > maxLook {
		raw, cut = raw[:maxLook], true
	}
	text := k.redact(string(raw))
	if cut && k.secret != nil { // the end may be the beginning of a key, in its longest form
		text = text[:max(0, len(text)-6*len(*k.secret))]
	}
	if len(text) > maxExcerpt {
		text = text[:maxExcerpt]
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
}

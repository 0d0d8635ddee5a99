package openai

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/secret"
)

// Key is a secret that is sent to the server but never printed. It is kept behind a
// pointer, because fmt does not follow pointers inside a struct: even a Config in an
// unexported field of a printed value does not show its key. The zero Key is absent.
type Key struct{ secret *string }

// NewKey returns a key. For an empty secret it returns the zero Key.
func NewKey(secret string) Key {
	if secret == "" {
		return Key{}
	}
	return Key{&secret}
}

// String reports whether there is a key, without its secret.
func (k Key) String() string {
	if k.secret == nil {
		return "no key"
	}
	return redacted
}

const redacted = "[redacted]"

// sendable reports whether the key is valid in a header: visible ASCII.
func (k Key) sendable() bool {
	return k.secret == nil || !strings.ContainsFunc(*k.secret, func(r rune) bool { return r <= ' ' || r > '~' })
}

// minEchoed is the minimum length of a secret that is redacted in an answer.
// Configurations for servers without keys use keys like "none", which are also
// ordinary words.
const minEchoed = 8

// secrets redacts keys in errors and answers. It holds them behind pointers, for the
// reason given at [Key].
type secrets struct {
	inErrors, inAnswers *secret.Secrets
}

var secretName = regexp.MustCompile(`(?i)key|token|secret|auth|pass|sig`)

// newSecrets returns the secrets of a client: its key, and the values of the
// endpoint's query whose names look like those of keys.
func newSecrets(key Key, endpoint *url.URL) secrets {
	var all []string
	if key.secret != nil {
		all = append(all, *key.secret)
	}
	for name, values := range endpoint.Query() {
		if secretName.MatchString(name) {
			all = append(all, values...)
		}
	}
	return secrets{secret.New(1, all...), secret.New(minEchoed, all...)}
}

const (
	maxExcerpt = 512     // bytes of a server's text in an error
	maxLook    = 4 << 10 // bytes of the body that excerpt examines
)

// excerpt returns the beginning of a server's text, redacted and as valid UTF-8, for
// an error. cut means that raw is incomplete, so its end may be the beginning of a
// secret.
func (s *secrets) excerpt(raw []byte, cut bool) string {
	if len(raw) > maxLook {
		raw, cut = raw[:maxLook], true
	}
	text := s.inErrors.Replace(string(raw), redacted)
	if cut {
		text = s.inErrors.ReplaceCut(string(raw), redacted)
	}
	if len(text) > maxExcerpt {
		text = text[:maxExcerpt]
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
}

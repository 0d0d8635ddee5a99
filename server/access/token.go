package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The form of an access token:
//
//	sajou_k3xq7c2a_l5vq…52 characters…
//
// The part in the middle is the id, which finds the token and is not secret. The last
// part is the secret: 32 random bytes.
const (
	tokenPrefix = "sajou_"
	idLength    = 8  // characters of 5 bytes
	secretBytes = 32 // of randomness
)

var tokenCoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

var secretLength = tokenCoding.EncodedLen(secretBytes)

// ErrToken is wrapped by the errors about a text that is not an access token, and about the
// name of one.
var ErrToken = errors.New("invalid access token")

// AccessToken is what is kept of an access token: everything but its secret.
type AccessToken struct {
	ID      string    `json:"id"`   // the part of the text that finds it
	Name    string    `json:"name"` // for people and logs
	Hash    string    `json:"sha256"`
	Tenant  string    `json:"tenant,omitempty"`
	Grants  []Grant   `json:"grants"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Revoked time.Time `json:"revoked,omitzero"` // zero: not revoked
}

// NewToken makes an access token with a secret from random. The text contains the secret
// and is not kept anywhere: only its SHA-256 is. A hash without salt and without
// repetition is enough, because the secret has 256 random bits: an attacker has no list of
// probable secrets to try, as there is for passwords.
//
// The errors are those of random, and wrap [ErrToken] or [ErrGrant] for a name or a grant
// that cannot be, or a pattern with a "*" that is not its end.
func NewToken(random io.Reader, name string, grants []Grant, created, expires time.Time) (text string, token *AccessToken, err error) {
	bits := make([]byte, idLength*5/8+secretBytes)
	if _, err := io.ReadFull(random, bits); err != nil {
		return "", nil, fmt.Errorf("access: random bytes for a token: %w", err)
	}
	id := tokenCoding.EncodeToString(bits[:idLength*5/8])
	secret := tokenCoding.EncodeToString(bits[idLength*5/8:])
	hash := sha256.Sum256([]byte(secret))
	token = &AccessToken{
		ID: id, Name: name, Hash: hex.EncodeToString(hash[:]), Grants: grants,
		Created: created.UTC().Truncate(time.Second), Expires: expires.UTC().Truncate(time.Second),
	}
	if expires.IsZero() {
		token.Expires = time.Time{}
	}
	for i := range grants {
		if err := grants[i].checkNew(); err != nil {
			return "", nil, err
		}
	}
	return tokenPrefix + id + "_" + secret, token, token.Check()
}

// SplitToken returns the id and the secret of an access token. The error wraps
// [ErrToken], and holds nothing of the text.
func SplitToken(text string) (id, secret string, err error) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(rest) != idLength+1+secretLength || rest[idLength] != '_' || !tokenAlphabet(rest[:idLength]) || !tokenAlphabet(rest[idLength+1:]) {
		return "", "", fmt.Errorf("%w: an access token is %s, an id, _ and %d characters", ErrToken, tokenPrefix, secretLength)
	}
	return rest[:idLength], rest[idLength+1:], nil
}

func tokenAlphabet(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// Proves reports whether a secret is that of the token, in a time that does not depend on
// how much of it is right.
func (t *AccessToken) Proves(secret string) bool {
	got := sha256.Sum256([]byte(secret))
	want, err := hex.DecodeString(t.Hash)
	return err == nil && subtle.ConstantTimeCompare(got[:], want) == 1
}

// TokenStatus is the state of an access token: live, expired or revoked.
type TokenStatus string

// The states of an access token.
const (
	StatusLive    TokenStatus = "live"
	StatusExpired TokenStatus = "expired"
	StatusRevoked TokenStatus = "revoked"
)

// Status returns the state of the token at a time.
func (t *AccessToken) Status(now time.Time) TokenStatus {
	switch {
	case !t.Revoked.IsZero():
		return StatusRevoked
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return StatusExpired
	}
	return StatusLive
}

// usable returns nil for a live token, or an error that wraps [ErrUnauthenticated].
func (t *AccessToken) usable(now time.Time) error {
	switch t.Status(now) {
	case StatusRevoked:
		return fmt.Errorf("%w: the token was revoked; ask for another one", ErrUnauthenticated)
	case StatusExpired:
		return fmt.Errorf("%w: the token has expired; ask for another one", ErrUnauthenticated)
	default:
		return nil
	}
}

// Check returns an error that wraps [ErrToken] or [ErrGrant] for a token that cannot be.
func (t *AccessToken) Check() error {
	hash, err := hex.DecodeString(t.Hash)
	switch {
	case len(t.ID) != idLength || !tokenAlphabet(t.ID):
		return fmt.Errorf("%w: %.80q is not an id", ErrToken, t.ID)
	case err != nil || len(hash) != sha256.Size:
		return fmt.Errorf("%w: token %s has no SHA-256", ErrToken, t.ID)
	case t.Created.IsZero():
		return fmt.Errorf("%w: token %s has no time of creation", ErrToken, t.ID)
	case len(t.Grants) == 0:
		return fmt.Errorf("%w: token %s has no grant", ErrToken, t.ID)
	}
	if err := checkLabel("name", t.Name); err != nil {
		return err
	}
	if t.Tenant != "" {
		if err := checkLabel("tenant", t.Tenant); err != nil {
			return err
		}
	}
	for i := range t.Grants {
		if err := t.Grants[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// checkLabel checks the name of a token or of a tenant. It stands in logs, so it has no
// spaces.
func checkLabel(kind, s string) error {
	if s == "" || len(s) > 64 || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return fmt.Errorf("%w: the %s %.80q has to be 1 to 64 bytes without spaces and control characters", ErrToken, kind, s)
	}
	return nil
}

// caller returns the caller that holds the token.
func (t *AccessToken) caller() *Caller {
	return &Caller{Name: "token:" + t.Name, Tenant: t.Tenant, Grants: t.Grants, token: t}
}

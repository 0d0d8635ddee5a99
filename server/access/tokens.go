package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// settled is the age from which the time of a file tells whether it has changed. Two
// changes within the resolution of the file system's clock may have one time.
const settled = 2 * time.Second

// Tokens are the access tokens of a file, which may change at any time. Their methods may
// be called from many goroutines.
type Tokens struct {
	path string           // empty: there are none
	now  func() time.Time // immutable

	mu     sync.Mutex
	loaded bool
	info   fs.FileInfo // of the file that was read; nil if there was none
	readAt time.Time
	err    error // of the reading
	byID   map[string]*Caller
}

// NewTokens returns the access tokens of a file; see [ReadTokens]. The file is read at the
// first question.
func NewTokens(path string, now func() time.Time) *Tokens {
	return &Tokens{path: path, now: now}
}

// noToken stands for the token that an unknown id has, so that its secret is compared
// too.
var noToken = func() *AccessToken {
	hash := sha256.Sum256(nil)
	return &AccessToken{Hash: hex.EncodeToString(hash[:])}
}()

// Caller returns the holder of an access token. The error wraps [ErrUnauthenticated] if
// the text is not a token, or is one that is unknown, expired or revoked, and [ErrTokenFile] if
// the file cannot be read: then no token is accepted.
//
// The token is found by its id, which is not secret. The secret is then compared in
// constant time.
func (t *Tokens) Caller(text string) (*Caller, error) {
	id, secret, err := SplitToken(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	t.mu.Lock()
	err = t.refresh()
	caller := t.byID[id]
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if caller == nil {
		noToken.Proves(secret)
		return nil, fmt.Errorf("%w: the token is unknown", ErrUnauthenticated)
	}
	if !caller.token.Proves(secret) {
		return nil, fmt.Errorf("%w: the token is unknown", ErrUnauthenticated)
	}
	if err := caller.token.usable(t.now()); err != nil {
		// A token that its holder should not have any more is named in the log.
		return nil, &refusedTokenError{caller.Name, err}
	}
	return caller, nil
}

// refusedTokenError is the refusal of a token whose secret was right.
type refusedTokenError struct {
	name string
	err  error
}

func (e *refusedTokenError) Error() string { return e.err.Error() }
func (e *refusedTokenError) Unwrap() error { return e.err }

// still returns nil if a caller that was recognized by a token would be recognized
// again.
func (t *Tokens) still(caller *Caller) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return err
	}
	now := t.byID[caller.token.ID]
	if now == nil || now.token.Hash != caller.token.Hash {
		return fmt.Errorf("%w: the token was removed; ask for another one", ErrUnauthenticated)
	}
	return now.token.usable(t.now())
}

// Live returns the number of tokens that are neither expired nor revoked.
func (t *Tokens) Live() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return 0, err
	}
	n, now := 0, t.now()
	for _, c := range t.byID {
		if c.token.Status(now) == StatusLive {
			n++
		}
	}
	return n, nil
}

// refresh reads the file if it may have changed. The caller holds mu.
func (t *Tokens) refresh() error {
	if t.path == "" {
		return nil
	}
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.loaded, t.info, t.err, t.byID = true, nil, nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	same := t.loaded && t.info != nil && os.SameFile(info, t.info) && info.Size() == t.info.Size() &&
		info.ModTime().Equal(t.info.ModTime()) && info.Mode() == t.info.Mode() &&
		t.readAt.Sub(info.ModTime()) >= settled
	if same {
		return t.err
	}
	tokens, read, err := readTokens(t.path)
	if read == nil {
		read = info
	}
	t.loaded, t.info, t.readAt, t.err = true, read, t.now(), err
	t.byID = make(map[string]*Caller, len(tokens))
	for i := range tokens {
		t.byID[tokens[i].ID] = tokens[i].caller()
	}
	return err
}

package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/internal/privatefile"
)

// The bounds of a file of access tokens.
const (
	maxTokens    = 1000
	maxTokenFile = 4 << 20
)

// TokenFileVersion is the version of the format of a file of access tokens.
const TokenFileVersion = 1

// ErrTokenFile is wrapped by the errors about a file of access tokens that cannot be read
// or written.
var ErrTokenFile = errors.New("the file of access tokens cannot be used")

// TokensPath returns the file of the access tokens of a store: the directory's name
// followed by ".tokens", beside the directory. It is not in the store, so that a copy or
// a backup of the store contains no token.
func TokensPath(store string) string { return filepath.Clean(store) + ".tokens" }

// tokenDocument is the content of a file of access tokens.
type tokenDocument struct {
	Version int           `json:"version"`
	Tokens  []AccessToken `json:"tokens"`
}

// ParseTokens reads the content of a file of access tokens: a JSON object with the
// members version, which is [TokenFileVersion], and tokens. The errors wrap
// [ErrTokenFile].
func ParseTokens(data []byte) ([]AccessToken, error) {
	if len(data) > maxTokenFile {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTokenFile, maxTokenFile)
	}
	// A newer version must not count as damage, so the version is read first.
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	if version.Version != TokenFileVersion {
		return nil, fmt.Errorf("%w: it has version %d, and this program reads version %d", ErrTokenFile, version.Version, TokenFileVersion)
	}
	var doc tokenDocument
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields() // a member that is not understood could be a restriction
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows its object", ErrTokenFile)
	}
	if len(doc.Tokens) > maxTokens {
		return nil, fmt.Errorf("%w: it has more than %d tokens", ErrTokenFile, maxTokens)
	}
	ids := map[string]bool{}
	for i := range doc.Tokens {
		t := &doc.Tokens[i]
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("%w: /tokens/%d: %w", ErrTokenFile, i, err)
		}
		if ids[t.ID] {
			return nil, fmt.Errorf("%w: /tokens/%d: the id %s is there twice", ErrTokenFile, i, t.ID)
		}
		ids[t.ID] = true
	}
	return doc.Tokens, nil
}

// FormatTokens returns the content of a file of access tokens.
func FormatTokens(tokens []AccessToken) ([]byte, error) {
	if tokens == nil {
		tokens = []AccessToken{}
	}
	data, err := json.MarshalIndent(tokenDocument{TokenFileVersion, tokens}, "", "  ")
	return append(data, '\n'), err
}

// ReadTokens reads a file of access tokens. A missing file has none. A file that others
// than its owner may read or write is refused. The errors wrap [ErrTokenFile].
func ReadTokens(path string) ([]AccessToken, error) {
	tokens, _, err := readTokens(path)
	return tokens, err
}

// readTokens returns the identity of the file too, which is nil if there is none.
func readTokens(path string) ([]AccessToken, fs.FileInfo, error) {
	data, info, err := privatefile.Read(path, maxTokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	tokens, err := ParseTokens(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return tokens, info, nil
}

// ChangeTokens replaces the content of a file of access tokens, completely or not at all:
//
//  1. It creates FILE.new with mode 0600. If that exists, another process changes the
//     file, or one was killed while it did. A file that the superuser creates is given to
//     the owner of FILE, or of its directory, so that a server of that user can read it.
//  2. It reads the file, changes what it read, writes FILE.new and syncs it.
//  3. It renames FILE.new to the file, and syncs the directory.
//
// A crash before step 3 leaves the old file and FILE.new. The errors wrap [ErrTokenFile],
// except those of change, with which nothing is written.
func ChangeTokens(path string, change func([]AccessToken) ([]AccessToken, error)) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: another process changes it; if none does, one was killed: remove %s", ErrTokenFile, next)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	err = writeTokens(f, path, change)
	if err = errors.Join(err, f.Close()); err == nil {
		if err = os.Rename(next, path); err == nil {
			return syncDirectory(filepath.Dir(path))
		}
		err = fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	return errors.Join(err, os.Remove(next))
}

// writeTokens writes the changed content of the file at path to f.
func writeTokens(f *os.File, path string, change func([]AccessToken) ([]AccessToken, error)) error {
	tokens, err := ReadTokens(path)
	if err != nil {
		return err
	}
	if tokens, err = change(tokens); err != nil {
		return err
	}
	data, err := FormatTokens(tokens)
	if err == nil {
		_, err = ParseTokens(data) // what is written can be read
	}
	if err == nil {
		err = keepOwner(f, path)
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil && !errors.Is(err, ErrTokenFile) {
		err = fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	return err
}

// syncDirectory makes a rename in a directory durable, where the system can.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && runtime.GOOS != "windows" {
		return fmt.Errorf("%w: %w", ErrTokenFile, err)
	}
	return nil
}

// AddToken returns the tokens with another one. A live token of the same name is an error
// that wraps [ErrToken]. Tokens that are expired or revoked stay, so that the use of one
// is recognized, until there are more than a file may have: then the oldest of them
// goes.
func AddToken(tokens []AccessToken, t *AccessToken, now time.Time) ([]AccessToken, error) {
	for i := range tokens {
		if tokens[i].Name == t.Name && tokens[i].Status(now) == StatusLive {
			return nil, fmt.Errorf("%w: there is a token %q already; revoke it first, or choose another name", ErrToken, t.Name)
		}
	}
	tokens = slices.Clone(tokens)
	if len(tokens) >= maxTokens {
		i := slices.IndexFunc(tokens, func(t AccessToken) bool { return t.Status(now) != StatusLive })
		if i < 0 {
			return nil, fmt.Errorf("%w: there are %d live tokens, and no more can be kept; revoke one first", ErrToken, len(tokens))
		}
		tokens = slices.Delete(tokens, i, i+1)
	}
	return append(tokens, *t), nil
}

// RevokeToken revokes the live token with a name or an id, and returns the tokens and the
// one that was revoked. Without such a token the error wraps [ErrToken].
func RevokeToken(tokens []AccessToken, name string, now time.Time) ([]AccessToken, AccessToken, error) {
	tokens = slices.Clone(tokens)
	for i := range tokens {
		if t := &tokens[i]; (t.Name == name || t.ID == name) && t.Status(now) == StatusLive {
			t.Revoked = now.UTC().Truncate(time.Second)
			return tokens, *t, nil
		}
	}
	return nil, AccessToken{}, fmt.Errorf("%w: there is no live token %.80q; list them with: sajou-replay token ls", ErrToken, name)
}

package access_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/access"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a clock that a test moves.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

// chance returns random bytes that are the same in every run.
func chance(seed int64) *rand.Rand { return rand.New(rand.NewSource(seed)) }

// put makes a token and adds it to a file.
func put(t *testing.T, path string, seed int64, name string, expires time.Time, grants ...access.Grant) (text string) {
	t.Helper()
	if len(grants) == 0 {
		grants = []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"*"}}}
	}
	text, token, err := access.NewToken(chance(seed), name, grants, noon, expires)
	require.NoError(t, err)
	require.NoError(t, access.ChangeTokens(path, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
		return access.AddToken(tokens, token, noon)
	}))
	return text
}

func revoke(t *testing.T, path, name string, now time.Time) {
	t.Helper()
	require.NoError(t, access.ChangeTokens(path, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
		tokens, _, err := access.RevokeToken(tokens, name, now)
		return tokens, err
	}))
}

func TestTokenOfChance(t *testing.T) {
	text, token, err := access.NewToken(bytes.NewReader(make([]byte, 37)), "zero", []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"*"}}}, noon, time.Time{})
	require.NoError(t, err)
	assert.Equal(t, "sajou_aaaaaaaa_"+strings.Repeat("a", 52), text)
	// printf 'a%.0s' $(seq 52) | sha256sum
	assert.Equal(t, "6c1b3dc7a706b9dc81352a6716b9c666c608d8626272c64b914ab05572fc6e84", token.Hash)
	id, secret, err := access.SplitToken(text)
	require.NoError(t, err)
	assert.Equal(t, "aaaaaaaa", id)
	assert.True(t, token.Proves(secret))
	assert.False(t, token.Proves(secret[:51]+"b"))
	_, _, err = access.NewToken(bytes.NewReader(make([]byte, 36)), "short", nil, noon, time.Time{})
	assert.Error(t, err)
}

// TestTokensOfAFile follows a token through its life: a change of the file counts at the
// next question.
func TestTokensOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.tokens")
	at := &clock{noon}
	tokens := access.NewTokens(path, at.read)
	refused := func(text string) {
		t.Helper()
		_, err := tokens.Caller(text)
		require.ErrorIs(t, err, access.ErrUnauthenticated)
		if len(text) > 20 {
			assert.NotContains(t, err.Error(), text[16:])
		}
	}
	ann := put(t, filepath.Join(t.TempDir(), "other"), 1, "ann", time.Time{})
	refused(ann) // there is no file

	live := put(t, path, 2, "tap", noon.Add(time.Hour))
	id, err := tokens.Caller(live)
	require.NoError(t, err)
	assert.Equal(t, "token:tap", id.Name)
	assert.True(t, id.May(access.ScopeRead, "any"))
	refused(ann)
	refused(live[:len(live)-1] + string('a'+('z'-live[len(live)-1])%26))
	refused(strings.ToUpper(live))
	refused("")
	refused("sajou_")

	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	_, secret, err := access.SplitToken(live)
	require.NoError(t, err)
	assert.NotContains(t, string(content), secret)

	at.now = noon.Add(time.Hour - time.Nanosecond)
	_, err = tokens.Caller(live)
	require.NoError(t, err)
	at.now = noon.Add(time.Hour)
	refused(live)
	_, err = tokens.Caller(live)
	assert.Equal(t, "token:tap", access.RefusedName(err))
	at.now = noon

	revoke(t, path, "tap", noon)
	refused(live)
	next := put(t, path, 3, "tap", time.Time{})
	refused(live) // the name is that of another token now
	_, err = tokens.Caller(next)
	require.NoError(t, err)
	n, err := tokens.Live()
	require.NoError(t, err)
	assert.Equal(t, 1, n)

	require.NoError(t, os.Remove(path))
	refused(next)
}

// TestPatternsOfOlderTokens shows that a new token cannot have a pattern with a "*" before
// its end, and that a file with such a pattern, which earlier versions wrote, is read: the
// pattern is the name of one session.
func TestPatternsOfOlderTokens(t *testing.T) {
	_, token, err := access.NewToken(chance(1), "ann", []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"a", "a*b"}}}, noon, time.Time{})
	require.ErrorIs(t, err, access.ErrGrant)
	assert.Nil(t, token)

	path := filepath.Join(t.TempDir(), "store.tokens")
	text := put(t, path, 1, "ann", time.Time{}, access.Grant{Scope: access.ScopeRead, Sessions: []string{"a"}})
	require.NoError(t, access.ChangeTokens(path, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
		tokens[0].Grants[0].Sessions = []string{"a*b"}
		return tokens, nil
	}))
	id, err := access.NewTokens(path, func() time.Time { return noon }).Caller(text)
	require.NoError(t, err)
	assert.True(t, id.May(access.ScopeRead, "a*b"))
	assert.False(t, id.May(access.ScopeRead, "a-b"))
}

// TestChangesOfASettledFile shows that a change is noticed although the time of the file
// is long ago, as it is for a server that has run for years.
func TestChangesOfASettledFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.tokens")
	at := &clock{time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)}
	text := put(t, path, 1, "tap", time.Time{})
	tokens := access.NewTokens(path, at.read)
	for range 3 {
		_, err := tokens.Caller(text)
		require.NoError(t, err)
	}
	revoke(t, path, "tap", noon)
	_, err := tokens.Caller(text)
	require.ErrorIs(t, err, access.ErrUnauthenticated)
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = tokens.Caller(text)
	require.ErrorIs(t, err, access.ErrTokenFile)
}

// TestDamagedTokensLetNobodyIn shows that a file that cannot be read refuses everybody,
// with an error that is not the caller's fault.
func TestDamagedTokensLetNobodyIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.tokens")
	text := put(t, path, 1, "tap", time.Time{})
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	tokens := access.NewTokens(path, (&clock{noon}).read)
	_, err = tokens.Caller(text)
	require.NoError(t, err)
	replace := func(old, with string) []byte { return bytes.Replace(good, []byte(old), []byte(with), 1) }
	for name, content := range map[string][]byte{
		"empty":            {},
		"cut":              good[:len(good)/2],
		"another version":  replace(`"version": 1`, `"version": 2`),
		"unknown member":   replace(`"name"`, `"only_from": "10.0.0.1", "name"`),
		"unknown scope":    replace(`"read"`, `"write"`),
		"no hash":          replace(`"sha256": "`, `"sha256": "zz`),
		"two documents":    append(bytes.Clone(good), good...),
		"long":             bytes.Repeat([]byte(" "), 5<<20),
		"no grant":         replace(`"grants": [`, `"grants": [], "x": [`),
		"another language": []byte("tokens: []"),
	} {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, err = tokens.Caller(text)
		require.ErrorIs(t, err, access.ErrTokenFile, name)
		require.NotErrorIs(t, err, access.ErrUnauthenticated, name)
		_, err = tokens.Live()
		require.ErrorIs(t, err, access.ErrTokenFile, name)
		err = access.ChangeTokens(path, func(ts []access.AccessToken) ([]access.AccessToken, error) { return ts, nil })
		require.ErrorIs(t, err, access.ErrTokenFile, name)
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, content, left)
	}
	require.NoError(t, os.WriteFile(path, good, 0o600))
	_, err = tokens.Caller(text)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = tokens.Caller(text)
	require.ErrorContains(t, err, "chmod 600")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err = tokens.Caller(text)
	require.ErrorIs(t, err, access.ErrTokenFile)
}

// TestChangesAreWhole shows that a change that fails, and one beside another process,
// leave the file as it is.
func TestChangesAreWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.tokens")
	put(t, path, 1, "tap", time.Time{})
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	unchanged := func() {
		t.Helper()
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(good), string(left))
	}
	broken := errors.New("broken")
	err = access.ChangeTokens(path, func([]access.AccessToken) ([]access.AccessToken, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	unchanged()
	err = access.ChangeTokens(path, func([]access.AccessToken) ([]access.AccessToken, error) {
		return []access.AccessToken{{Name: "nothing"}}, nil
	})
	require.ErrorIs(t, err, access.ErrTokenFile)
	unchanged()
	// A second change while the first is under way.
	require.NoError(t, access.ChangeTokens(path, func(ts []access.AccessToken) ([]access.AccessToken, error) {
		err := access.ChangeTokens(path, func(ts []access.AccessToken) ([]access.AccessToken, error) { return nil, nil })
		assert.ErrorContains(t, err, "another process changes it")
		return ts, nil
	}))
	unchanged()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestNamesOfTokens(t *testing.T) {
	read := []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"*"}}}
	for _, name := range []string{"", "two words", "a\nb", "\x1b[2J", strings.Repeat("x", 65), "\xff"} {
		_, _, err := access.NewToken(chance(1), name, read, noon, time.Time{})
		assert.ErrorIs(t, err, access.ErrToken, "%q", name)
	}
	var tokens []access.AccessToken
	for i := range 1001 {
		_, token, err := access.NewToken(chance(int64(i)), fmt.Sprint("t", i), read, noon, noon.Add(time.Duration(i+1)*time.Minute))
		require.NoError(t, err)
		next, err := access.AddToken(tokens, token, noon)
		if i == 1000 {
			require.ErrorIs(t, err, access.ErrToken)
			next, err = access.AddToken(tokens, token, noon.Add(2*time.Minute)) // t0 and t1 are expired
			require.NoError(t, err)
			assert.Len(t, next, 1000)
			assert.Equal(t, "t1", next[0].Name)
		}
		tokens = next
	}
	_, err := access.AddToken(tokens, &tokens[5], noon)
	assert.ErrorContains(t, err, "already")
	_, _, err = access.RevokeToken(tokens, "nobody", noon)
	assert.ErrorIs(t, err, access.ErrToken)
	tokens, gone, err := access.RevokeToken(tokens, tokens[7].ID, noon)
	require.NoError(t, err)
	assert.Equal(t, access.StatusRevoked, gone.Status(noon))
	assert.Equal(t, gone, tokens[7])
}

func FuzzToken(f *testing.F) {
	text, _, err := access.NewToken(chance(1), "x", []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"*"}}}, noon, time.Time{})
	require.NoError(f, err)
	for _, s := range []string{text, text + "a", strings.ToUpper(text), "sajou__", "", "Bearer " + text, strings.Replace(text, "a", "а", 1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, err := access.SplitToken(text)
		if err != nil {
			require.ErrorIs(t, err, access.ErrToken)
			return
		}
		require.Equal(t, text, "sajou_"+id+"_"+secret)
	})
}

// FuzzTokensFile shows that what is read from a file can be written, and is the same when
// it is read again.
func FuzzTokensFile(f *testing.F) {
	_, token, err := access.NewToken(chance(1), "x", []access.Grant{{Scope: access.ScopeAct, Agent: "ann", Sessions: []string{"a*"}}}, noon, noon.Add(time.Hour))
	require.NoError(f, err)
	good, err := access.FormatTokens([]access.AccessToken{*token})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"version":1,"tokens":[]}`))
	f.Add([]byte(`{"version":1,"tokens":[{"created":"0000-01-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"version":9}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tokens, err := access.ParseTokens(data)
		if err != nil {
			require.ErrorIs(t, err, access.ErrTokenFile)
			return
		}
		again, err := access.FormatTokens(tokens)
		require.NoError(t, err)
		same, err := access.ParseTokens(again)
		require.NoError(t, err)
		third, err := access.FormatTokens(same)
		require.NoError(t, err)
		require.Equal(t, string(again), string(third))
	})
}

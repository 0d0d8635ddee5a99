package statecmd

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/replay/searchlog"
)

// A person judges by keys, takes a judgment back, quits and continues. A search whose last
// line was cut by a crash goes on before it.
func TestAsk(t *testing.T) {
	dir := t.TempDir()
	store, drawn := filepath.Join(dir, "store"), filepath.Join(dir, "now.png")
	record(t, store, 20)
	var remarks strings.Builder
	a := &cli.App{Store: store, Format: "text", Stdout: io.Discard, Stderr: &remarks}
	require.NoError(t, beginSearch(t.Context(), a, "", "0", "end", searchlog.SearchSubject{Test: searchlog.SearchedTest{Kind: byPerson}}))

	ask := func(keys string) (screen string, s *keptSearch, err error) {
		s, err = openSearch(t.Context(), a)
		require.NoError(t, err)
		defer s.t.Close()
		var b strings.Builder
		q := asking{out: drawn, size: func() (int, int) { return 60, 12 }}
		err = q.loop(t.Context(), s, strings.NewReader(keys), &b)
		return b.String(), s, err
	}
	screen, s, err := ask("?xgbuq")
	require.NoError(t, err)
	assert.Contains(t, screen, "g: the picture is good; b: it is bad; s: it cannot be judged;")
	assert.Contains(t, screen, "g good, b bad, s skip, u undo, q quit\r\n")
	assert.Contains(t, screen, "took back the judgment of ")
	assert.Contains(t, screen, "quit; continue with: sajou-replay bisect ask\r\n")
	assert.NotContains(t, strings.ReplaceAll(screen, "\r\n", ""), "\n")
	assert.Len(t, s.log.Verdicts, 3, "both ends and one judgment")
	assert.FileExists(t, drawn)

	_, err = os.Stat(a.SearchFile("a"))
	require.NoError(t, err)
	info, err := os.Stat(a.SearchFile("a"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	whole, err := os.ReadFile(a.SearchFile("a"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(a.SearchFile("a"), append(whole, `{"verdict":"b`...), 0o600))
	_, s, err = ask("\x04")
	require.NoError(t, err)
	assert.Contains(t, remarks.String(), "the last line of the search was incomplete and is ignored")
	assert.Len(t, s.log.Verdicts, 3)
	screen, s, err = ask(strings.Repeat("b", 30))
	require.NoError(t, err, screen)
	assert.Contains(t, screen, "were judged")
	_, more := s.search.Next()
	assert.False(t, more)
	_, _, err = ask("")
	require.NoError(t, err, "a finished search asks nothing")
}

// A key that interrupts ends the command as Ctrl-C does.
func TestAskInterrupted(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	record(t, store, 5)
	a := &cli.App{Store: store, Format: "text", Stdout: io.Discard, Stderr: io.Discard}
	require.NoError(t, beginSearch(t.Context(), a, "", "0", "end", searchlog.SearchSubject{Test: searchlog.SearchedTest{Kind: byPerson}}))
	s, err := openSearch(t.Context(), a)
	require.NoError(t, err)
	defer s.t.Close()
	q := asking{size: func() (int, int) { return 60, 12 }}
	err = q.loop(t.Context(), s, strings.NewReader("\x03"), io.Discard)
	assert.Equal(t, cli.ExitInterrupted, cli.ExitCode(err, io.Discard))
}

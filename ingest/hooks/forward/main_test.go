package forward_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
)

// endless is a reader that never ends.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.n)
	for i := range p[:n] {
		p[i] = ' '
	}
	e.n -= n
	return n, nil
}

// The program fails in many ways, returns each time, and says in the log why.
func TestMainNeverFails(t *testing.T) {
	s := newRecorder(t)
	c := newClient(t, s.URL)
	t.Setenv("SAJOU_HOOK_DIR", c.Dir)
	t.Setenv("SAJOU_SERVER", s.URL)
	open := filepath.Join(c.Dir, "token")
	require.NoError(t, os.WriteFile(open, []byte("secret\n"), 0o644))
	closed, err := os.Open(open)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, test := range []struct {
		name, args, log string
		stdin           io.Reader
		env             string
		random          func([]byte)
	}{
		{name: "no JSON", stdin: strings.NewReader("hello"), log: "not the payload of a hook"},
		{name: "empty", stdin: strings.NewReader(""), log: "not the payload of a hook"},
		{name: "no event", stdin: strings.NewReader("{}"), log: "no hook_event_name"},
		{name: "closed", stdin: closed, log: "cannot read the object"},
		{name: "100 MB", stdin: &endless{100 << 20}, log: "more than 32 MiB"},
		{name: "deep", stdin: strings.NewReader(strings.Repeat("[", 1<<20)), log: "not the payload of a hook"},
		{name: "flag", args: "--nonsense", stdin: prompt("flag"), log: "flag provided but not defined"},
		{name: "argument", args: "now --session told", stdin: prompt("argument"), log: "unexpected argument"},
		{name: "split", args: "--split week", stdin: prompt("split"), log: "no split"},
		{name: "server", args: "--server nowhere", stdin: prompt("server"), log: "not the address of a server"},
		{name: "socket", args: "--server unix:", stdin: prompt("socket"), log: "not the address of a server"},
		{name: "token", env: open, stdin: prompt("token"), log: "others may read or write"},
		{name: "token", env: c.Dir, stdin: prompt("token"), log: "is not a regular file"},
		{name: "fault", stdin: prompt("x"), log: "a fault of the program: boom", random: func([]byte) { panic("boom") }},
	} {
		t.Setenv("SAJOU_TOKEN_FILE", test.env)
		base := forward.Config{Now: c.Now, Random: c.Random, Dial: dial}
		if test.random != nil {
			base.Random = test.random
		}
		forward.Main(strings.Fields(test.args), test.stdin, base, func() { t.Error("it ended the process") })
		text, err := os.ReadFile(filepath.Join(c.Dir, forward.LogFile))
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		assert.Contains(t, lines[len(lines)-1], test.log, test.name)
		assert.NotContains(t, string(text), "secret")
	}
	// A wrong flag loses no object, and what could not be delivered waits.
	assert.Equal(t, []string{"claude.n1 flag", "told argument", "claude.n1 split"}, s.list())
	require.NoError(t, os.Chmod(open, 0o600))
	t.Setenv("SAJOU_TOKEN_FILE", open)
	forward.Main([]string{"--session", "s"}, prompt("fine"), forward.Config{Now: c.Now, Random: c.Random, Dial: dial}, nil)
	assert.Equal(t, []string{"claude.n1 token", "claude.n1 token", "s fine"}, s.list()[3:])
	waiting := forward.Queues(c.Dir)
	require.Len(t, waiting, 1, "of the server that is no address")
	assert.Equal(t, 2, waiting[0].Items)
	for _, name := range []string{waiting[0].File, filepath.Join(c.Dir, forward.LogFile)} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	// They wait for the server that is the default.
	c.Server = forward.DefaultServer
	c.Dial = func(ctx context.Context, _, _ string) (io.ReadWriteCloser, error) {
		return dial(ctx, "tcp", strings.TrimPrefix(s.URL, "http://"))
	}
	n, err := forward.Drain(t.Context(), c.Config)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, []string{"claude.n1 server", "claude.n1 socket"}, s.list()[6:])
}

// The log is bounded, and its lines cannot be forged or drive a terminal.
func TestLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SAJOU_HOOK_DIR", dir)
	c := newClient(t, "")
	base := forward.Config{Now: c.Now, Random: func([]byte) { panic(errors.New(strings.Repeat("long\n\x1b[2J", 1000))) }, Dial: dial}
	for range 700 {
		forward.Main(nil, prompt("x"), base, nil)
	}
	for _, name := range []string{forward.LogFile, forward.LogFile + ".old"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(text), forward.MaxLog+2000)
		assert.NotContains(t, string(text), "\x1b")
		for line := range strings.Lines(string(text)) {
			assert.True(t, strings.HasPrefix(line, "2026-11-23T"), line)
		}
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
)

// quiet is a logger of the store that discards everything.
type quiet struct{}

func (quiet) Infof(string, ...any) {}

func (quiet) Errorf(string, ...any) {}

func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// cutNewest cuts the newest batch of a session in half, beneath the log.
func cutNewest(t *testing.T, store, session string) {
	t.Helper()
	db, err := pebble.Open(store, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	require.NoError(t, err)
	value, closer, err := db.Get([]byte("s" + session))
	require.NoError(t, err)
	number := binary.BigEndian.Uint32(value)
	require.NoError(t, closer.Close())
	it, err := db.NewIter(&pebble.IterOptions{
		LowerBound: binary.BigEndian.AppendUint32([]byte("e"), number),
		UpperBound: binary.BigEndian.AppendUint32([]byte("e"), number+1),
	})
	require.NoError(t, err)
	if !it.Last() {
		t.Fatal("the session has no batch")
	}
	key, batch := bytes.Clone(it.Key()), bytes.Clone(it.Value())
	require.NoError(t, it.Close())
	require.NoError(t, db.Set(key, batch[:len(batch)/2], pebble.Sync))
	require.NoError(t, db.Close())
}

// TestDamagedSession shows that verify names the fault of a session that cannot
// be opened, that every other command about it recommends verify, and that the other
// sessions of the store still work.
func TestDamagedSession(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 5)
	ask := func(args ...string) result {
		stdin := io.Reader(strings.NewReader(signalLines(2)))
		return sajouReplay(t.Context(), t, stdin, append([]string{"-C", store}, args...)...)
	}
	for _, args := range [][]string{{"import", "-", "-s", "it's cut"}, {"import", "-", "-s", "it's cut", "--append"}} {
		if r := ask(args...); r.code != 0 {
			t.Fatalf("%v: exit %d, %s", args, r.code, r.stderr)
		}
	}
	cutNewest(t, store, "it's cut")

	for _, args := range [][]string{{"verify"}, {"verify", "it's cut"}, {"verify", "-s", "it's cut"}, {"verify", "--all"}} {
		r := ask(args...)
		if r.code != 1 || !strings.Contains(r.stdout, "it's cut: BROKEN at entry 4: altered") || !strings.Contains(r.stdout, "whole up to 3:") || r.stderr != "" {
			t.Errorf("%v: exit %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	for _, args := range []string{
		"cat", "info", "state 2", "show 1", "diff 1 2", "play --rate 0", "export", "export --raw", "tail", "scan --where true",
		"bisect --where true", "snapshot ls", "snapshot build", "snapshot drop", "define ls", "define show 1", "import - --append -s it's\x00cut",
	} {
		fields := strings.Fields(args)
		for i := range fields {
			fields[i] = strings.ReplaceAll(fields[i], "\x00", " ")
		}
		r := ask(fields...)
		if r.code != 1 || !strings.HasSuffix(r.stderr, "sajou-replay verify -s 'it'\\''s cut'\n") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}

	r := ask("ls")
	if r.code != 1 || !strings.Contains(r.stdout, "6 entries") || !strings.Contains(r.stdout, "it's cut  damaged\n") {
		t.Errorf("ls: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := ask("ls", "-o", "json"); !json.Valid([]byte(r.stdout)) {
		t.Errorf("ls -o json: no JSON:\n%s", r.stdout)
	}
	for _, args := range [][]string{{"verify", "a"}, {"cat", "a"}, {"import", "-", "-s", "b"}} {
		if r := ask(args...); r.code != 0 {
			t.Errorf("%v, of another session: exit %d, %s", args, r.code, r.stderr)
		}
	}
	if r := ask("verify", "nobody"); r.code != 4 || !strings.Contains(r.stderr, "it has a, it's cut, b") {
		t.Errorf("verify nobody: exit %d, %s", r.code, r.stderr)
	}
}

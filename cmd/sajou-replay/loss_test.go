package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// killedStore returns the files of a store as a killed process leaves them, with
// the session "s" of 30 entries, and the path of its write-ahead log.
func killedStore(t *testing.T) (dir, log string) {
	t.Helper()
	from, dir := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "store")
	l, err := eventlog.Open(from, eventlog.Config{})
	require.NoError(t, err)
	s, err := l.Session("s")
	for i := 0; i < 30 && err == nil; i++ {
		_, err = s.Append(context.Background(), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: msgp.AppendString(nil, "x")}}})
	}
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	require.NoError(t, l.Close())
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%v, %v", logs, err)
	}
	return dir, logs[len(logs)-1]
}

// TestLossOfAKilledProcess shows that bytes which rot in the write-ahead log of
// a killed process are reported by every command: by verify with the Seq, by reading
// commands with exit code 3. Recording into such a session is refused.
func TestLossOfAKilledProcess(t *testing.T) {
	for _, tt := range []struct {
		name string
		rot  func(records []byte) []byte
	}{
		{"a flipped bit in the middle", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }},
		{"a flipped bit at the end", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }},
		{"the end cut off", func(b []byte) []byte { return b[:len(b)-200] }},
		{"nothing left", func([]byte) []byte { return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, log := killedStore(t)
			ask := func(args ...string) result {
				return sajouReplay(t.Context(), t, io.Reader(strings.NewReader(signalLines(1))), append([]string{"-C", store}, args...)...)
			}
			if r := ask("verify", "--all"); r.code != 0 {
				t.Fatalf("before: exit %d, %s", r.code, r.stderr)
			}
			b, err := os.ReadFile(log)
			require.NoError(t, err)
			rotten := tt.rot(bytes.TrimRight(b, "\x00")) // behind the records are zeros
			require.NoError(t, os.WriteFile(log, rotten, 0o600))
			if r := ask("verify", "--all"); r.code != 1 || !strings.Contains(r.stdout, "s: BROKEN at entry ") || !strings.Contains(r.stdout, "entry 30 was noted as durable") {
				t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := ask("ls"); r.code != 3 || !strings.Contains(r.stderr, "lost entries: acknowledged entries are missing: session \"s\"") || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("ls: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := ask("import", "-", "-s", "s", "--append"); r.code != 1 || !strings.Contains(r.stderr, "entry 30 was written") && !strings.Contains(r.stderr, "with 30 entries is gone") {
				t.Errorf("import: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if now, err := os.ReadFile(log); err != nil || !bytes.Equal(now, rotten) {
				t.Errorf("the write-ahead log was changed: %d bytes, %v", len(now), err)
			}
		})
	}
}

// TestMissingNotes shows that verify reports a missing or damaged HEADS.
func TestMissingNotes(t *testing.T) {
	store, _ := killedStore(t)
	ask := func(args ...string) result {
		return sajouReplay(t.Context(), t, strings.NewReader(""), append([]string{"-C", store}, args...)...)
	}
	heads := filepath.Join(store, eventlog.HeadsFile)
	require.NoError(t, os.Truncate(heads, 300))
	if r := ask("verify"); r.code != 3 || !strings.Contains(r.stdout, "s: verified, 30 entries") || !strings.Contains(r.stderr, "HEADS, the file of noted heads, is damaged") {
		t.Errorf("damaged: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	require.NoError(t, os.Remove(heads))
	if r := ask("verify"); r.code != 3 || !strings.Contains(r.stderr, "HEADS, the file of noted heads, is missing") {
		t.Errorf("missing: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := ask("ls"); r.code != 0 {
		t.Errorf("ls: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// waiting is stdin at which nobody types. It tells when it is read.
type waiting struct {
	io.Reader
	read func()
}

func (w waiting) Read(b []byte) (int, error) {
	w.read()
	return w.Reader.Read(b)
}

// TestInterruptedStdin shows that a command which waits for stdin ends when it
// is interrupted.
func TestInterruptedStdin(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 1)
	for _, args := range []string{"lint -", "sim -", "rehearse -", "policy-diff --policy -", "import - -s b"} {
		ctx, interrupt := context.WithCancel(t.Context())
		r, w := io.Pipe()
		got := sajouReplay(ctx, t, waiting{r, interrupt}, append([]string{"-C", store}, strings.Fields(args)...)...)
		if got.code != exitInterrupted {
			t.Errorf("%s: exit %d, %s", args, got.code, got.stderr)
		}
		if err := w.Close(); err != nil { // ends the read that was left behind
			t.Fatal(err)
		}
	}
}

// TestOtherVersion shows that a store of a newer version, and one of another
// program, is told from one that is damaged.
func TestOtherVersion(t *testing.T) {
	for _, tc := range []struct{ key, value, want string }{
		{"f", "\x63", "store has version 99, this program reads 1"},
		{"other", "x", "another program's Pebble store"},
	} {
		store := filepath.Join(t.TempDir(), "store")
		db, err := pebble.Open(store, &pebble.Options{Logger: quiet{}})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Set([]byte(tc.key), []byte(tc.value), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"ls"}, {"verify"}, {"import", "-"}, {"sim", "--example"}} {
			r := sajouReplay(t.Context(), t, strings.NewReader(""), append([]string{"-C", store}, args...)...)
			if r.code != exitNo || !strings.Contains(r.stderr, "cannot be read by this version of the program: ") || !strings.Contains(r.stderr, tc.want) {
				t.Errorf("%v: exit %d, %s", args, r.code, r.stderr)
			}
		}
	}
}

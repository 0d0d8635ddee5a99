package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// waiting is a stdin that never returns. It signals the first read.
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
		if got.code != cli.ExitInterrupted {
			t.Errorf("%s: exit %d, %s", args, got.code, got.stderr)
		}
		if err := w.Close(); err != nil { // ends the read that was left behind
			t.Fatal(err)
		}
	}
}

// TestOtherVersion shows that a store of a newer version, and one of another
// program, are not reported as damaged.
func TestOtherVersion(t *testing.T) {
	for _, tc := range []struct {
		key, value, want string
		reading, writing int
	}{
		{"f", "\x63", "store has version 99, this program reads 1", cli.ExitNo, cli.ExitNo},
		{"other", "x", "it holds a Pebble store of another program", cli.ExitNotFound, cli.ExitNo},
	} {
		store := filepath.Join(t.TempDir(), "store")
		db, err := pebble.Open(store, &pebble.Options{Logger: quiet{}})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte(tc.key), []byte(tc.value), pebble.Sync))
		require.NoError(t, db.Close())
		for i, args := range [][]string{{"ls"}, {"verify"}, {"import", "-"}, {"sim", "--example"}} {
			r := sajouReplay(t.Context(), t, strings.NewReader(""), append([]string{"-C", store}, args...)...)
			want := tc.reading
			if i >= 2 {
				want = tc.writing
			}
			if r.code != want || !strings.Contains(r.stderr, tc.want) {
				t.Errorf("%v: exit %d, %s", args, r.code, r.stderr)
			}
		}
	}
}

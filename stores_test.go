package sajou_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// changedRules lists, by commit that left stores behind, the projections whose
// rules have changed since, and why. Their digests there are not compared.
var changedRules = map[string]map[string]string{
	"ca1d511": {
		"world": "rules 1: numbers of the agents' own, fields that follow from hidden ones, latency from what is visible (ADR 17)",
	},
}

// TestStoresOfEarlierCommits opens stores that earlier commits wrote. Their
// heads are what they were, read-only and for writing, and so are the digests
// of every projection whose rules have not changed.
func TestStoresOfEarlierCommits(t *testing.T) {
	goldens, err := filepath.Glob(filepath.Join("testdata", "stores", "*.golden"))
	if err != nil || len(goldens) == 0 {
		t.Fatalf("%d files of heads and digests, %v", len(goldens), err)
	}
	for _, golden := range goldens {
		commit := strings.TrimSuffix(golden, ".golden")
		t.Run(filepath.Base(commit), func(t *testing.T) {
			b, err := os.ReadFile(golden)
			require.NoError(t, err)
			stores, err := os.ReadDir(commit)
			require.NoError(t, err)
			stores = slices.DeleteFunc(stores, func(e os.DirEntry) bool { return !e.IsDir() }) // digests of the corpus
			changed := changedRules[filepath.Base(commit)]
			want := comparedLines(t, string(b), changed)
			for _, cfg := range []sajou.Config{{ReadOnly: true}, {}} {
				var got strings.Builder
				for _, s := range stores {
					dir := filepath.Join(t.TempDir(), s.Name())
					require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(commit, s.Name()))))
					describeStore(t, &got, s.Name(), dir, cfg)
				}
				if diff := cmp.Diff(want, comparedLines(t, got.String(), changed)); diff != "" {
					t.Errorf("read-only %t: heads and digests (-want +got):\n%s", cfg.ReadOnly, diff)
				}
			}
		})
	}
}

// describeStore writes each session's head, and the digests at and between
// some of its entries.
func describeStore(t *testing.T, b *strings.Builder, name, dir string, cfg sajou.Config) {
	t.Helper()
	eng, err := sajou.Open(dir, cfg)
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, eng.Close())
	}()
	sessions, err := eng.Sessions()
	require.NoError(t, err)
	for _, ses := range sessions {
		travel, err := eng.Replay(ses)
		require.NoError(t, err)
		head := travel.Head()
		fmt.Fprintf(b, "%s %s head %v\n", name, ses, head)
		for i := range 9 {
			for _, offset := range []time.Duration{0, 43 * time.Millisecond} {
				m := replay.Moment{Seq: head.Seq * eventlog.Seq(i) / 8, Offset: offset}
				f, err := travel.At(t.Context(), m)
				if errors.Is(err, replay.ErrNoAddress) {
					continue // the next entry comes before
				}
				require.NoError(t, err)
				fmt.Fprintf(b, "%s %s %v %v\n", name, ses, m, f.Digests())
			}
		}
	}
}

// comparedLines splits a description into its lines, without the digests of
// projections whose rules have changed, and without the versions of the others: a
// version is of the images, and sums that stay the same show that it changed no fold.
func comparedLines(t *testing.T, description string, changed map[string]string) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(description) {
		before, digests, ok := strings.Cut(strings.TrimSpace(line), " [")
		if ok {
			words := strings.Fields(strings.TrimSuffix(digests, "]"))
			for pair := range slices.Chunk(words, 2) {
				name, _, _ := strings.Cut(pair[0], "/")
				if _, skip := changed[name]; !skip {
					before += " " + name + " " + pair[1]
				}
			}
		}
		lines = append(lines, before)
	}
	return lines
}

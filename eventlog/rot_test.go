package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// readFile and writeFile access one file of a store.
func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	return b
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
}

// Bits flip in the store's own files. For any file there is no panic, and a log that
// opens and verifies without a Head kept elsewhere is complete: the noted heads reveal
// entries that are missing at its end.
func TestRottenFiles(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	s := session(t, l, "a")
	rng := rand.New(rand.NewPCG(5, 5))
	var head eventlog.Head
	for range 12 {
		noise := make([]byte, 9<<10) // does not compress, so it fills blocks
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		head = must(t, s, eventlog.Batch{Drafts: []eventlog.Draft{
			{Kind: eventlog.KindSignal, Data: msgp.AppendBytes(nil, noise)},
			{Kind: eventlog.KindSignal, Data: text("y")},
		}})
	}
	killed := killed(mem)
	require.NoError(t, l.Close())

	for _, store := range []struct {
		name string
		fs   *vfs.MemFS
	}{{"closed", mem}, {"killed", killed}} {
		var want [][]byte
		for e, err := range session(t, open(t, store.fs.CrashClone(vfs.CrashCloneCfg{}), eventlog.Config{}), "a").Entries(ctx, 1) {
			require.NoError(t, err)
			want = append(want, e.Body)
		}
		names, err := store.fs.List("store")
		require.NoError(t, err)
		counts := map[string]int{}
		for _, name := range names {
			whole := readFile(t, store.fs, "store/"+name)
			step := stride(5) * max(1, filled(whole)/25)
			for at := 0; at < filled(whole); at += step {
				fs := store.fs.CrashClone(vfs.CrashCloneCfg{})
				b := bytes.Clone(whole)
				b[at] ^= 1 << (at % 8)
				writeFile(t, fs, "store/"+name, b)
				where := fmt.Sprintf("%s, bit %d of byte %d", name, at%8, at)
				for _, readOnly := range []bool{true, false} {
					outcome := rotten(t, fs, where, readOnly, head, want)
					counts[outcome]++
					if outcome == shorter {
						t.Errorf("%s: the log is shorter and nothing says so", where)
					}
				}
			}
		}
		t.Logf("%s store with %d entries: %v", store.name, len(want), counts)
	}
}

const shorter = "shorter, told only by the head"

// rotten opens a store with a flipped bit and returns the outcome.
func rotten(t *testing.T, fs vfs.FS, where string, readOnly bool, head eventlog.Head, want [][]byte) string {
	t.Helper()
	ctx := context.Background()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: readOnly})
	if err != nil {
		return "open refuses"
	}
	defer func() { _ = l.Close() }() // may report the damage
	with, err := l.Verify(ctx, "a", verify.Options{Expect: head})
	if err != nil {
		return "verify cannot run"
	}
	without, err := l.Verify(ctx, "a", verify.Options{})
	assert.NoErrorf(t, err, "%s: verify", where)
	var got [][]byte
	s, err := l.Session("a")
	if err == nil {
		for e, entryErr := range s.Entries(ctx, 1) {
			if err = entryErr; err != nil {
				break
			}
			got = append(got, e.Body)
		}
	}
	same := len(got) <= len(want)
	for i := range got {
		same = same && bytes.Equal(got[i], want[i])
	}
	switch {
	case !same:
		t.Errorf("%s: reads what was not written", where)
	case with.Fault != nil && without.Fault == nil:
		return shorter
	case with.Fault != nil:
		if s != nil && with.Fault.Seq != eventlog.Seq(len(got)+1) || strings.Contains(with.Fault.String(), "\n") {
			t.Errorf("%s: %v, but entries can be read up to %d", where, with.Fault, len(got))
		}
		return "fault: " + string(with.Fault.Kind)
	case err != nil:
		return "read fails"
	case len(got) != len(want):
		t.Errorf("%s: verified with its head, but %d of %d entries", where, len(got), len(want))
	}
	return "unchanged"
}

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
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// readFile and writeFile work on one file of a store.
func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Bits of the store's own files rot. Whatever file it is, nothing panics, and
// a log that opens and verifies against a Head kept elsewhere is the one that
// was written.
//
// Without such a Head one kind of rot cannot be told from an honest crash: in
// the last block (32 KiB) of the write-ahead log, where a torn write looks the
// same. The log is shorter then, and whole. In the blocks before, later ones
// say that they had been synced, and Open refuses.
func TestRottenFiles(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, l, "a")
	rng := rand.New(rand.NewPCG(5, 5))
	var head eventlog.Head
	for range 12 {
		noise := make([]byte, 9<<10) // what does not compress fills blocks
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		head = must(t, s, eventlog.Batch{Drafts: []eventlog.Draft{
			{Kind: eventlog.KindSignal, Data: msgp.AppendBytes(nil, noise)},
			{Kind: eventlog.KindSignal, Data: text("y")},
		}})
	}
	killed := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	for _, store := range []struct {
		name string
		fs   *vfs.MemFS
	}{{"closed", mem}, {"killed", killed}} {
		var want [][]byte
		for e, err := range session(t, open(t, store.fs.CrashClone(vfs.CrashCloneCfg{}), eventlog.Config{}), "a").Entries(ctx, 1) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, e.Body)
		}
		names, err := store.fs.List("store")
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		silent := map[string]int{} // by file, how far from its end a shorter log begins
		for _, name := range names {
			whole := readFile(t, store.fs, "store/"+name)
			stride := max(1, len(whole)/25)
			for at := 0; at < len(whole); at += stride {
				fs := store.fs.CrashClone(vfs.CrashCloneCfg{})
				b := bytes.Clone(whole)
				b[at] ^= 1 << (at % 8)
				writeFile(t, fs, "store/"+name, b)
				where := fmt.Sprintf("%s, bit %d of byte %d", name, at%8, at)
				for _, readOnly := range []bool{true, false} {
					outcome := rotten(t, fs, where, readOnly, head, want)
					counts[outcome]++
					if outcome == shorter {
						silent[name] = max(silent[name], len(whole)-at)
					}
				}
			}
		}
		t.Logf("%s store with %d entries: %v", store.name, len(want), counts)
		for name, distance := range silent {
			if !strings.HasSuffix(name, ".log") || distance > 64<<10 {
				t.Errorf("%s: rot %d bytes before its end only makes the log shorter", name, distance)
			}
		}
	}
}

const shorter = "shorter, told only by the head"

// rotten opens a store of which a bit was flipped, and says what became of it.
func rotten(t *testing.T, fs vfs.FS, where string, readOnly bool, head eventlog.Head, want [][]byte) string {
	t.Helper()
	ctx := context.Background()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: readOnly})
	if err != nil {
		return "open refuses"
	}
	defer func() { _ = l.Close() }() // may complain about what is broken
	with, err := l.Verify(ctx, "a", eventlog.VerifyOptions{Expect: head})
	if err != nil {
		return "verify cannot run"
	}
	without, err := l.Verify(ctx, "a", eventlog.VerifyOptions{})
	if err != nil {
		t.Errorf("%s: verify: %v", where, err)
	}
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
		if s != nil && with.Fault.Seq != eventlog.Seq(len(got)+1) || strings.Contains(with.Fault.Error(), "\n") {
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

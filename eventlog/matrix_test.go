package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pebblerecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// directory is the files of a store, by name.
type directory map[string][]byte

func directoryOf(t *testing.T, fs vfs.FS) directory {
	t.Helper()
	const dir = "store"
	names, err := fs.List(dir)
	require.NoError(t, err)
	d := directory{}
	for _, name := range names {
		d[name] = readFile(t, fs, fs.PathJoin(dir, name))
	}
	return d
}

// onDisk returns a file system with the files in the directory "store".
func (d directory) onDisk(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("store", 0o755))
	for name, b := range d {
		writeFile(t, fs, "store/"+name, b)
	}
	return fs
}

// with returns the files with one of them changed, or removed for nil.
func (d directory) with(name string, b []byte) directory {
	changed := maps.Clone(d)
	if b == nil {
		delete(changed, name)
	} else {
		changed[name] = b
	}
	return changed
}

func (d directory) equal(other directory) bool {
	return maps.EqualFunc(d, other, bytes.Equal)
}

// victim is a store whose files are attacked.
type victim struct {
	name  string
	files directory
	heads acknowledged
	older []directory // the same store at earlier moments
	other directory   // another store, that has lived the same life
	// legacy says that the store was written before FILES existed.
	legacy bool
	// lags says that HEADS may lack the last notes, because the power was cut.
	lags bool
}

// end is how the last life of a store ends.
type end int

const (
	byClose    end = iota
	byKill         // the disk has all written bytes
	byPowerCut     // the disk has the synced bytes
)

// victimLife writes a store in several lives and returns its files on the disk after
// the last life has ended.
func victimLife(t *testing.T, prefix string, lives, batches, size int, how end) victim {
	t.Helper()
	mem := vfs.NewCrashableMem()
	v := victim{heads: acknowledged{}}
	rng := rand.New(rand.NewPCG(uint64(lives), uint64(batches)))
	for life := range lives {
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		require.NoError(t, err)
		for i := range batches {
			name := fmt.Sprintf("%s%d", prefix, i%3)
			s := session(t, l, name)
			b := eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, 1+i%4)}
			if size > 0 {
				noise := make([]byte, size)
				for k := range noise {
					noise[k] = byte('a' + rng.IntN(26))
				}
				b.Drafts[0].Data = text(string(noise))
			}
			if i%5 == 0 {
				b.Key = fmt.Sprintf("key %d %d", life, i)
			}
			v.heads[name] = must(t, s, b)
			if i%7 == 3 {
				v.older = append(v.older, directoryOf(t, mem.CrashClone(vfs.CrashCloneCfg{})))
			}
		}
		if life == lives-1 {
			switch how {
			case byClose:
			case byKill:
				v.files = directoryOf(t, killed(mem))
			case byPowerCut:
				v.files, v.lags = directoryOf(t, mem.CrashClone(vfs.CrashCloneCfg{})), true
			}
		}
		require.NoError(t, l.Close())
		if how == byClose || life < lives-1 {
			v.older = append(v.older, directoryOf(t, mem))
		}
	}
	if how == byClose {
		v.files = directoryOf(t, mem)
	}
	return v
}

// legacyVictim reads a store that the program wrote before it had SAJOU.
func legacyVictim(t *testing.T, name string) victim {
	t.Helper()
	v := victim{name: "legacy " + name, heads: acknowledged{}, legacy: true}
	read := func(dir string) directory {
		entries, err := os.ReadDir(filepath.Join("testdata", "legacy", dir))
		require.NoError(t, err)
		d := directory{}
		for _, e := range entries {
			if d[e.Name()], err = os.ReadFile(filepath.Join("testdata", "legacy", dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	v.files = read(name)
	if name == "killed" {
		v.older = []directory{read("closed")}
	}
	heads, err := os.ReadFile(filepath.Join("testdata", "legacy", name+".heads"))
	require.NoError(t, err)
	for line := range strings.Lines(string(heads)) {
		session, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v.heads[session], err = eventlog.ParseHead(at); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func victims(t *testing.T) []victim {
	t.Helper()
	named := func(name string, v, other victim) victim {
		v.name, v.other = name, other.files
		return v
	}
	vs := []victim{
		named("closed", victimLife(t, "s", 3, 16, 0, byClose), victimLife(t, "r", 3, 16, 0, byClose)),
		named("killed", victimLife(t, "s", 3, 16, 0, byKill), victimLife(t, "r", 3, 16, 0, byKill)),
		named("killed with large entries", victimLife(t, "s", 2, 40, 9<<10, byKill), victimLife(t, "r", 2, 40, 9<<10, byKill)),
		named("power cut", victimLife(t, "s", 3, 16, 0, byPowerCut), victimLife(t, "r", 3, 16, 0, byPowerCut)),
		named("young and killed", victimLife(t, "s", 1, 1, 0, byKill), victimLife(t, "r", 1, 1, 0, byKill)),
		named("compacted", victimLife(t, "s", 14, 6, 300, byClose), victimLife(t, "r", 14, 6, 300, byClose)),
		named("legacy closed", legacyVictim(t, "closed"), victimLife(t, "s", 2, 12, 0, byClose)),
		named("legacy killed", legacyVictim(t, "killed"), victimLife(t, "s", 3, 12, 0, byKill)),
	}
	return vs
}

// recordEnds returns where records of a MANIFEST or a write-ahead log end.
func recordEnds(t *testing.T, name string, b []byte) []int {
	t.Helper()
	var ends []int
	switch {
	case strings.HasPrefix(name, "MANIFEST-"):
		for r := pebblerecord.NewReader(bytes.NewReader(b), 0); ; {
			_, err := r.Next()
			ends = append(ends, int(r.Offset()))
			if err != nil {
				return ends
			}
		}
	case strings.HasSuffix(name, ".log"):
		logs, err := wal.Scan(wal.Dir{FS: directory{name: b}.onDisk(t), Dirname: "store"})
		if err != nil || len(logs) != 1 {
			t.Fatal(logs, err)
		}
		r := logs[0].OpenForRead()
		defer r.Close()
		for {
			_, offset, err := r.NextRecord()
			if err != nil {
				return ends
			}
			ends = append(ends, int(offset.Physical))
		}
	}
	return nil
}

// One file of a store is removed, emptied, truncated, or replaced by garbage, by the
// file of the same name of another store or by an earlier version of itself. Then the
// store is refused and stays unchanged, or everything acknowledged is present, or
// reading reports damaged bytes. Entries are never lost silently.
//
// Two exceptions are allowed: in a store from before FILES and HEADS, a truncated
// write-ahead log of a killed process cannot be detected; and HEADS may lack the last
// notes before a power cut.
func TestAttackEveryFile(t *testing.T) {
	cuts := attack.Rounds(6, 200)
	for _, v := range victims(t) {
		t.Run(v.name, func(t *testing.T) {
			counts := map[string]int{}
			for _, name := range slices.Sorted(maps.Keys(v.files)) {
				whole := v.files[name]
				ds := damages(t, v, name, cuts)
				for i, what := range slices.Sorted(maps.Keys(ds)) {
					if i%stride(4) != 0 {
						continue
					}
					b := ds[what]
					changed := v.files.with(name, b)
					for _, readOnly := range []bool{true, false} {
						outcome := v.attacked(t, changed, readOnly)
						counts[outcome]++
						if outcome != less {
							continue
						}
						if !v.legacy && !v.lags || !strings.HasSuffix(name, ".log") {
							t.Errorf("%s %s (%d of %d bytes), read-only %v: less than acknowledged, without a word", name, what, len(b), len(whole), readOnly)
						}
					}
				}
			}
			t.Logf("%d files: %v", len(v.files), counts)
		})
	}
}

// damages returns the damaged contents of one file; nil removes the file.
func damages(t *testing.T, v victim, name string, cuts int) map[string][]byte {
	whole := v.files[name]
	rng := rand.New(rand.NewPCG(uint64(len(whole)), uint64(len(name))))
	ds := map[string][]byte{"removed": nil}
	if len(whole) > 0 {
		ds["emptied"] = []byte{}
		noise := make([]byte, len(whole))
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		ds["garbage"] = noise
		ds["zeros"] = make([]byte, len(whole))
		half := bytes.Clone(whole)
		copy(half[filled(half)/2:], noise)
		ds["half garbage"] = half
		for range cuts {
			n := rng.IntN(filled(whole))
			ds[fmt.Sprintf("cut to %d", n)] = whole[:n:n]
		}
		for _, end := range recordEnds(t, name, whole) {
			if end < len(whole) {
				ds[fmt.Sprintf("cut to the record end %d", end)] = whole[:end:end]
			}
		}
	} else {
		ds["grown"] = []byte("grown")
	}
	if b, ok := v.other[name]; ok && !bytes.Equal(b, whole) {
		ds["of another store"] = b
	}
	for i, old := range v.older {
		if b, ok := old[name]; ok && !bytes.Equal(b, whole) {
			ds[fmt.Sprintf("as it was %d", i)] = b
		}
	}
	return ds
}

const less = "less, without a word"

// attacked opens changed files and returns the outcome.
func (v victim) attacked(t *testing.T, changed directory, readOnly bool) string {
	t.Helper()
	fs := changed.onDisk(t)
	l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: readOnly})
	if err != nil {
		if after := directoryOf(t, fs); !after.equal(changed) {
			t.Errorf("refused with %v, and changed", err)
		}
		if !errors.Is(err, eventlog.ErrCorrupt) && !errors.Is(err, eventlog.ErrVersion) && !errors.Is(err, eventlog.ErrForeign) && !errors.Is(err, eventlog.ErrLost) {
			t.Errorf("refused with an error of no class: %v", err)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("refused with more than a line: %v", err)
		}
		return "refused"
	}
	outcome := v.whole(t, l)
	if outcome == less && l.Loss() != nil {
		outcome = "less, and told"
	}
	if err := l.Close(); err != nil && outcome == "whole" {
		t.Errorf("close: %v", err)
	}
	if readOnly {
		if after := directoryOf(t, fs); !after.equal(changed) {
			t.Error("changed by reading")
		}
	}
	return outcome
}

// whole reports whether everything that was acknowledged is in a log.
func (v victim) whole(t *testing.T, l *eventlog.Log) string {
	t.Helper()
	ctx := context.Background()
	for name, want := range v.heads {
		s, err := l.Session(name)
		if err != nil {
			return "reading says so"
		}
		n := eventlog.Seq(0)
		for _, err := range s.Entries(ctx, 1) {
			if err != nil {
				return "reading says so"
			}
			n++
		}
		if n != want.Seq || s.Head() != want {
			return less
		}
		if r, err := l.Verify(ctx, name, verify.Options{Expect: want}); err != nil || r.Fault != nil {
			return "verify says so"
		}
	}
	return "whole"
}

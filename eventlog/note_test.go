package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	pebblerecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// killed returns the disk after a kill of the process: everything that was written,
// synced or not.
func killed(mem *vfs.MemFS) *vfs.MemFS {
	return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// powerCut returns the disk after a power cut: everything that was synced.
func powerCut(mem *vfs.MemFS) *vfs.MemFS { return mem.CrashClone(vfs.CrashCloneCfg{}) }

// logs returns the names of the files of the write-ahead log, oldest first.
func logs(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List("store")
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") })
	slices.Sort(names)
	return names
}

// noise is a value that does not compress.
func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return msgp.AppendBytes(nil, b)
}

// fill appends batches to three sessions and returns what was acknowledged.
func fill(t *testing.T, l *eventlog.Log, rng *rand.Rand, batches, size int) acknowledged {
	t.Helper()
	acks := acknowledged{}
	for range batches {
		name := fmt.Sprintf("s%d", rng.IntN(3))
		b := eventlog.Batch{}
		for range 1 + rng.IntN(3) {
			b.Drafts = append(b.Drafts, eventlog.Draft{Kind: eventlog.KindSignal, Data: noise(rng, rng.IntN(size))})
		}
		acks[name] = must(t, session(t, l, name), b)
	}
	return acks
}

// closeQuietly closes a log that a test no longer uses, and ignores the error: the test
// continues with an earlier clone of the disk.
func closeQuietly(t *testing.T, l *eventlog.Log) {
	t.Helper()
	assert.NoError(t, l.Close())
}

// A killed process leaves notes of everything that it acknowledged, also with
// concurrent writers.
func TestKilledProcessLeavesNotesOfEverything(t *testing.T) {
	mem := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			s, err := l.Session(fmt.Sprintf("s%d", w%3))
			for i := 0; i < 20 && err == nil; i++ {
				var head, noted eventlog.Head
				if head, err = s.Append(context.Background(), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, Data: text("x")}}}); err != nil {
					break
				}
				heads, damage, readErr := eventlog.NotedHeads(mem, "store")
				if noted = heads[s.Name()]; noted.Seq < head.Seq || damage != "" || readErr != nil {
					t.Errorf("acknowledged %v, noted %v, %q, %v", head, noted, damage, readErr)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	left := killed(mem)
	closeQuietly(t, l)
	heads, damage, err := eventlog.NotedHeads(left, "store")
	if err != nil || damage != "" || len(heads) != 3 {
		t.Fatalf("noted: %v, %q, %v", heads, damage, err)
	}
	r := open(t, left, eventlog.Config{ReadOnly: true})
	for name, noted := range heads {
		if got := session(t, r, name).Head(); got != noted {
			t.Errorf("%s: noted %v, the log has %v", name, noted, got)
		}
	}
	if r.Loss() != nil || r.Doubts() != nil {
		t.Errorf("loss %v, doubts %q", r.Loss(), r.Doubts())
	}
}

// timers is a manual clock for the notes.
type timers struct {
	mu    sync.Mutex
	waits []time.Duration
	run   []func()
}

func (c *timers) after(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits, c.run = append(c.waits, d), append(c.run, f)
	return func() bool { return false }
}

func (c *timers) fire() {
	c.mu.Lock()
	run := c.run
	c.run = nil
	c.mu.Unlock()
	for _, f := range run {
		f()
	}
}

// A power cut loses no more notes than the bounds allow, and never leaves a note of
// entries that are not in the log.
func TestPowerCutLag(t *testing.T) {
	for _, bound := range []int{1, 2, 7, 64} {
		mem := vfs.NewCrashableMem()
		clock := &timers{}
		l, err := eventlog.Open("store", eventlog.Config{FS: mem, NoteEntries: bound, NoteWithin: time.Hour, AfterFunc: clock.after})
		require.NoError(t, err)
		s := session(t, l, "a")
		for i := range 150 {
			head := must(t, s, eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, Data: text("x")}}})
			noted, _, err := eventlog.NotedHeads(powerCut(mem), "store")
			require.NoError(t, err)
			// The entry being noted when the bound is reached counts as a whole.
			if lag := head.Seq - noted["a"].Seq; noted["a"].Seq > head.Seq || lag > eventlog.Seq(bound) {
				t.Fatalf("bound %d, append %d: noted %v, acknowledged %v", bound, i, noted["a"], head)
			}
		}
		if bound == 64 {
			head := s.Head()
			clock.fire()
			within(t, "the sync of the notes", func() {
				for {
					noted, _, err := eventlog.NotedHeads(powerCut(mem), "store")
					if err != nil || noted["a"] == head {
						break
					}
				}
			})
			if !slices.Contains(clock.waits, time.Hour) {
				t.Errorf("waited for %v", clock.waits)
			}
		}
		closeQuietly(t, l)
		noted, _, err := eventlog.NotedHeads(powerCut(mem), "store")
		if err != nil || noted["a"].Seq != 150 {
			t.Errorf("after Close: noted %v, %v", noted, err)
		}
	}
	for _, cfg := range []eventlog.Config{{NoteEntries: -1}, {NoteWithin: -1}} {
		if _, err := eventlog.Open("store", cfg); !errors.Is(err, eventlog.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// A clean Close leaves nothing in the write-ahead log, neither in the current file nor
// in those that Pebble would reuse.
func TestCloseLeavesNothingInTheWriteAheadLog(t *testing.T) {
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(3, 3))
	for life := range 3 {
		l := open(t, mem, eventlog.Config{})
		fill(t, l, rng, 30, 40<<10)
		if life == 1 {
			// An earlier crash makes a recovery necessary.
			mem = killed(mem)
			closeQuietly(t, l)
			l = open(t, mem, eventlog.Config{})
		}
		closeQuietly(t, l)
		for _, fs := range []*vfs.MemFS{mem, powerCut(mem)} {
			for _, name := range logs(t, fs) {
				b := readFile(t, fs, "store/"+name)
				scan, err := eventlog.ScanWAL(b, walNumber(t, name))
				if err != nil || len(scan.Records)+len(scan.Lost) > 0 || len(b) > 64 {
					t.Errorf("life %d: %s: %d bytes, %d records, %d behind, %v", life, name, len(b), len(scan.Records), len(scan.Lost), err)
				}
			}
		}
	}
}

func walNumber(t *testing.T, name string) uint64 {
	t.Helper()
	var n uint64
	if _, err := fmt.Sscanf(name, "%d.log", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// severalLogs returns the disk of a killed process whose flushes were delayed, so that
// several files of its write-ahead log are in use, and the acknowledged heads.
func severalLogs(t *testing.T) (*vfs.MemFS, acknowledged) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	free := make(chan struct{})
	held := false
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if held && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			<-free
		}
		return nil
	}))
	l, err := eventlog.Open("store", eventlog.Config{FS: disk})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(8, 8))
	acks := fill(t, l, rng, 12, 30<<10)
	held = true
	maps.Copy(acks, fill(t, l, rng, 90, 40<<10))
	left := killed(mem)
	close(free)
	closeQuietly(t, l)
	if names := logs(t, left); len(names) < 3 {
		t.Fatalf("only %v", names)
	}
	return left, acks
}

// outcomes counts the outcomes for damaged stores.
type outcomes map[string]int

// judge opens a damaged store for reading and for writing. The store must be intact,
// refused, or have its loss reported; every readable entry must be as written. Losses
// below the heads in floor must be reported.
func judge(t *testing.T, fs *vfs.MemFS, where string, floor acknowledged, count outcomes) {
	t.Helper()
	ctx := context.Background()
	before := snapshotOf(t, fs)
	short := func(l *eventlog.Log) (lost []string) {
		for name, want := range floor {
			s, err := l.Session(name)
			if err != nil {
				lost = append(lost, fmt.Sprintf("%s: %v", name, err))
				continue
			}
			next := eventlog.Seq(1)
			at := s.Genesis()
			for e, err := range s.Entries(ctx, 1) {
				if err != nil || e.Seq != next {
					break
				}
				if next++; e.Seq == want.Seq {
					at = e.Hash
				}
			}
			if next <= want.Seq || at != want.Hash {
				lost = append(lost, fmt.Sprintf("%s ends with %d of %d", name, next-1, want.Seq))
			}
		}
		return lost
	}
	r, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: true})
	if err != nil {
		count["refused for reading"]++
	} else {
		lost := short(r)
		switch loss := r.Loss(); {
		case loss == nil && len(lost) > 0:
			// Reading and Verify both report a fault in the middle of a session.
			told := false
			for name, want := range floor {
				report, err := r.Verify(ctx, name, verify.Options{})
				told = told || err != nil || report.Fault != nil && report.Fault.Seq <= want.Seq
			}
			if !told {
				t.Errorf("%s: read-only, nothing is told of %q", where, lost)
			}
			count["told by verify"]++
		case loss != nil:
			count["loss told"]++
			for _, one := range loss.Losses {
				if report, err := r.Verify(ctx, one.Session, verify.Options{}); err != nil || report.Fault == nil || report.Fault.Seq != one.Have.Seq+1 && report.Fault.Seq > one.Noted.Seq {
					t.Errorf("%s: %v, but verify says %+v, %v", where, &one, report, err)
				}
			}
			if len(lost) == 0 && len(loss.Losses) > 0 && len(floor) > 0 {
				count["loss told above the floor"]++
			}
		default:
			count["whole"]++
		}
		assert.NoErrorf(t, r.Close(), "%s: close", where)
	}
	if after := snapshotOf(t, fs); !maps.Equal(before, after) {
		t.Errorf("%s: reading changed the store", where)
	}
	w, err := eventlog.Open("store", eventlog.Config{FS: fs})
	if err != nil {
		count["refused for writing"]++
		// Damage in a table may only be detected during a compaction.
		if after := snapshotOf(t, fs); !maps.Equal(before, after) && !strings.Contains(where, ".sst") {
			t.Errorf("%s: a refused opening for writing changed the store: %v", where, err)
		}
		return
	}
	if lost := short(w); len(lost) > 0 {
		told := false
		for name, want := range floor {
			report, err := w.Verify(ctx, name, verify.Options{})
			told = told || err != nil || report.Fault != nil && report.Fault.Seq <= want.Seq
		}
		if !told {
			t.Errorf("%s: open for writing, nothing is told of %q", where, lost)
		}
	}
	_ = w.Close() // may report the damage
}

// snapshotOf returns the files of a store with their contents.
func snapshotOf(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	names, err := fs.List("store")
	require.NoError(t, err)
	files := map[string]string{}
	for _, name := range names {
		files[name] = string(readFile(t, fs, "store/"+name))
	}
	return files
}

// byteDamages are ways to damage the bytes from an offset on.
var byteDamages = []struct {
	name string
	do   func(rng *rand.Rand, b []byte, at int) []byte
}{
	{"a bit flipped", func(rng *rand.Rand, b []byte, at int) []byte { b[at] ^= 1 << rng.IntN(8); return b }},
	{"512 bytes zeroed", func(_ *rand.Rand, b []byte, at int) []byte { clear(b[at:min(at+512, len(b))]); return b }},
	{"zeroes to the end", func(_ *rand.Rand, b []byte, at int) []byte { clear(b[at:]); return b }},
	{"cut off", func(_ *rand.Rand, b []byte, at int) []byte { return b[:at] }},
	{"64 bytes of garbage", func(rng *rand.Rand, b []byte, at int) []byte {
		for i := at; i < min(at+64, len(b)); i++ {
			b[i] = byte(rng.Uint32())
		}
		return b
	}},
	{"another length", func(rng *rand.Rand, b []byte, at int) []byte {
		return slices.Insert(b, at, byte(rng.Uint32()))
	}},
}

// The write-ahead log of a killed process is damaged, at many places and in many ways.
// Every loss of acknowledged entries is reported, for damage at any place.
func TestAttackWriteAheadLogOfAKilledProcess(t *testing.T) {
	for _, store := range []struct {
		name          string
		batches, size int
	}{
		{"small entries", 150, 400},
		{"large entries", 14, 20 << 10},
		{"several files", 0, 0},
	} {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			var left *vfs.MemFS
			var acks acknowledged
			if store.batches == 0 {
				left, acks = severalLogs(t)
			} else {
				mem := vfs.NewCrashableMem()
				l, err := eventlog.Open("store", eventlog.Config{FS: mem})
				require.NoError(t, err)
				acks = fill(t, l, rand.New(rand.NewPCG(5, uint64(store.size))), store.batches, store.size)
				left = killed(mem)
				closeQuietly(t, l)
			}
			rng := rand.New(rand.NewPCG(9, 9))
			count := outcomes{}
			rounds := attack.Rounds(3, 700)
			if store.batches == 0 {
				rounds = attack.Rounds(1, 100) // its files are large
			}
			for _, name := range logs(t, left) {
				whole := readFile(t, left, "store/"+name)
				if len(whole) == 0 {
					continue
				}
				for range rounds {
					for _, damage := range byteDamages {
						at := rng.IntN(filled(whole))
						if rng.IntN(3) == 0 {
							at = filled(whole) - 1 - rng.IntN(min(filled(whole), 2000)) // the end
						}
						fs := powerCut(left)
						writeFile(t, fs, "store/"+name, damage.do(rng, bytes.Clone(whole), at))
						judge(t, fs, fmt.Sprintf("%s: %s at byte %d of %d", name, damage.name, at, len(whole)), acks, count)
					}
				}
			}
			t.Logf("%v", count)
		})
	}
}

// After a power cut every loss below the synced notes is reported.
func TestAttackWriteAheadLogAfterAPowerCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	count := outcomes{}
	for round := range attack.Rounds(3, 40) {
		mem := vfs.NewCrashableMem()
		clock := &timers{}
		l, err := eventlog.Open("store", eventlog.Config{FS: mem, NoteEntries: 16, AfterFunc: clock.after})
		require.NoError(t, err)
		fill(t, l, rng, 60+rng.IntN(60), 600)
		left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 90}[round%3], RNG: rng})
		closeQuietly(t, l)
		noted, damage, err := eventlog.NotedHeads(left, "store")
		if err != nil || damage != "" {
			t.Fatalf("%q, %v", damage, err)
		}
		for _, name := range logs(t, left) {
			whole := readFile(t, left, "store/"+name)
			if len(whole) == 0 {
				continue
			}
			for range attack.Rounds(2, 12) {
				for _, damage := range byteDamages {
					at := rng.IntN(filled(whole))
					fs := powerCut(left)
					writeFile(t, fs, "store/"+name, damage.do(rng, bytes.Clone(whole), at))
					judge(t, fs, fmt.Sprintf("%s: %s at byte %d of %d", name, damage.name, at, len(whole)), noted, count)
				}
			}
		}
	}
	t.Logf("%v", count)
}

// Any one file of a store is removed, emptied, truncated, filled with garbage, or
// replaced by an earlier version of itself or by another store's. The store is intact,
// refused, or its loss is reported.
func TestAttackOneFileOfAStore(t *testing.T) {
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(6, 6))
	acks := acknowledged{}
	older := map[string][][]byte{}
	keep := func() {
		for name, content := range snapshotOf(t, killed(mem)) {
			if n := len(older[name]); n == 0 || string(older[name][n-1]) != content {
				older[name] = append(older[name], []byte(content))
			}
		}
	}
	var stores []*vfs.MemFS
	var floors []acknowledged
	for range attack.Rounds(1, 3) {
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		require.NoError(t, err)
		for range 4 {
			maps.Copy(acks, fill(t, l, rng, 20, 9<<10))
			keep()
		}
		stores = append(stores, killed(mem))
		floors = append(floors, maps.Clone(acks))
		closeQuietly(t, l)
		keep()
		stores = append(stores, killed(mem))
		floors = append(floors, floors[len(floors)-1])
	}
	several, all := severalLogs(t)
	stores, floors = append(stores, several), append(floors, all)
	other := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: other})
	require.NoError(t, err)
	fill(t, l, rand.New(rand.NewPCG(99, 99)), 80, 9<<10)
	others := snapshotOf(t, killed(other))
	closeQuietly(t, l)

	count := outcomes{}
	for i, store := range stores {
		files := snapshotOf(t, store)
		for name, content := range files {
			if name == "LOCK" {
				continue
			}
			whole := []byte(content)
			try := func(what string, b []byte) {
				fs := powerCut(store)
				if b == nil {
					require.NoError(t, fs.Remove("store/"+name))
				} else {
					writeFile(t, fs, "store/"+name, b)
				}
				judge(t, fs, fmt.Sprintf("store %d: %s %s", i, name, what), floors[i], count)
			}
			if strings.HasPrefix(name, "marker.manifest.") {
				continue // without this file there is no store; other tests cover its absence
			}
			try("removed", nil)
			try("emptied", []byte{})
			for range attack.Rounds(1, 60) {
				if len(whole) == 0 {
					break
				}
				at := rng.IntN(filled(whole))
				try(fmt.Sprintf("cut to %d of %d bytes", at, len(whole)), whole[:at:at])
				flipped := bytes.Clone(whole)
				flipped[at] ^= 1 << rng.IntN(8)
				try(fmt.Sprintf("byte %d of %d flipped", at, len(whole)), flipped)
			}
			for _, border := range recordBorders(name, whole) {
				try(fmt.Sprintf("cut to the record border %d of %d", border, len(whole)), whole[:border:border])
			}
			garbage := bytes.Clone(whole)
			for j := range garbage {
				garbage[j] = byte(rng.Uint32())
			}
			try("replaced by garbage", garbage)
			for j, b := range older[name] {
				if string(b) != content && i < len(stores)-1 {
					try(fmt.Sprintf("replaced by its version %d", j), b)
				}
			}
			if b, ok := others[name]; ok {
				try("replaced by another store's", []byte(b))
			}
		}
	}
	t.Logf("%d stores: %v", len(stores), count)
}

// recordBorders returns the borders of the records of a manifest or of a file of the
// write-ahead log.
func recordBorders(name string, b []byte) []int {
	if !strings.HasPrefix(name, "MANIFEST-") {
		return nil
	}
	var all []int
	r := pebblerecord.NewReader(bytes.NewReader(b), 0)
	for {
		rec, err := r.Next()
		if err != nil {
			return all
		}
		all = append(all, int(r.Offset()))
		if _, err := io.Copy(io.Discard, rec); err != nil {
			return all
		}
	}
}

// filled returns the length of a file's content, and of a few of the zeros that a write-ahead
// log has behind it. Damage elsewhere in the zeros meets nothing.
func filled(b []byte) int { return min(len(b), len(bytes.TrimRight(b, "\x00"))+64) }

// logEnd returns the offset behind the last record of a file of the write-ahead log, where zeros begin.
func logEnd(t *testing.T, fs vfs.FS, name string) int {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 64)
	require.NoError(t, err)
	scan, err := storefile.ScanWAL(bytes.NewReader(readFile(t, fs, "store/"+name)), number, func(int64, []byte, bool) bool { return true })
	require.NoError(t, err)
	return int(scan.End)
}

// The loss is reported with its place and its Seqs, reading works up to it, and the
// rest can be accepted once, explicitly.
func TestLossIsToldAndAccepted(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	a, b := session(t, l, "a"), session(t, l, "b")
	var offsets []int
	for range 10 {
		must(t, a, eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, Data: text("x")}, {Kind: eventlog.KindBeat, Data: text("y")}}})
		names := logs(t, mem)
		offsets = append(offsets, logEnd(t, mem, names[len(names)-1]))
	}
	must(t, b, eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, Data: text("z")}}})
	noted := a.Head()
	left := killed(mem)
	closeQuietly(t, l)

	names := logs(t, left)
	name := names[len(names)-1]
	rotten := readFile(t, left, "store/"+name)
	rotten[offsets[4]+30] ^= 4 // in the sixth batch
	writeFile(t, left, "store/"+name, rotten)

	_, err = eventlog.Open("store", eventlog.Config{FS: left})
	lost, ok := errors.AsType[*eventlog.LossError](err)
	if !ok || !errors.Is(err, eventlog.ErrLost) {
		t.Fatalf("open for writing: %v", err)
	}
	if lost.File != name || lost.Offset != int64(offsets[4]) || lost.Last != "a" || lost.At != 10 || len(lost.Losses) != 2 {
		t.Errorf("%+v; want a break of %s at %d behind entry 10 of a", lost, name, offsets[4])
	}
	if one := lost.Losses[0]; one.Session != "a" || one.Have.Seq != 10 || one.Noted != noted || one.Seen != 20 {
		t.Errorf("%+v", one)
	}
	if one := lost.Losses[1]; one.Session != "b" || one.Have.Seq != 0 || one.Noted.Seq != 1 {
		t.Errorf("%+v", one)
	}
	const want = `session "a" ends with entry 10, entry 20 was written; session "b" with 1 entries is gone`
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
	r := open(t, left, eventlog.Config{ReadOnly: true})
	if r.Loss() == nil || session(t, r, "a").Head().Seq != 10 {
		t.Errorf("read-only: %v, head %v", r.Loss(), session(t, r, "a").Head())
	}
	for name, seq := range map[string]eventlog.Seq{"a": 11, "b": 1} {
		if report, err := r.Verify(ctx, name, verify.Options{}); err != nil || report.Fault == nil || report.Fault.Seq != seq || report.Fault.Kind != verify.FaultMissing {
			t.Errorf("verify %s: %+v, %v", name, report, err)
		}
	}
	closeQuietly(t, r)
	l, err = eventlog.Open("store", eventlog.Config{FS: left, AcceptLoss: true})
	require.NoError(t, err)
	if got := session(t, l, "a").Head(); l.Loss() == nil || got.Seq != 10 {
		t.Errorf("accepted: head %v, loss %v", got, l.Loss())
	}
	closeQuietly(t, l)
	l = open(t, left, eventlog.Config{})
	if l.Loss() != nil || l.Doubts() != nil {
		t.Errorf("after it was accepted: %v, %q", l.Loss(), l.Doubts())
	}
	head := must(t, session(t, l, "a"), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, Data: text("on")}}})
	if report, err := l.Verify(ctx, "a", verify.Options{Expect: head}); err != nil || report.Fault != nil || head.Seq != 11 {
		t.Errorf("gone on to %v: %+v, %v", head, report, err)
	}
	closeQuietly(t, l)
}

// The texts of a loss name the session, where it ends and how far it went, and the first
// three of the sessions.
func TestLossText(t *testing.T) {
	at := func(seq eventlog.Seq) eventlog.Head { return eventlog.Head{Seq: seq} }
	for want, l := range map[string]eventlog.Loss{
		`session "a" ends with entry 3, entry 5 was written`:              {Session: "a", Have: at(3), Noted: at(5), Seen: 4},
		`session "a" ends with entry 3, entry 6 was written`:              {Session: "a", Have: at(3), Noted: at(5), Seen: 6},
		`session "a" ends with entry 3, entry 4 was written`:              {Session: "a", Have: at(3), Seen: 4},
		`session "a" with 5 entries is gone`:                              {Session: "a", Noted: at(5)},
		`session "a" with 1 entries is gone`:                              {Session: "a", Seen: 1},
		`entry 3 of session "a" is not the one that was noted as durable`: {Session: "a", Have: at(3), Noted: at(3)},
		`entry 2 of session "a" is not the one that was noted as durable`: {Session: "a", Have: at(3), Noted: at(2)},
	} {
		assert.Equal(t, want, l.String())
	}
	one := eventlog.Loss{Session: "a", Noted: at(5)}
	const gone = `session "a" with 5 entries is gone`
	const lost = "eventlog: acknowledged entries are missing: "
	for want, e := range map[string]eventlog.LossError{
		lost + gone:                             {Losses: []eventlog.Loss{one}},
		lost + gone + "; " + gone + "; " + gone: {Losses: slices.Repeat([]eventlog.Loss{one}, 3)},
		lost + gone + "; " + gone + "; " + gone + "; 1 more sessions lost entries": {Losses: slices.Repeat([]eventlog.Loss{one}, 4)},
		lost + gone + "; " + gone + "; " + gone + "; 9 more sessions lost entries": {Losses: slices.Repeat([]eventlog.Loss{one}, 5), More: 7},
		lost + gone + "; 000004.log breaks at byte 7":                              {Losses: []eventlog.Loss{one}, File: "000004.log", Offset: 7, At: 9},
		lost + "000004.log breaks at byte 7, behind entry 9 of session \"b\"":      {File: "000004.log", Offset: 7, Last: "b", At: 9},
	} {
		require.EqualError(t, &e, want)
		require.ErrorIs(t, &e, eventlog.ErrLost)
	}
}

// A store that is opened for reading after a loss tells of each session what was lost:
// verification names the first entry, and a session that is gone as a whole has a report.
func TestVerifyAfterLoss(t *testing.T) {
	disk, heads := threeSessions(t)
	a, n := heads["a"], heads[longName]
	other := eventlog.Head{Seq: 3, Hash: eventlog.Genesis("other")}
	for name, tt := range map[string]struct {
		cell    noteOf
		session string
		want    *verify.Fault
	}{
		"as it is":              {noteOf{1, "a", a}, "a", nil},
		"two less":              {noteOf{1, "a", eventlog.Head{Seq: 5, Hash: a.Hash}}, "a", &verify.Fault{Seq: 4, Kind: verify.FaultMissing, Detail: "the log ends with entry 3, entry 5 was noted as durable"}},
		"another end":           {noteOf{1, "a", other}, "a", &verify.Fault{Seq: 3, Kind: verify.FaultAltered, Detail: "its hash is not the noted " + other.Hash.String()}},
		"of another":            {noteOf{3, longName, eventlog.Head{Seq: 2, Hash: n.Hash}}, "a", nil},
		"a lost one":            {noteOf{9, "gone", eventlog.Head{Seq: 2, Hash: n.Hash}}, "gone", &verify.Fault{Seq: 1, Kind: verify.FaultMissing, Detail: "the log ends with entry 0, entry 2 was noted as durable"}},
		"an earlier, other one": {noteOf{1, "a", eventlog.Head{Seq: 2, Hash: other.Hash}}, "a", &verify.Fault{Seq: 2, Kind: verify.FaultAltered, Detail: "its hash is not the noted " + other.Hash.String()}},
	} {
		fs := directoryOf(t, disk).onDisk(t)
		notes(t, fs, tt.cell)
		l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: true})
		require.NoError(t, err, name)
		r, err := l.Verify(t.Context(), tt.session, verify.Options{})
		require.NoError(t, err, name)
		assert.Equal(t, tt.want, r.Fault, name)
		assert.Equal(t, name != "as it is", l.Loss() != nil, name)
		require.NoError(t, l.Close())
		_, err = eventlog.Open("store", eventlog.Config{FS: fs})
		if name == "as it is" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, eventlog.ErrLost, name)
		l, err = eventlog.Open("store", eventlog.Config{FS: fs, AcceptLoss: true})
		require.NoError(t, err, name)
		if tt.session == "a" { // what is left is whole from now on
			r, err = l.Verify(t.Context(), "a", verify.Options{})
			require.NoError(t, err, name)
			assert.True(t, r.Whole(), name)
			assert.Equal(t, a, r.Head, name)
		}
		require.NoError(t, l.Close())
		l, err = eventlog.Open("store", eventlog.Config{FS: fs})
		require.NoError(t, err, "%s: it was accepted", name)
		require.NoError(t, l.Close())
	}
}

// A store without notes gets them with its first write, and Doubts reports a store
// whose notes are missing.
func TestStoreWithoutNotes(t *testing.T) {
	mem := vfs.NewCrashableMem()
	heads := twoSessions(t, mem)
	bare := func(key bool) *vfs.MemFS {
		fs := powerCut(mem)
		if key {
			raw(t, fs, func(db *pebble.DB) { remove(t, db, keyspace.HeadsKey()) })
		}
		require.NoError(t, fs.Remove("store/"+eventlog.HeadsFile))
		return fs
	}
	for _, tt := range []struct {
		name   string
		fs     *vfs.MemFS
		change func(fs vfs.FS)
		doubt  string
	}{
		{"written before there were notes", bare(true), nil, ""},
		{"removed", bare(false), nil, "is missing"},
		{"emptied", powerCut(mem), func(fs vfs.FS) { writeFile(t, fs, "store/HEADS", nil) }, "it is empty"},
		{"another file", powerCut(mem), func(fs vfs.FS) { writeFile(t, fs, "store/HEADS", []byte("my notes")) }, "its header is not that of a file of noted heads"},
		{"cut within a cell", powerCut(mem), func(fs vfs.FS) {
			writeFile(t, fs, "store/HEADS", readFile(t, fs, "store/HEADS")[:300])
		}, "ends within cell 1"},
		{"a cell damaged", powerCut(mem), func(fs vfs.FS) {
			b := readFile(t, fs, "store/HEADS")
			b[256+20] ^= 1
			writeFile(t, fs, "store/HEADS", b)
		}, "cell 1 is damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(tt.fs)
			}
			for _, readOnly := range []bool{true, false} {
				l, err := eventlog.Open("store", eventlog.Config{FS: tt.fs, ReadOnly: readOnly})
				require.NoError(t, err)
				if got := strings.Join(l.Doubts(), "; "); !strings.Contains(got, tt.doubt) || (got == "") != (tt.doubt == "") {
					t.Errorf("read-only %v: doubts %q, want %q", readOnly, got, tt.doubt)
				}
				for name, head := range heads {
					if got := session(t, l, name).Head(); got != head {
						t.Errorf("%s: head %v, want %v", name, got, head)
					}
				}
				if !readOnly {
					heads := maps.Clone(heads)
					heads["a"] = must(t, session(t, l, "a"), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, Data: text("on")}}})
					noted, damage, err := eventlog.NotedHeads(tt.fs, "store")
					if err != nil || damage != "" || len(noted) != len(heads) {
						t.Errorf("after a write: %v, %q, %v", noted, damage, err)
					}
					for name, head := range heads {
						if noted[name] != head {
							t.Errorf("%s: noted %v, want %v", name, noted[name], head)
						}
					}
				}
				closeQuietly(t, l)
			}
		})
	}
}

// twoSessions records a store of two sessions.
func twoSessions(t *testing.T, mem *vfs.MemFS) acknowledged {
	t.Helper()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	heads := acknowledged{}
	for _, name := range []string{"a", "b"} {
		heads[name] = must(t, session(t, l, name), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, Data: text("x")}}})
	}
	closeQuietly(t, l)
	return heads
}

// recordReader returns Pebble's own reader of the records of a file. It is generic
// because the type of the file number has no name outside of Pebble.
func recordReader[N ~uint64](open func(io.Reader, N) *pebblerecord.Reader, b []byte, number uint64) *pebblerecord.Reader {
	return open(bytes.NewReader(b), N(number))
}

// ScanWAL scans arbitrary bytes without a panic, and its intact beginning is the part
// that Pebble's own reader reads.
func FuzzScanWAL(f *testing.F) {
	mem := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(f, err)
	s, err := l.Session("a")
	for i := 0; i < 5 && err == nil; i++ {
		_, err = s.Append(context.Background(), eventlog.Batch{Drafts: drafts(3*i+1, 3)})
	}
	require.NoError(f, err)
	names, err := mem.List("store")
	require.NoError(f, err)
	newest := slices.Max(slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") }))
	number, err := strconv.ParseUint(strings.TrimSuffix(newest, ".log"), 10, 64)
	require.NoError(f, err)
	file, err := mem.Open("store/" + newest)
	require.NoError(f, err)
	b, err := io.ReadAll(file)
	require.NoError(f, errors.Join(err, file.Close(), l.Close()))
	f.Add(b)
	f.Add(append(bytes.Clone(b), b...))
	f.Add(slices.Concat(b, make([]byte, 40<<10), b))
	f.Fuzz(func(t *testing.T, b []byte) {
		scan, err := eventlog.ScanWAL(b, number)
		if err != nil || scan.End > int64(len(b)) || scan.Behind >= 0 && scan.Behind < scan.End {
			t.Fatalf("%+v, %v", scan, err)
		}
		r := recordReader(pebblerecord.NewReader, b, number)
		for i, want := range scan.Records {
			rec, err := r.Next()
			if err != nil {
				t.Fatalf("record %d: Pebble: %v", i, err)
			}
			got, err := io.ReadAll(rec)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("record %d: %d bytes, Pebble reads %d, %v", i, len(want), len(got), err)
			}
		}
	})
}

// The entries that the write-ahead log continues must be there: where a batch in front of
// them is missing, at the beginning of a session or behind other entries, opening tells a
// loss; where none is, it does not.
func TestHoleBeforeTheWriteAheadLog(t *testing.T) {
	for _, c := range []struct {
		batches []int // entries of the batches in the tables
		missing int   // the batch that is gone, -1 for none
	}{
		{[]int{1}, -1},
		{[]int{1}, 0},
		{[]int{3}, 0},
		{[]int{2, 1}, -1},
		{[]int{2, 1}, 1},
		{[]int{1, 2}, 1},
		{[]int{1, 1, 4}, 2},
	} {
		mem := vfs.NewCrashableMem()
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		require.NoError(t, err)
		s := session(t, l, "a")
		first := []eventlog.Seq{}
		for _, n := range c.batches {
			first = append(first, s.Head().Seq+1)
			must(t, s, eventlog.Batch{Drafts: beats("in a table", n)})
		}
		require.NoError(t, l.Flush())
		must(t, s, eventlog.Batch{Drafts: beats("in the log", 2)})
		if c.missing >= 0 {
			require.NoError(t, l.Remove(keyspace.BatchKey(nil, 1, first[c.missing])))
		}
		left := killed(mem)
		closeQuietly(t, l)
		l, err = eventlog.Open("store", eventlog.Config{FS: left, ReadOnly: true})
		require.NoError(t, err)
		if c.missing < 0 {
			require.Nil(t, l.Loss(), "%+v", c)
		} else {
			require.NotNil(t, l.Loss(), "%+v", c)
			require.Len(t, l.Loss().Losses, 1, "%+v", c)
			require.Equal(t, "a", l.Loss().Losses[0].Session)
		}
		require.NoError(t, l.Close())
	}
}

// Wherever a file of the write-ahead log breaks, the first as well as the last, and whether or
// not Pebble refuses the store for it: the loss names that file and a place in front of the
// break, what is in front of it is there, and a store that accepts the loss is whole.
func TestEachBreakIsALoss(t *testing.T) {
	left, acks := severalLogs(t)
	names := logs(t, left)
	broken := map[int]bool{}
	for i, name := range names {
		whole := readFile(t, left, "store/"+name)
		end := logEnd(t, left, name)
		if end == 0 {
			continue
		}
		for what, damage := range map[string]func(b []byte, at int) []byte{
			"flipped": func(b []byte, at int) []byte { b[at] ^= 1; return b },
			"cut":     func(b []byte, at int) []byte { return b[:at] },
		} {
			for _, at := range []int{30, end / 2}[i%2 : i%2+1] {
				where := fmt.Sprintf("%s %s at byte %d of %d", name, what, at, end)
				files := directoryOf(t, left).with(name, damage(bytes.Clone(whole), at))
				fs := files.onDisk(t)
				l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: true})
				require.NoError(t, err, where)
				loss := l.Loss()
				require.NotNil(t, loss, where)
				if i < len(names)-1 || loss.File != "" { // at the end only the notes prove the loss
					assert.Equal(t, name, loss.File, where)
				}
				assert.LessOrEqual(t, loss.Offset, int64(at), where)
				assert.NotEmpty(t, loss.Losses, where)
				for _, lost := range loss.Losses {
					assert.Less(t, lost.Have.Seq, acks[lost.Session].Seq, where)
					s, err := l.Session(lost.Session)
					require.NoError(t, err)
					assert.Equal(t, lost.Have, s.Head(), where)
				}
				require.NoError(t, l.Close())
				assert.True(t, directoryOf(t, fs).equal(files), where)
				_, err = eventlog.Open("store", eventlog.Config{FS: fs})
				require.ErrorIs(t, err, eventlog.ErrLost, where)
				require.EqualError(t, err, loss.Error(), where)
				l, err = eventlog.Open("store", eventlog.Config{FS: fs, AcceptLoss: true})
				require.NoError(t, err, where)
				holding := acknowledged{}
				maps.Copy(holding, acks)
				for _, lost := range loss.Losses {
					holding[lost.Session] = lost.Have
				}
				holds(t, l, holding, where)
				require.NoError(t, l.Close())
				l, err = eventlog.Open("store", eventlog.Config{FS: fs})
				require.NoError(t, err, where)
				assert.Nil(t, l.Loss(), where)
				require.NoError(t, l.Close())
				broken[i] = true
			}
		}
	}
	assert.GreaterOrEqual(t, len(broken), 3)
}

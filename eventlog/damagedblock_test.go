package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// tableBlock is a data block of a table.
type tableBlock struct {
	table        string
	offset, size int
	keys         [][]byte
}

func (b *tableBlock) String() string { return fmt.Sprintf("%s, block at %d", b.table, b.offset) }

// holds reports whether the block has a key with that tag.
func (b *tableBlock) holds(tag byte) bool {
	return slices.ContainsFunc(b.keys, func(key []byte) bool { return key[0] == tag })
}

// tablesOf returns the names of the tables that a store reads. Others in its directory are
// those of a compaction that a kill cut off.
func tablesOf(t *testing.T, fs vfs.FS) (names []string) {
	t.Helper()
	disk := directoryOf(t, fs).onDisk(t)
	db, err := pebble.Open("store", &pebble.Options{FS: disk, ReadOnly: true, FormatMajorVersion: pebble.FormatWALSyncChunks, Logger: quiet{t}})
	require.NoError(t, err)
	levels, err := db.SSTables()
	require.NoError(t, errors.Join(err, db.Close()))
	for _, level := range levels {
		for _, table := range level {
			names = append(names, storefile.TableFile(table))
		}
	}
	slices.Sort(names)
	return names
}

// blocksOf returns the data blocks of all tables of a store.
func blocksOf(t *testing.T, fs vfs.FS) (blocks []tableBlock) {
	t.Helper()
	for _, name := range tablesOf(t, fs) {
		file, err := fs.Open("store/" + name)
		require.NoError(t, err)
		readable, err := sstable.NewSimpleReadable(file)
		require.NoError(t, err)
		opts := &pebble.Options{}
		opts.EnsureDefaults()
		r, err := sstable.NewReader(t.Context(), readable, opts.MakeReaderOptions())
		require.NoError(t, err)
		layout, err := r.Layout()
		require.NoError(t, err)
		first := len(blocks)
		for _, h := range layout.Data {
			blocks = append(blocks, tableBlock{table: name, offset: int(h.Offset), size: int(h.Length)})
		}
		it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		require.NoError(t, err)
		for kv := it.First(); kv != nil; kv = it.Next() {
			// The end of the block of the key; the iterator does not have it.
			at, err := r.EstimateDiskUsage(nil, kv.K.UserKey, sstable.NoReadEnv)
			require.NoError(t, err)
			i := first
			for i+1 < len(blocks) && uint64(blocks[i+1].offset) < at {
				i++
			}
			blocks[i].keys = append(blocks[i].keys, bytes.Clone(kv.K.UserKey))
		}
		require.NoError(t, errors.Join(it.Error(), it.Close(), r.Close()))
	}
	return blocks
}

// damagedStore is a store of which each block is damaged in turn.
type damagedStore struct {
	name     string
	fs       *vfs.MemFS
	sessions []string
	bodies   map[string][][]byte
	heads    map[string][]eventlog.Head // of each entry
}

// lost returns the entries of a session whose batch is in the block.
func (d *damagedStore) lost(t *testing.T, starts map[string][]eventlog.Seq, b *tableBlock, number uint32, name string) map[eventlog.Seq]bool {
	t.Helper()
	lost := map[eventlog.Seq]bool{}
	for _, key := range b.keys {
		first, ok := keyspace.BatchSeq(key)
		if n, _ := keyspace.Number(key); !ok || n != number {
			continue
		}
		at, found := slices.BinarySearch(starts[name], first)
		require.True(t, found)
		end := eventlog.Seq(len(d.bodies[name])) + 1
		if at+1 < len(starts[name]) {
			end = starts[name][at+1]
		}
		for ; first < end; first++ {
			lost[first] = true
		}
	}
	return lost
}

// damagedStores returns stores whose tables have several blocks, with the first entries of
// the batches of their sessions.
func damagedStores(t *testing.T) (stores []*damagedStore, starts map[string][]eventlog.Seq) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	starts = map[string][]eventlog.Seq{}
	mem := vfs.NewCrashableMem()
	add := func(l *eventlog.Log, name string, batches, size int) {
		s := session(t, l, name)
		for range batches {
			b := eventlog.Batch{Key: fmt.Sprintf("%s %d", name, s.Head().Seq)}
			for range 1 + rng.IntN(3) {
				b.Drafts = append(b.Drafts, eventlog.Draft{Kind: eventlog.KindSignal, Data: noise(rng, 1+rng.IntN(size))})
			}
			starts[name] = append(starts[name], s.Head().Seq+1)
			must(t, s, b)
		}
	}
	keep := func(name string, fs *vfs.MemFS) {
		d := &damagedStore{name: name, fs: fs, bodies: map[string][][]byte{}, heads: map[string][]eventlog.Head{}}
		l := open(t, directoryOf(t, fs).onDisk(t), eventlog.Config{})
		infos, err := l.Sessions()
		require.NoError(t, err)
		for _, info := range infos {
			d.sessions = append(d.sessions, info.Name)
			for e, err := range session(t, l, info.Name).Entries(t.Context(), 1) {
				require.NoError(t, err)
				d.bodies[info.Name] = append(d.bodies[info.Name], e.Body)
				d.heads[info.Name] = append(d.heads[info.Name], e.Head())
			}
		}
		closeQuietly(t, l)
		stores = append(stores, d)
	}
	l := open(t, mem, eventlog.Config{})
	add(l, "a", 30, 4<<10)
	closeQuietly(t, l)
	keep("one table", killed(mem))
	l = open(t, mem, eventlog.Config{})
	add(l, "b", 12, 4<<10)
	add(l, "a", 12, 4<<10)
	closeQuietly(t, l)
	l = open(t, mem, eventlog.Config{})
	add(l, "c", 60, 20) // small entries: the records of keys fill blocks
	add(l, "a", 12, 4<<10)
	closeQuietly(t, l)
	keep("tables", killed(mem))
	l = open(t, mem, eventlog.Config{})
	add(l, "b", 4, 4<<10)
	add(l, "a", 4, 4<<10)
	keep("killed", killed(mem))
	closeQuietly(t, l)
	return stores, starts
}

// eachDamage calls f with each store of which one block is damaged, opened for reading. It
// returns how many stores were refused.
func eachDamage(t *testing.T, stores []*damagedStore, f func(d *damagedStore, b *tableBlock, fs vfs.FS, l *eventlog.Log)) {
	t.Helper()
	for n, d := range stores {
		blocks := blocksOf(t, d.fs)
		require.Greater(t, len(blocks), 5)
		files := directoryOf(t, d.fs)
		refused := 0
		for i := range blocks {
			if edge := i == 0 || i == len(blocks)-1; !edge && i%(2*n+1) != 0 && !attack.Long() {
				continue
			}
			b := &blocks[i]
			require.NotEmpty(t, b.keys, "%v", b)
			content := bytes.Clone(files[b.table])
			content[b.offset+b.size/2] ^= 0x55
			before := files.with(b.table, content)
			fs := before.onDisk(t)
			l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: true})
			if err != nil {
				refused++
				assert.ErrorIs(t, err, eventlog.ErrCorrupt)
				assert.True(t, b.holds(keyspace.TagSession) || b.holds('f') || b.holds('d'), "%s, %v: %v", d.name, b, err)
				f(d, b, fs, nil)
				continue
			}
			f(d, b, fs, l)
			if err := l.Close(); !errors.Is(err, eventlog.ErrClosed) {
				require.NoError(t, err)
			}
			assert.True(t, directoryOf(t, fs).equal(before), "%s, %v: the store was changed", d.name, b)
		}
		tables := map[string]bool{}
		for i := range blocks {
			tables[blocks[i].table] = true
		}
		t.Logf("%s: %d blocks in %d tables, %d stores refused", d.name, len(blocks), len(tables), refused)
		require.Less(t, refused, len(blocks)/2)
	}
}

// Whatever block of a table is damaged, the entries outside of it can be read, whether one
// by one, from any of them on, or around the gap. The chain is whole up to the damage.
func TestDamagedBlock(t *testing.T) {
	stores, starts := damagedStores(t)
	eachDamage(t, stores, func(d *damagedStore, b *tableBlock, _ vfs.FS, l *eventlog.Log) {
		if l == nil {
			return
		}
		for i, name := range d.sessions {
			where := fmt.Sprintf("%s, %v, session %s", d.name, b, name)
			lost := d.lost(t, starts, b, uint32(i)+1, name)
			s := session(t, l, name)
			end := eventlog.Seq(len(d.bodies[name]))
			require.Equal(t, end, s.Head().Seq, where)
			require.Equal(t, d.heads[name][end-1], s.Head(), where)
			check := func(e eventlog.Entry) {
				require.False(t, lost[e.Seq], "%s: read entry %d", where, e.Seq)
				require.Equal(t, d.bodies[name][e.Seq-1], e.Body, "%s: entry %d", where, e.Seq)
			}
			// Around the gaps.
			read := eventlog.Seq(0)
			for next, ok := eventlog.Seq(1), true; ok; {
				for e, err := range s.Entries(t.Context(), next) {
					if err != nil {
						broken, isBroken := errors.AsType[*eventlog.EntryError](err)
						require.True(t, isBroken, "%s: %v", where, err)
						require.ErrorIs(t, err, eventlog.ErrCorrupt)
						require.Equal(t, next, broken.Seq, where)
						require.True(t, lost[next], "%s: entry %d was not read: %v", where, next, err)
						break
					}
					check(e)
					require.Equal(t, next, e.Seq, where)
					next++
					read++
				}
				var err error
				from := next
				next, ok, err = s.Readable(t.Context(), from)
				require.NoError(t, err, where)
				for seq := from; ok && seq < next; seq++ {
					require.True(t, lost[seq], "%s: entry %d was passed over", where, seq)
				}
			}
			require.Equal(t, int(end)-len(lost), int(read), where)
			// One by one, at the damage and elsewhere.
			whole := eventlog.Seq(0)
			for seq := end; seq > 0; seq-- {
				if lost[seq] {
					whole = seq - 1
				}
			}
			if len(lost) == 0 {
				whole = end
			}
			for seq := eventlog.Seq(1); seq <= end; seq++ {
				if near := lost[max(1, seq-1)] != lost[min(end, seq+1)]; !near && seq%7 != 0 {
					continue
				}
				e, err := s.Entry(t.Context(), seq)
				if lost[seq] {
					require.ErrorIs(t, err, eventlog.ErrCorrupt, "%s: entry %d", where, seq)
					continue
				}
				require.NoError(t, err, "%s: entry %d", where, seq)
				check(e)
			}
			for _, workers := range []int{1, 3} {
				report, err := l.Verify(t.Context(), name, verify.Options{Workers: workers})
				if b.holds(keyspace.TagOutcome) && len(lost) == 0 {
					assert.True(t, err == nil || errors.Is(err, eventlog.ErrCorrupt), "%s: %v", where, err)
					continue // the records of the keys cannot be compared
				}
				require.NoError(t, err, where)
				if len(lost) == 0 {
					assert.Nil(t, report.Fault, where)
					continue
				}
				if assert.NotNil(t, report.Fault, where) {
					assert.Equal(t, verify.FaultUnreadable, report.Fault.Kind, where)
					assert.Equal(t, whole+1, report.Fault.Seq, where)
					want := eventlog.Head{Hash: eventlog.Genesis(name)}
					if whole > 0 {
						want = d.heads[name][whole-1]
					}
					assert.Equal(t, want, report.Head, where)
				}
			}
		}
	})
}

// A session whose only entry cannot be read is one of an entry: it ends where it was noted.
func TestDamagedOnlyEntry(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem, eventlog.Config{})
	rng := rand.New(rand.NewPCG(2, 2))
	var head eventlog.Head
	for _, name := range []string{"b", "a", "c"} { // each in a block of its own
		h := must(t, session(t, l, name), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: noise(rng, 9<<10)}}})
		if name == "a" {
			head = h
		}
	}
	closeQuietly(t, l)
	only := keyspace.BatchKey(nil, 2, 1)
	files := directoryOf(t, mem)
	blocks := blocksOf(t, mem)
	i := slices.IndexFunc(blocks, func(b tableBlock) bool {
		return slices.ContainsFunc(b.keys, func(key []byte) bool { return bytes.Equal(key, only) })
	})
	require.GreaterOrEqual(t, i, 0)
	content := bytes.Clone(files[blocks[i].table])
	content[blocks[i].offset+blocks[i].size/2] ^= 0x55
	for _, noted := range []bool{true, false} {
		changed := files.with(blocks[i].table, content)
		if !noted {
			changed = changed.with(eventlog.HeadsFile, nil)
		}
		l := open(t, changed.onDisk(t), eventlog.Config{ReadOnly: true})
		require.Equal(t, 1, count(t, session(t, l, "b")))
		s, err := l.Session("a")
		if !noted {
			require.ErrorIs(t, err, eventlog.ErrCorrupt, "nothing says where it ends")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, head, s.Head())
		_, err = s.Entry(t.Context(), 1)
		require.ErrorIs(t, err, eventlog.ErrCorrupt)
		report, err := l.Verify(t.Context(), "a", verify.Options{})
		require.NoError(t, err)
		require.Equal(t, eventlog.Seq(1), report.Fault.Seq)
	}
}

// Whatever block of a table is damaged, Repair copies the keys outside of it and says that
// the table cannot be read as a whole. The copy of a session is whole, or broken where its
// first entry is missing.
func TestRepairDamagedBlock(t *testing.T) {
	stores, starts := damagedStores(t)
	eachDamage(t, stores[:2], func(d *damagedStore, b *tableBlock, fs vfs.FS, l *eventlog.Log) {
		if l != nil {
			require.NoError(t, l.Close())
		}
		where := fmt.Sprintf("%s, %v", d.name, b)
		before := directoryOf(t, fs)
		r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
		require.NoError(t, err, where)
		assert.True(t, directoryOf(t, fs).equal(before), where)
		assert.ErrorIs(t, r.Found, eventlog.ErrCorrupt, where)
		assert.Contains(t, strings.Join(r.Doubts, "\n"), "blocks of table "+b.table+" cannot be read", where)
		assert.False(t, r.Whole(), where)
		saved, err := eventlog.Open("copy", eventlog.Config{FS: fs, ReadOnly: true})
		require.NoError(t, err, where)
		for i, name := range d.sessions {
			lost := d.lost(t, starts, b, uint32(i)+1, name)
			s := session(t, saved, name)
			if len(lost) == len(d.bodies[name]) {
				assert.False(t, s.Exists(), where)
				continue
			}
			read := 0
			for next, ok := eventlog.Seq(1), true; ok; {
				for e, err := range s.Entries(t.Context(), next) {
					if err != nil {
						break
					}
					require.Equal(t, d.bodies[name][e.Seq-1], e.Body, where)
					next = e.Seq + 1
					read++
				}
				next, ok, err = s.Readable(t.Context(), next)
				require.NoError(t, err, where)
			}
			assert.Equal(t, len(d.bodies[name])-len(lost), read, "%s, session %s", where, name)
		}
		require.NoError(t, saved.Close())
	})
}

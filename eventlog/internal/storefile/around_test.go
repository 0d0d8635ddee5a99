package storefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/cockroachdb/pebble/v2/wal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// quiet drops the messages of Pebble.
type quiet struct{ pebble.Logger }

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}

// pebbleIn opens a store of Pebble whose tables have small blocks and a mark, and are
// never compacted.
func pebbleIn(t *testing.T, disk vfs.FS) *pebble.DB {
	t.Helper()
	opts := &pebble.Options{
		FS: disk, FormatMajorVersion: pebble.FormatWALSyncChunks, Logger: quiet{pebble.DefaultLogger}, DisableAutomaticCompactions: true,
		BlockPropertyCollectors: []func() pebble.BlockPropertyCollector{func() pebble.BlockPropertyCollector { return TableMark(exampleID) }},
	}
	for i := range opts.Levels {
		opts.Levels[i].BlockSize = 64
	}
	db, err := pebble.Open("store", opts)
	require.NoError(t, err)
	return db
}

// Without damage the iterator yields what Pebble's yields, wherever it is sent: the newest
// value of each key, whatever tables and the memtable hold of it, within the bounds.
func TestAroundNoDamage(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 3))
		mem := vfs.NewMem()
		db := pebbleIn(t, mem)
		key := func() []byte { return fmt.Appendf(nil, "k%02d", rng.IntN(60)) }
		model := map[string]string{}
		deletes := seed%2 == 1
		for i := range 150 {
			k, v := key(), fmt.Sprintf("value %d", i)
			if deletes && rng.IntN(3) == 0 {
				delete(model, string(k))
				require.NoError(t, db.Delete(k, pebble.NoSync))
			} else {
				model[string(k)] = v
				require.NoError(t, db.Set(k, []byte(v), pebble.NoSync))
			}
			if rng.IntN(30) == 0 {
				require.NoError(t, db.Flush())
			}
		}
		if deletes { // a deletion counts once it is in a table
			require.NoError(t, db.Flush())
			k := key()
			model[string(k)] = "fresh"
			require.NoError(t, db.Set(k, []byte("fresh"), pebble.NoSync))
		}
		lower, upper := "k10", "k50"
		var keys []string
		for k := range model {
			if k >= lower && k < upper {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		a, err := ReadAround(t.Context(), db, mem, "store", &pebble.IterOptions{LowerBound: []byte(lower), UpperBound: []byte(upper)})
		require.NoError(t, err)
		rest := func(from int) {
			t.Helper()
			for _, k := range keys[from:] {
				require.True(t, a.Valid(), "seed %d", seed)
				require.Equal(t, k, string(a.Key()), "seed %d", seed)
				require.Equal(t, model[k], string(a.Value()), "seed %d", seed)
				a.Next()
			}
			require.False(t, a.Valid(), "seed %d", seed)
			require.False(t, a.Next(), "seed %d", seed)
			require.NoError(t, a.Error())
		}
		assert.False(t, a.Valid(), "it stands at no key")
		assert.Equal(t, len(keys) > 0, a.SeekGE([]byte(lower)))
		rest(0)
		for range 20 {
			k := fmt.Sprintf("k%02d", 10+rng.IntN(40))
			at, found := slices.BinarySearch(keys, k)
			assert.Equal(t, at < len(keys), a.SeekGE([]byte(k)))
			rest(at)
			if deletes {
				continue // no key of a batch is ever deleted alone
			}
			if !found {
				at = max(at-1, 0)
			}
			assert.True(t, a.SeekLE([]byte(k), []byte(lower)))
			rest(at)
		}
		require.NoError(t, errors.Join(a.Close(), db.Close()))
	}
}

// A table that is damaged as a whole is passed, and a disk that does not read one is an
// error; so is a context that has ended.
func TestAroundErrors(t *testing.T) {
	mem := vfs.NewMem()
	db := pebbleIn(t, mem)
	for _, k := range []string{"a", "b"} {
		require.NoError(t, errors.Join(db.Set([]byte(k), []byte("1"), pebble.NoSync), db.Flush()))
	}
	names, err := mem.List("store")
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return KindOf(name) != KindTable })
	slices.Sort(names)
	require.Len(t, names, 2)
	bounds := &pebble.IterOptions{LowerBound: []byte("a"), UpperBound: []byte("z")}
	keys := func(disk vfs.FS, bounds *pebble.IterOptions) (all []string) {
		t.Helper()
		a, err := ReadAround(t.Context(), db, disk, "store", bounds)
		require.NoError(t, err)
		for ok := a.SeekGE(bounds.LowerBound); ok; ok = a.Next() {
			all = append(all, string(a.Key()))
		}
		require.NoError(t, errors.Join(a.Error(), a.Close()))
		return all
	}
	assert.Equal(t, []string{"a", "b"}, keys(mem, bounds))

	broken := errors.New("the disk says no")
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && mem.PathBase(op.Path) == names[0] {
			return broken
		}
		return nil
	}))
	_, err = ReadAround(t.Context(), db, disk, "store", bounds)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "read "+names[0])
	assert.Equal(t, []string{"b"}, keys(disk, &pebble.IterOptions{LowerBound: []byte("aa"), UpperBound: []byte("z")}), "the other table is not within the bounds")
	_, err = ReadAround(t.Context(), db, disk, "store", &pebble.IterOptions{LowerBound: []byte("a"), UpperBound: []byte("b")})
	require.ErrorIs(t, err, broken)
	assert.Empty(t, keys(disk, &pebble.IterOptions{LowerBound: []byte("aa"), UpperBound: []byte("b")}))
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = ReadAround(ended, db, mem, "store", bounds)
	require.ErrorIs(t, err, context.Canceled)

	f, err := mem.OpenReadWrite("store/"+names[0], vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, int(info.Size())), 0)
	require.NoError(t, errors.Join(err, f.Close()))
	assert.Equal(t, []string{"b"}, keys(mem, bounds))
	_, err = OpenTable(mem, "store/"+names[0])
	require.ErrorIs(t, err, chain.ErrCorrupt)
	require.NoError(t, db.Close())
}

// A large block is one of Pebble's if either of its checksums fits, and small reads are
// left to Pebble.
func TestLargeBlocks(t *testing.T) {
	content := bytes.Repeat([]byte("content "), 512) // 4 KiB
	c := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	le := func(n uint32) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} }
	crc := slices.Concat(content, le((c>>15|c<<17)+0xa282ead8))
	xx := slices.Concat(content, le(uint32(xxhash.Sum64(content))))
	wrong := slices.Concat(content, le(c))
	mem := vfs.NewMem()
	for name, b := range map[string][]byte{"000001.sst": crc, "000002.sst": xx, "000003.sst": wrong, "000004.log": wrong} {
		put(t, mem, name, string(b))
	}
	read := func(name string, from, to int64) error {
		f, err := BlockFS{mem}.Open(name)
		require.NoError(t, err)
		n, err := f.ReadAt(make([]byte, to-from), from)
		assert.Equal(t, int(to-from), n)
		require.NoError(t, f.Close())
		return err
	}
	size := int64(len(wrong))
	require.NoError(t, read("000001.sst", 0, size))
	require.NoError(t, read("000002.sst", 0, size))
	require.NoError(t, read("000004.log", 0, size))
	err := read("000003.sst", 0, size)
	require.ErrorIs(t, err, pebble.ErrCorruption)
	require.ErrorContains(t, err, "the block of 4100 bytes at byte 0 of 000003.sst does not match its checksum")
	require.Error(t, read("000003.sst", 4, size), "4096 bytes are a large block")
	require.NoError(t, read("000003.sst", 5, size), "and 4095 are not")
}

// The space of a store is counted by the role of each file.
func TestMeasureUsage(t *testing.T) {
	disk := folderOf(t)
	sizes := map[string]int{"000001.sst": 1, "000002.blob": 2, "000003.log": 4, "snapshots.db": 8, "snapshots.db.lock": 16, "SAJOU": 32, "notes.txt": 64, "MANIFEST-000001": 128}
	for name, n := range sizes {
		put(t, disk, "store/"+name, string(make([]byte, n)))
	}
	u, err := MeasureUsage(disk, "store")
	require.NoError(t, err)
	assert.Equal(t, DiskUsage{Tables: 3, Logs: 4, Snapshots: 24, Other: 224}, u)
	assert.Equal(t, uint64(255), u.Total())
	_, err = MeasureUsage(disk, "none")
	require.ErrorContains(t, err, "eventlog: measure none: ")

	broken := errors.New("the disk says no")
	for kind, want := range map[error]error{os.ErrNotExist: nil, broken: broken} {
		failing := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpStat && disk.PathBase(op.Path) == "000003.log" {
				return kind
			}
			return nil
		}))
		u, err = MeasureUsage(failing, "store")
		require.ErrorIs(t, err, want)
		if want == nil {
			assert.Equal(t, DiskUsage{Tables: 3, Snapshots: 24, Other: 224}, u, "a file that is gone takes no space")
		} else {
			require.ErrorContains(t, err, "eventlog: measure 000003.log in store: ")
		}
	}
}

// The roles of the files that are synced, as metrics name them.
func TestRoles(t *testing.T) {
	for name, role := range map[string]string{
		"000001.log": "wal", "HEADS": "heads", "000001.sst": "table", "000001.blob": "table", "MANIFEST-000001": "manifest",
		"OPTIONS-000001": "other", "marker.manifest.000001.MANIFEST-000001": "other", "": "other",
	} {
		assert.Equal(t, role, KindOf(name).role(), name)
	}
}

// Nothing can be changed on a file system for reading.
func TestReadOnlyFS(t *testing.T) {
	disk := folderOf(t, "file")
	r := ReadOnlyFS{disk}
	_, err1 := r.Create("store/new", vfs.WriteCategoryUnspecified)
	_, err2 := r.OpenReadWrite("store/file", vfs.WriteCategoryUnspecified)
	_, err3 := r.ReuseForWrite("store/file", "store/new", vfs.WriteCategoryUnspecified)
	for _, err := range []error{
		err1, err2, err3, r.Link("store/file", "store/new"), r.Remove("store/file"), r.RemoveAll("store"),
		r.Rename("store/file", "store/new"), r.MkdirAll("store/new", 0o700),
	} {
		require.ErrorIs(t, err, syscall.EROFS)
	}
	names, err := r.List("store")
	require.NoError(t, err)
	assert.Equal(t, []string{"file"}, names)
	assert.Equal(t, disk, r.Unwrap())
}

// A new store's folder is cleared of the files of a store, the lock last; files of others
// stay, and with them the lock only if a file could not be removed.
func TestClearFolder(t *testing.T) {
	kept := []string{"notes.txt", ".DS_Store", "snapshots.db"}
	disk := folderOf(t, slices.Concat(kept, []string{LockName, FormatFile, FilesName, "000001.log", "000002.sst", "MANIFEST-000001", "OPTIONS-000001", "000003.dbtmp", markerFile})...)
	require.NoError(t, ClearFolder(disk, "store"))
	names, err := disk.List("store")
	require.NoError(t, err)
	assert.ElementsMatch(t, kept, names)
	assert.True(t, IsMissing(ClearFolder(disk, "none")))

	broken := errors.New("the disk says no")
	disk = folderOf(t, LockName, FormatFile, "000001.log")
	failing := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRemove && disk.PathBase(op.Path) == FormatFile {
			return broken
		}
		return nil
	}))
	require.ErrorIs(t, ClearFolder(failing, "store"), broken)
	names, err = disk.List("store")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{LockName, FormatFile}, names)
}

// A creation that finds the rest of another one, and cannot remove it, says so and builds
// nothing.
func TestCreateInsideFails(t *testing.T) {
	broken := errors.New("the disk says no")
	for kind, path := range map[errorfs.OpKind]string{errorfs.OpRemove: "000001.log", errorfs.OpMkdirAll: CreatingName, errorfs.OpOpenDir: "store", errorfs.OpLock: LockName} {
		mem := folderOf(t)
		require.NoError(t, mem.MkdirAll("store/"+CreatingName, 0o755))
		put(t, mem, "store/"+CreatingName+"/000001.log", "")
		disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind && mem.PathBase(op.Path) == path {
				return broken
			}
			return nil
		}))
		err := CreateInside(disk, "store", func(string, *pebble.Lock) error {
			t.Errorf("%v failed, and a store is built", kind)
			return nil
		})
		require.ErrorIs(t, err, broken, "%v", kind)
	}
}

// A builder that fails leaves a directory that is not a store.
func TestBuilderFails(t *testing.T) {
	broken := errors.New("the disk says no")
	build := func(string, *pebble.Lock) error { return broken }
	disk := folderOf(t)
	require.ErrorIs(t, CreateInside(disk, "store", build), broken)
	s, err := LookAt(disk, "store")
	require.NoError(t, err)
	assert.Equal(t, StateCreating, s.State)
	mem := vfs.NewMem()
	created, made, err := CreateBeside(mem, "above/store", build)
	require.ErrorIs(t, err, broken)
	assert.False(t, created)
	assert.Equal(t, []string{"above"}, made)
	names, err := mem.List("above")
	require.NoError(t, err)
	assert.Empty(t, names)
}

// Only a path of the form that a checkpoint gets is one.
func TestIsCheckpoint(t *testing.T) {
	mem := vfs.NewMem()
	path, err := NewCheckpointPath(mem, "store")
	require.NoError(t, err)
	assert.True(t, IsCheckpoint(mem, path))
	for _, other := range []string{
		"store/checkpoints", "store/0123456789abcdef", "store/checkpoints/0123456789abcde", "store/checkpoints/0123456789abcdef01",
		"store/checkpoints/0123456789abcdeg", "store/checkpoints/0123456789abcdef/x", "store/checkpoints/", "",
	} {
		assert.False(t, IsCheckpoint(mem, other), other)
		require.ErrorContains(t, RemoveCheckpoint(mem, other, 0), "it is not the path of a checkpoint")
	}
	require.NoError(t, RemoveCheckpoint(mem, path, 0), "one that is gone")
	require.NoError(t, SweepCheckpoints(mem, "store", nil))
	require.NoError(t, mem.MkdirAll(path, 0o700))
	require.NoError(t, SweepCheckpoints(mem, "store", []string{FormatFile}), "a directory without the folder")
	_, err = mem.Stat(path)
	require.NoError(t, err)
	require.NoError(t, SweepCheckpoints(mem, "store", []string{CheckpointsName}))
	_, err = mem.Stat(path)
	assert.True(t, IsMissing(err))
	_, err = mem.Stat("store/checkpoints")
	assert.True(t, IsMissing(err), "the folder of the last one")
}

// Completing a checkpoint fails if the copy of the store has no marker.
func TestCompleteCheckpointWithoutMarker(t *testing.T) {
	disk := folderOf(t, manifestFile)
	require.ErrorIs(t, CompleteCheckpoint(disk, "store", exampleID, nil), chain.ErrCorrupt)
	names, err := disk.List("store")
	require.NoError(t, err)
	assert.Equal(t, []string{manifestFile}, names)
}

// A refusal names the directory, the fact and the remedy, by its class.
func TestDirectoryErrorText(t *testing.T) {
	for want, e := range map[string]DirectoryError{
		"eventlog: corrupt: store d: it is wrong; repair it": {"d", "it is wrong", "repair it", chain.ErrCorrupt},
		"eventlog: corrupt: store d: it is wrong":            {"d", "it is wrong", "", chain.ErrCorrupt},
		"eventlog: no store in d: it is a file":              {"d", "it is a file", "", ErrForeign},
		"eventlog: d: it exists; name another":               {"d", "it exists", "name another", os.ErrExist},
	} {
		require.EqualError(t, &e, want)
		require.ErrorIs(t, &e, e.Err)
	}
	for n, want := range map[int]string{1: `"a"`, 5: `"a", "b", "c", "d", "e"`, 6: `"a", "b", "c", "d", "e" and 1 more`, 7: `"a", "b", "c", "d", "e" and 2 more`} {
		assert.Equal(t, want, some([]string{"a", "b", "c", "d", "e", "f", "g"}[:n]))
	}
}

// The keys of a write-ahead log are those that it sets: a deletion of one key, or of many, is
// not a key.
func TestEachLogKey(t *testing.T) {
	mem := vfs.NewMem()
	db := pebbleIn(t, mem)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), pebble.Sync))
	require.NoError(t, db.Delete([]byte("b"), pebble.Sync))
	require.NoError(t, db.DeleteRange([]byte("c"), []byte("d"), pebble.Sync))
	b := db.NewBatch()
	require.NoError(t, errors.Join(b.Set([]byte("e"), []byte("2"), nil), b.Delete([]byte("f"), nil), b.Set([]byte("g"), nil, nil), b.Commit(pebble.Sync)))
	logs, err := wal.Scan(wal.Dir{FS: mem, Dirname: "store"})
	require.NoError(t, err)
	var keys []string
	records := 0
	for _, log := range logs {
		scan, err := EachLogKey(log, func(key, value []byte) error {
			keys = append(keys, string(key)+"="+string(value))
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, scan.Stopped)
		records += scan.records
	}
	assert.Equal(t, []string{"a=1", "e=2", "g="}, keys)
	assert.Equal(t, 4, records)
	refused := errors.New("refused")
	for _, log := range logs {
		_, err = EachLogKey(log, func(key, _ []byte) error {
			if string(key) == "e" {
				return refused
			}
			return nil
		})
	}
	require.ErrorIs(t, err, refused)
}

// A failed write is hidden from Pebble, but for the tables, which it reads again; from then on
// nothing is written.
func TestFreezeHides(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shown bool // the failure
		lost  bool
	}{
		{"000001.sst", true, false},
		{"000001.blob", true, false},
		{"000001.log", false, true},
		{"MANIFEST-000001", false, false},
		{"OPTIONS-000001", false, false},
		{"HEADS", false, false},
	} {
		for _, op := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpFileWriteAt} {
			mem := vfs.NewMem()
			broken := false
			var failed []error
			disk := NewFreezeFS(errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
				if broken && o.Kind == op {
					return errDisk
				}
				return nil
			})), func(err error) { failed = append(failed, err) })
			f, err := disk.Create(tt.name, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			n, err := f.Write([]byte("before"))
			require.NoError(t, err)
			require.Equal(t, 6, n)
			require.NoError(t, f.Sync())
			what := fmt.Sprint(tt.name, " ", op)
			broken = true
			n, want := 0, 5
			switch op {
			case errorfs.OpFileWrite:
				n, err = f.Write([]byte("after"))
			case errorfs.OpFileWriteAt:
				n, err = f.WriteAt([]byte("after"), 0)
			case errorfs.OpFileSync:
				want, err = 0, f.Sync()
			case errorfs.OpFileSyncData:
				want, err = 0, f.SyncData()
			default:
				want = 0
				_, err = f.SyncTo(6)
			}
			if tt.shown {
				require.ErrorIs(t, err, errDisk, what)
				want = 0
			} else {
				require.NoError(t, err, what)
			}
			assert.Equal(t, want, n, what)
			require.Len(t, failed, 1, what)
			require.ErrorIs(t, failed[0], errDisk)
			assert.True(t, disk.Frozen.Load(), what)
			assert.Equal(t, tt.lost, disk.Lost.Load(), what)
			broken = false
			n, err = f.Write([]byte("later"))
			if tt.shown {
				require.ErrorIs(t, err, errDisk, what)
				assert.Zero(t, n)
			} else {
				require.NoError(t, err, what)
				assert.Equal(t, 5, n)
			}
			assert.Equal(t, "before", string(bytes.TrimRight(contentOf(t, mem, tt.name), "\x00")), what)
			require.NoError(t, disk.Remove(tt.name))
			require.NoError(t, disk.Rename(tt.name, "x"))
			require.NoError(t, disk.MkdirAll("y", 0o755))
			require.NoError(t, disk.Link(tt.name, "z"))
			require.NoError(t, disk.RemoveAll(tt.name))
			names, err := mem.List("")
			require.NoError(t, err)
			assert.Equal(t, []string{tt.name}, names, what)
			assert.Len(t, failed, 1, what)
		}
	}
}

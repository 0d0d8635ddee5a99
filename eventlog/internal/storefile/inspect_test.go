package storefile

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// A file without a record may be a write-ahead log if its first chunk has its number, or
// if it has none and its number is near those of the other files.
func TestMaybeLog(t *testing.T) {
	names := []string{"MANIFEST-000005", "OPTIONS-000007", "000006.sst", "009999.log", "notes.txt"}
	chunk := func(kind byte, number ...byte) string {
		return string(append([]byte{1, 2, 3, 4, 5, 6, kind}, append(number, 0, 0, 0, 0)[:4]...))
	}
	for _, tt := range []struct {
		name     string
		contents string
		number   uint64
		want     bool
	}{
		{"empty", "", 1007, true},
		{"empty and far", "", 1008, false},
		{"zeros", string(make([]byte, 100)), 1007, true},
		{"zeros and far", string(make([]byte, 100)), 1008, false},
		{"a part of a header", chunk(5, 7)[:10], 8, true},
		{"a part of a header, far", chunk(5, 7)[:10], 1008, false},
		{"no type", chunk(0, 8), 8, false},
		{"the first old type", chunk(1), 8, true},
		{"the last old type", chunk(4), 1007, true},
		{"an old type, far", chunk(4), 1008, false},
		{"the first type with a number", chunk(5, 8), 8, true},
		{"the number of another", chunk(5, 8), 9, false},
		{"far, with its number", chunk(5, 0xf1, 0x03), 1009, true},
		{"every byte of the number", chunk(12, 4, 3, 2, 1), 0x01020304, true},
		{"the last type", chunk(12, 8), 8, true},
		{"a later type", chunk(13, 8), 8, false},
	} {
		mem := vfs.NewMem()
		put(t, mem, "log", tt.contents)
		got, err := maybeLog(mem, "log", tt.number, names)
		require.NoError(t, err)
		assert.Equal(t, tt.want, got, tt.name)
	}
	_, err := maybeLog(vfs.NewMem(), "log", 1, nil)
	assert.True(t, IsMissing(err))
	for number, want := range map[uint64]bool{0: true, 1000: true, 1001: false} {
		assert.Equal(t, want, near(number, nil))
	}
}

// Options begin as Pebble writes them, or are a beginning of that.
func TestIsOptions(t *testing.T) {
	for contents, want := range map[string]bool{
		"": true, "[Ver": true, "[Version]\n": true, "[Version]\n  pebble": true, "\x00\x00\x00": true,
		"[Versions]": false, "notes": false,
	} {
		mem := vfs.NewMem()
		put(t, mem, "file", contents)
		got, err := isOptions(mem, "file")
		require.NoError(t, err)
		assert.Equal(t, want, got, "%q", contents)
	}
	_, err := isOptions(vfs.NewMem(), "file")
	assert.True(t, IsMissing(err))
}

// The format record decides whether a store is opened at all, and how it is refused.
func TestCheckFormat(t *testing.T) {
	for _, tt := range []struct {
		value []byte // nil: none
		state DirState
		want  error
		says  string
	}{
		{[]byte{1}, StateStore, nil, ""},
		{[]byte{2}, StateStore, nil, ""},
		{[]byte{1}, StateLegacy, nil, ""},
		{[]byte{0}, StateStore, chain.ErrVersion, "store has version 0, this program reads 1 and 2"},
		{[]byte{3}, StateLegacy, chain.ErrVersion, "store has version 3, this program reads 1 and 2"},
		{[]byte{}, StateStore, chain.ErrCorrupt, "the format record has 0 bytes, want 1"},
		{[]byte{1, 1}, StateStore, chain.ErrCorrupt, "the format record has 2 bytes, want 1"},
		{nil, StateStore, chain.ErrCorrupt, "the store has no format record"},
		{nil, StateLegacy, ErrForeign, "it holds a Pebble store of another program"},
	} {
		db := pebbleIn(t, vfs.NewMem())
		if tt.value != nil {
			require.NoError(t, db.Set(keyspace.FormatKey(), tt.value, pebble.NoSync))
		}
		err := CheckFormat(db, "store", tt.state)
		require.NoError(t, db.Close())
		require.ErrorIs(t, err, tt.want, "%+v", tt)
		if tt.want != nil {
			require.ErrorContains(t, err, tt.says)
		}
	}
}

// A panic of Pebble over hostile bytes is damage.
func TestGuardPebble(t *testing.T) {
	require.NoError(t, GuardPebble(func() error { return nil }))
	disk := errors.New("the disk says no")
	require.Equal(t, disk, GuardPebble(func() error { return disk }))
	err := GuardPebble(func() error { panic("out of range") })
	require.ErrorIs(t, err, chain.ErrCorrupt)
	require.ErrorContains(t, err, "out of range")
}

// A table with keys that the store does not have shows that the MANIFEST is not the newest one.
// Keys of deleted sessions do not show that.
func TestCheckContents(t *testing.T) {
	disk := vfs.NewMem()
	db := pebbleIn(t, disk)
	set := func(db *pebble.DB, key []byte) { require.NoError(t, db.Set(key, []byte("x"), pebble.NoSync)) }
	set(db, keyspace.BatchKey(nil, 1, 1))
	require.NoError(t, db.Flush())
	tomb := keyspace.Tombstone{Session: "gone", Number: 2, Head: chain.Head{Seq: 1}}
	require.NoError(t, db.Set(keyspace.SessionKey("gone"), keyspace.AppendTombstone(nil, &tomb), pebble.NoSync))
	tableOf := func(keys ...[]byte) string {
		other := vfs.NewMem()
		from := pebbleIn(t, other)
		for _, key := range keys {
			set(from, key)
		}
		require.NoError(t, errors.Join(from.Flush(), from.Close()))
		names, err := other.List("store")
		require.NoError(t, err)
		for _, name := range names {
			if KindOf(name) == KindTable {
				b, err := readSmall(other, "store/"+name, 1<<20)
				require.NoError(t, err)
				return string(b)
			}
		}
		t.Fatal("no table")
		return ""
	}
	check := func(name, contents string, change func(*Directory)) error {
		put(t, disk, "store/"+name, contents)
		names, err := disk.List("store")
		require.NoError(t, err)
		s := Directory{State: StateStore, Names: names, Format: FormatRecord{ID: exampleID}, Files: NewFileList(exampleID)}
		change(&s)
		err = CheckContents(disk, db, "store", s)
		require.NoError(t, disk.Remove("store/"+name))
		return err
	}
	as := func(*Directory) {}
	mine, gone, more := keyspace.BatchKey(nil, 1, 1), keyspace.BatchKey(nil, 2, 1), keyspace.BatchKey(nil, 1, 2)
	require.NoError(t, check("notes.txt", "x", as))
	require.NoError(t, check("000099.sst", tableOf(mine), as))
	require.NoError(t, check("000099.sst", tableOf(mine, gone), as))
	err := check("000099.sst", tableOf(mine, more), as)
	require.ErrorIs(t, err, chain.ErrCorrupt)
	require.ErrorContains(t, err, "000099.sst holds the batch of entry 2 of session number 1, which is not in the store: its MANIFEST is not the newest")
	require.NoError(t, check("000099.sst", tableOf(mine, more), func(s *Directory) { s.Files.Tables["000099.sst"] = false }), "it was announced and is incomplete")
	require.ErrorContains(t, check("000099.sst", "garbage", as), "000099.sst is not a table that the store wrote")
	require.ErrorContains(t, check("000099.dbtmp", "garbage", as), "000099.dbtmp is named like a file of the store, but its contents are not the store's")
	require.ErrorContains(t, check("OPTIONS-000099", "garbage", as), "OPTIONS-000099 is named like a file of the store")
	require.NoError(t, check("000099.dbtmp", "[Version]\n", as))
	err = check("notes.txt", "x", func(s *Directory) { s.Format.ID = "ffeeddccbbaa99887766554433221100" })
	require.ErrorContains(t, err, "is of store "+exampleID+", and this is store ffeeddccbbaa99887766554433221100")
	require.NoError(t, check("notes.txt", "x", func(s *Directory) { s.Format.ID = "" }), "a store without an id")
	require.NoError(t, db.Close())
}

// A store of which a file cannot be read is not called whole: a table of the store, one that is
// not in the store, and options.
func TestCheckContentsOnAFailingDisk(t *testing.T) {
	for _, kind := range []string{"", "a table", "another table", "options"} {
		mem := vfs.NewMem()
		db := pebbleIn(t, mem)
		require.NoError(t, db.Set(keyspace.BatchKey(nil, 1, 1), []byte("x"), pebble.NoSync))
		require.NoError(t, errors.Join(db.Flush(), db.Close()))
		names, err := mem.List("store")
		require.NoError(t, err)
		table := names[slices.IndexFunc(names, func(name string) bool { return KindOf(name) == KindTable })]
		contents, err := readSmall(mem, "store/"+table, 1<<20)
		require.NoError(t, err)
		var armed atomic.Bool
		disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			name := mem.PathBase(op.Path)
			fails := map[string]bool{"a table": name == table, "another table": name == "000099.sst", "options": KindOf(name) == kindOptions}
			if armed.Load() && fails[kind] && (op.Kind == errorfs.OpOpen || op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt) {
				return errDisk
			}
			return nil
		}))
		armed.Store(kind == "a table") // Pebble may read it as soon as the store is open
		db = pebbleIn(t, disk)
		put(t, mem, "store/000099.sst", string(contents)) // Pebble would delete it when it opens the store
		armed.Store(true)
		s, err := LookAt(disk, "store")
		require.NoError(t, err)
		s.State, s.Format, s.Files = StateStore, FormatRecord{ID: exampleID}, NewFileList(exampleID)
		// Pebble deletes the options from before.
		options := slices.DeleteFunc(slices.Clone(s.Names), func(name string) bool { return KindOf(name) != kindOptions })
		s.Names = []string{table, "000099.sst", slices.Max(options)}
		err = CheckContents(disk, db, "store", s)
		armed.Store(false)
		require.NoError(t, db.Close())
		switch kind {
		case "":
			require.NoError(t, err)
		case "another table":
			require.EqualError(t, err, "eventlog: corrupt: store store: 000099.sst is not a table that the store wrote; move it away")
		default:
			require.ErrorContains(t, err, errDisk.Error(), kind)
		}
	}
}

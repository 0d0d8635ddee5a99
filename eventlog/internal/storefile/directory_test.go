package storefile

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

const (
	markerFile   = "marker.manifest.000001.MANIFEST-000001"
	manifestFile = "MANIFEST-000001"
)

// folderOf returns a file system with empty files of these names in "store".
func folderOf(t *testing.T, names ...string) vfs.FS {
	t.Helper()
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("store", 0o755))
	for _, name := range names {
		put(t, mem, "store/"+name, "")
	}
	return mem
}

func put(t *testing.T, disk vfs.FS, path, contents string) {
	t.Helper()
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write([]byte(contents))
	require.NoError(t, errors.Join(err, f.Close()))
}

// The class of a directory, by the names in it. No file of one row changes the
// class alone: the row before or behind it shows the name that does.
func TestLookAt(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  DirState
		err   error  // the class of the refusal, nil for an accepted directory
		says  string // part of it
	}{
		{nil, StateEmpty, nil, ""},
		{[]string{"lost+found", ".DS_Store", "desktop.ini", "Thumbs.db", LockName}, StateEmpty, nil, ""},

		{[]string{CreatingName}, StateCreating, nil, ""},
		{[]string{CreatingName, FilesName, "000001.log", markerFile}, StateCreating, nil, ""},
		{[]string{CreatingName, "notes.txt"}, StateCreating, nil, ""},

		{[]string{FormatFile}, StateStore, nil, ""},
		{[]string{FormatFile, CreatingName}, StateStore, nil, ""},
		{[]string{FormatFile, FilesName, "HEADS", markerFile, manifestFile, LockName}, StateStore, nil, ""},
		{[]string{FormatFile, "notes.txt"}, StateStore, nil, ""},

		{[]string{FilesName}, stateDamaged, chain.ErrCorrupt, "SAJOU, which names the store, is missing"},
		{[]string{"HEADS"}, stateDamaged, chain.ErrCorrupt, "SAJOU, which names the store, is missing"},
		{[]string{FilesName, markerFile, manifestFile}, stateDamaged, chain.ErrCorrupt, "SAJOU, which names the store, is missing"},

		{[]string{markerFile}, StateLegacy, nil, ""},
		{[]string{markerFile, manifestFile, "000002.log", "000004.sst"}, StateLegacy, nil, ""},

		{[]string{manifestFile}, stateDamaged, chain.ErrCorrupt, "marker.manifest.*, which names the current MANIFEST, is missing"},
		{[]string{"OPTIONS-000003"}, stateDamaged, chain.ErrCorrupt, "marker.manifest.*, which names the current MANIFEST, is missing"},
		{[]string{"marker.format-version.000001.013"}, stateDamaged, chain.ErrCorrupt, "marker.manifest.*, which names the current MANIFEST, is missing"},

		{[]string{snapshotName}, stateDamaged, chain.ErrCorrupt, "snapshots of sessions and no log"},
		{[]string{snapshotName, snapshotName + ".lock", LockName, ".DS_Store"}, stateDamaged, chain.ErrCorrupt, "snapshots of sessions and no log"},

		{[]string{snapshotName, "notes.txt"}, StateForeign, ErrForeign, "files that are not of a store: \"notes.txt\", \"snapshots.db\""},
		{[]string{"notes.txt"}, StateForeign, ErrForeign, "files that are not of a store: \"notes.txt\""},
		{[]string{"000002.log"}, StateForeign, ErrForeign, "files that are not of a store: \"000002.log\""},
		{[]string{"000004.sst", "CURRENT"}, StateForeign, ErrForeign, "files that are not of a store: \"000004.sst\", \"CURRENT\""},
	} {
		s, err := LookAt(folderOf(t, c.names...), "store")
		require.NoError(t, err)
		assert.Equal(t, c.want, s.State, "%q", c.names)
		assert.ElementsMatch(t, c.names, s.Names)
		assert.IsNonDecreasing(t, s.Names)
		if c.err == nil {
			assert.NoError(t, s.Err, "%q", c.names)
			continue
		}
		require.ErrorIs(t, s.Err, c.err, "%q", c.names)
		assert.ErrorContains(t, s.Err, c.says, "%q", c.names)
		assert.Equal(t, errors.Is(c.err, ErrForeign), errors.Is(s.Err, ErrNoStore), "%q", c.names)
	}
}

// A LOCK that has contents or is not a file belongs to another program: locking would
// delete its contents. Beside the files of a store the refusal says that the store
// cannot be locked.
func TestLookAtLock(t *testing.T) {
	for _, beside := range []struct {
		names []string
		store bool
	}{
		{nil, false},
		{[]string{"notes.txt"}, false},
		{[]string{manifestFile}, false},
		{[]string{FilesName}, false},
		{[]string{FormatFile}, true},
		{[]string{markerFile}, true},
	} {
		for _, folder := range []bool{false, true} {
			disk := folderOf(t, beside.names...)
			if folder {
				require.NoError(t, disk.MkdirAll("store/"+LockName, 0o755))
			} else {
				put(t, disk, "store/"+LockName, "1234")
			}
			s, err := LookAt(disk, "store")
			require.NoError(t, err)
			assert.Equal(t, StateForeign, s.State)
			require.ErrorIs(t, s.Err, ErrForeign)
			require.ErrorContains(t, s.Err, "it holds a file LOCK with contents")
			assert.Equal(t, beside.store, errors.Is(s.Err, errLockContents), "beside %q", beside.names)
		}
	}
}

// A LOCK that the disk does not read is not taken for a file of another program, and one that
// another process removes meanwhile is absent.
func TestLookAtLockFails(t *testing.T) {
	failed := errors.New("the disk says no")
	for _, err := range []error{failed, fs.ErrNotExist} {
		disk := errorfs.Wrap(folderOf(t, FormatFile, LockName), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpStat && op.Path == "store/"+LockName {
				return err
			}
			return nil
		}))
		s, got := LookAt(disk, "store")
		if errors.Is(err, failed) {
			require.EqualError(t, got, "eventlog: open store: the disk says no")
			continue
		}
		require.NoError(t, got)
		assert.Equal(t, StateStore, s.State)
		require.NoError(t, s.Err)
	}
}

// A name that is absent, that is a file, or that the disk does not read.
func TestLookAtWithoutDirectory(t *testing.T) {
	mem := vfs.NewMem()
	s, err := LookAt(mem, "store")
	require.NoError(t, err)
	assert.Equal(t, Directory{State: StateAbsent}, s)

	put(t, mem, "file", "")
	s, err = LookAt(mem, "file")
	require.NoError(t, err)
	assert.Equal(t, StateForeign, s.State)
	require.ErrorIs(t, s.Err, ErrForeign)
	require.ErrorContains(t, s.Err, "it is a file, not a directory")

	for _, op := range []errorfs.OpKind{errorfs.OpStat, errorfs.OpList} {
		broken := errorfs.Wrap(folderOf(t, FormatFile), errorfs.InjectorFunc(func(o errorfs.Op) error {
			if o.Kind == op {
				return fs.ErrPermission
			}
			return nil
		}))
		_, err = LookAt(broken, "store")
		require.ErrorIs(t, err, fs.ErrPermission)
		require.ErrorContains(t, err, "eventlog: open store")
	}
}

// The role of a file by its name, with the names beside it that have another role.
func TestKindOf(t *testing.T) {
	for kind, names := range map[FileKind][]string{
		kindOurs:     {"SAJOU", "SAJOU.tmp", "FILES", "FILES.tmp", "HEADS", "HEADS.tmp", "CURRENT"},
		kindLock:     {"LOCK"},
		kindCreating: {"SAJOU.creating"},
		kindSystem:   {"lost+found", ".DS_Store", "desktop.ini", "Thumbs.db"},
		KindSnapshot: {"snapshots.db", "snapshots.db.lock", "snapshots.db-1"},
		kindMarker:   {"marker.manifest.000001.MANIFEST-000001", "marker."},
		KindManifest: {"MANIFEST-000016", "MANIFEST-0"},
		kindOptions:  {"OPTIONS-000018"},
		KindLog:      {"000017.log", "000017-001.log", "0.log"},
		KindTable:    {"000019.sst", "temporary.000019.sst"},
		kindBlob:     {"000019.blob"},
		kindTemp:     {"000020.dbtmp", "temporary.000020.dbtmp"},
		KindUnknown: {
			"", "notes.txt", "SAJO", "SAJOUX", "FILESX", "HEADSX", "LOCKS", "snapshots", "marker",
			"MANIFEST-", "MANIFEST-x", "MANIFEST-+1", "OPTIONS-", "OPTIONS--1",
			"log", ".log", "x.log", "+1.log", "000017", "000017.txt", "000017-.log", "-001.log", "000017-x.log", "x-001.log",
			"000017.LOG", "000019.sst.bak",
		},
	} {
		for _, name := range names {
			assert.Equal(t, kind, KindOf(name), "%q", name)
		}
	}
}

// FileNumber is the number in a name, whatever stands around it.
func TestFileNumber(t *testing.T) {
	for name, want := range map[string]uint64{
		"MANIFEST-000016": 16, "OPTIONS-000018": 18, "000017.log": 17, "000019.sst": 19, "0.log": 0, "notes.txt": 0, "": 0,
	} {
		assert.Equal(t, want, FileNumber(name), "%q", name)
	}
}

// Of the markers of a name the one with the highest iteration counts, whatever the
// order of the names. Pebble leaves the older one if it is killed between the two.
func TestNewestMarker(t *testing.T) {
	older, newer := Marker{MarkerManifest, 2, "MANIFEST-000001"}, Marker{MarkerManifest, 10, "MANIFEST-000005"}
	other := Marker{MarkerVersion, 99, "013"}
	for _, names := range [][]string{
		{older.FileName(), newer.FileName(), other.FileName()},
		{other.FileName(), newer.FileName(), older.FileName()},
		{"marker.manifest.x.MANIFEST-000009", "marker.manifest.000011", "manifest.000012.x", newer.FileName()},
	} {
		got, ok := NewestMarker(names, MarkerManifest)
		assert.True(t, ok)
		assert.Equal(t, newer, got, "%q", names)
	}
	_, ok := NewestMarker([]string{other.FileName()}, MarkerManifest)
	assert.False(t, ok)
	first := Marker{MarkerManifest, 0, "MANIFEST-000001"}
	got, ok := NewestMarker([]string{first.FileName()}, MarkerManifest)
	assert.True(t, ok)
	assert.Equal(t, first, got)
}

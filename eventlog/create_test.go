package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// filesOf returns everything below a directory of a file system, folders with a
// slash behind.
func filesOf(t *testing.T, disk vfs.FS, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return all
	}
	require.NoError(t, err)
	for _, name := range names {
		path := disk.PathJoin(dir, name)
		info, err := disk.Stat(path)
		require.NoError(t, err)
		if !info.IsDir() {
			all[name] = string(readFile(t, disk, path))
			continue
		}
		all[name+"/"] = ""
		for below, b := range filesOf(t, disk, path) {
			all[name+"/"+below] = b
		}
	}
	return all
}

// The machine stops at every write operation of a creation, where the directory is
// absent, is empty, or must stay because of lost+found. Readers then find either no
// store or a complete one, and opening for writing completes the store. Foreign files
// that appear in between stay unchanged.
func TestAttackCrashInCreation(t *testing.T) {
	for _, place := range []struct {
		name string
		make func(disk vfs.FS) error
		put  bool // a file is put into the directory after the crash
	}{
		{"absent", func(vfs.FS) error { return nil }, false},
		{"empty", func(disk vfs.FS) error { return disk.MkdirAll("above/store", 0o755) }, false},
		{"lost+found", func(disk vfs.FS) error { return disk.MkdirAll("above/store/lost+found", 0o755) }, false},
		{"with a file that comes in between", func(disk vfs.FS) error { return disk.MkdirAll("above/store", 0o755) }, true},
	} {
		t.Run(place.name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			require.NoError(t, place.make(mem))
			for _, dir := range []string{"", "above", "above/store"} {
				if d, err := mem.OpenDir(dir); err == nil {
					require.NoError(t, errors.Join(d.Sync(), d.Close()))
				}
			}
			rng := rand.New(rand.NewPCG(1, 1))
			var mu sync.Mutex
			var images []image
			disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				images = append(images, crashImages(mem, rng, op, len(images))...)
				return nil
			}))
			l, err := eventlog.Open("above/store", eventlog.Config{FS: disk})
			require.NoError(t, err)
			require.NoError(t, l.Close())
			t.Logf("%d images", len(images))
			for i, im := range images {
				if i%stride(3) != 0 {
					continue
				}
				createsAfter(t, im, place.put)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// crashImages returns possible states of a disk after a crash at an operation: with
// none, half and all of the unsynced writes in the long form, and with one of these in
// turn in the short form.
func crashImages(mem *vfs.MemFS, rng *rand.Rand, op errorfs.Op, n int) []image {
	percents := []int{0, 50, 100}
	if !attack.Long() {
		percents = percents[n%3 : n%3+1]
	}
	var images []image
	for _, percent := range percents {
		images = append(images, image{
			fs:    mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}),
			where: fmt.Sprintf("image %d (%v of %s), %d %%", n, op.Kind, op.Path, percent),
		})
	}
	return images
}

func createsAfter(t *testing.T, im image, put bool) {
	t.Helper()
	before := filesOf(t, im.fs, "above")
	if l, err := eventlog.Open("above/store", eventlog.Config{FS: im.fs, ReadOnly: true}); err == nil {
		if infos, err := l.Sessions(); err != nil || len(infos) != 0 {
			t.Errorf("%s: a store that was being created has %v, %v", im.where, infos, err)
		}
		assert.NoErrorf(t, l.Close(), "%s", im.where)
	} else if !errors.Is(err, eventlog.ErrNoStore) {
		t.Errorf("%s: reading: %v, want ErrNoStore", im.where, err)
	}
	if after := filesOf(t, im.fs, "above"); !maps.Equal(after, before) {
		t.Errorf("%s: reading changed:\n%s", im.where, cmp.Diff(before, after))
	}
	const precious = "above/store/20240101.log"
	if put {
		writeFile(t, im.fs, precious, []byte("precious"))
	}
	l, err := eventlog.Open("above/store", eventlog.Config{FS: im.fs})
	if put {
		if string(readFile(t, im.fs, precious)) != "precious" {
			t.Errorf("%s: a file of others was changed", im.where)
		}
		if err != nil {
			if !errors.Is(err, eventlog.ErrForeign) && !errors.Is(err, eventlog.ErrCorrupt) {
				t.Errorf("%s: %v", im.where, err)
			}
			require.NoError(t, im.fs.Remove(precious))
			l, err = eventlog.Open("above/store", eventlog.Config{FS: im.fs})
		}
	}
	if err != nil {
		t.Errorf("%s: the directory is refused: %v", im.where, err)
		return
	}
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 1)})
	assert.NoErrorf(t, l.Close(), "%s", im.where)
	for name := range filesOf(t, im.fs, "above") {
		if _, there := before["store/SAJOU"]; there {
			break // this file system can keep both names of a renamed file
		}
		if strings.Contains(name, ".new-") || strings.Contains(name, "creating") {
			t.Errorf("%s: %s is left", im.where, name)
		}
	}
}

// A creation that fails at any write leaves no store, and a second attempt succeeds.
func TestEveryWriteOfCreationFails(t *testing.T) {
	for _, empty := range []bool{false, true} {
		for n := int64(1); ; n += int64(stride(4)) {
			mem := vfs.NewMem()
			if empty {
				require.NoError(t, mem.MkdirAll("store", 0o755))
			}
			disk := newFaults(mem)
			failed := false
			disk.set(func(k int64, _ errorfs.Op) error {
				if k < n {
					return nil
				}
				failed = true
				return errDisk
			})
			l, err := eventlog.Open("store", eventlog.Config{FS: disk})
			if err == nil {
				_ = l.Close() // may fail, too
			} else if !errors.Is(err, errDisk) {
				t.Fatalf("operation %d: %v, want %v", n, err, errDisk)
			}
			l, again := eventlog.Open("store", eventlog.Config{FS: mem})
			if again != nil {
				t.Fatalf("operation %d failed with %v; afterwards: %v", n, err, again)
			}
			require.NoError(t, l.Close())
			if !failed {
				break
			}
		}
	}
}

// A directory with foreign files of any name is refused for reading and for writing,
// and stays unchanged.
func TestForeignDirectoriesStay(t *testing.T) {
	for _, files := range [][]string{
		{"20240101.log"},
		{"000010.sst"},
		{"20240101.log", "000010.sst", "000011.dbtmp", "LOCK"},
		{"LOCK"},
		{"notes.txt"},
		{".gitkeep"},
		{"snapshots.db"},
		{"MANIFEST-000001"},
		{"OPTIONS-000003"},
		{"marker.manifest.000001.MANIFEST-000001"},
		{"marker.manifest.000001.MANIFEST-000001", "MANIFEST-000001", "20240101.log"},
		{"marker.nonsense", "000010.sst"},
		{"SAJOU"},
		{"FILES", "20240101.log"},
		{"HEADS"},
		{"CURRENT", "MANIFEST-000001", "000010.sst"},
	} {
		for _, readOnly := range []bool{true, false} {
			for _, contents := range []string{"precious", ""} {
				mem := vfs.NewMem()
				require.NoError(t, mem.MkdirAll("store", 0o755))
				for _, name := range files {
					writeFile(t, mem, "store/"+name, []byte(contents))
				}
				if contents == "" && len(files) == 1 && files[0] == "LOCK" {
					continue // counts as empty; see below
				}
				before := filesOf(t, mem, "store")
				l, err := eventlog.Open("store", eventlog.Config{FS: mem, ReadOnly: readOnly})
				if err == nil {
					t.Errorf("%v is taken for a store", files)
					_ = l.Close()
					continue
				}
				if !errors.Is(err, eventlog.ErrForeign) && !errors.Is(err, eventlog.ErrCorrupt) {
					t.Errorf("%v: %v", files, err)
				}
				if d := cmp.Diff(before, filesOf(t, mem, "store")); d != "" {
					t.Errorf("%v, read-only %v: %v, and changed:\n%s", files, readOnly, err, d)
				}
			}
		}
	}
}

// Files that operating systems leave, and an empty LOCK, do not prevent a creation,
// and stay.
func TestCreationBesideSystemFiles(t *testing.T) {
	for _, name := range []string{".DS_Store", "desktop.ini", "Thumbs.db", "LOCK"} {
		mem := vfs.NewMem()
		require.NoError(t, mem.MkdirAll("store", 0o755))
		contents := "of the system"
		if name == "LOCK" {
			contents = ""
		}
		writeFile(t, mem, "store/"+name, []byte(contents))
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		assert.NoError(t, l.Close())
		if got := string(readFile(t, mem, "store/"+name)); got != contents {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// Folders beside the store that are named like those of a killed creation are deleted,
// unless they hold other files or are in use.
func TestSweepBeside(t *testing.T) {
	mem := vfs.NewMem()
	mine, theirs := "above/.store.new-0011223344556677", "above/.store.new-8899aabbccddeeff"
	for _, dir := range []string{mine, theirs, "above/.store.new-xyz", "above/.other.new-0011223344556677"} {
		require.NoError(t, mem.MkdirAll(dir, 0o755))
		writeFile(t, mem, dir+"/LOCK", nil)
		writeFile(t, mem, dir+"/000001.log", []byte("x"))
	}
	writeFile(t, mem, theirs+"/notes.txt", []byte("precious"))
	used := "above/.store.new-1122334455667788"
	require.NoError(t, mem.MkdirAll(used, 0o755))
	lock, err := mem.Lock(used + "/LOCK")
	require.NoError(t, err)
	l, err := eventlog.Open("above/store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	require.NoError(t, errors.Join(l.Close(), lock.Close()))
	names := filesOf(t, mem, "")
	if _, ok := names[mine+"/"]; ok {
		t.Error("what a killed creation left is still there")
	}
	for _, want := range []string{theirs + "/notes.txt", theirs + "/000001.log", used + "/", "above/.store.new-xyz/000001.log", "above/.other.new-0011223344556677/000001.log"} {
		if _, ok := names[want]; !ok {
			t.Errorf("%s is gone", want)
		}
	}
}

// Processes that create a store concurrently get the same store, one after the other.
func TestCreateAtOnce(t *testing.T) {
	for _, empty := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "above", "store")
		if empty {
			require.NoError(t, os.MkdirAll(dir, 0o755))
		}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				l, err := eventlog.Open(dir, eventlog.Config{LockWait: deadline})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				s, err := l.Session("a")
				if err == nil {
					_, err = s.Append(context.Background(), eventlog.Batch{Drafts: drafts(1000, 1)})
				}
				if err := errors.Join(err, l.Close()); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			})
		}
		wg.Wait()
		l, err := eventlog.Open(dir, eventlog.Config{ReadOnly: true})
		require.NoError(t, err)
		if got := session(t, l, "a").Head().Seq; got != 8 {
			t.Errorf("%d entries, want 8", got)
		}
		require.NoError(t, l.Close())
		if names, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(names) != 1 {
			t.Errorf("beside the store: %v, %v", names, err)
		}
	}
}

// A store can be created through a symbolic link, even if its target is missing, and
// with a relative path.
func TestCreateThroughLinks(t *testing.T) {
	tmp := t.TempDir()
	target, link := filepath.Join(tmp, "data", "real"), filepath.Join(tmp, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("this system makes no symbolic links: %v", err)
	}
	t.Chdir(tmp)
	for _, dir := range []string{link, "link", filepath.Join("data", "..", "link"), target} {
		l, err := eventlog.Open(dir, eventlog.Config{})
		require.NoErrorf(t, err, "%s", dir)
		require.NoError(t, l.Close())
		if _, err := os.Stat(filepath.Join(target, eventlog.FormatFile)); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is not there any more: %v", err)
	}
}

// RemoveUnused removes a store that was created and not used, with the directories that
// were made for it. It removes nothing else.
func TestRemoveUnused(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, disk vfs.FS)
		during func(t *testing.T, disk vfs.FS, l *eventlog.Log)
		left   []string // files that must remain; nil: none
	}{
		{name: "unused"},
		{name: "used", during: func(t *testing.T, _ vfs.FS, l *eventlog.Log) {
			must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 1)})
		}, left: []string{"a/", "a/b/", "a/b/store/", "a/b/store/SAJOU"}},
		{name: "refused", during: func(t *testing.T, _ vfs.FS, l *eventlog.Log) {
			if _, err := session(t, l, "a").Append(ctx, eventlog.Batch{}); err == nil {
				t.Error("an empty batch is taken")
			}
		}},
		{name: "there before", before: func(t *testing.T, disk vfs.FS) {
			l, err := eventlog.Open("a/b/store", eventlog.Config{FS: disk})
			require.NoError(t, errors.Join(err, l.Close()))
		}, left: []string{"a/b/store/SAJOU"}},
		{name: "empty directory there before", before: func(t *testing.T, disk vfs.FS) {
			require.NoError(t, disk.MkdirAll("a/b/store/lost+found", 0o755))
		}, left: []string{"a/", "a/b/", "a/b/store/", "a/b/store/lost+found/"}},
		{name: "a file came", during: func(t *testing.T, disk vfs.FS, _ *eventlog.Log) {
			writeFile(t, disk, "a/b/store/20240101.log", []byte("precious"))
		}, left: []string{"a/b/store/20240101.log", "a/b/store/SAJOU"}},
		{name: "a note came", during: func(t *testing.T, disk vfs.FS, _ *eventlog.Log) {
			writeFile(t, disk, "a/b/store/notes.txt", []byte("precious"))
		}, left: []string{"a/b/store/notes.txt", "a/b/store/SAJOU"}},
	} {
		mem := vfs.NewMem()
		if tt.before != nil {
			tt.before(t, mem)
		}
		l, err := eventlog.Open("a/b/store", eventlog.Config{FS: mem, RemoveUnused: true})
		require.NoError(t, err)
		if tt.during != nil {
			tt.during(t, mem, l)
		}
		require.NoErrorf(t, l.Close(), "%s", tt.name)
		left := filesOf(t, mem, "")
		if tt.left == nil && len(left) > 0 || len(tt.left) > 0 && strings.HasSuffix(tt.left[len(tt.left)-1], "/") && len(left) != len(tt.left) {
			t.Errorf("%s: %v is left", tt.name, slices.Sorted(maps.Keys(left)))
		}
		for _, want := range tt.left {
			if _, ok := left[want]; !ok {
				t.Errorf("%s: %s is gone; there is %v", tt.name, want, slices.Sorted(maps.Keys(left)))
			}
		}
	}
}

// readOnlyMedium fails every change with EROFS, as a mounted image does.
type readOnlyMedium struct {
	vfs.FS
	touched []string
}

func (r *readOnlyMedium) no(op, path string) error {
	r.touched = append(r.touched, op+" "+path)
	return &fs.PathError{Op: op, Path: path, Err: syscall.EROFS}
}

func (r *readOnlyMedium) Create(path string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, r.no("create", path)
}
func (r *readOnlyMedium) Link(_, path string) error   { return r.no("link", path) }
func (r *readOnlyMedium) Remove(path string) error    { return r.no("remove", path) }
func (r *readOnlyMedium) RemoveAll(path string) error { return r.no("remove", path) }
func (r *readOnlyMedium) Rename(path, _ string) error { return r.no("rename", path) }
func (r *readOnlyMedium) MkdirAll(path string, _ os.FileMode) error {
	return r.no("mkdir", path)
}

func (r *readOnlyMedium) OpenReadWrite(path string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, r.no("open", path)
}

func (r *readOnlyMedium) ReuseForWrite(path, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, r.no("rename", path)
}

// A store on a read-only medium can be read and verified, several times at once, with
// and without its LOCK file. Opening it for writing fails with the reason.
func TestReadOnlyMedium(t *testing.T) {
	for _, v := range victims(t) {
		for _, lock := range []bool{true, false} {
			files := maps.Clone(v.files)
			if !lock {
				delete(files, "LOCK")
			}
			mem := files.onDisk(t)
			medium := &readOnlyMedium{FS: lockless{mem}}
			var open []*eventlog.Log
			for range 2 {
				l, err := eventlog.Open("store", eventlog.Config{FS: medium, ReadOnly: true})
				require.NoErrorf(t, err, "%s, with LOCK %v", v.name, lock)
				if got := v.whole(t, l); got != "whole" {
					t.Errorf("%s: %s", v.name, got)
				}
				open = append(open, l)
			}
			for _, l := range open {
				assert.NoError(t, l.Close())
			}
			if len(medium.touched) > 0 {
				t.Errorf("%s: reading tries to %v", v.name, medium.touched)
			}
			if _, err := eventlog.Open("store", eventlog.Config{FS: medium}); !errors.Is(err, syscall.EROFS) {
				t.Errorf("%s: writing: %v, want EROFS", v.name, err)
			}
		}
	}
}

// lockless refuses locks as a read-only medium does.
type lockless struct{ vfs.FS }

func (lockless) Lock(path string) (io.Closer, error) {
	return nil, &fs.PathError{Op: "lock", Path: path, Err: syscall.EROFS}
}

// A reader of a store in a read-only directory excludes a writer with access, and the
// writer excludes the reader.
func TestSharedLock(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("modes do not bind the superuser: the store stays writable here")
	}
	dir := filepath.Join(t.TempDir(), "store")
	l, err := eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	if _, err := eventlog.Open(dir, eventlog.Config{ReadOnly: true}); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("reading what is written to: %v, want ErrLocked", err)
	}
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 1)})
	require.NoError(t, l.Close())
	for path, mode := range map[string]os.FileMode{filepath.Join(dir, "LOCK"): 0o444, dir: 0o555} {
		require.NoError(t, os.Chmod(path, mode))
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) }) // for TempDir
	before := contents(t, dir)
	r, err := eventlog.Open(dir, eventlog.Config{ReadOnly: true, LockWait: time.Second})
	require.NoError(t, err)
	if got := session(t, r, "a").Head().Seq; got != 1 {
		t.Errorf("%d entries, want 1", got)
	}
	require.NoError(t, r.Close())
	if d := cmp.Diff(before, contents(t, dir)); d != "" {
		t.Errorf("changed:\n%s", d)
	}
}

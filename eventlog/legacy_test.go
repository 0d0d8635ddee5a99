package eventlog_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// crashable returns a file system with the files in "store", all synced.
func (d directory) crashable(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	require.NoError(t, fs.MkdirAll("store", 0o755))
	for name, b := range d {
		writeFile(t, fs, "store/"+name, b)
	}
	for _, dir := range []string{"", "store"} {
		f, err := fs.OpenDir(dir)
		require.NoError(t, err)
		require.NoError(t, errors.Join(f.Sync(), f.Close()))
	}
	return fs
}

// Opening a store from before SAJOU for writing adds SAJOU; reading does not. The
// machine stops at every write of that opening: afterwards the store has every entry
// and accepts appends.
func TestAttackCrashInAdoption(t *testing.T) {
	for _, name := range []string{"closed", "killed"} {
		v := legacyVictim(t, name)
		mem := v.files.crashable(t)
		l, err := eventlog.Open("store", eventlog.Config{FS: mem, ReadOnly: true})
		require.NoError(t, err)
		if got := v.whole(t, l); got != "whole" {
			t.Fatalf("%s: %s", name, got)
		}
		require.NoError(t, l.Close())
		if !directoryOf(t, mem).equal(v.files) {
			t.Fatal("changed by reading")
		}
		rng := rand.New(rand.NewPCG(1, 1))
		var mu sync.Mutex
		var images []image
		disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				mu.Lock()
				defer mu.Unlock()
				images = append(images, crashImages(mem, rng, op, len(images))...)
			}
			return nil
		}))
		if l, err = eventlog.Open("store", eventlog.Config{FS: disk}); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, l.Close())
		if _, ok := directoryOf(t, mem)[eventlog.FormatFile]; !ok {
			t.Errorf("%s: opened for writing, and there is no %s", name, eventlog.FormatFile)
		}
		for _, im := range images {
			for _, readOnly := range []bool{true, false} {
				l, err := eventlog.Open("store", eventlog.Config{FS: im.fs, ReadOnly: readOnly})
				require.NoErrorf(t, err, "%s, read-only %v", im.where, readOnly)
				if got := v.whole(t, l); got != "whole" {
					t.Fatalf("%s: %s", im.where, got)
				}
				if !readOnly {
					must(t, session(t, l, "s0"), eventlog.Batch{Drafts: drafts(1000, 1)})
				}
				require.NoErrorf(t, l.Close(), "%s", im.where)
			}
		}
		t.Logf("%s: %d images", name, len(images))
	}
}

// Pebble deletes tables that it does not know. In a store from before FILES an
// unreadable one may be a user's file: it is kept under another name.
func TestUnknownTableIsSetAside(t *testing.T) {
	v := legacyVictim(t, "closed")
	v.files["000099.sst"] = []byte("precious")
	fs := v.files.onDisk(t)
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	require.NoError(t, err)
	if got := v.whole(t, l); got != "whole" {
		t.Error(got)
	}
	require.NoError(t, l.Close())
	if got := string(readFile(t, fs, "store/000099.sst.set-aside")); got != "precious" {
		t.Errorf("it holds %q", got)
	}
}

// If a store with FILES holds a foreign file with one of Pebble's names, Open refuses
// the store and deletes nothing.
func TestFilesOfOthersInStore(t *testing.T) {
	v := victimLife(t, "s", 2, 10, 0, byKill)
	for _, name := range []string{"20240101.log", "000010.sst", "000001.log", "999999.blob", "000011.dbtmp", "OPTIONS-000001", "marker.x"} {
		if _, there := v.files[name]; there {
			t.Fatalf("%s is one of the store's", name)
		}
		changed := v.files.with(name, []byte("precious"))
		for _, readOnly := range []bool{true, false} {
			if got := v.attacked(t, changed, readOnly); got != "refused" {
				t.Errorf("%s, read-only %v: %s", name, readOnly, got)
			}
		}
	}
	changed := v.files.with("notes.txt", []byte("mine")).with("000010.sst.bak", []byte{})
	for _, readOnly := range []bool{true, false} {
		if got := v.attacked(t, changed, readOnly); got != "whole" {
			t.Errorf("with notes, read-only %v: %s", readOnly, got)
		}
	}
}

// A store to which Pebble alone wrote is opened as it is: Verify checks its chains.
// FILES describes the store again after the next opening for writing.
func TestWrittenByPebbleAlone(t *testing.T) {
	v := victimLife(t, "s", 2, 10, 0, byKill)
	fs := v.files.onDisk(t)
	for range 3 {
		db, err := pebble.Open("store", &pebble.Options{FS: fs, Logger: quietLogger{}})
		require.NoError(t, err)
		require.NoError(t, errors.Join(db.Set([]byte("x"), nil, pebble.Sync), db.Delete([]byte("x"), pebble.Sync), db.Flush(), db.Close()))
		for _, readOnly := range []bool{true, false} {
			l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: readOnly})
			require.NoError(t, err)
			if got := v.whole(t, l); got != "whole" {
				t.Error(got)
			}
			require.NoError(t, l.Close())
		}
	}
}

type quietLogger struct{}

func (quietLogger) Infof(string, ...any)      {}
func (quietLogger) Errorf(string, ...any)     {}
func (quietLogger) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// A newer version is distinguished from damage, in SAJOU and in FILES.
func TestNewerVersion(t *testing.T) {
	v := victimLife(t, "s", 1, 3, 0, byClose)
	for name, change := range map[string][2]string{"SAJOU": {"version 1\n", "version 2\n"}, "FILES": {"sajou files 1 ", "sajou files 2 "}} {
		changed := v.files.with(name, []byte(strings.Replace(string(v.files[name]), change[0], change[1], 1)))
		fs := changed.onDisk(t)
		for _, readOnly := range []bool{true, false} {
			if _, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: readOnly}); !errors.Is(err, eventlog.ErrVersion) {
				t.Errorf("%s: %v, want ErrVersion", name, err)
			}
		}
	}
}

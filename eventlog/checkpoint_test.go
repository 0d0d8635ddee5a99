package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// readCheckpoint opens a checkpoint as another process does, verifies it, and returns the
// heads of its sessions.
func readCheckpoint(t *testing.T, fs vfs.FS, dir string) map[string]eventlog.Head {
	t.Helper()
	c, err := eventlog.Open(dir, eventlog.Config{FS: fs, ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.Nil(t, c.Loss())
	require.Empty(t, c.Doubts())
	survey, err := c.Reader().Survey(t.Context())
	require.NoError(t, err)
	require.Empty(t, survey)
	infos, err := c.Sessions()
	require.NoError(t, err)
	heads := map[string]eventlog.Head{}
	for _, info := range infos {
		report, err := c.Verify(t.Context(), info.Name, verify.Options{})
		require.NoError(t, err)
		require.True(t, report.Whole(), "%s: %v", info.Name, report.Fault)
		heads[info.Name] = report.Head
	}
	return heads
}

// Checkpoints that are taken while several sessions are appended to, over many files of
// the write-ahead log that Pebble writes for the second time, have everything that was
// acknowledged before, verify, and can be removed.
func TestCheckpointDuringAppends(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	l, err := eventlog.Open(dir, eventlog.Config{MaxEntry: 1 << 20})
	require.NoError(t, err)
	names := []string{"a", "b", "c"}
	sessions := map[string]*eventlog.Session{}
	for _, name := range names {
		sessions[name] = session(t, l, name)
		must(t, sessions[name], eventlog.Batch{Drafts: drafts(0, 1)})
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	failed := make(chan error, len(names))
	for i, name := range names {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				batch := eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: noise(rng, 1<<rng.IntN(19))}}}
				batch.Drafts[0].At = sessions[name].At()
				if _, err := sessions[name].Append(context.Background(), batch); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	const most = 12
	for range most {
		before := map[string]eventlog.Head{}
		for _, name := range names {
			before[name] = sessions[name].Head()
		}
		c, err := l.Checkpoint(t.Context())
		require.NoError(t, err)
		assert.True(t, eventlog.IsCheckpointOf(dir, c))
		heads := readCheckpoint(t, nil, c)
		for _, name := range names {
			assert.GreaterOrEqual(t, heads[name].Seq, before[name].Seq)
			e, err := sessions[name].Entry(t.Context(), heads[name].Seq)
			require.NoError(t, err, "an entry of the checkpoint is durable in the store")
			assert.Equal(t, e.Head(), heads[name])
		}
		info, err := os.Stat(filepath.Dir(c))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		require.NoError(t, eventlog.RemoveCheckpoint(c, 0))
		require.NoError(t, eventlog.RemoveCheckpoint(c, 0), "again")
		assert.NoDirExists(t, filepath.Dir(c), "the last one")
	}
	close(stop)
	writers.Wait()
	require.Empty(t, failed)
	require.NoError(t, l.Close())
	l, err = eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err, "FILES is that of the store alone")
	require.NoError(t, l.Close())
}

// A checkpoint keeps what it has while the store goes on, deletes, compacts and closes.
func TestCheckpointStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	l, err := eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	a := session(t, l, "a")
	must(t, a, eventlog.Batch{Drafts: drafts(1, 50)})
	require.NoError(t, l.Flush())
	must(t, a, eventlog.Batch{Drafts: drafts(51, 5), Key: "key"})
	must(t, session(t, l, "gone"), eventlog.Batch{Drafts: drafts(1, 5)})
	c, err := l.Checkpoint(t.Context())
	require.NoError(t, err)
	want := readCheckpoint(t, nil, c)
	assert.Equal(t, a.Head(), want["a"])
	appender, err := session(t, l, "gone").Claim()
	require.NoError(t, err)
	_, err = appender.Delete(t.Context(), time.Unix(1700000000, 0))
	require.NoError(t, err)
	appender.Release()
	must(t, a, eventlog.Batch{Drafts: drafts(56, 500)})
	require.NoError(t, l.Flush())
	assert.Equal(t, want, readCheckpoint(t, nil, c))
	reader, err := eventlog.Open(c, eventlog.Config{ReadOnly: true})
	require.NoError(t, err)
	assert.ErrorIs(t, eventlog.RemoveCheckpoint(c, 0), eventlog.ErrLocked)
	require.NoError(t, l.Close())

	// The next opening for writing leaves a checkpoint with a reader, and removes others.
	l, err = eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	assert.DirExists(t, c)
	require.NoError(t, l.Close())
	require.NoError(t, reader.Close())
	assert.Equal(t, want, readCheckpoint(t, nil, c))
	l, err = eventlog.Open(dir, eventlog.Config{ReadOnly: true})
	require.NoError(t, err)
	assert.DirExists(t, c, "opening for reading changes nothing")
	_, err = l.Checkpoint(t.Context())
	assert.ErrorIs(t, err, eventlog.ErrReadOnly)
	require.NoError(t, l.Close())
	other := filepath.Join(filepath.Dir(c), "notes")
	require.NoError(t, os.Mkdir(other, 0o700))
	l, err = eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	assert.NoDirExists(t, c)
	assert.DirExists(t, other, "no checkpoint")
	assert.Error(t, eventlog.RemoveCheckpoint(other, 0))
	assert.Error(t, eventlog.RemoveCheckpoint(dir, 0))
}

// Entries that a caller has not waited for are in a checkpoint only once they are durable.
func TestCheckpointWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewCrashableMem()
		var dir string
		ofStore := func(path string) bool { return !strings.Contains(path, eventlog.CheckpointsFolder) }
		ticket := copyWhileHeld(t, mem, ofStore, func(l *eventlog.Log) (err error) {
			dir, err = l.Checkpoint(context.Background())
			return err
		})
		_, err := ticket.Wait(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, powerCutHead(t, mem, "a").Seq, readCheckpoint(t, mem, dir)["a"].Seq)
	})
}

// powerCutHead returns the head that a session has after a power cut.
func powerCutHead(t *testing.T, mem *vfs.MemFS, name string) eventlog.Head {
	t.Helper()
	l, err := eventlog.Open("store", eventlog.Config{FS: powerCut(mem), ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return session(t, l, name).Head()
}

// Whichever write of a checkpoint fails, the log goes on, and no checkpoint stays.
func TestCheckpointFailures(t *testing.T) {
	full := errors.New("disk full")
	mem := vfs.NewMem()
	var fail, seen atomic.Int64
	fail.Store(-1)
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fail.Load() < 0 || !strings.Contains(op.Path, eventlog.CheckpointsFolder+"/") || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpRemoveAll || op.Kind == errorfs.OpRemove {
			return nil
		}
		if seen.Add(1)-1 == fail.Load() {
			return full
		}
		return nil
	}))
	l := open(t, disk, eventlog.Config{})
	s := session(t, l, "a")
	must(t, s, eventlog.Batch{Drafts: drafts(1, 5)})
	require.NoError(t, l.Flush())
	must(t, s, eventlog.Batch{Drafts: drafts(6, 5)})
	failures := 0
	for n := int64(0); ; n++ {
		seen.Store(0)
		fail.Store(n)
		dir, err := l.Checkpoint(t.Context())
		fail.Store(-1)
		require.NoError(t, l.Err(), "write %d", n)
		if err == nil {
			assert.Equal(t, s.Head(), readCheckpoint(t, mem, dir)["a"])
			if seen.Load() <= n {
				break
			}
			continue // a failure that does no harm, such as that of a link, for which Pebble copies
		}
		failures++
		require.ErrorIs(t, err, full, "write %d", n)
		must(t, s, eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, 1)})
	}
	assert.Greater(t, failures, 10)
	ended, end := context.WithCancel(t.Context())
	end()
	seen.Store(0)
	fail.Store(1 << 40) // counts alone
	_, err := l.Checkpoint(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, seen.Load(), "nothing is written for a caller that has left")
	names, err := mem.List("store")
	require.NoError(t, err)
	require.Contains(t, names, eventlog.CheckpointsFolder, "the one that was made last")
}

// A folder of checkpoints that another user can write to, or that leads elsewhere, is
// refused and left alone.
func TestCheckpointFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	folder := filepath.Join(dir, eventlog.CheckpointsFolder)
	elsewhere := t.TempDir()
	inside := filepath.Join(elsewhere, fmt.Sprintf("%016x", 7))
	require.NoError(t, os.Mkdir(inside, 0o700))
	l, err := eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	for name, plant := range map[string]func() error{
		"a link":             func() error { return os.Symlink(elsewhere, folder) },
		"a file":             func() error { return os.WriteFile(folder, nil, 0o600) },
		"a shared directory": func() error { return errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o777)) },
	} {
		require.NoError(t, plant(), name)
		_, err := l.Checkpoint(t.Context())
		require.Error(t, err, name)
		require.NoError(t, l.Err(), name)
		require.NoError(t, l.Close())
		l, err = eventlog.Open(dir, eventlog.Config{})
		require.NoError(t, err, name)
		require.NoError(t, os.RemoveAll(folder))
	}
	assert.DirExists(t, inside)
	require.NoError(t, l.Close())
}

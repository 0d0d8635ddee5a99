package eventlog_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// A backup that is taken during appends verifies, ends where the original was, and goes
// on; keys are remembered in it.
func TestBackup(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewCrashableMem()
	l := open(t, mem, eventlog.Config{})
	a, b := session(t, l, "a"), session(t, l, "b")
	must(t, a, eventlog.Batch{Drafts: drafts(1, 40), Key: "first"})
	must(t, b, eventlog.Batch{Drafts: drafts(1, 3)})
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for n := 41; ; n++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := a.Append(ctx, eventlog.Batch{Drafts: drafts(n, 1)}); err != nil {
				stopped <- err
				return
			}
		}
	}()
	before := a.Head()
	reports, err := l.Backup(ctx, "copies/one")
	close(stop)
	require.NoError(t, err)
	require.NoError(t, <-stopped)
	require.Len(t, reports, 2)
	require.GreaterOrEqual(t, reports[0].Head.Seq, before.Seq)
	require.Equal(t, b.Head(), reports[1].Head)
	require.NoError(t, l.Err())

	// A power cut right behind Backup leaves the copy as it is.
	cut := powerCut(mem)
	c, err := eventlog.Open("copies/one", eventlog.Config{FS: cut})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.Empty(t, c.Doubts())
	for i, name := range []string{"a", "b"} {
		report, err := c.Verify(ctx, name, verify.Options{})
		require.NoError(t, err)
		require.True(t, report.Whole())
		require.Equal(t, reports[i].Head, report.Head)
	}
	repeat, err := session(t, c, "a").Append(ctx, eventlog.Batch{Drafts: drafts(1, 1), Key: "first"})
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(40), repeat.Seq)
	next := session(t, c, "b")
	must(t, next, eventlog.Batch{Drafts: drafts(4, 1)})
	require.Equal(t, eventlog.Seq(4), next.Head().Seq)
}

// Backup refuses what it cannot copy as a whole, and leaves nothing then.
func TestBackupRefusals(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	full := errors.New("disk full")
	failing := ""
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing != "" && len(op.Path) > len(failing) && op.Path[:len(failing)] == failing && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return full
		}
		return nil
	}))
	l := open(t, disk, eventlog.Config{})
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 5)})
	require.NoError(t, mem.MkdirAll("there", 0o755))
	for dir, want := range map[string]error{"there": fs.ErrExist, "store": eventlog.ErrInvalid, "store/copy": eventlog.ErrInvalid} {
		_, err := l.Backup(ctx, dir)
		require.ErrorIs(t, err, want, dir)
	}
	failing = "copies/."
	_, err := l.Backup(ctx, "copies/one")
	require.ErrorIs(t, err, full)
	failing = ""
	_, err = mem.Stat("copies/one")
	require.Error(t, err)
	require.NoError(t, l.Err(), "the disk of the copy is not that of the log")
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(6, 1)})
	ended, end := context.WithCancel(ctx)
	end()
	_, err = l.Backup(ended, "copies/one")
	require.ErrorIs(t, err, context.Canceled)
	_, err = l.Backup(ctx, "copies/one")
	require.NoError(t, err, "after the failures")
	_, err = l.Backup(ctx, "copies/one")
	require.ErrorIs(t, err, fs.ErrExist)
	require.NotErrorIs(t, err, eventlog.ErrNoStore)
	require.EqualError(t, err, "eventlog: copies/one: it exists; name a directory that is absent")

	var stored []byte
	key := append([]byte("e\x00\x00\x00\x01"), 0, 0, 0, 0, 0, 0, 0, 1)
	require.NoError(t, l.Get(key, &stored))
	changed := append([]byte(nil), stored...)
	changed[len(changed)-40] ^= 1
	require.NoError(t, l.Put(key, changed))
	_, err = l.Backup(ctx, "copies/two")
	require.ErrorIs(t, err, eventlog.ErrCorrupt)
	require.NoError(t, l.Put(key, stored))
}

// Entries in a backup are durable in the original, even if no caller waits for them there:
// a crash must not leave the original behind its copy.
func TestBackupWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewCrashableMem()
		var reports []verify.SessionReport
		ofStore := func(path string) bool { return strings.HasPrefix(path, "store/") }
		ticket := copyWhileHeld(t, mem, ofStore, func(l *eventlog.Log) (err error) {
			reports, err = l.Backup(context.Background(), "copy")
			return err
		})
		require.Equal(t, eventlog.Seq(3), reports[0].Head.Seq)
		left, err := eventlog.Open("store", eventlog.Config{FS: powerCut(mem)})
		require.NoError(t, err)
		require.Equal(t, reports[0].Head, session(t, left, "a").Head())
		require.NoError(t, left.Close())
		_, err = ticket.Wait(t.Context())
		require.NoError(t, err)
	})
}

// copyWhileHeld opens a store on mem and stages entry 3 of session "a" while the syncs of the
// store's write-ahead log are held. It requires that a copy which begins then ends only
// after the syncs have gone on. It runs in a bubble of synctest.
func copyWhileHeld(t *testing.T, mem *vfs.MemFS, ofStore func(path string) bool, begin func(*eventlog.Log) error) *eventlog.Ticket {
	t.Helper()
	var held atomic.Pointer[chan struct{}]
	l := open(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if free := held.Load(); free != nil && sync && strings.HasSuffix(op.Path, ".log") && ofStore(op.Path) {
			<-*free
		}
		return nil
	})), eventlog.Config{})
	s := session(t, l, "a")
	must(t, s, eventlog.Batch{Drafts: drafts(1, 2)})
	free := make(chan struct{})
	held.Store(&free)
	ticket, err := s.Stage(t.Context(), eventlog.Batch{Drafts: drafts(3, 1)})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- begin(l) }()
	synctest.Wait()
	require.Empty(t, done, "the entry is not durable yet")
	held.Store(nil)
	close(free)
	require.NoError(t, <-done)
	return ticket
}

package sajou_test

import (
	"path"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/snapshot"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// A full disk makes the engine unhealthy, with the reason, and stays its reason although
// there is room again: nothing is recorded before the store is opened again.
func TestHealthOfFullDisk(t *testing.T) {
	disk := enginetest.NewDisk()
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: disk})
	_, err := ses.Signal(t.Context(), enginetest.TaskSignal(1, 0))
	require.NoError(t, err)
	assert.Equal(t, sajou.Health{}, eng.Health())
	require.NoError(t, eng.Health().Err())

	disk.Full.Store(true)
	_, err = ses.Signal(t.Context(), enginetest.TaskSignal(2, 1))
	require.ErrorIs(t, err, enginetest.ErrFull)
	disk.Full.Store(false)
	h := eng.Health()
	require.ErrorIs(t, h.Log, eventlog.ErrReadOnly)
	require.ErrorIs(t, h.Log, enginetest.ErrFull)
	require.ErrorIs(t, h.Err(), enginetest.ErrFull)
	require.NoError(t, eng.Close())
	require.ErrorIs(t, eng.Health().Log, eventlog.ErrClosed)

	again, err := sajou.Open("store", sajou.Config{FS: disk})
	require.NoError(t, err)
	require.NoError(t, again.Health().Err())
	require.NoError(t, again.Close())
	reader, err := sajou.Open("store", sajou.Config{FS: disk, ReadOnly: true})
	require.NoError(t, err)
	assert.Equal(t, sajou.Health{}, reader.Health(), "an engine that was opened read-only is healthy")
	require.NoError(t, reader.Close())
}

// failedLog tells when a log has failed.
type failedLog struct{ failed chan error }

func (failedLog) Committed(eventlog.CommittedRound)       {}
func (failedLog) FileSynced(string, time.Duration, error) {}
func (f failedLog) LogFailed(cause error)                 { f.failed <- cause }

// A log that fails while nothing is appended is seen too.
func TestHealthOfBackgroundFailure(t *testing.T) {
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && path.Base(op.Path) == eventlog.HeadsFile {
			return enginetest.ErrFull
		}
		return nil
	}))
	log := failedLog{make(chan error, 1)}
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: disk, NoteWithin: time.Millisecond, Metrics: sajou.Metrics{Log: log}})
	_, err := ses.Signal(t.Context(), enginetest.TaskSignal(1, 0))
	require.NoError(t, err)
	require.ErrorIs(t, <-log.failed, enginetest.ErrFull)
	require.ErrorIs(t, eng.Health().Log, enginetest.ErrFull)
	require.NoError(t, eng.Close())
}

// Sinks that fail are remembered, and those that hang are behind, with the call.
func TestHealthOfSinks(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		hang := make(chan struct{})
		bad := th.Ses.Attach(th.Context(), &enginetest.FaultySink{In: "OnActionStart", Do: func() { panic("boom") }}, 0)
		stuck := th.Ses.Attach(th.Context(), &enginetest.FaultySink{In: "OnActionStart", Do: func() { <-hang }}, 0)
		synctest.Wait()
		assert.Equal(t, sajou.Health{}, th.Eng.Health())

		th.Signal("task_dispatch")
		<-bad.Done()
		th.Signal("thinking")
		th.Signal("thinking")
		h := th.Eng.Health()
		require.Len(t, h.Sinks, 2)
		assert.Equal(t, stagelive.SinkHealth{
			Session: "a", Sink: "*enginetest.FaultySink", Call: "OnActionStart", Behind: 2,
		}, h.Sinks[0])
		require.ErrorIs(t, h.Sinks[1].Err, stagelive.ErrSinkPanic)
		assert.Equal(t, 1, h.SinksDetached)
		require.NoError(t, h.Err(), "the engine records on")

		close(hang)
		synctest.Wait()
		require.NoError(t, stuck.Close())
		for range 40 {
			sink := th.Ses.Attach(th.Context(), &enginetest.FaultySink{In: "OnActionStart", Do: func() { panic("boom") }}, 0)
			synctest.Wait()
			th.Signal("task_dispatch")
			<-sink.Done()
		}
		h = th.Eng.Health()
		assert.Equal(t, 41, h.SinksDetached)
		assert.Len(t, h.Sinks, 32, "the newest are remembered")
	}, enginetest.StrollDefinition)
}

// Health names why an engine works without snapshots.
func TestHealthOfSnapshots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	eng, err := sajou.Open(dir, sajou.Config{})
	require.NoError(t, err)
	require.NoError(t, eng.Health().Snapshots)
	require.NoError(t, eng.Close())
	held, err := snapshot.Open(filepath.Join(dir, sajou.SnapshotFile), snapshot.Config{})
	require.NoError(t, err)
	eng, err = sajou.Open(dir, sajou.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, eng.Health().Snapshots, snapshot.ErrLocked)
	require.NoError(t, eng.Health().Err())
	require.NoError(t, eng.Close())
	require.NoError(t, held.Close())
	eng, err = sajou.Open(dir, sajou.Config{NoSnapshots: true})
	require.NoError(t, err)
	require.NoError(t, eng.Health().Snapshots, "none were asked for")
	require.NoError(t, eng.Close())
}

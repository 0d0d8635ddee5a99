package sajou_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
)

// A backup of a running engine, restored elsewhere, has the sessions, states and snapshots
// of the original and goes on; the original and the backup stay.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	eng, ses := enginetest.Begin(t, filepath.Join(dir, "store"), sajou.Config{SnapshotEvery: 10})
	defer func() { require.NoError(t, eng.Close()) }()
	for n := range 35 {
		_, err := ses.Signal(t.Context(), enginetest.TaskSignal(n, int64(n)))
		require.NoError(t, err)
	}
	_, err := eng.BuildSnapshots(t.Context(), "a", nil)
	require.NoError(t, err)
	want, err := ses.State(t.Context())
	require.NoError(t, err)

	backup, restored := filepath.Join(dir, "backup"), filepath.Join(dir, "restored")
	reports, err := eng.Backup(t.Context(), backup)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	require.Equal(t, ses.Head(), reports[0].Head)
	_, err = ses.Signal(t.Context(), enginetest.TaskSignal(100, 100))
	require.NoError(t, err, "the original goes on")

	reports, err = sajou.RestoreBackup(t.Context(), backup, restored)
	require.NoError(t, err)
	require.Equal(t, want.Head(), reports[0].Head)
	_, err = sajou.RestoreBackup(t.Context(), backup, restored)
	require.ErrorIs(t, err, fs.ErrExist, "a store is in the way")
	require.NotErrorIs(t, err, eventlog.ErrNoStore)
	_, err = sajou.RestoreBackup(t.Context(), filepath.Join(dir, "nowhere"), filepath.Join(dir, "other"))
	require.ErrorIs(t, err, eventlog.ErrNoStore)
	require.NoFileExists(t, filepath.Join(dir, "other"))

	again, ses2 := enginetest.Begin(t, restored, sajou.Config{SnapshotEvery: 10})
	defer func() { require.NoError(t, again.Close()) }()
	images, err := again.Snapshots().List("a")
	require.NoError(t, err)
	require.NotEmpty(t, images)
	bad, checked, err := again.VerifySnapshots(t.Context(), "a")
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Equal(t, len(images), checked)
	got, err := ses2.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, enginetest.Digests(want), enginetest.Digests(got))
	_, err = ses2.Signal(t.Context(), enginetest.TaskSignal(36, 36))
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(backup, sajou.SnapshotFile+".new"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

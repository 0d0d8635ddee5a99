package sajou

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// Backup copies the store, while it is in use, to dir, which must be absent, and verifies
// every session of the copy before it appears there; see [eventlog.Log.Backup] for what
// it holds and for the errors. It returns what the verification found. Keep the heads
// outside of the copy: only they prove later that no entry was removed from an end.
//
// The snapshots are copied too. If that fails, the copy has none, which costs time and
// nothing else; the error is logged.
func (e *Engine) Backup(ctx context.Context, dir string) ([]verify.SessionReport, error) {
	reports, err := e.log.Backup(ctx, dir)
	if err != nil || e.snaps == nil {
		return reports, err
	}
	part := filepath.Join(dir, SnapshotFile+".new")
	err = e.snaps.Copy(part)
	if err == nil {
		err = os.Rename(part, filepath.Join(dir, SnapshotFile))
	}
	if err != nil {
		e.cfg.Logger.Warn("the backup has no snapshots", slog.String("path", dir), slog.Any("err", errors.Join(err, os.RemoveAll(part))))
	}
	return reports, nil
}

// RestoreBackup copies the store in backup to dir, which must be absent, as
// [Engine.Backup] does. The backup stays as it is, and can be restored again.
func RestoreBackup(ctx context.Context, backup, dir string) ([]verify.SessionReport, error) {
	e, err := Open(backup, Config{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	reports, err := e.Backup(ctx, dir)
	return reports, errors.Join(err, e.Close())
}

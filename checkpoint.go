package sajou

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// maxCopiedSnapshots bounds the snapshots that a checkpoint gets, in bytes.
const maxCopiedSnapshots = 64 << 20

// Checkpoint makes a copy of the open store for another process to read, at little cost,
// and returns its directory; see [eventlog.Log.Checkpoint] for what it holds, and for the
// errors. The copy is opened with [Config.ReadOnly], and removed with
// [eventlog.RemoveCheckpoint].
//
// The copy has the indexes of the store, and its snapshots unless they take more than
// 64 MiB or cannot be copied; then states are folded from the first entry, which takes
// longer and gives the same.
func (e *Engine) Checkpoint(ctx context.Context) (dir string, err error) {
	dir, err = e.log.Checkpoint(ctx)
	if err != nil || e.snapsPath == "" {
		return dir, err
	}
	if err := e.copyDerived(dir); err != nil {
		e.cfg.Logger.Warn("a checkpoint has no snapshots or indexes", slog.String("path", dir), slog.Any("err", err))
	}
	if err := ctx.Err(); err != nil {
		return "", errors.Join(err, eventlog.RemoveCheckpoint(dir, 0))
	}
	return dir, nil
}

// copyDerived copies the snapshots and links the indexes, whose files never change once
// they have their names.
func (e *Engine) copyDerived(dir string) error {
	var errs error
	if info, err := os.Stat(e.snapsPath); e.snaps != nil && err == nil && info.Size() <= maxCopiedSnapshots {
		path := filepath.Join(dir, SnapshotFile)
		if err := e.snaps.Copy(path); err != nil {
			errs = errors.Join(fmt.Errorf("sajou: copy the snapshots: %w", err), os.Remove(path))
		}
	}
	list, err := os.ReadDir(filepath.Dir(e.snapsPath))
	if err != nil {
		return errors.Join(errs, err)
	}
	for _, f := range list {
		name := f.Name()
		if strings.HasPrefix(name, IndexFile+".") && f.Type().IsRegular() && !strings.Contains(name, ".new-") {
			errs = errors.Join(errs, os.Link(filepath.Join(filepath.Dir(e.snapsPath), name), filepath.Join(dir, name)))
		}
	}
	return errs
}

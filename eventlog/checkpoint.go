package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
)

// CheckpointsFolder is the name of the folder inside the directory of a store that holds
// the checkpoints of the store while they are read; see [Log.Checkpoint].
const CheckpointsFolder = storefile.CheckpointsName

// Checkpoint makes a copy of the open store for another process to read, and returns the
// directory of the copy, which is inside that of the store. The copy is a store with the
// same id and has every entry that was acknowledged when Checkpoint was called, and
// perhaps later ones; all are durable when it returns. Opened with [Config.ReadOnly] it
// has the same heads, and verifies.
//
// The tables of the copy are hard links to those of the store. So the cost is that of
// copying the write-ahead log, some 16 MiB at most in ordinary use, whatever the size of
// the store; appends go on meanwhile. The copy keeps the space of tables that the store
// deletes, and the bytes of a session that is deleted, until it is removed: call
// [RemoveCheckpoint]. A checkpoint that no process has open is removed when the store is
// opened for writing next.
//
// Errors: [ErrReadOnly] for a log that failed or was opened for reading, [ErrForeign] if
// something else is in the place of the folder of checkpoints, those of the disk and of
// ctx. A failure leaves no checkpoint and does not make the log read-only.
func (l *Log) Checkpoint(ctx context.Context) (dir string, err error) {
	if err := l.acquire(); err != nil {
		return "", err
	}
	defer l.release()
	if err := l.writable(); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	disk := l.cfg.FS
	dir, err = storefile.NewCheckpointPath(disk, l.dir)
	if err != nil {
		return "", err
	}
	if err := l.checkpoint(ctx, dir); err != nil {
		_ = disk.RemoveAll(dir)            // what stays is swept when the store is opened next
		_ = disk.Remove(disk.PathDir(dir)) // fails while there are others
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("eventlog: make a checkpoint: %w", err)
	}
	return dir, nil
}

// checkpoint makes a checkpoint in dir, in an order that leaves it whole:
//
//  1. The noted heads are copied, while none is being written. A noted entry is in the
//     write-ahead log, so the copy that follows has it.
//  2. Pebble links its tables and copies its MANIFEST and its write-ahead log.
//  3. The copied log is cut where writes under way may have torn it. What was
//     acknowledged before step 2 is in front of that place.
//  4. A sync of the log makes durable what was written, and perhaps copied, before it.
func (l *Log) checkpoint(ctx context.Context, dir string) error {
	heads, err := l.notes.contents()
	if err != nil {
		return err
	}
	if err := l.copyPebble(dir); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := storefile.CompleteCheckpoint(l.cfg.FS, dir, l.id, heads); err != nil {
		return err
	}
	return errors.Join(l.syncAll(), ctx.Err())
}

// copyPebble makes Pebble's part of a checkpoint. Pebble panics where the new directory
// cannot be synced, and the process need not end for that: Pebble holds no lock there.
func (l *Log) copyPebble(dir string) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			err = fmt.Errorf("%v", r)
		}
	}()
	return l.db.Checkpoint(dir)
}

// RemoveCheckpoint removes a checkpoint that [Log.Checkpoint] has made, with all files in
// it. Any process may call it. It waits at most that long for a process that has the
// checkpoint open; then the error is [ErrLocked]. It is nil if the checkpoint is gone.
func RemoveCheckpoint(dir string, wait time.Duration) error {
	return storefile.RemoveCheckpoint(vfs.Default, dir, wait)
}

// IsCheckpointOf reports whether dir can be a checkpoint of the store in a directory.
func IsCheckpointOf(store, dir string) bool {
	canonical, err := storefile.Canonical(store)
	return err == nil && storefile.IsCheckpoint(vfs.Default, dir) && vfs.Default.PathDir(vfs.Default.PathDir(dir)) == canonical
}

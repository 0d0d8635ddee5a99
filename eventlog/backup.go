package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// This file copies a store while it is in use.

// Backup copies the store to dir, which must be absent, and verifies the copy before it
// appears there. The copy is a store of its own, with an id of its own, and has the
// entries that were appended when Backup was called, which are durable when it returns; of each append it has all entries or none. Appends go on while it runs. A
// Backup that fails, or is killed, leaves no store in dir.
//
// It copies keys, not files. So a failed write of the copy does not make the log
// read-only, and a file of the store that rots later is not a file of the copy.
//
// Errors: [fs.ErrExist] if dir exists, [ErrReadOnly] for a log that failed, [ErrLost] for a store that lost entries and
// [ErrCorrupt] for one with damage, those of ctx and of the copy's disk. [Repair] saves
// what can be read of a damaged store.
func (l *Log) Backup(ctx context.Context, dir string) ([]verify.SessionReport, error) {
	if err := l.acquire(); err != nil {
		return nil, err
	}
	defer l.release()
	if l.loss != nil {
		return nil, l.loss
	}
	disk := l.cfg.FS
	if disk == vfs.Default {
		var err error
		if dir, err = storefile.Canonical(dir); err != nil {
			return nil, err
		}
	}
	if dir == l.dir || strings.HasPrefix(dir, strings.TrimSuffix(l.dir, "/")+"/") {
		return nil, fmt.Errorf("%w: the backup in %s would be a part of the store in %s: name a directory elsewhere", ErrInvalid, dir, l.dir)
	}
	exists := &DirectoryError{Dir: dir, Found: "it exists", Do: "name a directory that is absent", Err: fs.ErrExist}
	if _, err := disk.Stat(dir); err == nil {
		return nil, exists
	}
	snap := l.db.NewSnapshot()
	if err := l.syncAll(); err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	var reports []verify.SessionReport
	created, _, err := storefile.CreateBeside(disk, dir, func(dir string, lock *pebble.Lock) error {
		cfg := l.cfg
		cfg.ReadOnly, cfg.RemoveUnused = false, false
		return buildStore(cfg, dir, lock, func(c *Log) (err error) {
			reports, err = fillBackup(ctx, c, snap)
			return err
		})
	})
	err = errors.Join(err, snap.Close())
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("eventlog: backup to %s: %w", dir, err)
	case !created:
		return nil, exists // another process was faster
	}
	return reports, nil
}

// fillBackup copies what a snapshot holds to c, notes the heads, and verifies the sessions
// of c.
func fillBackup(ctx context.Context, c *Log, snap *pebble.Snapshot) ([]verify.SessionReport, error) {
	if err := copyKeys(ctx, c.db, snap); err != nil {
		return nil, err
	}
	faults, err := verify.Store(ctx, c.db)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%w: %v", ErrCorrupt, &faults[0])
	}
	sessions, _, err := keyspace.Sessions(c.db)
	if err != nil {
		return nil, err
	}
	heads := storefile.HeadsHeader()
	var reports []verify.SessionReport
	for _, s := range sessions {
		report, err := c.verify(ctx, s.Name, verify.Options{})
		switch {
		case err != nil:
			return nil, err
		case !report.Whole():
			return nil, fmt.Errorf("%w: session %q does not verify; verify names the place", ErrCorrupt, s.Name)
		}
		reports = append(reports, report)
		heads = storefile.AppendHeadsCell(heads, s.Number, s.Name, report.Head)
	}
	if err := c.db.Set(keyspace.HeadsKey(), []byte{storefile.HeadsVersion}, pebble.NoSync); err != nil {
		return nil, err
	}
	return reports, storefile.WriteAtomically(c.cfg.FS, c.dir, storefile.HeadsFile, heads)
}

// syncAll returns when every write before the call is durable, whether or not the caller of
// that write waits for it. It writes what the store holds already.
func (l *Log) syncAll() error {
	if l.cfg.ReadOnly {
		return nil
	}
	batch := l.db.NewBatch()
	l.versionMu.Lock()
	defer l.versionMu.Unlock()
	version, closer, err := l.db.Get(keyspace.FormatKey())
	if err != nil {
		return keyspace.ReadError("back up", err)
	}
	err = batch.Set(keyspace.FormatKey(), version, nil)
	if err := errors.Join(err, closer.Close()); err != nil {
		return err
	}
	if err := l.writeSync(batch, false); err != nil {
		return err // the store may still use the batch: its sync may never end
	}
	return batch.Close()
}

// copyKeys copies all keys, in pieces.
func copyKeys(ctx context.Context, to *pebble.DB, from pebble.Reader) error {
	const maxPending = 4 << 20
	it, err := from.NewIterWithContext(ctx, nil)
	if err != nil {
		return keyspace.ReadError("copy", err)
	}
	batch := to.NewBatch()
	defer func() { _ = batch.Close() }() // commits are explicit
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if err = batch.Set(it.Key(), it.Value(), nil); err == nil && batch.Len() > maxPending {
			if err = batch.Commit(pebble.NoSync); err == nil {
				batch.Reset()
				err = ctx.Err()
			}
		}
	}
	if read := errors.Join(it.Error(), it.Close()); read != nil {
		err = keyspace.ReadError("copy", read)
	}
	if err != nil {
		return err
	}
	return batch.Commit(pebble.NoSync)
}

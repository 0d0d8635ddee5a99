package sajou

import (
	"context"
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay/sentinel"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// ErrNoSnapshots is the error of a change to the snapshots of an engine that works
// without: they were not asked for, or their file cannot be used.
var ErrNoSnapshots = errors.New("sajou: the engine works without snapshots")

// Snapshots returns a reader of the engine's snapshots, or nil when it works without.
func (e *Engine) Snapshots() *snapshot.ImageReader {
	if e.snaps == nil {
		return nil
	}
	return e.snaps.Reader()
}

// DropSnapshots deletes all snapshots of a session and returns how many there were.
func (e *Engine) DropSnapshots(name string) (int, error) {
	if e.snaps == nil {
		return 0, ErrNoSnapshots
	}
	return e.snaps.DropAll(name)
}

// BuildSnapshots folds a session from its first entry and takes a snapshot at every
// interval, thinned to their part of the log's size. It returns how many it took. On the
// way it keeps the digests of the projections at up to [BuiltDigests] entries; see
// [Engine.KeptDigests].
// Progress, unless nil, is called before each with the number of entries folded.
func (e *Engine) BuildSnapshots(ctx context.Context, name string, progress func(folded, entries eventlog.Seq)) (taken int, err error) {
	log, err := e.log.Session(name)
	if err != nil {
		return 0, err
	}
	if e.snaps == nil {
		return 0, ErrNoSnapshots
	}
	size, err := e.log.DiskSize(ctx, name)
	if err != nil {
		return 0, err
	}
	digests, err := sentinel.NewTaker(name, log.Head().Seq, e.set, BuiltDigests)
	if err != nil {
		return 0, err
	}
	taken, err = e.snaps.Build(ctx, &log.SessionReader, e.set, size, progress, digests.Saw)
	if err != nil || e.cfg.ReadOnly {
		return taken, err
	}
	return taken, e.changeDigests(func(d *sentinel.DigestDocument) bool {
		d.Put(digests.Digests())
		return true
	})
}

// VerifySnapshots folds a session from its first entry, without snapshots, and
// compares each of its snapshots with the state there, as [snapshot.Store.Verify]
// says. Errors: [eventlog.ErrNoSession] and those of reading.
func (e *Engine) VerifySnapshots(ctx context.Context, name string) (bad []snapshot.ImageFault, checked int, err error) {
	log, err := e.log.Session(name)
	if err != nil {
		return nil, 0, err
	}
	if !log.Exists() {
		return nil, 0, fmt.Errorf("%w: %q", eventlog.ErrNoSession, name)
	}
	if e.snaps == nil {
		return nil, 0, nil
	}
	return e.snaps.Verify(ctx, &log.SessionReader, e.set)
}

package sajou

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/session"
)

// forkWrite is about the number of bytes that one write of a fork has.
const forkWrite = 4 << 20

// Fork records the fork of a session under a new name and returns what became of the
// recorded entries and the Head of the fork; see package replay/fork. The rules of
// [Config.World] decide; cfg.World is ignored. It reads the parent twice, and keeps none
// of its entries. The first entry has the label, which has the number of entries of the whole
// fork, so [session.Fork.Complete] detects a fork that was interrupted.
//
// Errors: [eventlog.ErrNoSession] for a parent without entries, [eventlog.ErrInvalid] for
// a name that is taken or none, [*session.RulesError], those of [fork.New], and those of
// [eventlog.Session.Append].
func (e *Engine) Fork(ctx context.Context, parent, name string, cfg fork.Config) (*fork.Counterfactual, eventlog.Head, error) {
	var head eventlog.Head
	to, err := e.log.Session(name)
	if err != nil {
		return nil, head, err
	}
	if to.Exists() {
		return nil, head, fmt.Errorf("%w: there is a session %q already; choose another name", eventlog.ErrInvalid, name)
	}
	from, err := e.log.Session(parent)
	if err != nil {
		return nil, head, err
	}
	if _, err := session.OpenReplay(&from.SessionReader, e.set, nil); err != nil {
		return nil, head, err
	}
	cfg.World = e.cfg.World
	made, err := fork.New(ctx, &from.SessionReader, cfg)
	if err != nil {
		return nil, head, err
	}
	var batches []eventlog.Batch
	size := 0
	write := func() error {
		if len(batches) == 0 {
			return nil
		}
		written, err := e.Restore(ctx, name, batches...)
		if err == nil {
			head = written // otherwise that of what was written before stays
		}
		batches, size = nil, 0
		return err
	}
	for batch, err := range made.Batches(ctx, name) {
		if err != nil {
			return nil, head, err
		}
		batches = append(batches, batch)
		for i := range batch.Drafts {
			size += len(batch.Drafts[i].Data)
		}
		if size >= forkWrite {
			if err := write(); err != nil {
				return nil, head, err
			}
		}
	}
	if err := write(); err != nil {
		return nil, head, err
	}
	return made, head, nil
}

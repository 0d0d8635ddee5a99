package sajou

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/session"
)

// forkWrite is about the number of bytes that one write of a fork has. The tests use fewer.
var forkWrite = 4 << 20

// Fork records the fork of a session under a new name and returns what became of the
// recorded entries and the Head of the fork; see package replay/fork. The rules of
// [Config.World] decide; cfg.World is ignored. It reads the parent twice, and keeps none
// of its entries. The first entry has the label, which has the number of entries of the whole
// fork, so [session.Fork.Complete] detects a fork that was interrupted.
//
// The end of ctx, or a crash, can leave an incomplete fork. Fork with the same arguments then
// goes on with it: it checks that the entries that stand there are those that it would make,
// and appends the others. The result is the fork that would have been made at once.
//
// Errors: [eventlog.ErrNoSession] for a parent without entries, [eventlog.ErrInvalid] for
// a name that is none, or that is taken, also by an incomplete fork with other changes;
// [*session.RulesError], those of [fork.New], and those of [eventlog.Session.Append], such as
// [eventlog.ErrConflict] if a write of the interrupted call comes only now. The Head beside an
// error is that of the incomplete fork, zero if there is none.
func (e *Engine) Fork(ctx context.Context, parent, name string, cfg fork.Config) (*fork.Counterfactual, eventlog.Head, error) {
	to, err := e.log.Session(name)
	if err != nil {
		return nil, eventlog.Head{}, err
	}
	begun, err := incompleteFork(ctx, &to.SessionReader)
	if err != nil {
		return nil, eventlog.Head{}, err
	}
	from, err := e.log.Session(parent)
	if err != nil {
		return nil, eventlog.Head{}, err
	}
	if _, err := session.OpenReplay(&from.SessionReader, e.set, nil); err != nil {
		return nil, eventlog.Head{}, err
	}
	cfg.World = e.cfg.World
	made, err := fork.New(ctx, &from.SessionReader, cfg)
	if err != nil {
		return nil, begun, err
	}
	w := forkWriter{engine: e, name: name, begun: begun}
	for batch, err := range made.Batches(ctx, name) {
		if err == nil {
			err = w.add(ctx, batch)
		}
		if err != nil {
			return nil, w.reached(), err
		}
	}
	if err := w.write(ctx); err != nil {
		return nil, w.reached(), err
	}
	return made, w.head, nil
}

// incompleteFork returns the Head of an incomplete fork, and zero for a session without
// entries. Any other session is an error.
func incompleteFork(ctx context.Context, to *eventlog.SessionReader) (eventlog.Head, error) {
	if !to.Exists() {
		return eventlog.Head{}, nil
	}
	label, err := session.ReadFork(ctx, to)
	if err != nil {
		return eventlog.Head{}, err
	}
	if head := to.Head(); label != nil && !label.Complete(head) {
		return head, nil
	}
	return eventlog.Head{}, fmt.Errorf("%w: there is a session %q already; choose another name", eventlog.ErrInvalid, to.Name())
}

// forkWriter writes the batches of a fork, several at once.
type forkWriter struct {
	engine *Engine
	name   string
	begun  eventlog.Head // of the incomplete fork that it goes on with
	head   eventlog.Head // of what was written, or stood there and was checked

	batches []eventlog.Batch
	size    int
}

// reached returns the Head of what stands there. A write whose context ended may have
// happened.
func (w *forkWriter) reached() eventlog.Head {
	if log, err := w.engine.log.Session(w.name); err == nil && log.Exists() {
		return log.Head()
	}
	return eventlog.Head{}
}

// add takes the next batch of the fork.
func (w *forkWriter) add(ctx context.Context, batch eventlog.Batch) error {
	if w.head.Seq < w.begun.Seq {
		after := w.head
		if after.Seq == 0 {
			after.Hash = eventlog.Genesis(w.name)
		}
		_, head := chain.AppendBatch(nil, after, batch.Drafts, batch.Key)
		if head.Seq >= w.begun.Seq && head != w.begun {
			return fmt.Errorf("%w: there is an incomplete fork %q already, of other entries; choose another name, or delete it", eventlog.ErrInvalid, w.name)
		}
		w.head = head
		return nil
	}
	if w.begun.Seq > 0 && w.head == w.begun {
		batch.Expect = w.begun
	}
	w.batches = append(w.batches, batch)
	for i := range batch.Drafts {
		w.size += len(batch.Drafts[i].Data)
	}
	if w.size < forkWrite {
		return nil
	}
	return w.write(ctx)
}

// write writes the batches that it has.
func (w *forkWriter) write(ctx context.Context) error {
	if len(w.batches) == 0 {
		return nil
	}
	head, err := w.engine.Restore(ctx, w.name, w.batches...)
	if err == nil {
		w.head = head
	}
	w.batches, w.size = nil, 0
	return err
}

package writer

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
)

// backlog holds the batches that are staged and not folded yet.
type backlog struct {
	mu       sync.Mutex
	tickets  []*eventlog.Ticket // guarded by mu
	entries  int                // of tickets; guarded by mu
	bytes    int                // of tickets; guarded by mu
	followed bool               // a goroutine folds them; guarded by mu
}

// A small backlog is folded by the call that made it, which would wait for the
// disk anyway. A larger one is an import's and is folded on a goroutine beside it,
// up to a bound above which the call folds too, which throttles it.
const (
	smallBacklog      = 256
	largeBacklog      = 8192
	largeBacklogBytes = 16 << 20
)

func (b *backlog) add(t *eventlog.Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tickets = append(b.tickets, t)
	b.entries += int(t.Head().Seq-t.First()) + 1
	b.bytes += t.Size()
}

// take empties the backlog.
func (b *backlog) take() []*eventlog.Ticket {
	b.mu.Lock()
	defer b.mu.Unlock()
	tickets := b.tickets
	b.tickets, b.entries, b.bytes = nil, 0, 0
	return tickets
}

// rest reports whether there is something left to fold. If not, the goroutine
// that folds ends.
func (b *backlog) rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followed = len(b.tickets) > 0
	return b.followed
}

// follow has the backlog folded, here or aside. It runs when a round has been
// handed to the store.
func (w *Writer) follow() {
	b := &w.backlog
	b.mu.Lock()
	done := len(b.tickets) == 0 // a turn or a reader folded them
	aside := (b.followed || b.entries > smallBacklog) && b.entries <= largeBacklog && b.bytes <= largeBacklogBytes
	begin := aside && !b.followed
	b.followed = b.followed || begin
	b.mu.Unlock()
	switch {
	case begin:
		w.group.folds.Go(func() {
			for b.rest() {
				w.catchUp()
			}
		})
	case !aside && !done:
		w.catchUp()
	}
}

// catchUp folds all batches that were staged before the call. Batches that come
// meanwhile are left to their own callers, so that no call folds for as long as
// others write.
func (w *Writer) catchUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.backlog.take() {
		w.apply(t)
	}
}

// apply brings the newest state up to a staged batch. Called with mu held.
func (w *Writer) apply(t *eventlog.Ticket) {
	if w.broken.Load() != nil {
		return
	}
	for e := range t.Entries() {
		if err := w.fold.Apply(&e); err != nil {
			// The log has the batch and the state does not: a defect of this
			// program. The log stays good, and nothing more is recorded.
			broken := fmt.Errorf("sajou: session %q: %w", w.Name(), err)
			w.broken.Store(&broken)
			return
		}
		w.logBytes += uint64(len(e.Body))
	}
	w.warnUnresolved()
	w.snapshot()
}

// warnUnresolved logs the references that did not resolve since its last call: each
// place in a definition once in the life of a session. Called with mu held.
func (w *Writer) warnUnresolved() {
	st := session.StageOf(w.fold)
	if st == nil {
		return
	}
	for _, u := range st.Unresolved(w.warned) {
		w.warned++
		w.group.cfg.Logger.Warn("a reference does not resolve", slog.String("session", w.Name()), slog.String("performance", u.Performance),
			slog.String("definition", u.Definition), slog.String("action", u.Action), slog.String("member", u.Member), slog.String("reference", u.Reference))
	}
}

// snapshot hands the state to the snapshot writer when one is due. Called with mu
// held. The image may reach the disk before its entries do; if they are lost then,
// it fits no entry of the log and is ignored.
func (w *Writer) snapshot() {
	cfg, head := &w.group.cfg, w.fold.Head()
	if cfg.Snapshotter == nil || !cfg.Snapshots.Due(w.snapped, head.Seq) || w.logBytes-w.snappedAt < w.imageBytes {
		return
	}
	img := w.fold.Image()
	w.snapped, w.snappedAt, w.imageBytes = head.Seq, w.logBytes, 0
	for _, p := range img.Parts {
		w.imageBytes += uint64(len(p.Data))
	}
	if w.imageBytes < largeImage {
		w.imageBytes = 0
	}
	cfg.Snapshotter.Offer(w.Name(), img, w.logBytes)
}

// largeImage is the size of a state, in bytes, from which on the next image waits
// until as many bytes have been logged: the images of a large world then cost no
// more than its log.
const largeImage = 256 << 10

package writer

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
)

// backlog holds the batches that are staged and not folded yet.
type backlog struct {
	mu       sync.Mutex
	tickets  []*eventlog.Ticket // guarded by mu
	behind   int                // entries that are staged and not folded, those without a ticket too; guarded by mu
	bytes    int                // of tickets; guarded by mu
	loaded   bool               // the writer has a fold, so every ticket is kept for it; guarded by mu
	eager    bool               // every batch is folded as soon as it is staged; guarded by mu
	followed bool               // a goroutine folds them; guarded by mu
	watched  bool               // a timer waits until the session is idle; guarded by mu
	busy     bool               // a batch was added since the timer was set; guarded by mu
}

// A backlog of plain records waits until the session is idle, or is MaxBehind entries
// long, or an image is due, and is then folded on a goroutine. A longer one is an
// import's: above the bound of largeBacklog the call folds too, which throttles it.
// Where every batch is folded at once, the call that made a small backlog folds it,
// because it would wait for the disk anyway.
const (
	smallBacklog      = 256
	MaxBehind         = 1024
	largeBacklog      = 8192
	largeBacklogBytes = 16 << 20

	// idleAfter is the time without an append after which a session is idle.
	idleAfter = 10 * time.Millisecond
)

// add adds a batch. While there is no fold, batches that are durable are dropped: the
// fold reads them from the log.
func (b *backlog) add(t *eventlog.Ticket, durable eventlog.Seq) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.loaded {
		b.drop(durable)
	}
	b.tickets = append(b.tickets, t)
	b.behind += entries(t)
	b.bytes += t.Size()
	b.busy = true
}

// size returns the number of entries that are staged and not folded, 0 while there is no
// fold to follow them.
func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.loaded {
		return 0
	}
	return b.behind
}

// take empties the backlog.
func (b *backlog) take() []*eventlog.Ticket {
	b.mu.Lock()
	defer b.mu.Unlock()
	tickets := b.tickets
	b.tickets, b.behind, b.bytes = nil, 0, 0
	return tickets
}

// keepAll keeps every ticket from now on, for a fold that is about to be made.
func (b *backlog) keepAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loaded = true
}

// letGo forgets the batches up to a durable entry, because the writer gives up its fold.
// It returns false if the fold is in use.
func (b *backlog) letGo(durable eventlog.Seq) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.eager || b.followed {
		return false
	}
	b.loaded = false
	b.drop(durable)
	b.behind = 0
	for _, t := range b.tickets {
		b.behind += entries(t)
	}
	return true
}

// drop forgets the batches up to a durable entry. Called with mu held.
func (b *backlog) drop(durable eventlog.Seq) {
	n := 0
	for n < len(b.tickets) && b.tickets[n].Head().Seq <= durable {
		b.bytes -= b.tickets[n].Size()
		n++
	}
	kept := copy(b.tickets, b.tickets[n:])
	clear(b.tickets[kept:])
	b.tickets = b.tickets[:kept]
}

// entries returns the number of entries of a batch.
func entries(t *eventlog.Ticket) int { return int(t.Head().Seq-t.First()) + 1 }

// step is how the folding of a backlog goes on.
type step int

const (
	stepNone  step = iota // it is empty, or a goroutine or a timer sees to it
	stepHere              // the call folds it
	stepAside             // a goroutine folds it
	stepWatch             // a timer waits until the session is idle
)

// next returns how the folding goes on, for a goroutine that folds (following) or for
// a call that has added a batch. The caller does what it returns.
func (b *backlog) next(following bool, due func(folded, newest eventlog.Seq) bool) step {
	b.mu.Lock()
	defer b.mu.Unlock()
	if following {
		b.followed = false
	}
	if len(b.tickets) == 0 {
		return stepNone // a turn or a reader folded them
	}
	newest := b.tickets[len(b.tickets)-1].Head().Seq
	switch {
	case !following && (b.behind > largeBacklog || b.bytes > largeBacklogBytes):
		return stepHere
	case b.followed:
		return stepNone
	case !following && b.eager && b.behind <= smallBacklog:
		return stepHere
	case b.eager || b.behind >= MaxBehind || due(newest-eventlog.Seq(b.behind), newest):
		b.followed = true
		return stepAside
	case b.watched || !b.loaded: // a fold that no caller has used is not kept up
		return stepNone
	}
	b.watched, b.busy = true, false
	return stepWatch
}

// rung returns how the folding goes on when the timer has run.
func (b *backlog) rung() step {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy && b.loaded && !b.followed {
		b.busy = false
		return stepWatch
	}
	b.watched = false
	if b.followed || !b.loaded || len(b.tickets) == 0 {
		return stepNone
	}
	b.followed = true
	return stepAside
}

// follow has the backlog folded, now or later. It runs when a round has been handed
// to the store.
func (w *Writer) follow() {
	switch w.backlog.next(false, w.due) {
	case stepHere:
		runtime.Gosched() // to the goroutine of the store that writes and syncs: it is next on this processor
		w.catchUp()
	case stepAside:
		w.group.folds.Go(w.foldAside)
	case stepWatch:
		w.group.cfg.AfterFunc(idleAfter, w.idle)
	case stepNone:
	}
}

// foldAside folds the backlog, and what is added meanwhile if that is much.
func (w *Writer) foldAside() {
	for {
		w.catchUp()
		switch w.backlog.next(true, w.due) {
		case stepAside:
			continue
		case stepWatch:
			w.group.cfg.AfterFunc(idleAfter, w.idle)
		case stepHere, stepNone:
		}
		return
	}
}

// idle runs on the timer of the backlog.
func (w *Writer) idle() {
	switch w.backlog.rung() {
	case stepWatch:
		if w.group.ctx.Err() == nil {
			w.group.cfg.AfterFunc(idleAfter, w.idle)
		}
	case stepAside:
		w.group.foldAside(w)
	case stepHere, stepNone:
	}
}

// due reports whether an image is due between two entries.
func (w *Writer) due(folded, newest eventlog.Seq) bool {
	cfg := &w.group.cfg
	return cfg.Snapshotter != nil && cfg.Snapshots.Due(folded, newest)
}

// catchUp folds all batches that were staged before the call. Batches that come
// meanwhile are left to their own callers, so that no call folds for as long as
// others write.
func (w *Writer) catchUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.foldBacklog()
}

// foldBacklog is catchUp for a caller that holds mu.
func (w *Writer) foldBacklog() {
	if w.fold == nil {
		w.load()
	}
	for _, t := range w.backlog.take() {
		w.apply(t)
	}
}

// apply brings the newest state up to a staged batch. Called with mu held.
func (w *Writer) apply(t *eventlog.Ticket) {
	if w.broken.Load() != nil || t.Head().Seq <= w.fold.Head().Seq {
		return // the fold has read a batch that became durable before
	}
	metrics, began := w.group.cfg.Metrics, time.Time{}
	if metrics != nil {
		began = w.group.cfg.Now()
	}
	for e := range t.Entries() {
		if err := w.fold.Apply(&e); err != nil {
			// The log has the batch and the state does not: a defect of this
			// program. The log stays good, and nothing more is recorded.
			w.fail(err)
			return
		}
		w.logBytes += uint64(len(e.Body))
	}
	if metrics != nil {
		metrics.Folded(w.Name(), int(t.Head().Seq-t.First())+1, w.Behind(), max(w.group.cfg.Now().Sub(began), 0))
	}
	w.reportFailed()
	w.warnUnresolved()
	w.snapshot()
}

// reportFailed notes the program's projections that have failed, and logs each once.
// Called with mu held.
func (w *Writer) reportFailed() {
	names, errs := w.fold.Failed()
	if len(names) == 0 {
		w.failures.Store(nil) // a fold that was made again may be whole
		return
	}
	failures := make([]ProjectionFailure, len(names))
	for i, name := range names {
		failures[i] = ProjectionFailure{name, errs[i]}
		if !slices.Contains(w.failed, name) {
			w.failed = append(w.failed, name)
			w.group.cfg.Logger.Error("a projection of the program has failed; it is out of use in this session",
				slog.String("session", w.Name()), slog.String("projection", name), slog.Any("err", errs[i]))
		}
	}
	w.failures.Store(&failures)
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

// fail records why the state does not follow the log. Nothing more is recorded then.
func (w *Writer) fail(err error) {
	broken := fmt.Errorf("sajou: session %q: %w", w.Name(), err)
	if w.broken.CompareAndSwap(nil, &broken) && w.group.cfg.Metrics != nil {
		w.group.cfg.Metrics.FoldFailed(w.Name(), broken)
	}
}

// snapshot hands the state to the snapshot writer when one is due. Called with mu
// held. The image may reach the disk before its entries do; if they are lost then,
// it fits no entry of the log and is ignored.
func (w *Writer) snapshot() {
	cfg, head := &w.group.cfg, w.fold.Head()
	if !w.due(w.snapped, head.Seq) || w.logBytes-w.snappedAt < w.imageBytes {
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
	images := img.Split(w.fold.Set())
	cfg.Snapshotter.Offer(w.Name(), w.logBytes, images[0], images[1:]...)
}

// largeImage is the size of a state, in bytes, from which on the next image waits
// until as many bytes have been logged: the images of a large world then cost no
// more than its log.
const largeImage = 256 << 10

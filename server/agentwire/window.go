package agentwire

import (
	"context"
	"sync"
)

// window is the flow control of observations: it bounds how many of them the client has
// not acknowledged. What waits beyond it waits in the agent's queue in the world, where
// the agent's policy decides what happens when that is full.
type window struct {
	size int // 0 means that the transport alone slows the connection

	mu      sync.Mutex
	newest  *uint64       // view_seq of the newest observation that was sent; guarded by mu
	pending []uint64      // view_seqs that are not acknowledged, in order; guarded by mu
	opened  chan struct{} // closed when pending gets shorter; guarded by mu
}

func newWindow(size int) window { return window{size: size, opened: make(chan struct{})} }

// wait returns when another observation may be sent.
func (w *window) wait(ctx context.Context) error {
	for {
		w.mu.Lock()
		free, opened := w.size == 0 || len(w.pending) < w.size, w.opened
		w.mu.Unlock()
		if free {
			return ctx.Err()
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sent notes an observation.
func (w *window) sent(viewSeq uint64) {
	if w.size == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, viewSeq)
	if w.newest == nil || viewSeq > *w.newest {
		w.newest = &viewSeq
	}
}

// ack notes that the client has everything up to a view_seq. It returns false if no
// such observation was sent.
func (w *window) ack(viewSeq uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.newest == nil || viewSeq > *w.newest {
		return false
	}
	n := 0
	for n < len(w.pending) && w.pending[n] <= viewSeq {
		n++
	}
	if n > 0 {
		w.pending = append(w.pending[:0], w.pending[n:]...)
		close(w.opened)
		w.opened = make(chan struct{})
	}
	return true
}

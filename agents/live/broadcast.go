package live

import (
	"sync"
)

// broadcast wakes all goroutines that wait for a change. A goroutine calls wait
// before it checks for the change, and so misses none.
type broadcast struct {
	mu      sync.Mutex
	waiting chan struct{} // closed by send; nil while no goroutine waits; guarded by mu
}

// wait returns a channel that the next send closes.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}

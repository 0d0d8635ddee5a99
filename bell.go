package sajou

import "sync"

// bell wakes all who wait for something. Whoever waits asks for next before it
// looks whether there is something, and so misses nothing.
type bell struct {
	mu   sync.Mutex
	rung chan struct{} // closed when it rings; nil while nobody waits; guarded by mu
}

// next returns what is closed when the bell rings next.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

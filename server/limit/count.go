package limit

import "sync"

// counts counts what is held, by its holder. It has a place only for those who hold
// something, so its memory is bounded by the bound of all.
type counts[K comparable] struct {
	each, every int // bounds of one holder and of all; negative: none

	mu   sync.Mutex
	held map[K]int // guarded by mu
	sum  int       // guarded by mu
}

func newCounts[K comparable](each, every int) *counts[K] {
	return &counts[K]{each: each, every: every, held: map[K]int{}}
}

// hold counts one more until release is called, once or several times. release is nil if
// there would be too many: of all, or of the holder, unless the holder is free from the
// second bound.
func (c *counts[K]) hold(key K, free bool) (release func(), all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.every >= 0 && c.sum >= c.every {
		return nil, true
	}
	if !free && c.each >= 0 && c.held[key] >= c.each {
		return nil, false
	}
	c.held[key]++
	c.sum++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sum--
		if c.held[key]--; c.held[key] == 0 {
			delete(c.held, key)
		}
	}), false
}

func (c *counts[K]) all() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}

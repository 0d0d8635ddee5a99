package openai

import (
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
)

// breaker is an [agents.Breaker] that many calls share.
type breaker struct {
	mu sync.Mutex
	agents.Breaker
}

// verdict is what an attempt says of the service.
type verdict int

const (
	nothing verdict = iota // the caller gave up
	well
	ill
)

func (b *breaker) allow(now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Allow(now)
}

func (b *breaker) done(now time.Duration, v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v == nothing {
		b.Abandon()
		return
	}
	b.Done(now, v == well)
}

func (b *breaker) state() agents.BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.State()
}

package openai

import (
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents/flow"
)

// breaker is a [flow.Breaker] for concurrent calls.
type breaker struct {
	mu sync.Mutex // guards Breaker
	flow.Breaker
}

// verdict is the result of an attempt as the breaker counts it.
type verdict int

const (
	nothing verdict = iota // not counted: the caller gave up
	well                   // a success
	ill                    // a failure
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

func (b *breaker) state() flow.BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.State()
}

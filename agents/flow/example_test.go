package flow_test

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/agents/flow"
)

// A breaker that has seen three failures lets no call through for a second, and then one
// probe.
func ExampleBreaker() {
	b := flow.Breaker{Config: flow.BreakerConfig{Failures: 3, Recovery: time.Second, Probes: 1}}
	for now := time.Duration(0); now < 3; now++ {
		if b.Allow(now) {
			b.Done(now, false)
		}
	}
	fmt.Println(b.State(), b.Allow(500*time.Millisecond))
	fmt.Println(b.Allow(2*time.Second), b.State())
	b.Done(2*time.Second, true)
	fmt.Println(b.State())
	// Output:
	// OPEN false
	// true HALF_OPEN
	// CLOSED
}

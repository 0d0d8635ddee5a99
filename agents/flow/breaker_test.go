package flow_test

import (
	"testing"
	"time"

	"github.com/sajou-dev/sajou-go/agents/flow"
)

// TestBreakerForgets shows where a breaker differs from the sketch in the multi-agent design.
func TestBreakerForgets(t *testing.T) {
	b := flow.Breaker{Config: flow.BreakerConfig{Failures: 2, Recovery: time.Second}}
	for i, step := range []struct {
		at        time.Duration
		ok, asked bool
		want      flow.BreakerState
	}{
		{0, false, true, flow.BreakerClosed},
		{1, true, true, flow.BreakerClosed},
		{2, false, true, flow.BreakerClosed},
		{3, false, true, flow.BreakerIsOpen},
		{3 + time.Second, true, false, flow.BreakerIsOpen},
		{4 + time.Second, false, true, flow.BreakerIsOpen},
		{5 + 2*time.Second, true, true, flow.BreakerClosed},
	} {
		asked := b.Allow(step.at)
		if asked {
			b.Done(step.at, step.ok)
		}
		if asked != step.asked || b.State() != step.want {
			t.Errorf("step %d: asked %v, %s", i, asked, b.State())
		}
	}
}

// TestBreakerWait shows how long a breaker says that it stays open.
func TestBreakerWait(t *testing.T) {
	b := flow.Breaker{Config: flow.BreakerConfig{Failures: 1}}
	if w := b.Wait(0); w != 0 {
		t.Errorf("closed, and stays open for %v", w)
	}
	b.Done(time.Second, false)
	for at, want := range map[time.Duration]time.Duration{time.Second: 30 * time.Second, 21 * time.Second: 10 * time.Second, time.Minute: 0} {
		if w := b.Wait(at); w != want {
			t.Errorf("at %v: %v, want %v", at, w, want)
		}
	}
	if end := time.Second + b.Wait(time.Second); b.Allow(end) || !b.Allow(end+1) {
		t.Error("it lets a call through at another time than it says")
	}
}

// TestBreakerAbandon shows that a call that was given up says nothing, and that
// a probe that was makes place for another.
func TestBreakerAbandon(t *testing.T) {
	b := flow.Breaker{Config: flow.BreakerConfig{Failures: 1, Recovery: time.Second, Probes: 1}}
	b.Allow(0)
	b.Abandon()
	if b.State() != flow.BreakerClosed || b.Failures() != 0 {
		t.Errorf("%s, %d failures", b.State(), b.Failures())
	}
	b.Allow(0)
	b.Done(0, false)
	for range 3 {
		if !b.Allow(2*time.Second) || b.Allow(2*time.Second) {
			t.Fatal("not one probe at a time")
		}
		b.Abandon()
		if b.State() != flow.BreakerHalfOpen || b.Failures() != 1 {
			t.Errorf("%s, %d failures", b.State(), b.Failures())
		}
	}
}

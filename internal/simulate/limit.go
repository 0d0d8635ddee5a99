package simulate

import (
	"errors"
	"fmt"
	"time"
)

// ErrLimit is wrapped by the error that ends a play at a bound.
var ErrLimit = errors.New("simulate: the scenario does not come to an end")

// LimitError is the bound that a play met, and its session time.
type LimitError struct {
	Limit string // steps, effects, reactions, work
	Most  int64
	At    time.Duration // session time
}

func (e *LimitError) Error() string {
	advice := fmt.Sprintf("raise limits.%s if that is meant", e.Limit)
	switch e.Limit {
	case "reactions":
		advice = "do reactions answer each other? " + advice
	case "work":
		advice = "use fewer agents or a smaller world"
	}
	return fmt.Sprintf("the scenario goes beyond %d %s at %v: %s", e.Most, e.Limit, e.At, advice)
}

func (e *LimitError) Unwrap() error { return ErrLimit }

// limits bound one play.
type limits struct {
	steps     int64 // actions, ticks, observations read and instants reached
	effects   int64
	reactions int64
}

// The default limits, and the highest that a file may set.
var (
	defaultLimits = limits{steps: 50_000, effects: 10_000, reactions: 1_000}
	mostLimits    = limits{steps: 1_000_000, effects: 100_000, reactions: 100_000}
)

// maxWork bounds the bytes that a play processes: each effect costs each agent the
// size of the world, each observation the size of the agent's view.
const maxWork = 4 << 30

// meter counts the work of a play against its limits.
type meter struct {
	most limits
	done limits
	work int64
}

func (m *meter) step(at time.Duration) error {
	return count(&m.done.steps, m.most.steps, "steps", at)
}

func (m *meter) effect(at time.Duration) error {
	return count(&m.done.effects, m.most.effects, "effects", at)
}

func (m *meter) reaction(at time.Duration) error {
	return count(&m.done.reactions, m.most.reactions, "reactions", at)
}

func count(done *int64, most int64, limit string, at time.Duration) error {
	if *done++; *done > most {
		return &LimitError{limit, most, at}
	}
	return nil
}

// spend adds bytes that are processed the given number of times.
func (m *meter) spend(bytes, times int, at time.Duration) error {
	if m.work += int64(bytes) * int64(times); m.work > maxWork {
		return &LimitError{"work", maxWork, at}
	}
	return nil
}

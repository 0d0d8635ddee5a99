package where

import (
	"context"
	"errors"
	"fmt"
)

const (
	// StepLimit bounds the steps of one evaluation. A step is the evaluation of
	// one node of the expression, the comparison of two values, or the reading
	// of 64 bytes of text; matching a pattern takes one step for every
	// 32 characters times instructions.
	StepLimit = 5_000_000

	// MemoryLimit bounds the bytes that one evaluation builds: strings, lists,
	// maps and the indexes of the values it reads. Bytes of discarded values count
	// too, so the count does not depend on the garbage collector.
	MemoryLimit = 64 << 20

	// contextEvery is the number of steps between two checks of the context.
	contextEvery = 8192

	textStep = 64 // bytes of text that one step reads
)

// The memory costs of building values, in bytes. They are rounded up from a 64-bit
// machine, and the same on every machine.
const (
	sizeRef    = 16  // a value in a list
	sizeText   = 16  // a string, besides its bytes
	sizeNumber = 8   // a number outside of its list
	sizeList   = 64  // an empty list
	sizeObject = 160 // an object before any member is read
	sizeEntry  = 128 // a member in an index or a map
)

// ErrBudget is wrapped by a [BudgetError].
var ErrBudget = errors.New("the expression costs too much")

// BudgetError reports that an evaluation exceeded [StepLimit] or [MemoryLimit]. An
// [EvalError], which names the expression and the entry, wraps it, and it wraps
// [ErrBudget].
type BudgetError struct {
	Limit int64  // the limit, in units
	Unit  string // "steps", or "bytes" of memory
}

func (e *BudgetError) Error() string {
	what := "takes more than %d steps"
	if e.Unit == "bytes" {
		what = "builds more than %d bytes"
	}
	return fmt.Sprintf("%v: one evaluation "+what+"; ask for less, or loop over a shorter list", ErrBudget, e.Limit)
}

func (e *BudgetError) Unwrap() error { return ErrBudget }

// meter counts the steps and memory of one evaluation. Each operation requests an
// upper bound of its work before it starts. After its first refusal the meter refuses
// every request, and the evaluation ends with the meter's err, whatever values the
// operators return meanwhile.
type meter struct {
	ctx   context.Context
	steps int64
	bytes int64
	look  int64 // the step count of the next check of the context
	depth int   // of the values that are being compared
	err   error // the reason of the first refusal; nil before it
}

func (m *meter) reset(ctx context.Context) { *m = meter{ctx: ctx} }

// step requests n steps and reports whether they are granted.
func (m *meter) step(n int) bool {
	if m.err != nil {
		return false
	}
	m.steps += int64(n)
	if m.steps < m.look {
		return true
	}
	return m.atLimit()
}

func (m *meter) atLimit() bool {
	if err := m.ctx.Err(); err != nil {
		m.err = context.Cause(m.ctx)
		return false
	}
	if m.steps > StepLimit {
		m.err = &BudgetError{Limit: StepLimit, Unit: "steps"}
		return false
	}
	m.look = min(m.steps+contextEvery, StepLimit+1)
	return true
}

// text requests the steps for reading n bytes of text.
func (m *meter) text(n int) bool { return m.step(1 + n/textStep) }

// build requests n bytes of memory.
func (m *meter) build(n int) bool {
	if m.err != nil {
		return false
	}
	m.bytes += int64(n)
	if m.bytes > MemoryLimit || m.bytes < 0 {
		m.err = &BudgetError{Limit: MemoryLimit, Unit: "bytes"}
		return false
	}
	return true
}

// copied requests the steps and memory for making a text of n bytes.
func (m *meter) copied(n int) bool { return m.text(n) && m.build(sizeText+n) }

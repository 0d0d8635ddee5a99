package definition

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/signal"
)

// The budget of one session bounds all declarations in force together: expanded
// choreographies, bindings, sequences and easings. A file, an archive, a call of
// Define and the fold of a log share it. A declaration that would exceed it does not
// come into force. One that replaces another first returns that one's cost.
//
// The numbers belong to rules 1: the fold of a log depends on them, so they never
// depend on the machine.
const (
	// MaxStepsInForce bounds the expanded steps of all definitions in force.
	MaxStepsInForce = MaxSteps
	// MaxBytesInForce bounds the bytes of all declarations in force, as
	// [Cost] counts them.
	MaxBytesInForce = 64 << 20
	// BytesPerDeclaration is the cost of each declaration beside its text.
	BytesPerDeclaration = 1 << 10
)

// The cost of the parts of a compiled declaration beside its text, in bytes: a
// little more than their size in memory.
const (
	weightStep        = 256
	weightMember      = 48  // of a step
	weightTest        = 192 // one entry of a condition
	weightInstruction = 64  // of a pattern, see [patternSize]
)

// The cost of a test that matches a text with a pattern is the size of the pattern
// times the bytes of the text. A test that costs more than maxMatching does not
// hold, nor does its negation. Neither does one that costs more than freeMatching once
// such tests have together cost MaxMatchingOfSignal: counted over the definitions that
// a signal is compared with, and separately over the steps of all its performances.
// The numbers belong to rules 1.
const (
	freeMatching        = 1 << 14
	maxMatching         = 1 << 24
	MaxMatchingOfSignal = 1 << 26
)

// ErrBudget is wrapped by the error about a declaration that would exceed the
// budget of what is in force. Such an error wraps [ErrInvalid] too.
var ErrBudget = errors.New("choreography: over the budget")

// budgetError is an error that is [ErrBudget].
type budgetError struct{ reason string }

func (e *budgetError) Error() string { return ErrInvalid.Error() + ": " + e.reason }

// Is reports that e is [ErrBudget] and [ErrInvalid].
func (e *budgetError) Is(target error) bool { return target == ErrBudget || target == ErrInvalid }

// OverBudget returns an error that is both [ErrBudget] and [ErrInvalid].
func OverBudget(format string, args ...any) error { return &budgetError{fmt.Sprintf(format, args...)} }

// Cost is the share of the budget that declarations take.
type Cost struct {
	Steps int // expanded
	Bytes int // of the text and of the compiled form
}

// Plus returns the sum of two costs.
func (c Cost) Plus(d Cost) Cost { return Cost{c.Steps + d.Steps, c.Bytes + d.Bytes} }

// Minus returns c without d.
func (c Cost) Minus(d Cost) Cost { return Cost{c.Steps - d.Steps, c.Bytes - d.Bytes} }

// Check refuses a total that exceeds the budget.
func (c Cost) Check() error {
	switch {
	case c.Steps > MaxStepsInForce:
		return OverBudget(reasonStepsInForce, MaxStepsInForce)
	case c.Bytes > MaxBytesInForce:
		return OverBudget(reasonBytesInForce, MaxBytesInForce>>20)
	}
	return nil
}

// A reader that looks for a part of a value passes everything before it, at each level
// of nesting again. The bytes of a declaration, each counted once for each level it
// is nested in, are therefore bounded by freeNesting plus nestingBySize times its size.
const (
	freeNesting   = 8 << 20
	nestingBySize = 16
)

// CheckNesting refuses a value that is too large and too deeply nested to be read in
// time proportional to its size. The error wraps [ErrBudget].
func CheckNesting(v signal.Value) error {
	left := freeNesting + nestingBySize*len(v)
	if !nests(v, &left) {
		return OverBudget(reasonValueNesting)
	}
	return nil
}

// nests subtracts the bytes of v, and of every value inside it, from left. It
// recurses once for each nesting.
func nests(v signal.Value, left *int) bool {
	if k := v.Kind(); k != signal.KindArray && k != signal.KindObject {
		return true
	}
	if *left -= len(v); *left < 0 {
		return false
	}
	for e := range v.Elements() {
		if !nests(e, left) {
			return false
		}
	}
	for _, e := range v.Members() {
		if !nests(e, left) {
			return false
		}
	}
	return true
}

// scales adds up the cost of a definition. It allocates only the set of patterns, so
// that the cost is known before anything is compiled.
type scales struct {
	Cost
	patterns map[string]bool // the patterns counted so far: equal ones are compiled once
}

// costOf returns the cost of an expanded definition. The error reports that it exceeds
// the bounds of one definition.
func costOf(v signal.Value) (Cost, error) {
	if err := CheckNesting(v); err != nil {
		return Cost{}, err
	}
	var s scales
	s.Bytes = BytesPerDeclaration + len(v)
	for name, member := range v.Members() {
		switch name {
		case "when", "andWhen":
			s.clause(member)
		case "steps":
			s.steps(member, true)
		}
	}
	switch {
	case s.Steps > MaxSteps:
		return s.Cost, OverBudget(reasonSteps, MaxSteps)
	case s.Bytes > MaxBytesInForce:
		return s.Cost, OverBudget(reasonBytes, MaxBytesInForce>>20)
	}
	return s.Cost, nil
}

// full reports whether s exceeds the bounds of one definition, so that counting can
// stop.
func (s *scales) full() bool { return s.Steps > MaxSteps || s.Bytes > MaxBytesInForce }

// steps adds a list of steps. It recurses once for each nesting.
func (s *scales) steps(steps signal.Value, top bool) {
	if steps.Kind() != signal.KindArray {
		return
	}
	for step := range steps.Elements() {
		v := step.Member("action")
		action, ok := v.Text()
		if !ok {
			continue
		}
		s.Steps++
		s.Bytes += weightStep
		for name, member := range step.Members() {
			s.Bytes += weightMember
			switch name {
			case "when":
				s.clause(member)
			case "steps":
				if action == "onArrive" || action == "parallel" || top && action == "onInterrupt" {
					s.steps(member, false)
				}
			}
		}
		if s.full() {
			return
		}
	}
}

// clause adds a condition.
func (s *scales) clause(v signal.Value) {
	switch v.Kind() {
	case signal.KindObject:
		s.conjunction(v)
	case signal.KindArray:
		for e := range v.Elements() {
			if s.Bytes += weightMember; s.full() {
				return
			}
			s.conjunction(e)
		}
	default:
	}
}

func (s *scales) conjunction(v signal.Value) {
	for _, op := range v.Members() {
		if s.Bytes += weightTest; s.full() {
			return
		}
		for name, operand := range innermost(op).Members() {
			if text, ok := operand.Text(); ok && name == "matches" && !s.patterns[text] {
				if s.patterns == nil {
					s.patterns = map[string]bool{}
				}
				s.patterns[text] = true
				s.Bytes += weightInstruction * patternSize(text)
			}
		}
	}
}

// innermost returns the operators inside all "not" of one test of a condition.
func innermost(op signal.Value) signal.Value {
	for op.Kind() == signal.KindObject {
		inner, ok := op.Get("not")
		if !ok {
			break
		}
		op = inner
	}
	return op
}

// Package where reads the expressions that people ask a recorded session with:
// predicates such as
//
//	entry.type == "error" && state.performances.size() > 3
//
// and values such as state.session.entries.signal. They are CEL
// (https://cel.dev), checked as a whole before the first entry is read.
//
// # Variables
//
//	seq    int     the entry's number
//	at     double  session time in milliseconds
//	entry          the entry: seq, at, kind, hash, and what its kind has
//	state          the state after the entry: seq, at, and one member a projection
//	prev           the state before the entry, of the same form
//
// An entry has the members that exports of it have: key if its batch had one;
// for a signal id, type, timestamp, source, correlationId, metadata, payload,
// problem, raw; for a define, effect, beat or session entry a member of that
// name; for others data. What a member of entry, state or prev is called is checked when the
// expression is compiled, and so is a member of a projection that is [Closed];
// what is further inside, and in payloads, is not known before it is read.
//
// Numbers are compared by value, whatever their kinds: a payload's 5 equals 5.0.
// Integers beyond an int64 are CEL's uint.
//
// # What is missing
//
// CEL answers an error for a member that is not there. Here that is an answer:
// a [Predicate] whose value hangs on a missing member, or on an element beyond the end
// of a list, does not match. So entry.payload.n > 3 is false for an entry
// without a payload or without n, and so is !(entry.payload.n > 3);
// a || b matches when b does, whatever a misses; has(entry.payload.n) asks.
// Any other error (a string compared with a number, a division by zero) stops
// the search: it is an [EvalError] with the Seq.
//
// # Cost
//
// An expression reads what it touches and nothing else: an entry that is not
// asked for its payload is not decoded, and [Predicate.NeedsState] tells that
// no state needs to be folded. What could grow by itself (loops, and the joining
// of strings and lists) runs under a cost limit and stops when the context ends;
// all the rest takes at most one pass over the values for each of its at most
// [MaxExpression] characters.
package where

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

const (
	// MaxExpression bounds an expression, in characters.
	MaxExpression = 4096

	// CostLimit bounds what one evaluation may cost, in CEL's units: about one
	// a step of the evaluation, and one for ten characters of text.
	CostLimit = 5_000_000

	// interruptEvery is how many turns of a loop may pass before the context
	// is looked at.
	interruptEvery = 256

	// maxRegexp bounds a compiled pattern, in instructions.
	maxRegexp = 10_000

	// maxNesting bounds how deep an expression may nest.
	maxNesting = 64
)

var (
	// ErrExpression is wrapped by the errors of [Compile] and [CompileValue].
	ErrExpression = errors.New("bad expression")

	// ErrCost says that an evaluation went beyond [CostLimit].
	ErrCost = errors.New("the expression costs too much")
)

// Input is what an expression is evaluated on.
type Input struct {
	// Entry is the entry, or nil at the beginning of a session, where entry
	// has no members.
	Entry *eventlog.Entry

	// State is the state after the entry. It may be nil if the expression does
	// not need it. Where it is not, it says what seq and at are.
	State *projection.Fold

	// Prev is the view of the state before the entry, as
	// [projection.Fold.View] makes it. It may be nil if the expression does
	// not need it; prev then has no members.
	Prev map[string]any
}

// Expression is a compiled expression of any type. It keeps what it reads
// between evaluations, so it is for one goroutine at a time.
type Expression struct {
	source     string
	program    cel.Program
	bounded    bool // the program cannot cost much, so nothing counts its cost
	needsState bool
	needsPrev  bool
	vars       variables
}

// Predicate is a compiled expression whose value is true or false. It is for
// one goroutine at a time.
type Predicate struct{ Expression }

// Compile compiles a predicate for states with the projections of set. The
// error is an [*ExpressionError].
func Compile(expr string, set projection.Set) (*Predicate, error) {
	e, err := compile(expr, set, true)
	if err != nil {
		return nil, err
	}
	return &Predicate{*e}, nil
}

// CompileValue compiles an expression of any type for states with the
// projections of set. The error is an [*ExpressionError].
func CompileValue(expr string, set projection.Set) (*Expression, error) {
	return compile(expr, set, false)
}

// String returns the expression as it was written.
func (x *Expression) String() string { return x.source }

// NeedsState reports whether the expression reads state or prev. When not, it
// can be evaluated without folding.
func (x *Expression) NeedsState() bool { return x.needsState || x.needsPrev }

// NeedsPrev reports whether the expression reads prev.
func (x *Expression) NeedsPrev() bool { return x.needsPrev }

// Match reports whether the predicate holds. What is missing makes it not
// hold; any other failure is an [*EvalError] or the context's error.
func (p *Predicate) Match(ctx context.Context, in Input) (bool, error) {
	v, err := p.eval(ctx, in)
	if err != nil {
		if isMissing(err) {
			return false, nil
		}
		return false, p.failure(ctx, in, err)
	}
	b, ok := v.(types.Bool)
	if !ok {
		// A part of unknown type, such as a payload's member, was all there is.
		return false, p.failure(ctx, in, fmt.Errorf("it is a %s, not true or false", typeName(v)))
	}
	return bool(b), nil
}

// Value returns the expression's value as JSON has it: nil, bool, int64, uint64,
// float64, string, []any and map[string]any; ok is false when it hangs on
// something that is missing. Failures are an [*EvalError] or the context's error.
func (x *Expression) Value(ctx context.Context, in Input) (v any, ok bool, err error) {
	val, err := x.eval(ctx, in)
	if err != nil {
		if isMissing(err) {
			return nil, false, nil
		}
		return nil, false, x.failure(ctx, in, err)
	}
	v, err = plain(val, 0)
	if err != nil {
		return nil, false, x.failure(ctx, in, err)
	}
	return v, true, nil
}

func (x *Expression) eval(ctx context.Context, in Input) (ref.Val, error) {
	x.vars.reset(in)
	if x.bounded {
		v, _, err := x.program.Eval(&x.vars)
		return v, err
	}
	v, _, err := x.program.ContextEval(ctx, &x.vars)
	return v, err
}

// EvalError says at which entry an expression could not be evaluated.
type EvalError struct {
	Expr string
	Seq  eventlog.Seq
	Err  error
}

func (e *EvalError) Error() string {
	return fmt.Sprintf("entry %d: %q: %v", e.Seq, e.Expr, e.Err)
}

func (e *EvalError) Unwrap() error { return e.Err }

func (x *Expression) failure(ctx context.Context, in Input, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		err = ErrCost
	}
	return &EvalError{Expr: x.source, Seq: in.seq(), Err: err}
}

// isMissing reports whether err is CEL's way to say that a member or an element
// is not there. Its errors have no type that could be asked.
func isMissing(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "no such key: ") || strings.HasPrefix(text, "index out of bounds: ")
}

// Package where compiles and evaluates the expressions for queries of a recorded
// session: predicates such as
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
// name; for others data. [Compile] checks the names of the members of entry, state
// and prev, and of projections that are [Closed]; the names of deeper members, and of
// those in payloads, are unknown before they are read. CEL reads a hyphen as a minus, so
// a name with one is written in brackets, state.world.entities["agent-1"], and tested
// with "agent-1" in state.world.entities.
//
// Numbers are compared by value, whatever their kinds: a payload's 5 equals 5.0.
// Integers beyond an int64 are CEL's uint.
//
// # Missing members
//
// In CEL, reading a missing member is an error. Here a [Predicate] whose value depends
// on a missing member, or on an element beyond the end of a list, does not match. So
// entry.payload.n > 3 is false for an entry without a payload or without n, and so is
// !(entry.payload.n > 3); a || b matches if b does, even if a depends on a missing
// member; has(entry.payload.n) tests for a member. Any other error (a string compared
// with a number, a division by zero) stops the search: it is an [EvalError] with the
// Seq.
//
// # Cost
//
// An expression reads only the members that it names: the payload of an entry is
// decoded only if the expression reads it, and [Expression.NeedsState] reports whether
// a state must be folded.
//
// One evaluation takes at most [StepLimit] steps and builds at most
// [MemoryLimit] bytes; beyond that it ends with a [BudgetError]. Every operation is
// counted in advance, by the size of its inputs and of its result, and long ones (a
// comparison, a search, a pattern) check the context while they run: an evaluation
// ends within some milliseconds of its context.
//
// cel-go parses and checks expressions and has the functions on scalars. The
// evaluation is this package's own.
//
// # Limits
//
// The cost of making the view of a [projection.State] that is not [Members] is not
// counted: the view is as large as the state that the fold holds already.
//
// docs/glossary.md has the nouns of all packages.
package where

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/projection"
)

const (
	// MaxExpression bounds an expression, in characters.
	MaxExpression = 4096

	// maxNesting bounds how deep an expression may nest.
	maxNesting = 64
)

// ErrExpression is wrapped by the errors of [Compile] and [CompileValue].
var ErrExpression = errors.New("bad expression")

// Input is the input of an evaluation.
type Input struct {
	// Entry is the entry, or nil at the beginning of a session, where entry
	// has no members.
	Entry *eventlog.Entry

	// State is the state after the entry. It may be nil if the expression does not
	// need it. If it is not nil, seq and at are those of the state.
	State *projection.Fold

	// Prev is the view of the state before the entry, as
	// [projection.Fold.View] makes it. It may be nil if the expression does
	// not need it; prev then has no members.
	Prev map[string]any
}

// Expression is a compiled expression of any type. It reuses its buffers between
// evaluations, so it is not safe for concurrent use.
type Expression struct {
	source     string
	program    node
	machine    *machine
	needsState bool
	needsPrev  bool
	reads      []string // the projections that it names
}

// Predicate is a compiled expression whose value is true or false. It is not safe for
// concurrent use.
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

// NeedsState reports whether the expression reads state or prev. If not, it can be
// evaluated without folding.
func (x *Expression) NeedsState() bool { return x.needsState || x.needsPrev }

// NeedsPrev reports whether the expression reads prev.
func (x *Expression) NeedsPrev() bool { return x.needsPrev }

// Reads reports whether the expression names a projection, as state.NAME does or
// prev["NAME"]. A program can leave a projection out of the states whose members the
// expression does not name.
func (x *Expression) Reads(projection string) bool { return slices.Contains(x.reads, projection) }

// Match reports whether the predicate holds. It does not hold if it depends on a
// missing member; any other failure is an [*EvalError] or the context's error.
func (p *Predicate) Match(ctx context.Context, in Input) (bool, error) {
	v, err := p.eval(ctx, in)
	if err != nil {
		return false, p.failure(ctx, in, err)
	}
	if isMissing(v) {
		return false, nil
	}
	b, ok := v.(types.Bool)
	if !ok {
		// The whole expression has an unknown type, such as a payload's member.
		return false, p.failure(ctx, in, fmt.Errorf("it is a %s, not true or false", typeName(v)))
	}
	return bool(b), nil
}

// Value returns the expression's value as JSON has it: nil, bool, int64, uint64,
// float64, string, []any and map[string]any; ok is false if it depends on a missing
// member. Failures are an [*EvalError] or the context's error.
func (x *Expression) Value(ctx context.Context, in Input) (v any, ok bool, err error) {
	val, err := x.eval(ctx, in)
	if err == nil && isMissing(val) {
		return nil, false, nil
	}
	if err == nil {
		v, err = x.machine.meter.plain(val, 0)
	}
	if err != nil {
		return nil, false, x.failure(ctx, in, err)
	}
	return v, true, nil
}

// eval runs the program. A missing value is not an error.
func (x *Expression) eval(ctx context.Context, in Input) (ref.Val, error) {
	m := x.machine
	m.meter.reset(ctx)
	m.vars.reset(in)
	defer clear(m.slots)
	v := x.program(m)
	if m.meter.err != nil {
		return nil, m.meter.err
	}
	if failed, ok := v.(*types.Err); ok && !isMissing(v) {
		return nil, errors.New(wording.Clip(failed.Error(), maxMessage))
	}
	return v, nil
}

// maxMessage bounds the text of a CEL error, in bytes: some errors quote their operand,
// which may be a megabyte.
const maxMessage = 200

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
	return &EvalError{Expr: x.source, Seq: in.seq(), Err: err}
}

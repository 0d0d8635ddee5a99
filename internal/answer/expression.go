package answer

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/workspace"
)

// Projections returns the projections that the states of expressions may have.
func Projections() projection.Set {
	return append(session.Projections(session.ProjectionConfig{}), workspace.Projection())
}

// Compile compiles a predicate. Its states have the files of the workspace only if it
// names them.
func Compile(expr string) (*where.Predicate, error) {
	p, err := where.Compile(expr, Projections())
	if err != nil || p.Reads(workspace.Name) {
		return p, err
	}
	return where.Compile(expr, session.Projections(session.ProjectionConfig{}))
}

// CompileValue is [Compile] for an expression of any type.
func CompileValue(expr string) (*where.Expression, error) {
	x, err := where.CompileValue(expr, Projections())
	if err != nil || x.Reads(workspace.Name) {
		return x, err
	}
	return where.CompileValue(expr, session.Projections(session.ProjectionConfig{}))
}

// Needs returns the data that an expression reads, for a scan.
func Needs(x *where.Expression) replay.Needs {
	n := replay.NeedsEntry
	if x.NeedsState() {
		n |= replay.NeedsState
	}
	if x.NeedsPrev() {
		n |= replay.NeedsPrev
	}
	return n
}

// InputOf returns the input of an expression at one step of a scan. It points into
// the step.
func InputOf(s *replay.ScanStep) where.Input {
	return where.Input{Entry: s.Entry, State: s.Fold, Prev: s.Prev()}
}

// Matching returns a compiled expression as a predicate of a scan. A copy compiles it
// again, because an expression is for one goroutine.
func Matching(p *where.Predicate, err error) replay.EntryPredicate {
	if err != nil {
		return replay.EntryPredicate{Test: func(context.Context, *replay.ScanStep) (bool, error) { return false, err }}
	}
	return replay.EntryPredicate{
		Needs: Needs(&p.Expression),
		Test:  func(ctx context.Context, s *replay.ScanStep) (bool, error) { return p.Match(ctx, InputOf(s)) },
		Copy:  func() replay.EntryPredicate { return Matching(Compile(p.String())) },
	}
}

// Valuing returns a compiled expression as a valuation: its value as JSON, null if it
// is missing.
func Valuing(x *where.Expression, err error) replay.Valuation[string] {
	if err != nil {
		return replay.Valuation[string]{Value: func(context.Context, *replay.ScanStep) (string, error) { return "", err }}
	}
	return replay.Valuation[string]{
		Needs: Needs(x),
		Value: func(ctx context.Context, s *replay.ScanStep) (string, error) {
			v, _, err := x.Value(ctx, InputOf(s))
			if err != nil {
				return "", err
			}
			value, err := Marshal(v)
			return string(value), err
		},
		Copy: func() replay.Valuation[string] { return Valuing(CompileValue(x.String())) },
	}
}

// BadIf is a test that finds a state bad if the expression is true.
func BadIf(p *where.Predicate) bisect.Test {
	return bisect.Exact(Needs(&p.Expression), func(ctx context.Context, s *replay.ScanStep) (bisect.TestResult, error) {
		wrong, err := p.Match(ctx, InputOf(s))
		if err != nil {
			return 0, fmt.Errorf("at %v: %w", s.Moment, err)
		}
		if wrong {
			return bisect.Bad, nil
		}
		return bisect.Good, nil
	})
}

// True is the value of an interval at which a predicate holds.
const True = "true"

// Truth returns a predicate as a valuation.
func Truth(p replay.EntryPredicate) replay.Valuation[string] {
	v := replay.Valuation[string]{Needs: p.Needs, Value: func(ctx context.Context, s *replay.ScanStep) (string, error) {
		is, err := p.Test(ctx, s)
		if is {
			return True, err
		}
		return "false", err
	}}
	if p.Copy != nil {
		v.Copy = func() replay.Valuation[string] { return Truth(p.Copy()) }
	}
	return v
}

package where

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/sajou-dev/sajou-go/projection"
)

// ExpressionError describes a mistake in an expression, with its place. It wraps
// [ErrExpression].
type ExpressionError struct {
	Expr   string
	Line   int    // from 1
	Column int    // from 1, in characters
	Reason string // the mistake, and a suggestion
}

func (e *ExpressionError) Error() string {
	if strings.Contains(e.Expr, "\n") {
		return fmt.Sprintf("%v, line %d, column %d: %s", ErrExpression, e.Line, e.Column, e.Reason)
	}
	return fmt.Sprintf("%v %q, column %d: %s", ErrExpression, e.Expr, e.Column, e.Reason)
}

func (e *ExpressionError) Unwrap() error { return ErrExpression }

func compile(expr string, set projection.Set, predicate bool) (*Expression, error) {
	bad := func(reason string, args ...any) error {
		return &ExpressionError{Expr: expr, Line: 1, Column: 1, Reason: fmt.Sprintf(reason, args...)}
	}
	switch {
	case strings.TrimSpace(expr) == "":
		return nil, bad("it is empty")
	case !utf8.ValidString(expr):
		return nil, bad("it is not valid UTF-8")
	case utf8.RuneCountInString(expr) > MaxExpression:
		short := &ExpressionError{Expr: expr[:64] + "…", Line: 1, Column: MaxExpression + 1}
		short.Reason = fmt.Sprintf("it is longer than %d characters", MaxExpression)
		return nil, short
	}
	env, words, err := environment(set)
	if err != nil {
		return nil, bad("%v", err)
	}
	parsed, issues := env.Parse(expr)
	if issues.Err() != nil {
		return nil, firstIssue(expr, issues, nil, words)
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, firstIssue(expr, issues, parsed, words)
	}
	if err := foreign(expr, checked, words); err != nil {
		return nil, err
	}
	root := checked.NativeRep()
	if err := badPattern(expr, root); err != nil {
		return nil, err
	}
	if out := checked.OutputType(); predicate && !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, bad("it is a %s, but a condition must be true or false", typeWord(out))
	}
	x := &Expression{source: expr, machine: &machine{}}
	x.needsState, x.needsPrev = uses(root, "state"), uses(root, "prev")
	x.reads = named(root)
	x.machine.vars.prepare(&x.machine.meter, set)
	slots := 0
	if x.program, slots, err = plan(env, root, words, x.machine.vars.state.names); err != nil {
		return nil, bad("%v", err)
	}
	x.machine.slots = make([]ref.Val, slots)
	return x, nil
}

// environment returns the names and types of expressions over a set.
func environment(set projection.Set) (*cel.Env, *vocabulary, error) {
	base, err := cel.NewEnv(cel.OptionalTypes())
	if err != nil {
		return nil, nil, err
	}
	words := newVocabulary(base.CELTypeProvider(), set)
	env, err := base.Extend(
		cel.CustomTypeProvider(words),
		cel.Variable("seq", cel.IntType),
		cel.Variable("at", cel.DoubleType),
		cel.Variable("entry", entryType),
		cel.Variable("state", stateType),
		cel.Variable("prev", stateType),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.ASTValidators(cel.ValidateComprehensionNestingLimit(4)),
	)
	return env, words, err
}

// badPattern finds an invalid literal pattern. A computed pattern is checked when it
// is evaluated.
func badPattern(expr string, root *ast.AST) error {
	var first error
	ast.PostOrderVisit(root.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if first != nil || e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches {
			return
		}
		args := e.AsCall().Args()
		if len(args) == 0 || args[len(args)-1].Kind() != ast.LiteralKind {
			return
		}
		arg := args[len(args)-1]
		text, ok := arg.AsLiteral().(types.String)
		if !ok {
			return
		}
		if _, err := compilePattern(string(text)); err != nil {
			at := root.SourceInfo().GetStartLocation(arg.ID())
			first = &ExpressionError{Expr: expr, Line: max(1, at.Line()), Column: at.Column() + 1, Reason: err.Error()}
		}
	}))
	return first
}

// uses reports whether the expression reads a variable. A loop variable of the same
// name counts too, which only costs time.
func uses(root *ast.AST, name string) bool {
	found := false
	ast.PostOrderVisit(root.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == name
	}))
	return found
}

// named returns the members of states that the expression names.
func named(root *ast.AST) (names []string) {
	ast.PostOrderVisit(root.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if of, name, _ := memberAccess(e); of != nil && root.GetType(of.ID()).IsExactType(stateType) {
			names = append(names, name)
		}
	}))
	return names
}

// firstIssue returns the first of the issues, in text order, as an error with a hint.
func firstIssue(expr string, issues *cel.Issues, parsed *cel.Ast, words *vocabulary) error {
	errs := issues.Errors()
	slices.SortStableFunc(errs, func(a, b *cel.Error) int {
		if d := a.Location.Line() - b.Location.Line(); d != 0 {
			return d
		}
		return a.Location.Column() - b.Location.Column()
	})
	first := errs[0]
	out := &ExpressionError{
		Expr:   expr,
		Line:   max(1, first.Location.Line()),
		Column: first.Location.Column() + 1,
		Reason: strings.ReplaceAll(first.Message, "\n", " "),
	}
	if name, ok := quoted(first.Message, "undefined field "); ok {
		out.Reason = fmt.Sprintf("there is no member %q", name)
		if of := selectedFrom(parsed, first.ExprID); of != "" {
			out.Column++ // past the dot
			out.Reason = fmt.Sprintf("%s has no member %q%s", of, name, instead(name, words.members(of)))
		}
	}
	if name, ok := quoted(first.Message, "undeclared reference to "); ok {
		out.Reason = fmt.Sprintf("there is no %q; the variables are seq, at, entry, state and prev", name)
	}
	if rest, ok := strings.CutPrefix(out.Reason, "Syntax error: "); ok {
		out.Reason = "this is not CEL: " + rest
	}
	if strings.HasPrefix(first.Message, "found no matching overload") {
		out.Reason = strings.Replace(out.Reason, "found no matching overload for", "there is no operation", 1)
		if strings.Contains(out.Reason, "(double, int)") || strings.Contains(out.Reason, "(int, double)") {
			out.Reason += "; write the integer as a double, 250.0 for 250"
		}
	}
	hint := ""
	if lines := strings.Split(expr, "\n"); out.Line <= len(lines) {
		hint = nameHint(lines[out.Line-1], out.Column-1)
	}
	switch {
	case strings.HasPrefix(first.Message, "invalid argument to has() macro") && hint != "":
		out.Reason = hint
	case strings.HasPrefix(first.Message, "invalid argument to has() macro"):
		out.Reason = "has() takes a member after a dot, as in has(entry.payload.x)"
	case hint != "":
		out.Reason += "; " + hint
	}
	return out
}

// quoted returns the quoted text after a prefix.
func quoted(message, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(message, prefix+"'")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "'")
	return name, ok
}

// selectedFrom returns the variable whose member the expression with that id is.
func selectedFrom(parsed *cel.Ast, id int64) string {
	if parsed == nil {
		return ""
	}
	of := ""
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() == id && e.Kind() == ast.SelectKind && e.AsSelect().Operand().Kind() == ast.IdentKind {
			of = e.AsSelect().Operand().AsIdent()
		}
	}))
	return of
}

func typeWord(t *cel.Type) string {
	switch t.TypeName() {
	case entryType.TypeName():
		return "whole entry"
	case stateType.TypeName():
		return "whole state"
	}
	return t.String()
}

package where

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/sajou-dev/sajou-go/projection"
)

// Closed is an optional interface of a [projection.State] whose view can only have
// members that are known before the first entry is read. Compiling an expression that
// uses another member fails.
type Closed interface {
	// Vocabulary returns their names.
	Vocabulary() []string
}

// closedMembers returns the vocabularies of the projections whose states are [Closed].
func closedMembers(set projection.Set) map[string][]string {
	closed := map[string][]string{}
	for _, p := range set {
		if s, ok := p.New().(Closed); ok {
			closed[p.Name] = s.Vocabulary()
		}
	}
	return closed
}

// foreign finds the first member in the text that no state can have.
func foreign(expr string, checked *cel.Ast, words *vocabulary) error {
	root := checked.NativeRep()
	var first *ExpressionError
	ast.PostOrderVisit(root.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		of, name, at := memberAccess(e)
		if of == nil || of.Kind() != ast.SelectKind || !root.GetType(of.AsSelect().Operand().ID()).IsExactType(stateType) {
			return
		}
		projection := of.AsSelect().FieldName()
		names, closed := words.closed[projection]
		if !closed || slices.Contains(names, name) {
			return
		}
		place := root.SourceInfo().GetStartLocation(at)
		wrong := &ExpressionError{Expr: expr, Line: max(1, place.Line()), Column: place.Column() + 1}
		if at == e.ID() {
			wrong.Column++ // past the dot
		}
		whole := "state"
		if v := of.AsSelect().Operand(); v.Kind() == ast.IdentKind {
			whole = v.AsIdent()
		}
		wrong.Reason = fmt.Sprintf("%s.%s has no member %q%s", whole, projection, name, instead(name, names))
		if first == nil || wrong.Line < first.Line || wrong.Line == first.Line && wrong.Column < first.Column {
			first = wrong
		}
	}))
	if first == nil {
		return nil
	}
	return first
}

// memberAccess returns the operand of a member access, the name of the member, and the id of
// the expression at the place of the name. of is nil if the name is not a literal.
func memberAccess(e ast.Expr) (of ast.Expr, name string, at int64) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), e.ID()
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			if key := call.Args()[1]; key.Kind() == ast.LiteralKind {
				if text, ok := key.AsLiteral().(types.String); ok {
					return call.Args()[0], string(text), key.ID()
				}
			}
		}
	default:
	}
	return nil, "", 0
}

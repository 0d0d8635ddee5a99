package where

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// This file compiles a checked expression to a program. cel-go parses and checks; it
// does not evaluate, because its interpreter checks neither the context nor a limit
// within an operation (a comparison, a search, a pattern), and builds values that no
// limit counts. The functions on scalars are cel-go's own.

// A node computes the value of one node of the expression. An error is a value (a
// [types.Err]), as everywhere in CEL, and each operator defines how it treats errors.
type node func(*machine) ref.Val

// machine is the state of a running program.
type machine struct {
	meter meter
	vars  variables
	slots []ref.Val // the variables of the running loops
}

var (
	errMissing = errors.New("no such member or element")
	missing    = types.WrapErr(errMissing) // the value of a missing member or element
	aborted    = types.NewErrFromString("the evaluation was ended")
)

// isMissing reports whether a value depends on a missing member or element.
func isMissing(v ref.Val) bool { return v == missing }

// isError reports whether a value is an error.
func isError(v ref.Val) bool {
	_, is := v.(*types.Err)
	return is
}

// planner compiles expressions to nodes.
type planner struct {
	root     *ast.AST
	provider types.Provider
	calls    map[string]*functions.Overload // by overload id and by function name
	scope    []variable                     // the variables of the loops around, the innermost last
	deepest  int                            // how many slots the program needs
	set      map[string]int                 // the projections' indexes
}

// variable is a variable of a loop.
type variable struct {
	name string
	slot int
	list bool // it accumulates the list of a map or filter macro
}

// plan returns the program of a checked expression and its number of slots.
func plan(env *cel.Env, root *ast.AST, words *vocabulary, names []string) (node, int, error) {
	p := &planner{root: root, provider: words, calls: map[string]*functions.Overload{}, set: map[string]int{}}
	for i, name := range names {
		p.set[name] = i
	}
	for _, f := range env.Functions() {
		bindings, err := f.Bindings()
		if err != nil {
			return nil, 0, err
		}
		for _, b := range bindings {
			p.calls[b.Operator] = b
		}
	}
	n, err := p.node(root.Expr())
	return n, p.deepest, err
}

func (p *planner) node(e ast.Expr) (node, error) {
	switch e.Kind() {
	case ast.LiteralKind:
		return constant(e.AsLiteral()), nil
	case ast.IdentKind:
		return p.ident(e)
	case ast.SelectKind:
		return p.selection(e)
	case ast.CallKind:
		return p.call(e)
	case ast.ListKind:
		return p.list(e)
	case ast.MapKind:
		return p.dict(e)
	case ast.ComprehensionKind:
		return p.loop(e)
	default:
		return nil, errMessage
	}
}

var errMessage = errors.New("expressions build lists and maps, and no messages")

// nodes compiles several expressions.
func (p *planner) nodes(es []ast.Expr) ([]node, error) {
	nodes := make([]node, len(es))
	for i, e := range es {
		n, err := p.node(e)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

func constant(v ref.Val) node { return func(*machine) ref.Val { return v } }

// named returns the constant or type that a name of the checked expression refers to,
// if it refers to one.
func (p *planner) named(id int64) (node, bool, error) {
	r, ok := p.root.ReferenceMap()[id]
	if !ok {
		return nil, false, nil
	}
	if r.Value != nil {
		return constant(r.Value), true, nil
	}
	if p.root.GetType(id).Kind() == types.TypeKind {
		v, found := p.provider.FindIdent(r.Name)
		if !found {
			return nil, false, fmt.Errorf("there is no type %q", r.Name)
		}
		return constant(v), true, nil
	}
	return nil, false, nil
}

func (p *planner) ident(e ast.Expr) (node, error) {
	name := e.AsIdent()
	if v, ok := p.local(name); ok {
		slot := v.slot
		return func(m *machine) ref.Val { return m.slots[slot] }, nil
	}
	if n, ok, err := p.named(e.ID()); ok || err != nil {
		return n, err
	}
	name = strings.TrimPrefix(name, ".")
	return func(m *machine) ref.Val { return m.vars.read(name) }, nil
}

// local returns the innermost loop variable with that name.
func (p *planner) local(name string) (variable, bool) {
	for i := len(p.scope) - 1; i >= 0; i-- {
		if p.scope[i].name == name {
			return p.scope[i], true
		}
	}
	return variable{}, false
}

// global returns the name of the global variable that an expression is, if it is one.
func (p *planner) global(e ast.Expr) string {
	if e.Kind() != ast.IdentKind {
		return ""
	}
	if _, ok := p.local(e.AsIdent()); ok {
		return ""
	}
	return strings.TrimPrefix(e.AsIdent(), ".")
}

func (p *planner) selection(e ast.Expr) (node, error) {
	if n, ok, err := p.named(e.ID()); ok || err != nil {
		return n, err
	}
	sel := e.AsSelect()
	name, test := sel.FieldName(), sel.IsTestOnly()
	// A member of a variable is read without the variable as an object.
	if get, ok := p.direct(p.global(sel.Operand()), name); ok {
		return func(m *machine) ref.Val {
			if !m.meter.step(1) {
				return aborted
			}
			v := get(m)
			switch {
			case test:
				return types.Bool(v != nil)
			case v == nil:
				return missing
			}
			return v
		}, nil
	}
	of, err := p.node(sel.Operand())
	if err != nil {
		return nil, err
	}
	key := types.String(name)
	return func(m *machine) ref.Val {
		if !m.meter.step(1) {
			return aborted
		}
		v := of(m)
		if isError(v) {
			return v
		}
		if test {
			return present(v, key)
		}
		return member(v, key)
	}, nil
}

// direct returns a function that reads a member of a variable, or nil if there is
// none.
func (p *planner) direct(variable, name string) (func(*machine) ref.Val, bool) {
	switch variable {
	case "entry":
		read, ok := entryMembers[name]
		return func(m *machine) ref.Val {
			if m.vars.entry.empty() {
				return nil
			}
			return read.get(&m.vars.entry)
		}, ok
	case "state", "prev":
		of := func(m *machine) *stateVars { return &m.vars.state }
		if variable == "prev" {
			of = func(m *machine) *stateVars { return &m.vars.prev }
		}
		var read func(*stateVars) ref.Val
		switch i, ok := p.set[name]; {
		case ok:
			read = func(s *stateVars) ref.Val { return s.projection(i) }
		case name == "seq":
			read = (*stateVars).seq
		case name == "at":
			read = (*stateVars).at
		default:
			return nil, false
		}
		return func(m *machine) ref.Val {
			s := of(m)
			if s.empty() {
				return nil
			}
			return read(s)
		}, true
	}
	return nil, false
}

// member returns the value of v[key]. For an optional v the value is an optional.
func member(v, key ref.Val) ref.Val {
	switch key.(type) {
	case types.Bool, types.Int, types.Uint, types.Double, types.String:
	default:
		return types.NewErr("a %s names no member and no element", typeName(key))
	}
	switch v := v.(type) {
	case *object:
		if one, ok := v.Find(key); ok {
			return one
		}
	case *dict:
		if one, ok := v.Find(key); ok {
			return one
		}
	case *list:
		one, err := v.at(key)
		switch {
		case err == nil:
			return one
		case !errors.Is(err, errMissing):
			return types.WrapErr(err)
		}
	case *types.Optional:
		return optional(v, key)
	}
	return missing
}

// optional returns the value of v[?key].
func optional(v, key ref.Val) ref.Val {
	if o, ok := v.(*types.Optional); ok {
		if !o.HasValue() {
			return o
		}
		v = o.GetValue()
	}
	switch one := member(v, key); {
	case isMissing(one):
		return types.OptionalNone
	case isError(one):
		return one
	default:
		return types.OptionalOf(one)
	}
}

// present returns the value of has(v.key).
func present(v, key ref.Val) ref.Val {
	one := optional(v, key)
	if o, ok := one.(*types.Optional); ok {
		return types.Bool(o.HasValue())
	}
	return one
}

func (p *planner) list(e ast.Expr) (node, error) {
	elements, err := p.nodes(e.AsList().Elements())
	if err != nil {
		return nil, err
	}
	maybe := map[int]bool{}
	for _, i := range e.AsList().OptionalIndices() {
		maybe[int(i)] = true
	}
	return func(m *machine) ref.Val {
		if !m.meter.step(1+len(elements)) || !m.meter.build(sizeList+len(elements)*(sizeRef+sizeNumber)) {
			return aborted
		}
		made := make([]ref.Val, 0, len(elements))
		for i, n := range elements {
			v := n(m)
			if isError(v) {
				return v
			}
			if maybe[i] {
				if v = unwrapped(v); isError(v) {
					return v
				}
			}
			if v != nil {
				made = append(made, v)
			}
		}
		return &list{m: &m.meter, made: made}
	}, nil
}

// unwrapped returns the value of an optional, nil if it has none.
func unwrapped(v ref.Val) ref.Val {
	o, ok := v.(*types.Optional)
	switch {
	case !ok:
		return types.NewErr("a %s is not an optional", typeName(v))
	case !o.HasValue():
		return nil
	}
	return o.GetValue()
}

func (p *planner) dict(e ast.Expr) (node, error) {
	entries := e.AsMap().Entries()
	keys, values := make([]node, len(entries)), make([]node, len(entries))
	maybe := make([]bool, len(entries))
	for i, entry := range entries {
		var err error
		if keys[i], err = p.node(entry.AsMapEntry().Key()); err != nil {
			return nil, err
		}
		if values[i], err = p.node(entry.AsMapEntry().Value()); err != nil {
			return nil, err
		}
		maybe[i] = entry.AsMapEntry().IsOptional()
	}
	return func(m *machine) ref.Val {
		if !m.meter.step(1+2*len(keys)) || !m.meter.build(sizeObject+len(keys)*sizeEntry) {
			return aborted
		}
		d := &dict{m: &m.meter, values: make(map[ref.Val]ref.Val, len(keys))}
		for i := range keys {
			key := keys[i](m)
			if isError(key) {
				return key
			}
			v := values[i](m)
			if isError(v) {
				return v
			}
			if maybe[i] {
				if v = unwrapped(v); isError(v) {
					return v
				}
			}
			if v == nil {
				continue
			}
			if s, ok := key.(types.String); ok && !m.meter.text(len(s)) {
				return aborted
			}
			k, ok := tableKey(key)
			if !ok {
				return types.NewErr("a %s cannot be the key of a map", typeName(key))
			}
			if _, twice := d.values[k]; !twice {
				d.order = append(d.order, key)
			}
			d.values[k] = v
		}
		return d
	}, nil
}

// loop returns the node of a comprehension, to which the macros all, exists,
// exists_one, map, filter, optMap and optFlatMap expand.
func (p *planner) loop(e ast.Expr) (node, error) {
	c := e.AsComprehension()
	if c.HasIterVar2() {
		return nil, errors.New("loops have one variable")
	}
	init, err := p.node(c.AccuInit())
	if err != nil {
		return nil, err
	}
	over, err := p.node(c.IterRange())
	if err != nil {
		return nil, err
	}
	// The parser names the accumulator of a macro with an "@", which no source text
	// can contain in a name.
	gathers := strings.HasPrefix(c.AccuVar(), "@") && c.AccuInit().Kind() == ast.ListKind && c.AccuInit().AsList().Size() == 0
	accu, item := len(p.scope), len(p.scope)+1
	p.scope = append(p.scope, variable{c.AccuVar(), accu, gathers}, variable{c.IterVar(), item, false})
	p.deepest = max(p.deepest, len(p.scope))
	goesOn, err := p.node(c.LoopCondition())
	if err != nil {
		return nil, err
	}
	step, err := p.node(c.LoopStep())
	if err != nil {
		return nil, err
	}
	p.scope = p.scope[:item]
	result, err := p.node(c.Result())
	if err != nil {
		return nil, err
	}
	p.scope = p.scope[:accu]
	return func(m *machine) ref.Val {
		if !m.meter.step(1) {
			return aborted
		}
		in := over(m)
		if isError(in) {
			return in
		}
		var items *list
		switch in := in.(type) {
		case *list:
			items = in
		case *object:
			items = in.keys()
		case *dict:
			items = in.keys()
		default:
			return types.NewErr("no such overload: a loop goes over lists and maps, not over a %s", typeName(in))
		}
		m.slots[accu] = init(m)
		for i := range items.len() {
			if !m.meter.step(1) {
				return aborted
			}
			if m.slots[item] = items.elem(i); m.slots[item] == nil || goesOn(m) != types.True {
				break
			}
			m.slots[accu] = step(m)
		}
		if m.meter.err != nil {
			return aborted
		}
		return result(m)
	}, nil
}

// call returns the node of an operator or a function.
func (p *planner) call(e ast.Expr) (node, error) {
	c := e.AsCall()
	exprs := c.Args()
	if c.IsMemberFunction() {
		exprs = append([]ast.Expr{c.Target()}, exprs...)
	}
	name := c.FunctionName()
	if name == operators.Add && len(exprs) == 2 && exprs[0].Kind() == ast.IdentKind && exprs[1].Kind() == ast.ListKind {
		if v, ok := p.local(exprs[0].AsIdent()); ok && v.list && len(exprs[1].AsList().Elements()) == 1 {
			return p.gather(v.slot, exprs[1].AsList().Elements()[0])
		}
	}
	args, err := p.nodes(exprs)
	if err != nil {
		return nil, err
	}
	if n, ok := control(name, args); ok {
		return n, nil
	}
	overload := p.calls[name]
	if r := p.root.ReferenceMap()[e.ID()]; r != nil && len(r.OverloadIDs) == 1 {
		if one, ok := p.calls[r.OverloadIDs[0]]; ok {
			overload = one
		}
	}
	return function(name, args, overload)
}

// gather returns the node that appends to the list of a macro. No other node can read
// that list before it is complete.
func (p *planner) gather(slot int, e ast.Expr) (node, error) {
	n, err := p.node(e)
	if err != nil {
		return nil, err
	}
	return func(m *machine) ref.Val {
		into, ok := m.slots[slot].(*list)
		if !ok {
			return m.slots[slot] // an error of an earlier iteration
		}
		v := n(m)
		if isError(v) {
			return v
		}
		// A doubling slice allocates at most three times its final size in total.
		if !m.meter.step(1) || !m.meter.build(3*sizeRef) {
			return aborted
		}
		if len(into.made) == cap(into.made) {
			into.made = slices.Grow(into.made, max(4, len(into.made)))
		}
		into.made = append(into.made, v)
		return into
	}, nil
}

// control returns the nodes of operators that do not evaluate all of their arguments.
func control(name string, args []node) (node, bool) {
	switch {
	case name == operators.LogicalAnd:
		return junction(args, types.False), true
	case name == operators.LogicalOr:
		return junction(args, types.True), true
	case name == operators.Conditional && len(args) == 3:
		return func(m *machine) ref.Val {
			if !m.meter.step(1) {
				return aborted
			}
			switch v := args[0](m); {
			case v == types.True:
				return args[1](m)
			case v == types.False:
				return args[2](m)
			case isError(v):
				return v
			}
			return types.NoSuchOverloadErr()
		}, true
	case name == operators.NotStrictlyFalse && len(args) == 1:
		return func(m *machine) ref.Val {
			if v, ok := args[0](m).(types.Bool); ok {
				return v
			}
			return types.True
		}, true
	case (name == "or" || name == "orValue") && len(args) == 2:
		return func(m *machine) ref.Val {
			v := first(m, args)
			if isError(v) {
				return v
			}
			o, ok := v.(*types.Optional)
			switch {
			case !ok:
				return types.NoSuchOverloadErr()
			case !o.HasValue():
				return args[1](m)
			case name == "or":
				return o
			}
			return o.GetValue()
		}, true
	}
	return nil, false
}

// junction returns the node of && and ||: the deciding value takes precedence over an
// error in any term.
func junction(terms []node, decides types.Bool) node {
	return func(m *machine) ref.Val {
		if !m.meter.step(1) {
			return aborted
		}
		var failed ref.Val
		for _, t := range terms {
			v := t(m)
			if v == decides {
				return decides
			}
			if _, ok := v.(types.Bool); !ok && failed == nil {
				if failed = v; !isError(v) {
					failed = types.NoSuchOverloadErr()
				}
			}
		}
		if failed != nil {
			return failed
		}
		return !decides
	}
}

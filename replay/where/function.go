package where

import (
	"fmt"
	"unicode/utf8"

	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/sajou-dev/sajou-go/internal/find"
)

// zoneSteps is the cost of looking up a time zone by name, which reads a file.
const zoneSteps = 2000

// function makes the node of a function that evaluates all of its arguments.
func function(name string, args []node, overload *functions.Overload) (node, error) {
	switch {
	case len(args) == 1 && unary[name] != nil:
		f := unary[name]
		return func(m *machine) ref.Val {
			v := first(m, args)
			if isError(v) {
				return v
			}
			if r := f(&m.meter, v); r != nil {
				return r
			}
			return invoke(&m.meter, name, overload, v)
		}, nil
	case len(args) == 2 && name == overloads.Matches:
		patterns := &patterns{}
		return func(m *machine) ref.Val {
			a, b, failed := both(m, args)
			if failed != nil {
				return failed
			}
			return patterns.match(&m.meter, a, b)
		}, nil
	case len(args) == 2 && (name == operators.Index || name == operators.OptIndex || name == operators.OptSelect):
		get := member
		if name != operators.Index {
			get = optional
		}
		return func(m *machine) ref.Val {
			a := first(m, args)
			if o, ok := a.(*types.Optional); isError(a) || ok && !o.HasValue() {
				return a
			}
			b := args[1](m)
			if isError(b) {
				return b
			}
			return get(a, b)
		}, nil
	case len(args) == 2 && binary[name] != nil:
		f := binary[name]
		return func(m *machine) ref.Val {
			a, b, failed := both(m, args)
			if failed != nil {
				return failed
			}
			if r := f(&m.meter, a, b); r != nil {
				return r
			}
			return invoke(&m.meter, name, overload, a, b)
		}, nil
	case overload == nil:
		return nil, fmt.Errorf("there is no operation %q", name)
	}
	return func(m *machine) ref.Val {
		if !m.meter.step(1) {
			return aborted
		}
		values := make([]ref.Val, len(args))
		for i, n := range args {
			values[i] = n(m)
			if isError(values[i]) {
				return values[i]
			}
		}
		return invoke(&m.meter, name, overload, values...)
	}, nil
}

// first evaluates the first argument and counts the step of the call.
func first(m *machine, args []node) ref.Val {
	if !m.meter.step(1) {
		return aborted
	}
	return args[0](m)
}

// both evaluates two arguments. An error of the first ends it.
func both(m *machine, args []node) (a, b, failed ref.Val) {
	if a = first(m, args); isError(a) {
		return nil, nil, a
	}
	if b = args[1](m); isError(b) {
		return nil, nil, b
	}
	return a, b, nil
}

// unary and binary are the functions whose work grows with their arguments. A
// nil result leaves the work to cel-go.
var (
	unary = map[string]func(*meter, ref.Val) ref.Val{
		overloads.Size:              (*meter).size,
		"optional.unwrap":           (*meter).unwrap,
		"unwrapOpt":                 (*meter).unwrap,
		overloads.TypeConvertString: (*meter).toText,
		overloads.TypeConvertDyn:    func(_ *meter, v ref.Val) ref.Val { return v },
	}
	binary = map[string]func(m *meter, a, b ref.Val) ref.Val{
		operators.Equals:    (*meter).equal,
		operators.NotEquals: (*meter).unequal,
		operators.In:        (*meter).in,
		operators.OldIn:     (*meter).in,
		operators.Add:       (*meter).sum,
		overloads.Contains:  (*meter).search,
		"hasValue":          (*meter).holds,
	}
)

func (m *meter) unequal(a, b ref.Val) ref.Val {
	if same, ok := m.equal(a, b).(types.Bool); ok {
		return !same
	}
	return aborted
}

func (m *meter) in(a, b ref.Val) ref.Val { return m.contains(b, a) }

func (m *meter) holds(a, b ref.Val) ref.Val {
	o, ok := a.(*types.Optional)
	if !ok {
		return types.NoSuchOverloadErr()
	}
	if !o.HasValue() {
		return types.False
	}
	return m.equal(o.GetValue(), b)
}

// sum is + of texts, bytes and lists, whose results grow.
func (m *meter) sum(a, b ref.Val) ref.Val {
	switch a := a.(type) {
	case types.String:
		if b, ok := b.(types.String); ok {
			if !m.copied(len(a) + len(b)) {
				return aborted
			}
			return a + b
		}
	case types.Bytes:
		if b, ok := b.(types.Bytes); ok {
			if !m.copied(len(a) + len(b)) {
				return aborted
			}
			return append(append(make(types.Bytes, 0, len(a)+len(b)), a...), b...)
		}
	case *list:
		return m.add(a, b)
	}
	return nil
}

// size is the number of characters of a text, of bytes, elements or members.
func (m *meter) size(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.String:
		if !m.text(len(v)) {
			return aborted
		}
		return types.Int(utf8.RuneCountInString(string(v)))
	case traits.Sizer:
		return v.Size()
	}
	return nil
}

// toText is string() of a text, which copies nothing.
func (m *meter) toText(v ref.Val) ref.Val {
	if v, ok := v.(types.String); ok {
		return v
	}
	return nil
}

// search is contains() of two texts.
func (m *meter) search(a, b ref.Val) ref.Val {
	text, ok := a.(types.String)
	part, isText := b.(types.String)
	if !ok || !isText {
		return types.NoSuchOverloadErr()
	}
	if !m.build(find.Memory(len(part))) {
		return aborted
	}
	found, done := find.Search(string(text), string(part), m.text)
	if !done {
		return aborted
	}
	return types.Bool(found)
}

// unwrap returns the values of a list of optionals that have one.
func (m *meter) unwrap(v ref.Val) ref.Val {
	in, ok := v.(*list)
	if !ok {
		return types.NoSuchOverloadErr()
	}
	n := in.len()
	if !m.step(n) || !m.build(sizeList+n*sizeRef) {
		return aborted
	}
	out := &list{m: m, made: make([]ref.Val, 0, n)}
	for i := range in.len() {
		switch v := unwrapped(in.elem(i)); {
		case isError(v):
			return v
		case v != nil:
			out.made = append(out.made, v)
		}
	}
	return out
}

func textLen(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

// invoke calls one of cel-go's functions on scalars. The length of the arguments'
// texts bounds their work and the size of their results and errors.
func invoke(m *meter, name string, overload *functions.Overload, args ...ref.Val) ref.Val {
	switch name {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, overloads.StartsWith, overloads.EndsWith:
		if len(args) == 2 && !m.step(min(textLen(args[0]), textLen(args[1]))/textStep) {
			return aborted
		}
	default:
		// A conversion copies the text, and an error quotes it twice.
		total := 0
		for _, a := range args {
			total += textLen(a)
		}
		if total > 0 && args[0].Type() == types.TimestampType && !m.step(zoneSteps) {
			return aborted
		}
		if total > textStep && !m.copied(3*total) {
			return aborted
		}
	}
	switch {
	case overload == nil:
	case overload.OperandTrait != 0 && !args[0].Type().HasTrait(overload.OperandTrait):
	case len(args) == 1 && overload.Unary != nil:
		return overload.Unary(args[0])
	case len(args) == 2 && overload.Binary != nil:
		return overload.Binary(args[0], args[1])
	case overload.Function != nil:
		return overload.Function(args...)
	}
	return types.NewErr("no such overload: %s", name)
}

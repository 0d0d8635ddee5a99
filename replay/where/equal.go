package where

import (
	"errors"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/sajou-dev/sajou-go/signal"
)

// maxDepth bounds the depth of compared values: the depth of an entry's values plus
// the lists that an expression can put around them.
const maxDepth = 4 * signal.MaxDepth

var errDepth = errors.New("the values are nested too deep to be compared")

// equal compares two values as CEL does: numbers by value, lists element by element,
// maps member by member in any order. It finds members through an index, so the time
// is linear in the size of the compared values. Each comparison is a step: lists that
// hold the same list many times are compared as many times, and the meter bounds that.
func (m *meter) equal(a, b ref.Val) ref.Val {
	if types.IsError(a) {
		return a
	}
	if types.IsError(b) {
		return b
	}
	same := m.same(a, b)
	if m.err != nil {
		return aborted
	}
	return types.Bool(same)
}

func (m *meter) same(a, b ref.Val) bool {
	if !m.step(1) {
		return false
	}
	if m.depth++; m.depth > maxDepth {
		m.err = errDepth // an unchecked entry can be as deep as it is long
		return false
	}
	defer func() { m.depth-- }()
	switch a := a.(type) {
	case types.String:
		b, ok := b.(types.String)
		return ok && len(a) == len(b) && m.text(len(a)) && a == b
	case types.Bytes:
		b, ok := b.(types.Bytes)
		return ok && len(a) == len(b) && m.text(len(a)) && string(a) == string(b)
	case *list:
		b, ok := b.(*list)
		return ok && m.sameLists(a, b)
	case *object:
		switch b := b.(type) {
		case *object:
			return a.members.size() == b.members.size() && m.sameMembers(a, b)
		case *dict:
			return a.members.size() == len(b.order) && m.sameMembers(a, b)
		}
		return false
	case *dict:
		switch b := b.(type) {
		case *object:
			return len(a.order) == b.members.size() && m.sameMembers(b, a)
		case *dict:
			return len(a.order) == len(b.order) && m.sameDicts(a, b)
		}
		return false
	case *types.Optional:
		b, ok := b.(*types.Optional)
		if !ok || !a.HasValue() || !b.HasValue() {
			return ok && a.HasValue() == b.HasValue()
		}
		return m.same(a.GetValue(), b.GetValue())
	}
	return types.Equal(a, b) == types.True // scalars, which are small
}

func (m *meter) sameLists(a, b *list) bool {
	if a.len() != b.len() {
		return false
	}
	for i := range a.len() {
		x, y := a.elem(i), b.elem(i)
		if x == nil || y == nil {
			return x == nil && y == nil
		}
		if !m.same(x, y) {
			return false
		}
	}
	return true
}

// sameMembers reports whether b, which has as many members as a, has equal ones.
func (m *meter) sameMembers(a *object, b interface {
	Find(key ref.Val) (ref.Val, bool)
},
) bool {
	for _, name := range a.names() {
		x, ok := a.find(name)
		if !ok {
			return false
		}
		y, ok := b.Find(types.String(name))
		if !ok || !m.same(x, y) {
			return false
		}
	}
	return m.err == nil
}

func (m *meter) sameDicts(a, b *dict) bool {
	for _, key := range a.order {
		x, _ := a.Find(key)
		y, ok := b.Find(key)
		if !ok || !m.same(x, y) {
			return false
		}
	}
	return true
}

// contains reports whether a list holds a value, a map a key.
func (m *meter) contains(in, v ref.Val) ref.Val {
	switch in := in.(type) {
	case *list:
		for i := range in.len() {
			e := in.elem(i)
			if e == nil {
				break
			}
			if m.same(e, v) {
				return types.True
			}
			if m.err != nil {
				return aborted
			}
		}
		return types.False
	case *object:
		return in.Contains(v)
	case *dict:
		return in.Contains(v)
	}
	return types.NoSuchOverloadErr()
}

// add joins two lists.
func (m *meter) add(a *list, other ref.Val) ref.Val {
	b, ok := other.(*list)
	if !ok {
		return types.NoSuchOverloadErr()
	}
	n := a.len() + b.len()
	if !m.step(n) || !m.build(sizeList+n*sizeRef) {
		return aborted
	}
	made := make([]ref.Val, 0, min(n, MemoryLimit/sizeRef))
	for _, l := range []*list{a, b} {
		for i := range l.len() {
			e := l.elem(i)
			if e == nil {
				break
			}
			made = append(made, e)
		}
	}
	return &list{m: m, made: made}
}

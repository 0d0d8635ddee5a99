package jsondoc

import (
	"math"

	"github.com/sajou-dev/sajou-go/signal"
)

// Equal compares as the patch operation test does.
func Equal(a, b signal.Value) bool {
	t := newTree()
	n, o := t.node(a, signal.MaxDepth), t.node(b, signal.MaxDepth)
	return t.why == "" && t.equal(n, o)
}

// equal compares by the rules of the operation test: objects in any order of
// members, numbers by their value.
func (t *tree) equal(n, o *treeNode) bool {
	if n.kind.IsNumber() && o.kind.IsNumber() {
		a, _ := n.scalar.Number()
		b, _ := o.scalar.Number()
		return SameNumber(a, b)
	}
	if n.kind != o.kind || len(n.list) != len(o.list) {
		return false
	}
	switch n.kind {
	case signal.KindArray:
		for i := range n.list {
			if !t.equal(n.list[i], o.list[i]) {
				return false
			}
		}
		return true
	case signal.KindObject:
		for i, name := range n.names {
			j := t.member(o, name)
			if j < 0 || !t.equal(n.list[i], o.list[j]) {
				return false
			}
		}
		return true
	default:
		return string(n.scalar) == string(o.scalar)
	}
}

// SameNumber compares exactly, so that 1 is 1.0 and 2⁵³+1 is not 2⁵³.
func SameNumber(a, b signal.Number) bool {
	if a == b {
		return true
	}
	if a.Kind() == signal.KindFloat && b.Kind() == signal.KindFloat {
		return a.Float64() == b.Float64() // 0.0 and -0.0
	}
	if a.Kind() == signal.KindFloat {
		a, b = b, a
	}
	if b.Kind() != signal.KindFloat {
		return false // two integers: equal ones have one form
	}
	f := b.Float64()
	switch {
	case f != math.Trunc(f):
		return false
	case f >= -(1<<63) && f < 1<<63:
		return signal.Int(int64(f)) == a
	case f >= 1<<63 && f < 1<<64:
		return signal.Uint(uint64(f)) == a
	default:
		return false
	}
}

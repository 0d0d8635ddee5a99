package language

import "strings"

// treeNode is a node of an immutable balanced search tree: adding a key copies the
// path to it.
type treeNode struct {
	key         string
	place       int
	height      int
	left, right *treeNode
}

func (t *treeNode) find(key string) (place int, ok bool) {
	for t != nil {
		switch order := strings.Compare(key, t.key); {
		case order < 0:
			t = t.left
		case order > 0:
			t = t.right
		default:
			return t.place, true
		}
	}
	return 0, false
}

func (t *treeNode) high() int {
	if t == nil {
		return 0
	}
	return t.height
}

// with returns t with a key that is not in it.
func (t *treeNode) with(key string, place int) *treeNode {
	if t == nil {
		return &treeNode{key: key, place: place, height: 1}
	}
	if key < t.key {
		return t.join(t.left.with(key, place), t.right)
	}
	return t.join(t.left, t.right.with(key, place))
}

// join returns a tree of two and the key of t between them. One of the two may
// be higher than the other by two.
func (t *treeNode) join(left, right *treeNode) *treeNode {
	switch l, r := left.high(), right.high(); {
	case l > r+1:
		if left.left.high() >= left.right.high() {
			return left.join(left.left, t.join(left.right, right))
		}
		m := left.right
		return m.join(left.join(left.left, m.left), t.join(m.right, right))
	case r > l+1:
		if right.right.high() >= right.left.high() {
			return right.join(t.join(left, right.left), right.right)
		}
		m := right.left
		return m.join(t.join(left, m.left), right.join(m.right, right.right))
	default:
		return &treeNode{t.key, t.place, 1 + max(l, r), left, right}
	}
}

// fan is the number of branches of a node of a vector.
const fan = 16

// vector is an immutable list of declarations: setting or adding one copies the path
// to it.
type vector struct {
	n, depth int // depth of nodes above the leaves
	root     *vectorNode
}

type vectorNode struct {
	inside [fan]*vectorNode
	leaf   [fan]Declaration
}

func (v vector) at(i int) Declaration {
	node := v.root
	for level := v.depth; level > 0; level-- {
		node = node.inside[i>>(4*level)%fan]
	}
	return node.leaf[i%fan]
}

func (v vector) set(i int, d Declaration) vector {
	v.root = v.root.with(v.depth, i, d)
	return v
}

func (v vector) push(d Declaration) vector {
	if v.n == fan<<(4*v.depth) { // full
		v.root, v.depth = &vectorNode{inside: [fan]*vectorNode{v.root}}, v.depth+1
	}
	v.n++
	return v.set(v.n-1, d)
}

func (n *vectorNode) with(level, i int, d Declaration) *vectorNode {
	next := new(vectorNode)
	if n != nil {
		*next = *n
	}
	if level == 0 {
		next.leaf[i%fan] = d
		return next
	}
	branch := i >> (4 * level) % fan
	next.inside[branch] = next.inside[branch].with(level-1, i, d)
	return next
}

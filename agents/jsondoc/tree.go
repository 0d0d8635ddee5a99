package jsondoc

import (
	"fmt"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// tree is a document that a patch changes. After a failure, why is its reason.
type tree struct {
	left int // bytes that may still be made
	work int // values that may still be shifted or looked through
	why  string
}

// newTree returns a tree with the budgets of one patch.
func newTree() *tree { return &tree{left: maxPatched, work: maxPatchWork} }

// applyAll applies the operations in order and returns the new root.
func (t *tree) applyAll(root *treeNode, patch []Operation) (*treeNode, error) {
	for i, op := range patch {
		if root = t.apply(root, op); t.why != "" {
			return nil, &patchError{i, op.Op, op.Path, t.why}
		}
	}
	return root, nil
}

// spend takes from the budgets and reports whether they still hold.
func (t *tree) spend(bytes, work int) bool {
	t.left -= bytes
	t.work -= work
	if t.left < 0 || t.work < 0 {
		t.fail("too much to do for one patch")
	}
	return t.why == ""
}

// treeNode is one value of it.
type treeNode struct {
	kind   signal.ValueKind
	scalar signal.Value
	list   []*treeNode    // elements, or the values of members
	names  []string       // of members
	index  map[string]int // of names, once there are many; nil if unknown
}

func (t *tree) fail(format string, args ...any) *treeNode {
	if t.why == "" {
		t.why = fmt.Sprintf(format, args...)
	}
	return nil
}

// node makes a node of v, of at most depth levels.
func (t *tree) node(v signal.Value, depth int) *treeNode {
	if !t.spend(32, 1) {
		return nil
	}
	n := &treeNode{kind: v.Kind()}
	switch n.kind {
	case signal.KindAbsent:
		return t.fail("no value")
	case signal.KindArray, signal.KindObject:
		if depth == 0 {
			return t.fail("nested deeper than %d levels", signal.MaxDepth)
		}
		if n.kind == signal.KindArray {
			for e := range v.Elements() {
				if n.list = append(n.list, t.node(e, depth-1)); t.why != "" {
					return nil
				}
			}
			return n
		}
		for name, m := range v.Members() {
			t.spend(len(name), 0)
			n.names = append(n.names, name)
			if n.list = append(n.list, t.node(m, depth-1)); t.why != "" {
				return nil
			}
		}
	default:
		t.spend(len(v), 0)
		n.scalar = v
	}
	return n
}

// clone returns a copy of n.
func (t *tree) clone(n *treeNode, depth int) *treeNode {
	if !t.spend(32+len(n.scalar), 1) {
		return nil
	}
	if depth < 0 || depth == 0 && (n.kind == signal.KindArray || n.kind == signal.KindObject) {
		return t.fail("nested deeper than %d levels", signal.MaxDepth)
	}
	c := &treeNode{kind: n.kind, scalar: n.scalar, names: slices.Clone(n.names)}
	for i, e := range n.list {
		if i < len(n.names) {
			t.spend(len(n.names[i]), 0)
		}
		if c.list = append(c.list, t.clone(e, depth-1)); t.why != "" {
			return nil
		}
	}
	return c
}

// few is up to how many members are searched one by one.
const few = 16

func (t *tree) member(n *treeNode, name string) int {
	if len(n.names) <= few {
		return slices.Index(n.names, name)
	}
	if n.index == nil {
		if !t.spend(0, 16*len(n.names)) {
			return -1
		}
		n.index = make(map[string]int, len(n.names))
		for i, name := range n.names {
			n.index[name] = i
		}
	}
	if i, ok := n.index[name]; ok {
		return i
	}
	return -1
}

func (n *treeNode) append(dst []byte) signal.Value {
	switch n.kind {
	case signal.KindArray:
		dst = msgp.AppendArrayHeader(dst, uint32(len(n.list)))
		for _, e := range n.list {
			dst = e.append(dst)
		}
		return dst
	case signal.KindObject:
		dst = msgp.AppendMapHeader(dst, uint32(len(n.list)))
		for i, e := range n.list {
			dst = msgp.AppendString(dst, n.names[i])
			dst = e.append(dst)
		}
		return dst
	default:
		return append(dst, n.scalar...)
	}
}

// apply does one operation and returns the new root.
func (t *tree) apply(root *treeNode, op Operation) *treeNode {
	path := t.pointer(op.Path)
	if t.why != "" {
		return nil
	}
	// The new value stands as deep as its path is long.
	room := signal.MaxDepth - len(path)
	switch op.Op {
	case "add":
		return t.add(root, path, t.node(op.Value, room))
	case "replace":
		value := t.node(op.Value, room)
		return t.replace(root, path, value)
	case "remove":
		return t.remove(root, path)
	case "test":
		n := t.find(root, path)
		value := t.node(op.Value, signal.MaxDepth)
		if t.why == "" && !t.equal(n, value) {
			return t.fail("the value is another")
		}
		return root
	case "copy":
		from := t.find(root, t.pointer(op.From))
		if t.why != "" {
			return nil
		}
		return t.add(root, path, t.clone(from, room))
	case "move":
		from := t.pointer(op.From)
		if t.why == "" && len(from) < len(path) && slices.Equal(from, path[:len(from)]) {
			return t.fail("a value cannot be moved into itself")
		}
		moved := t.find(root, from)
		if t.why != "" {
			return nil
		}
		if op.From == op.Path {
			return root
		}
		if root = t.remove(root, from); t.why != "" {
			return nil
		}
		if t.height(moved) > room {
			return t.fail("nested deeper than %d levels", signal.MaxDepth)
		}
		return t.add(root, path, moved)
	default:
		return t.fail("unknown op")
	}
}

func (t *tree) height(n *treeNode) int {
	if !t.spend(0, 1) {
		return 0
	}
	if n.kind != signal.KindArray && n.kind != signal.KindObject {
		return 0
	}
	most := 0
	for _, e := range n.list {
		most = max(most, t.height(e))
	}
	return most + 1
}

// child returns the index of a segment in n, or fails.
func (t *tree) child(n *treeNode, segment string) int {
	i := -1
	switch n.kind {
	case signal.KindObject:
		i = t.member(n, segment)
	case signal.KindArray:
		if j, ok := ElementIndex(segment); ok && j < len(n.list) {
			i = j
		}
	default:
	}
	if i < 0 {
		t.fail("there is no %q", segment)
	}
	return i
}

func (t *tree) find(n *treeNode, path []string) *treeNode {
	for _, segment := range path {
		if t.why != "" {
			return nil
		}
		i := t.child(n, segment)
		if i < 0 {
			return nil
		}
		n = n.list[i]
	}
	return n
}

// parent returns the node that holds the value at path, and the last segment.
func (t *tree) parent(root *treeNode, path []string) (*treeNode, string) {
	last := len(path) - 1
	return t.find(root, path[:last]), path[last]
}

func (t *tree) add(root *treeNode, path []string, value *treeNode) *treeNode {
	if t.why != "" || len(path) == 0 {
		return value
	}
	n, segment := t.parent(root, path)
	if t.why != "" {
		return nil
	}
	switch n.kind {
	case signal.KindObject:
		if i := t.member(n, segment); i >= 0 {
			n.list[i] = value
			return root
		}
		if t.why != "" {
			return nil
		}
		if n.index != nil {
			n.index[segment] = len(n.names)
		}
		n.names, n.list = append(n.names, segment), append(n.list, value)
	case signal.KindArray:
		i, ok := ElementIndex(segment)
		if segment == "-" {
			i, ok = len(n.list), true
		}
		if !ok || i > len(n.list) {
			return t.fail("there is no place %q", segment)
		}
		if !t.spend(0, len(n.list)-i) {
			return nil
		}
		n.list = slices.Insert(n.list, i, value)
	default:
		return t.fail("there is nothing that could hold %q", segment)
	}
	return root
}

func (t *tree) replace(root *treeNode, path []string, value *treeNode) *treeNode {
	if t.why != "" || len(path) == 0 {
		return value
	}
	n, segment := t.parent(root, path)
	if t.why != "" {
		return nil
	}
	i := t.child(n, segment)
	if t.why != "" {
		return nil
	}
	n.list[i] = value
	return root
}

// remove removes the value at path and returns the root.
func (t *tree) remove(root *treeNode, path []string) *treeNode {
	if len(path) == 0 {
		return t.fail("the whole document cannot be removed")
	}
	n, segment := t.parent(root, path)
	if t.why != "" {
		return nil
	}
	i := t.child(n, segment)
	if t.why != "" || !t.spend(0, len(n.list)-i) {
		return nil
	}
	n.list = slices.Delete(n.list, i, i+1)
	if n.kind == signal.KindObject {
		n.names, n.index = slices.Delete(n.names, i, i+1), nil
	}
	return root
}

// sort brings the members of all objects into the order of their names.
func (n *treeNode) sort() {
	for _, e := range n.list {
		e.sort()
	}
	if n.kind != signal.KindObject || slices.IsSorted(n.names) {
		return
	}
	members := make(map[string]*treeNode, len(n.names))
	for i, name := range n.names {
		members[name] = n.list[i]
	}
	slices.Sort(n.names)
	for i, name := range n.names {
		n.list[i] = members[name]
	}
	n.index = nil
}

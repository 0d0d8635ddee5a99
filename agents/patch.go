package agents

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// Operation is one operation of a JSON Patch (RFC 6902). Which of From and
// Value it has follows from Op.
type Operation struct {
	Op    string // add, remove, replace, move, copy, test
	Path  string
	From  string
	Value signal.Value
}

// Bounds of [ApplyPatch].
const (
	// MaxPatchOps bounds the operations of one patch.
	MaxPatchOps = 100_000
	// MaxPatched bounds, in bytes, the document and all that operations add to
	// it, at 32 for each value and its text: a patch can double a document with
	// each copy.
	MaxPatched = 256 << 20
	// maxPatchWork bounds the values that are shifted or looked through. Ordinary
	// patches need a few for each operation; one that inserts at the front of a
	// long array again and again would need the product.
	maxPatchWork = 1 << 27
)

// ErrPatch is wrapped by the errors of [ApplyPatch] and [ParsePatch].
var ErrPatch = errors.New("patch not applicable")

// PatchError says which operation of a patch cannot be done and why.
type PatchError struct {
	Index  int // of the operation
	Op     string
	Path   string
	Reason string
}

func (e *PatchError) Error() string {
	return fmt.Sprintf("agents: patch operation %d, %s %q: %s", e.Index, e.Op, e.Path, e.Reason)
}
func (e *PatchError) Unwrap() error { return ErrPatch }

// escape returns a name as a segment of a JSON pointer.
func escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func unescape(segment string) string {
	if !strings.Contains(segment, "~") {
		return segment
	}
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// ParsePatch reads a JSON Patch. Members that an operation has no use for are
// ignored, as the RFC says.
func ParsePatch(v signal.Value) ([]Operation, error) {
	if v.Kind() != signal.KindArray {
		return nil, fmt.Errorf("agents: a patch is an array: %w", ErrPatch)
	}
	if v.Len() > MaxPatchOps {
		return nil, fmt.Errorf("agents: a patch of more than %d operations: %w", MaxPatchOps, ErrPatch)
	}
	patch := make([]Operation, 0, min(v.Len(), len(v)))
	for e := range v.Elements() {
		op, reason := parseOperation(e)
		if reason != "" {
			return nil, &PatchError{len(patch), op.Op, op.Path, reason}
		}
		patch = append(patch, op)
	}
	return patch, nil
}

func parseOperation(v signal.Value) (op Operation, reason string) {
	if v.Kind() != signal.KindObject {
		return op, "an operation is an object"
	}
	text := func(name string) (s string, ok bool) {
		m, _ := v.Get(name)
		return m.Text()
	}
	var ok bool
	if op.Op, ok = text("op"); !ok {
		return op, "no op"
	}
	if op.Path, ok = text("path"); !ok {
		return op, "no path"
	}
	switch op.Op {
	case "add", "replace", "test":
		if op.Value, ok = v.Get("value"); !ok {
			return op, "no value"
		}
	case "move", "copy":
		if op.From, ok = text("from"); !ok {
			return op, "no from"
		}
	case "remove":
	default:
		return op, "unknown op"
	}
	return op, ""
}

// Object returns the operation as JSON.
func (op Operation) Object() signal.Value {
	o := object{{"op", textValue(op.Op)}, {"path", textValue(op.Path)}}
	switch op.Op {
	case "move", "copy":
		o = append(o, member{"from", textValue(op.From)})
	case "remove":
	default:
		o = append(o, member{"value", op.Value})
	}
	return o.value()
}

// PatchValue returns a patch as JSON.
func PatchValue(patch []Operation) signal.Value {
	list := make([]signal.Value, len(patch))
	for i, op := range patch {
		list[i] = op.Object()
	}
	return arrayValue(list)
}

// ApplyPatch applies a patch to doc by the letter of RFC 6902 and returns the
// result; doc is not changed. If one operation cannot be done, nothing is, and
// the error is a [*PatchError]. Removing the whole document is such an error.
func ApplyPatch(doc signal.Value, patch []Operation) (signal.Value, error) {
	if len(patch) > MaxPatchOps {
		return nil, fmt.Errorf("agents: a patch of more than %d operations: %w", MaxPatchOps, ErrPatch)
	}
	t := tree{left: MaxPatched, work: maxPatchWork}
	root := t.node(doc, signal.MaxDepth)
	if t.why != "" {
		return nil, fmt.Errorf("agents: document: %s: %w", t.why, ErrPatch)
	}
	for i, op := range patch {
		if root = t.apply(root, op); t.why != "" {
			return nil, &PatchError{i, op.Op, op.Path, t.why}
		}
	}
	return root.append(nil), nil
}

// tree is a document under change. After a failure why says what it was.
type tree struct {
	left int // bytes that may still be made
	work int // values that may still be shifted or looked through
	why  string
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

// pointer splits a JSON pointer (RFC 6901) into its segments.
func (t *tree) pointer(s string) []string {
	if s == "" {
		return nil
	}
	if s[0] != '/' {
		t.fail("%q is no JSON pointer", s)
		return nil
	}
	segments := strings.Split(s[1:], "/")
	if len(segments) > signal.MaxDepth+1 {
		t.fail("a path of more than %d levels", signal.MaxDepth)
		return nil
	}
	for i, segment := range segments {
		if !strings.Contains(segment, "~") {
			continue
		}
		for j := 0; j < len(segment); j++ {
			if segment[j] == '~' && (j+1 == len(segment) || segment[j+1] != '0' && segment[j+1] != '1') {
				t.fail("%q is no JSON pointer", s)
				return nil
			}
		}
		segments[i] = unescape(segment)
	}
	return segments
}

// child returns the place of a segment in n, or fails.
func (t *tree) child(n *treeNode, segment string) int {
	i := -1
	switch n.kind {
	case signal.KindObject:
		i = t.member(n, segment)
	case signal.KindArray:
		if j, ok := elementIndex(segment); ok && j < len(n.list) {
			i = j
		}
	default:
	}
	if i < 0 {
		t.fail("there is no %q", segment)
	}
	return i
}

// elementIndex reads an index: decimal, without sign and leading zeros.
func elementIndex(s string) (int, bool) {
	if s == "" || len(s) > 9 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	i := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		i = i*10 + int(c-'0')
	}
	return i, true
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

// parent returns the node that holds what path leads to, and the last segment.
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
		i, ok := elementIndex(segment)
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

// remove takes out what path leads to and returns the root.
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

// equal compares by the rules of the operation test: objects in any order of
// members, numbers by their value.
func (t *tree) equal(n, o *treeNode) bool {
	if n.kind.IsNumber() && o.kind.IsNumber() {
		a, _ := n.scalar.Number()
		b, _ := o.scalar.Number()
		return sameNumber(a, b)
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

// sameNumber compares exactly, so that 1 is 1.0 and 2⁵³+1 is not 2⁵³.
func sameNumber(a, b signal.Number) bool {
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

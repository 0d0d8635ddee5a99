// Package jsondoc works on JSON documents that are exact values: patches (RFC 6902),
// pointers (RFC 6901), differences and the canonical form that digests are taken of.
//
// It is pure, and everything it does is bounded: a patch is refused with an error
// that wraps [ErrPatch] before it costs more than [MaxPatchOps] operations or 256 MiB.
package jsondoc

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
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
	// maxPatched bounds, in bytes, the document and all that operations add to
	// it, at 32 for each value and its text: a patch can double a document with
	// each copy.
	maxPatched = 256 << 20
	// maxPatchWork bounds the values that are shifted or looked through. Ordinary
	// patches need a few for each operation; one that inserts at the front of a
	// long array again and again would need the product.
	maxPatchWork = 1 << 27
)

// ErrPatch is wrapped by the errors of [ApplyPatch] and [ParsePatch].
var ErrPatch = errors.New("patch not applicable")

// patchError says which operation of a patch failed and why.
type patchError struct {
	Index  int // of the operation
	Op     string
	Path   string
	Reason string
}

func (e *patchError) Error() string {
	return fmt.Sprintf("agents: patch operation %d, %s %q: %s", e.Index, e.Op, e.Path, e.Reason)
}
func (e *patchError) Unwrap() error { return ErrPatch }

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
			return nil, &patchError{len(patch), op.Op, op.Path, reason}
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
	o := jsonvalue.Fields{{"op", jsonvalue.Text(op.Op)}, {"path", jsonvalue.Text(op.Path)}}
	switch op.Op {
	case "move", "copy":
		o = append(o, jsonvalue.NamedValue{"from", jsonvalue.Text(op.From)})
	case "remove":
	default:
		o = append(o, jsonvalue.NamedValue{"value", op.Value})
	}
	return o.Value()
}

// PatchValue returns a patch as JSON.
func PatchValue(patch []Operation) signal.Value {
	list := make([]signal.Value, len(patch))
	for i, op := range patch {
		list[i] = op.Object()
	}
	return jsonvalue.Array(list)
}

// ApplyPatch applies a patch to doc by the letter of RFC 6902 and returns the
// result; doc is not changed. If one operation fails, none is applied, and the
// error wraps [ErrPatch]. Removing the whole document is such an error.
func ApplyPatch(doc signal.Value, patch []Operation) (signal.Value, error) {
	if len(patch) > MaxPatchOps {
		return nil, fmt.Errorf("agents: a patch of more than %d operations: %w", MaxPatchOps, ErrPatch)
	}
	t := newTree()
	root := t.node(doc, signal.MaxDepth)
	if t.why != "" {
		return nil, fmt.Errorf("agents: document: %s: %w", t.why, ErrPatch)
	}
	root, err := t.applyAll(root, patch)
	if err != nil {
		return nil, err
	}
	return root.append(nil), nil
}

// Document is a JSON document that patches change in place. It costs what the
// patches change, where [ApplyPatch] costs the whole document each time.
type Document struct{ root *treeNode }

// NewDocument returns a document with the value v.
func NewDocument(v signal.Value) (*Document, error) {
	t := newTree()
	root := t.node(v, signal.MaxDepth)
	if t.why != "" {
		return nil, fmt.Errorf("agents: document: %s: %w", t.why, ErrPatch)
	}
	return &Document{root}, nil
}

// Apply applies a patch. After an error, which wraps [ErrPatch], the document has no
// defined value and must not be used.
func (d *Document) Apply(patch []Operation) error {
	t := newTree()
	var err error
	d.root, err = t.applyAll(d.root, patch)
	return err
}

// Value returns the document's value with the members of all objects in the
// order of their names, whatever the order of the patches that added them.
func (d *Document) Value() signal.Value {
	d.root.sort()
	return d.root.append(nil)
}

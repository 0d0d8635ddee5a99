package jsondoc

import "github.com/sajou-dev/sajou-go/signal"

// Cost applies a patch and returns the bytes and the values that it takes from the budgets,
// beside those of the document.
func Cost(doc signal.Value, patch []Operation) (bytes, work int, err error) {
	t := newTree()
	root := t.node(doc, signal.MaxDepth)
	bytes, work = t.left, t.work
	_, err = t.applyAll(root, patch)
	return bytes - t.left, work - t.work, err
}

// ApplyWithin is [ApplyPatch] with other budgets.
func ApplyWithin(bytes, work int, doc signal.Value, patch []Operation) error {
	t := &tree{left: bytes, work: work}
	root := t.node(doc, signal.MaxDepth)
	if t.why != "" {
		return ErrPatch
	}
	_, err := t.applyAll(root, patch)
	return err
}

// The budgets of one patch.
const (
	MaxPatched   = maxPatched
	MaxPatchWork = maxPatchWork
)

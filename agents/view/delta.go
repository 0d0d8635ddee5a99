package view

import (
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

// DefaultMaxPatchOps is the default of max_patch_ops: a delta of more operations is
// replaced by the full view.
const DefaultMaxPatchOps = 50

// worthwhile is the size of a patch, in bytes of JSON, above which a smaller full
// view replaces it. Below it the saving is not worth the loss: a full view does not
// say what changed.
const worthwhile = 4096

// Delta is a JSON Patch that takes an agent's view from the state after the delta
// before it to the present one. The first delta patches the empty view,
// {"visible_entities":{},"visible_relationships":{}}. Deltas of several agents share
// their patches, which must not be changed.
type Delta struct {
	ViewSeq       uint64
	Patches       []jsondoc.Operation
	SchemaVersion string

	digest *digest
}

// ContextDigest returns the digest of the view that the patch leads to. The first call
// for a view computes it; see [View.Digest]. It is safe for concurrent use.
func (d Delta) ContextDigest() string { return d.digest.String() }

// Value returns the delta as JSON.
func (d Delta) Value() signal.Value {
	return jsonvalue.Fields{
		{"view_seq", jsonvalue.Uint(d.ViewSeq)},
		{"patches", jsondoc.PatchValue(d.Patches)},
		{"context_digest", jsonvalue.Text(d.ContextDigest())},
		{"schema_version", jsonvalue.Text(d.SchemaVersion)},
	}.Value()
}

// IsFullView reports whether the delta replaces the full view.
func (d Delta) IsFullView() bool {
	return len(d.Patches) == 2 && d.Patches[0].Path == PathEntities && d.Patches[0].Op == "replace"
}

// The JSON pointers of the two members of a view.
const (
	PathEntities  = "/visible_entities"
	PathRelations = "/visible_relationships"
)

// Diff returns a patch that turns the first of two views, or of any two values,
// into the second. It compares objects member by member, in the order of names, and
// replaces any other value that differs. If both values have the two members of a
// view, maxOps bounds the operations: a longer patch is replaced by the full view.
// Zero means [DefaultMaxPatchOps].
func Diff(before, after signal.Value, maxOps int) []jsondoc.Operation {
	ops := jsondoc.AppendDiff(nil, "", before, after)
	entities, ok1 := after.Get(PathEntities[1:])
	relations, ok2 := after.Get(PathRelations[1:])
	_, ok3 := before.Get(PathEntities[1:])
	_, ok4 := before.Get(PathRelations[1:])
	if !ok1 || !ok2 || !ok3 || !ok4 || before.Len() != 2 || after.Len() != 2 {
		return ops
	}
	whole := func() int { return len(entities.AppendJSON(nil)) + len(relations.AppendJSON(nil)) }
	if !tooMuch(ops, maxOps, whole) {
		return ops
	}
	return fullView(entities, relations)
}

func fullView(entities, relations signal.Value) []jsondoc.Operation {
	return []jsondoc.Operation{
		{Op: "replace", Path: PathEntities, Value: entities},
		{Op: "replace", Path: PathRelations, Value: relations},
	}
}

// tooMuch reports whether a full view should replace a patch. view returns the length of
// the view's JSON, in bytes.
func tooMuch(ops []jsondoc.Operation, maxOps int, view func() int) bool {
	if maxOps <= 0 {
		maxOps = DefaultMaxPatchOps
	}
	if len(ops) > maxOps {
		return true
	}
	size := 0
	for _, op := range ops {
		size += len(`{"op":"","path":"","value":},`) + len(op.Op) + len(op.Path)
		// The length as msgpack is a close lower bound of that as JSON.
		size += len(op.Value)
	}
	return size > worthwhile && size > view()
}

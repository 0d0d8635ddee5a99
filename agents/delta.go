package agents

import (
	"bytes"

	"github.com/sajou-dev/sajou-go/signal"
)

// DefaultMaxPatchOps is how many operations a delta has at most, unless the
// policy says otherwise, before the whole view takes their place.
const DefaultMaxPatchOps = 50

// worthwhile is the size of a patch, in bytes of JSON, from which on a smaller
// whole view takes its place. Below it the saving is not worth that the
// receiver no longer learns what changed.
const worthwhile = 4096

// Delta is what an agent gets: a JSON Patch against the view that the delta
// before it led to. The first is against an empty view,
// {"visible_entities":{},"visible_relationships":{}}.
type Delta struct {
	ViewSeq       uint64
	Patches       []Operation
	ContextDigest string // of the view that the patch leads to
	SchemaVersion string
}

// Value returns the delta as JSON.
func (d Delta) Value() signal.Value {
	return object{
		{"view_seq", integerValue(d.ViewSeq)},
		{"patches", PatchValue(d.Patches)},
		{"context_digest", textValue(d.ContextDigest)},
		{"schema_version", textValue(d.SchemaVersion)},
	}.value()
}

// Whole reports whether the delta replaces the whole view.
func (d Delta) Whole() bool {
	return len(d.Patches) == 2 && d.Patches[0].Path == pathEntities && d.Patches[0].Op == "replace"
}

const (
	pathEntities  = "/visible_entities"
	pathRelations = "/visible_relationships"
)

// Diff returns a patch that makes the second of two views, or of any two
// values, of the first. Objects are compared member by member, in the order of
// names; anything else that differs is replaced as a whole. If both have the
// two members of a view, maxOps bounds the operations: 0 means
// [DefaultMaxPatchOps].
func Diff(before, after signal.Value, maxOps int) []Operation {
	ops := appendDiff(nil, "", before, after)
	entities, ok1 := after.Get(pathEntities[1:])
	relations, ok2 := after.Get(pathRelations[1:])
	_, ok3 := before.Get(pathEntities[1:])
	_, ok4 := before.Get(pathRelations[1:])
	if !ok1 || !ok2 || !ok3 || !ok4 || before.Len() != 2 || after.Len() != 2 {
		return ops
	}
	whole := len(entities.AppendJSON(nil)) + len(relations.AppendJSON(nil))
	if !tooMuch(ops, maxOps, whole) {
		return ops
	}
	return wholeView(entities, relations)
}

func wholeView(entities, relations signal.Value) []Operation {
	return []Operation{
		{Op: "replace", Path: pathEntities, Value: entities},
		{Op: "replace", Path: pathRelations, Value: relations},
	}
}

// tooMuch reports whether a view of so many bytes of JSON should be sent
// instead of a patch.
func tooMuch(ops []Operation, maxOps, view int) bool {
	if maxOps <= 0 {
		maxOps = DefaultMaxPatchOps
	}
	if len(ops) > maxOps {
		return true
	}
	size := 0
	for _, op := range ops {
		size += len(`{"op":"","path":"","value":},`) + len(op.Op) + len(op.Path)
		// As msgpack a value is a little shorter than as JSON.
		size += len(op.Value)
	}
	return size > worthwhile && size > view
}

// appendDiff appends what makes after of before, both at path.
func appendDiff(ops []Operation, path string, before, after signal.Value) []Operation {
	if bytes.Equal(before, after) {
		return ops
	}
	if before.Kind() != signal.KindObject || after.Kind() != signal.KindObject {
		if bytes.Equal(AppendCanonical(nil, before), AppendCanonical(nil, after)) {
			return ops // one array, its objects' members in another order
		}
		return append(ops, Operation{Op: "replace", Path: path, Value: after})
	}
	old, now := sortedMembers(before), sortedMembers(after)
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].name < now[0].name:
			ops = append(ops, Operation{Op: "remove", Path: path + "/" + escape(old[0].name)})
			old = old[1:]
		case len(old) == 0 || now[0].name < old[0].name:
			ops = append(ops, Operation{Op: "add", Path: path + "/" + escape(now[0].name), Value: now[0].value})
			now = now[1:]
		default:
			ops = appendDiff(ops, path+"/"+escape(now[0].name), old[0].value, now[0].value)
			old, now = old[1:], now[1:]
		}
	}
	return ops
}

package jsondoc

import (
	"bytes"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// AppendDiff appends the operations that turn before into after, both at path.
func AppendDiff(ops []Operation, path string, before, after signal.Value) []Operation {
	if bytes.Equal(before, after) {
		return ops
	}
	if before.Kind() != signal.KindObject || after.Kind() != signal.KindObject {
		if bytes.Equal(AppendCanonical(nil, before), AppendCanonical(nil, after)) {
			return ops // one array, its objects' members in another order
		}
		return append(ops, Operation{Op: "replace", Path: path, Value: after})
	}
	old, now := jsonvalue.SortedFields(before), jsonvalue.SortedFields(after)
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].Name < now[0].Name:
			ops = append(ops, Operation{Op: "remove", Path: path + "/" + jsonpointer.Escape(old[0].Name)})
			old = old[1:]
		case len(old) == 0 || now[0].Name < old[0].Name:
			ops = append(ops, Operation{Op: "add", Path: path + "/" + jsonpointer.Escape(now[0].Name), Value: now[0].Value})
			now = now[1:]
		default:
			if !bytes.Equal(old[0].Value, now[0].Value) { // most are equal, and need no path
				ops = AppendDiff(ops, path+"/"+jsonpointer.Escape(now[0].Name), old[0].Value, now[0].Value)
			}
			old, now = old[1:], now[1:]
		}
	}
	return ops
}

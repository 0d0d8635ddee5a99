package debugger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// names divides a path, with dots or as a JSON Pointer, into names.
func names(path string) []string {
	path = strings.TrimPrefix(path, "state.")
	if rest, ok := strings.CutPrefix(path, "/"); ok {
		parts := strings.Split(rest, "/")
		for i := range parts {
			parts[i] = jsonpointer.Unescape(parts[i])
		}
		return parts
	}
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// member returns the part of the state at a path, or false if there is none.
func member(f *projection.Fold, path string) (value any, ok bool) {
	all := names(path)
	if len(all) == 0 {
		return f.View(), true
	}
	state := f.State(all[0])
	if state == nil {
		return nil, false
	}
	value = state
	if _, ok := state.(where.Members); !ok {
		value = state.View()
	}
	for _, name := range all[1:] {
		if value, ok = jsonpointer.Member(value, name); !ok {
			return nil, false
		}
	}
	return value, true
}

// mostValues bounds the values of a part of the state that is shown or compared.
const mostValues = 2000

// bounded returns a copy of the first values of a view.
func bounded(value any) any {
	left := mostValues
	return copied(value, &left)
}

func copied(value any, left *int) any {
	*left--
	object := func(all []string, get func(string) (any, bool)) any {
		all = slices.Clone(all)
		slices.Sort(all)
		out := map[string]any{}
		for _, name := range all {
			if *left <= 0 {
				out["…"] = fmt.Sprintf("%d more", len(all)-len(out))
				break
			}
			if v, ok := get(name); ok {
				out[name] = copied(v, left)
			}
		}
		return out
	}
	switch v := value.(type) {
	case where.Members:
		return object(v.Names(), v.Member)
	case map[string]any:
		all := make([]string, 0, len(v))
		for name := range v {
			all = append(all, name)
		}
		return object(all, func(name string) (any, bool) { m, ok := v[name]; return m, ok })
	case []any:
		out := []any{}
		for _, m := range v {
			if *left <= 0 {
				break
			}
			out = append(out, copied(m, left))
		}
		return out
	}
	return value
}

// outline writes a bounded view as lines: a name and its value, members indented.
func outline(value any) []string {
	var lines []string
	var add func(indent, name string, v any)
	add = func(indent, name string, v any) {
		label := indent + name
		if name != "" {
			label += ": "
		}
		switch v := v.(type) {
		case map[string]any:
			if len(v) == 0 {
				lines = append(lines, label+"{}")
				return
			}
			if name != "" {
				lines = append(lines, indent+name)
				indent += "  "
			}
			all := make([]string, 0, len(v))
			for member := range v {
				all = append(all, member)
			}
			slices.Sort(all)
			for _, member := range all {
				add(indent, member, v[member])
			}
		case []any:
			if len(v) == 0 {
				lines = append(lines, label+"[]")
				return
			}
			if name != "" {
				lines = append(lines, indent+name)
				indent += "  "
			}
			for i, m := range v {
				add(indent, strconv.Itoa(i), m)
			}
		case string:
			lines = append(lines, label+v)
		default:
			data, err := json.Marshal(v)
			if err != nil {
				data = fmt.Appendf(nil, "%v", v)
			}
			lines = append(lines, label+string(data))
		}
	}
	add("", "", value)
	return lines
}

// difference writes the changes from one bounded view to another as lines.
func difference(a, b any) []string {
	patch, err := replay.Diff(a, b)
	if err != nil {
		return []string{err.Error()}
	}
	var changes []struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return []string{err.Error()}
	}
	if len(changes) == 0 {
		return []string{"no difference"}
	}
	var lines []string
	for _, c := range changes {
		sign := map[string]string{"add": "+", "remove": "-", "replace": "~"}[c.Op]
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s %s", sign, c.Path, c.Value), " "))
	}
	return lines
}

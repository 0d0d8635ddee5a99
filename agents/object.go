package agents

import (
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// object is a JSON object that is being read or made: its members in their
// order. Values stay views of what they came from until value writes them anew.
type object []member

type member struct {
	name  string
	value signal.Value
}

// membersOf returns the members of v, none if v is no object.
func membersOf(v signal.Value) object {
	o := make(object, 0, min(v.Len(), len(v)))
	for name, value := range v.Members() {
		o = append(o, member{name, value})
	}
	return o
}

// sortedMembers returns the members of v in the order of their names.
func sortedMembers(v signal.Value) object {
	o := membersOf(v)
	byName := func(a, b member) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(o, byName) {
		slices.SortFunc(o, byName)
	}
	return o
}

// sorted returns the value with the members in the order of their names.
func (o object) sorted() signal.Value {
	slices.SortFunc(o, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return o.value()
}

// set gives a member its value: in its place if it is there, else at the end.
func (o *object) set(name string, value signal.Value) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, member{name, value})
}

func (o *object) remove(name string) {
	*o = slices.DeleteFunc(*o, func(m member) bool { return m.name == name })
}

// value writes the object into bytes of its own.
func (o object) value() signal.Value {
	size := 5
	for _, m := range o {
		size += 5 + len(m.name) + len(m.value)
	}
	dst := msgp.AppendMapHeader(make([]byte, 0, size), uint32(len(o)))
	for _, m := range o {
		dst = msgp.AppendString(dst, m.name)
		dst = append(dst, m.value...)
	}
	return dst
}

func textValue(s string) signal.Value    { return msgp.AppendString(nil, s) }
func numberValue(f float64) signal.Value { return signal.Float(f).Append(nil) }
func integerValue(i uint64) signal.Value { return signal.Uint(i).Append(nil) }
func emptyObject() signal.Value          { return signal.Value{0x80} }
func arrayValue(list []signal.Value) signal.Value {
	size := 5
	for _, v := range list {
		size += len(v)
	}
	dst := msgp.AppendArrayHeader(make([]byte, 0, size), uint32(len(list)))
	for _, v := range list {
		dst = append(dst, v...)
	}
	return dst
}

// textMember returns the first of the named members of v that is a string.
func textMember(v signal.Value, names ...string) (string, bool) {
	for _, name := range names {
		if m, ok := v.Get(name); ok {
			if s, ok := m.Text(); ok {
				return s, true
			}
		}
	}
	return "", false
}

// height returns how many levels of arrays and objects v has: 0 for a scalar.
func height(v signal.Value) int {
	most := 0
	switch v.Kind() {
	case signal.KindArray:
		for e := range v.Elements() {
			most = max(most, height(e))
		}
	case signal.KindObject:
		for _, m := range v.Members() {
			most = max(most, height(m))
		}
	default:
		return 0
	}
	return most + 1
}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

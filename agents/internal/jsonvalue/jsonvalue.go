// Package jsonvalue makes and reads the JSON values of the agents: objects that
// are built member by member, and members that are read as one type.
package jsonvalue

import (
	"math"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// Fields is a JSON object that is being read or made: its members in their
// order. Values stay views of what they came from until Value copies them.
type Fields []NamedValue

// NamedValue is one member of an object. It is an alias of a plain struct, so that
// literals of objects stay short: Fields{{"id", Text(id)}}.
type NamedValue = struct {
	Name  string
	Value signal.Value
}

// FieldsOf returns the members of v, none if v is not an object.
func FieldsOf(v signal.Value) Fields {
	o := make(Fields, 0, min(v.Len(), len(v)))
	for name, value := range v.Members() {
		o = append(o, NamedValue{name, value})
	}
	return o
}

// SortedFields returns the members of v in the order of their names.
func SortedFields(v signal.Value) Fields {
	o := FieldsOf(v)
	byName := func(a, b NamedValue) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(o, byName) {
		slices.SortFunc(o, byName)
	}
	return o
}

// Sorted returns the value with the members in the order of their names.
func (o Fields) Sorted() signal.Value {
	slices.SortFunc(o, func(a, b NamedValue) int { return strings.Compare(a.Name, b.Name) })
	return o.Value()
}

// Set gives a member its value: in its place if it is there, else at the end.
func (o *Fields) Set(name string, value signal.Value) {
	for i := range *o {
		if (*o)[i].Name == name {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, NamedValue{name, value})
}

// Remove deletes the member of that name, if there is one.
func (o *Fields) Remove(name string) {
	*o = slices.DeleteFunc(*o, func(m NamedValue) bool { return m.Name == name })
}

// Value writes the object into bytes of its own.
func (o Fields) Value() signal.Value {
	size := 5
	for _, m := range o {
		size += 5 + len(m.Name) + len(m.Value)
	}
	dst := msgp.AppendMapHeader(make([]byte, 0, size), uint32(len(o)))
	for _, m := range o {
		dst = msgp.AppendString(dst, m.Name)
		dst = append(dst, m.Value...)
	}
	return dst
}

// Text returns s as a value.
func Text(s string) signal.Value { return msgp.AppendString(nil, s) }

// Float returns f as a value, in the shortest form that keeps it.
func Float(f float64) signal.Value { return signal.Float(f).Append(nil) }

// Uint returns i as a value.
func Uint(i uint64) signal.Value { return signal.Uint(i).Append(nil) }

// Empty returns the object without members.
func Empty() signal.Value { return signal.Value{0x80} }

// Array returns the list as a value.
func Array(list []signal.Value) signal.Value {
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

// TextMember returns the first of the named members of v that is a string.
func TextMember(v signal.Value, names ...string) (string, bool) {
	for _, name := range names {
		if m, ok := v.Get(name); ok {
			if s, ok := m.Text(); ok {
				return s, true
			}
		}
	}
	return "", false
}

// Height returns how many levels of arrays and objects v has: 0 for a scalar.
func Height(v signal.Value) int {
	most := 0
	switch v.Kind() {
	case signal.KindArray:
		for e := range v.Elements() {
			most = max(most, Height(e))
		}
	case signal.KindObject:
		for _, m := range v.Members() {
			most = max(most, Height(m))
		}
	default:
		return 0
	}
	return most + 1
}

// SortedKeys returns the keys of m in order.
func SortedKeys[V any](m map[string]V) []string {
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

// TextOf returns the member name of v as a string, "" if there is none.
func TextOf(v signal.Value, name string) string {
	m, _ := v.Get(name)
	s, _ := m.Text()
	return strings.Clone(s)
}

// IntOf returns the member name of v as an integer, 0 if there is none.
func IntOf(v signal.Value, name string) int64 {
	m, _ := v.Get(name)
	i, _ := m.Int64()
	return i
}

// UintOf is [IntOf] for members that are never negative; a negative one reads as 0.
func UintOf(v signal.Value, name string) uint64 { return uint64(max(IntOf(v, name), 0)) }

// NamesOf returns the strings in the array that is the member name of v.
func NamesOf(v signal.Value, name string) []string {
	m, _ := v.Get(name)
	var list []string
	for e := range m.Elements() {
		if s, ok := e.Text(); ok {
			list = append(list, strings.Clone(s))
		}
	}
	return list
}

// Names returns the list as an array of strings.
func Names(list []string) signal.Value {
	values := make([]signal.Value, len(list))
	for i, s := range list {
		values[i] = Text(s)
	}
	return Array(values)
}

// Int returns i as a value.
func Int(i int64) signal.Value { return signal.Int(i).Append(nil) }

// Finite reports whether f is neither infinite nor NaN.
func Finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

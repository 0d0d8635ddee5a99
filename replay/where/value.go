package where

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/sajou-dev/sajou-go/signal"
)

// adapter makes CEL values of what expressions read.
type adapter struct{}

// NativeToValue implements [types.Adapter].
func (adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case ref.Val:
		return v
	case *entryVars:
		return &object{members: shown[*entryVars]{v, entryMembers}}
	case *stateVars:
		return &object{members: stateShown{v}}
	case signal.Value:
		return exactValue(v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// exactValue returns a signal's value. Objects and lists stay as they are until
// they are looked into.
func exactValue(v signal.Value) ref.Val {
	switch v.Kind() {
	case signal.KindBool:
		b, _ := v.Bool()
		return types.Bool(b)
	case signal.KindInt, signal.KindUint, signal.KindFloat:
		n, _ := v.Number()
		return numberValue(n)
	case signal.KindString:
		s, _ := v.Text()
		return types.String(s)
	case signal.KindArray:
		list := []ref.Val{}
		for e := range v.Elements() {
			list = append(list, exactValue(e))
		}
		return types.NewRefValList(adapter{}, list)
	case signal.KindObject:
		return &object{members: exactMembers(v)}
	case signal.KindAbsent, signal.KindNull:
	}
	return types.NullValue
}

func numberValue(n signal.Number) ref.Val {
	switch n.Kind() {
	case signal.KindInt:
		i, _ := n.Int64()
		return types.Int(i)
	case signal.KindUint:
		u, _ := strconv.ParseUint(n.String(), 10, 64)
		return types.Uint(u)
	default:
		return types.Double(n.Float64())
	}
}

// plainValue returns a value of a view.
func plainValue(v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case bool:
		return types.Bool(v)
	case int64:
		return types.Int(v)
	case uint64:
		return types.Uint(v)
	case float64:
		return types.Double(v)
	case string:
		return types.String(v)
	case []any:
		list := make([]ref.Val, len(v))
		for i, e := range v {
			list[i] = plainValue(e)
		}
		return types.NewRefValList(adapter{}, list)
	case map[string]any:
		return &object{members: viewMembers(v)}
	case Members:
		return &object{members: stateMembers{v}}
	}
	return adapter{}.NativeToValue(v)
}

// members is what an [object] reads.
type members interface {
	size() int
	names() []string // in an order that is always the same
	member(name string) (ref.Val, bool)
}

// exactMembers are those of a signal's object.
type exactMembers signal.Value

func (m exactMembers) size() int { return signal.Value(m).Len() }

func (m exactMembers) names() []string {
	var names []string
	for name := range signal.Value(m).Members() {
		names = append(names, name)
	}
	return names
}

func (m exactMembers) member(name string) (ref.Val, bool) {
	v, ok := signal.Value(m).Get(name)
	if !ok {
		return nil, false
	}
	return exactValue(v), true
}

// viewMembers are those of a view's object.
type viewMembers map[string]any

func (m viewMembers) size() int       { return len(m) }
func (m viewMembers) names() []string { return sortedKeys(m) }

func (m viewMembers) member(name string) (ref.Val, bool) {
	v, ok := m[name]
	if !ok {
		return nil, false
	}
	return plainValue(v), true
}

// oneMember is an object of one member.
type oneMember struct {
	name  string
	value signal.Value
}

func (m oneMember) size() int       { return 1 }
func (m oneMember) names() []string { return []string{m.name} }

func (m oneMember) member(name string) (ref.Val, bool) {
	if name != m.name {
		return nil, false
	}
	return exactValue(m.value), true
}

// shown is entry as an object, for expressions that take the whole of it.
type shown[H holder] struct {
	of     H
	fields map[string]*types.FieldType
}

func (s shown[H]) size() int { return len(s.names()) }

func (s shown[H]) names() []string {
	var names []string
	for _, name := range sortedKeys(s.fields) {
		if s.fields[name].IsSet(s.of) {
			names = append(names, name)
		}
	}
	return names
}

func (s shown[H]) member(name string) (ref.Val, bool) {
	f, ok := s.fields[name]
	if !ok || !f.IsSet(s.of) {
		return nil, false
	}
	v, err := f.GetFrom(s.of)
	if err != nil {
		return nil, false
	}
	val, ok := v.(ref.Val)
	return val, ok
}

// stateShown is state or prev as an object.
type stateShown struct{ of *stateVars }

func (s stateShown) size() int { return len(s.names()) }

func (s stateShown) names() []string {
	if s.of.empty() {
		return nil
	}
	return append([]string{"seq", "at"}, s.of.names...)
}

func (s stateShown) member(name string) (ref.Val, bool) {
	var v ref.Val
	switch {
	case s.of.empty():
	case name == "seq":
		v = s.of.seq()
	case name == "at":
		v = s.of.at()
	default:
		for i, n := range s.of.names {
			if n == name {
				v = s.of.projection(i)
			}
		}
	}
	return v, v != nil
}

// object is a JSON object as a CEL map that is read member by member.
type object struct {
	members members
	all     traits.Mapper // the whole of it, made when something needs that
}

var (
	_ traits.Mapper = (*object)(nil)
	_ traits.Zeroer = (*object)(nil)
)

func (o *object) whole() traits.Mapper {
	if o.all == nil {
		names := o.members.names()
		all := make(map[ref.Val]ref.Val, len(names))
		for _, name := range names {
			if v, ok := o.members.member(name); ok {
				all[types.String(name)] = v
			}
		}
		o.all = types.NewRefValMap(adapter{}, all)
	}
	return o.all
}

// Find implements [traits.Mapper].
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false // JSON has no other keys
	}
	return o.members.member(string(name))
}

// Get implements [traits.Indexer].
func (o *object) Get(key ref.Val) ref.Val {
	if v, ok := o.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements [traits.Container].
func (o *object) Contains(key ref.Val) ref.Val {
	_, ok := o.Find(key)
	return types.Bool(ok)
}

// Size implements [traits.Sizer].
func (o *object) Size() ref.Val { return types.Int(o.members.size()) }

// IsZeroValue implements [traits.Zeroer].
func (o *object) IsZeroValue() bool { return o.members.size() == 0 }

// Iterator implements [traits.Iterable]: names, in an order that is always the
// same, where CEL's own maps take Go's.
func (o *object) Iterator() traits.Iterator {
	names := o.members.names()
	list := make([]ref.Val, len(names))
	for i, name := range names {
		list[i] = types.String(name)
	}
	return types.NewRefValList(adapter{}, list).Iterator()
}

// ConvertToNative implements [ref.Val].
func (o *object) ConvertToNative(t reflect.Type) (any, error) { return o.whole().ConvertToNative(t) }

// ConvertToType implements [ref.Val].
func (o *object) ConvertToType(t ref.Type) ref.Val { return o.whole().ConvertToType(t) }

// Equal implements [ref.Val].
func (o *object) Equal(other ref.Val) ref.Val {
	if m, ok := other.(*object); ok {
		if m.members.size() != o.members.size() {
			return types.False
		}
		other = m.whole()
	}
	return o.whole().Equal(other)
}

// Type implements [ref.Val].
func (o *object) Type() ref.Type { return types.MapType }

// Value implements [ref.Val].
func (o *object) Value() any { return o }

// plain turns a CEL value into one that JSON can hold.
func plain(v ref.Val, depth int) (any, error) {
	if depth > signal.MaxDepth {
		return nil, errors.New("its value is nested too deep")
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uint64(v), nil
	case types.Double:
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return fmt.Sprint(float64(v)), nil // JSON has no number for it
	case types.String:
		return string(v), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return plain(v.GetValue(), depth+1)
	case traits.Mapper:
		out := make(map[string]any)
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			member, ok := v.Find(key)
			if !ok {
				continue
			}
			name, err := plain(key, depth+1)
			if err != nil {
				return nil, err
			}
			if out[fmt.Sprint(name)], err = plain(member, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			e, err := plain(it.Next(), depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		return out, nil
	}
	// Timestamps, durations and types have a text of their own.
	if s, ok := v.ConvertToType(types.StringType).(types.String); ok {
		return string(s), nil
	}
	return nil, fmt.Errorf("its value, a %s, has no form in JSON", typeName(v))
}

func typeName(v ref.Val) string {
	if v == nil || v.Type() == nil {
		return "value of no type"
	}
	return v.Type().TypeName()
}

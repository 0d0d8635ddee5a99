package where

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/sajou-dev/sajou-go/signal"
)

// exactValue returns a signal's value. Objects and lists are decoded when they are
// read.
func (m *meter) exactValue(v signal.Value) ref.Val {
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
		m.build(sizeList)
		return &list{m: m, exact: v}
	case signal.KindObject:
		return m.object(&exactMembers{m: m, value: v})
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
func (m *meter) plainValue(v any) ref.Val {
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
		m.build(sizeList)
		return &list{m: m, view: v}
	case map[string]any:
		return m.object(viewMembers(v))
	case Members:
		return m.object(stateMembers{v})
	case ref.Val:
		return v
	}
	return types.NewErr("a %T in a view has no value in expressions", v)
}

// members is the source of an [object].
type members interface {
	size() int
	names() []string // in a deterministic order
	member(m *meter, name string) (ref.Val, bool)
}

// exactMembers are the members of a signal's object. The first few reads scan the
// bytes; then an index is built, so that reading all members takes linear time.
type exactMembers struct {
	m       *meter
	value   signal.Value
	scanned int // bytes read by scans for members
	index   map[string]signal.Value
	order   []string
}

// size bounds the declared count by the number of bytes.
func (e *exactMembers) size() int { return min(e.value.Len(), len(e.value)) }

func (e *exactMembers) names() []string {
	e.makeIndex()
	return e.order
}

func (e *exactMembers) makeIndex() {
	if e.index != nil || !e.m.text(len(e.value)) {
		return
	}
	e.index = make(map[string]signal.Value, min(e.size(), len(e.value)/2))
	for name, v := range e.value.Members() {
		if !e.m.step(1) || !e.m.build(sizeEntry) {
			return
		}
		// The first of two members of one name counts, as in [signal.Value.Get].
		if _, twice := e.index[name]; !twice {
			e.index[name] = v
			e.order = append(e.order, name)
		}
	}
}

func (e *exactMembers) member(m *meter, name string) (ref.Val, bool) {
	if e.index == nil && e.scanned > 4*len(e.value) {
		e.makeIndex()
	}
	if e.index == nil {
		read := 0
		for n, v := range e.value.Members() {
			read += len(n) + len(v)
			if n == name {
				e.scanned += read
				m.text(read)
				return m.exactValue(v), true
			}
		}
		e.scanned += read + 1
		m.text(read)
		return nil, false
	}
	v, ok := e.index[name]
	if !ok {
		return nil, false
	}
	return m.exactValue(v), true
}

// viewMembers are those of a view's object.
type viewMembers map[string]any

func (v viewMembers) size() int       { return len(v) }
func (v viewMembers) names() []string { return slices.Sorted(maps.Keys(v)) }

func (v viewMembers) member(m *meter, name string) (ref.Val, bool) {
	one, ok := v[name]
	if !ok {
		return nil, false
	}
	return m.plainValue(one), true
}

// oneMember is an object of one member.
type oneMember struct {
	name  string
	value signal.Value
}

func (o oneMember) size() int       { return 1 }
func (o oneMember) names() []string { return []string{o.name} }

func (o oneMember) member(m *meter, name string) (ref.Val, bool) {
	if name != o.name {
		return nil, false
	}
	return m.exactValue(o.value), true
}

// entryShown is the variable entry as an object.
type entryShown struct{ of *entryVars }

func (e entryShown) size() int { return len(e.names()) }

func (e entryShown) names() []string {
	var names []string
	for _, name := range entryNames {
		if _, ok := e.member(nil, name); ok {
			names = append(names, name)
		}
	}
	return names
}

func (e entryShown) member(_ *meter, name string) (ref.Val, bool) {
	read, ok := entryMembers[name]
	if !ok || e.of.empty() {
		return nil, false
	}
	v := read.get(e.of)
	return v, v != nil
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

func (s stateShown) member(_ *meter, name string) (ref.Val, bool) {
	var v ref.Val
	switch {
	case s.of.empty():
	case name == "seq":
		v = s.of.seq()
	case name == "at":
		v = s.of.at()
	default:
		if i := slices.Index(s.of.names, name); i >= 0 {
			v = s.of.projection(i)
		}
	}
	return v, v != nil
}

// object is a JSON object as a CEL map that is read member by member. It keeps the
// lists and objects in it, so that their indexes are built only once.
type object struct {
	m       *meter
	members members
	sorted  []string
	inside  map[string]ref.Val
}

var (
	_ traits.Mapper = (*object)(nil)
	_ traits.Zeroer = (*object)(nil)
)

func (m *meter) object(of members) *object {
	m.build(sizeObject)
	return &object{m: m, members: of}
}

// names returns the names of the members and requests the steps for it.
func (o *object) names() []string {
	if o.sorted == nil {
		n := o.members.size()
		if !o.m.step(n) || !o.m.build(n*sizeText) {
			return nil
		}
		o.sorted = o.members.names()
	}
	return o.sorted
}

// find returns one member.
func (o *object) find(name string) (ref.Val, bool) {
	if v, ok := o.inside[name]; ok {
		return v, true
	}
	if !o.m.text(len(name)) {
		return nil, false
	}
	v, ok := o.members.member(o.m, name)
	if !ok {
		return nil, false
	}
	switch v.(type) {
	case *list, *object:
		if !o.m.build(sizeEntry) {
			return nil, false
		}
		if o.inside == nil {
			o.inside = map[string]ref.Val{}
		}
		o.inside[name] = v
	}
	return v, true
}

// Find implements [traits.Mapper].
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false // JSON has no other keys
	}
	return o.find(string(name))
}

// Get implements [traits.Indexer].
func (o *object) Get(key ref.Val) ref.Val {
	if v, ok := o.Find(key); ok {
		return v
	}
	return missing
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
func (o *object) Iterator() traits.Iterator { return o.keys().Iterator() }

// keys returns the names as a list.
func (o *object) keys() *list {
	names := o.names()
	if !o.m.build(sizeList + len(names)*(sizeRef+sizeText)) {
		return &list{m: o.m}
	}
	keys := make([]ref.Val, len(names))
	for i, name := range names {
		keys[i] = types.String(name)
	}
	return &list{m: o.m, made: keys}
}

// ConvertToNative implements [ref.Val].
func (o *object) ConvertToNative(reflect.Type) (any, error) { return nil, errNoNative }

// ConvertToType implements [ref.Val].
func (o *object) ConvertToType(t ref.Type) ref.Val { return convertAggregate(o, types.MapType, t) }

// Equal implements [ref.Val].
func (o *object) Equal(other ref.Val) ref.Val { return o.m.equal(o, other) }

// Type implements [ref.Val].
func (o *object) Type() ref.Type { return types.MapType }

// Value implements [ref.Val].
func (o *object) Value() any { return o }

var errNoNative = errors.New("a value of an expression has no form in Go")

func convertAggregate(v ref.Val, is, to ref.Type) ref.Val {
	switch to {
	case is:
		return v
	case types.TypeType:
		if t, ok := is.(ref.Val); ok {
			return t
		}
	}
	return types.NewErr("type conversion error from '%s' to '%s'", is.TypeName(), to.TypeName())
}

// dict is a map built by an expression: {"a": 1}. Its keys keep their order.
type dict struct {
	m      *meter
	order  []ref.Val
	values map[ref.Val]ref.Val // by tableKey of the key
}

var (
	_ traits.Mapper = (*dict)(nil)
	_ traits.Zeroer = (*dict)(nil)
)

// tableKey returns the normal form of a key, so that 1, 1u and 1.0 are one key; ok is
// false for a value that cannot be a key.
func tableKey(key ref.Val) (_ ref.Val, ok bool) {
	switch k := key.(type) {
	case types.Bool, types.Int, types.String:
		return k, true
	case types.Uint:
		if k <= math.MaxInt64 {
			return types.Int(k), true
		}
		return k, true
	case types.Double:
		f := float64(k)
		switch {
		case f != math.Trunc(f):
			return k, f == f
		case f >= -1<<63 && f < 1<<63:
			return types.Int(f), true
		case f > 0 && f < 1<<64:
			return types.Uint(f), true
		}
		return k, true
	}
	return nil, false
}

// Find implements [traits.Mapper].
func (d *dict) Find(key ref.Val) (ref.Val, bool) {
	if s, ok := key.(types.String); ok && !d.m.text(len(s)) {
		return nil, false
	}
	k, ok := tableKey(key)
	if !ok {
		return nil, false
	}
	v, ok := d.values[k]
	return v, ok
}

// Get implements [traits.Indexer].
func (d *dict) Get(key ref.Val) ref.Val {
	if v, ok := d.Find(key); ok {
		return v
	}
	return missing
}

// Contains implements [traits.Container].
func (d *dict) Contains(key ref.Val) ref.Val {
	_, ok := d.Find(key)
	return types.Bool(ok)
}

// Size implements [traits.Sizer].
func (d *dict) Size() ref.Val { return types.Int(len(d.order)) }

// IsZeroValue implements [traits.Zeroer].
func (d *dict) IsZeroValue() bool { return len(d.order) == 0 }

// Iterator implements [traits.Iterable].
func (d *dict) Iterator() traits.Iterator { return d.keys().Iterator() }

func (d *dict) keys() *list { return &list{m: d.m, made: d.order} }

// ConvertToNative implements [ref.Val].
func (d *dict) ConvertToNative(reflect.Type) (any, error) { return nil, errNoNative }

// ConvertToType implements [ref.Val].
func (d *dict) ConvertToType(t ref.Type) ref.Val { return convertAggregate(d, types.MapType, t) }

// Equal implements [ref.Val].
func (d *dict) Equal(other ref.Val) ref.Val { return d.m.equal(d, other) }

// Type implements [ref.Val].
func (d *dict) Type() ref.Type { return types.MapType }

// Value implements [ref.Val].
func (d *dict) Value() any { return d }

// list is every list that an expression meets. Exactly one of its three forms
// is set, or none if it is empty.
type list struct {
	m     *meter
	made  []ref.Val    // built by the expression, or read from exact
	exact signal.Value // a signal's array whose elements are not read yet
	view  []any        // a view's list
}

var (
	_ traits.Lister = (*list)(nil)
	_ traits.Zeroer = (*list)(nil)
)

func (l *list) len() int {
	switch {
	case l.exact != nil:
		return min(l.exact.Len(), len(l.exact)) // damaged bytes may claim more
	case l.view != nil:
		return len(l.view)
	}
	return len(l.made)
}

// read finds the elements of a signal's array. Bytes that are damaged may have
// fewer of them than they claim.
func (l *list) read() {
	v := l.exact
	if v == nil || !l.m.text(len(v)) || !l.m.step(l.len()) {
		return
	}
	if !l.m.build(l.len() * sizeRef) {
		return
	}
	made := make([]ref.Val, 0, l.len())
	for e := range v.Elements() {
		if e.Kind() > signal.KindBool && !l.m.build(sizeText) {
			break
		}
		made = append(made, l.m.exactValue(e))
	}
	l.made, l.exact = made, nil
}

// elem returns an element; i is in range of len. It is nil where the bytes have
// fewer elements than they claim or the budget is spent.
func (l *list) elem(i int) ref.Val {
	l.read()
	switch {
	case l.view != nil && i < len(l.view):
		return l.m.plainValue(l.view[i])
	case l.view == nil && i < len(l.made):
		return l.made[i]
	}
	return nil
}

// at returns the element that an index names.
func (l *list) at(index ref.Val) (ref.Val, error) {
	i, err := types.GetOrError(index)
	if err != nil {
		return nil, err
	}
	if i >= 0 && i < l.len() {
		if v := l.elem(i); v != nil {
			return v, nil
		}
	}
	return nil, errMissing
}

// Get implements [traits.Indexer].
func (l *list) Get(index ref.Val) ref.Val {
	v, err := l.at(index)
	if err != nil {
		return types.WrapErr(err)
	}
	return v
}

// Add implements [traits.Adder].
func (l *list) Add(other ref.Val) ref.Val { return l.m.add(l, other) }

// Contains implements [traits.Container].
func (l *list) Contains(v ref.Val) ref.Val { return l.m.contains(l, v) }

// Size implements [traits.Sizer].
func (l *list) Size() ref.Val { return types.Int(l.len()) }

// IsZeroValue implements [traits.Zeroer].
func (l *list) IsZeroValue() bool { return l.len() == 0 }

// Iterator implements [traits.Iterable].
func (l *list) Iterator() traits.Iterator {
	l.read()
	return &listIterator{list: l}
}

type listIterator struct {
	ref.Val // nil: CEL requires an iterator to be a value
	list    *list
	next    int
}

// HasNext implements [traits.Iterator].
func (it *listIterator) HasNext() ref.Val { return types.Bool(it.next < it.list.len()) }

// Next implements [traits.Iterator].
func (it *listIterator) Next() ref.Val {
	it.next++
	return it.list.elem(it.next - 1)
}

// ConvertToNative implements [ref.Val].
func (l *list) ConvertToNative(reflect.Type) (any, error) { return nil, errNoNative }

// ConvertToType implements [ref.Val].
func (l *list) ConvertToType(t ref.Type) ref.Val { return convertAggregate(l, types.ListType, t) }

// Equal implements [ref.Val].
func (l *list) Equal(other ref.Val) ref.Val { return l.m.equal(l, other) }

// Type implements [ref.Val].
func (l *list) Type() ref.Type { return types.ListType }

// Value implements [ref.Val].
func (l *list) Value() any { return l }

// plain turns a CEL value into one that JSON can represent. It requests the cost of
// its text from the meter, so a list that holds another list many times costs the
// whole expansion.
func (m *meter) plain(v ref.Val, depth int) (any, error) {
	if depth > signal.MaxDepth {
		return nil, errors.New("its value is nested too deep")
	}
	if !m.step(1) || !m.build(sizeText) {
		return nil, m.err
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
		return fmt.Sprint(float64(v)), nil // JSON cannot represent it as a number
	case types.String:
		if !m.copied(len(v)) {
			return nil, m.err
		}
		return string(v), nil
	case types.Bytes:
		if !m.copied(2 * len(v)) {
			return nil, m.err
		}
		return base64.StdEncoding.EncodeToString(v), nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return m.plain(v.GetValue(), depth+1)
	case *object:
		out := make(map[string]any)
		for _, name := range v.names() {
			member, ok := v.find(name)
			if !ok {
				continue
			}
			if err := m.plainMember(out, name, member, depth); err != nil {
				return nil, err
			}
		}
		return out, m.err
	case *dict:
		out := make(map[string]any)
		for _, key := range v.order {
			member, _ := v.Find(key)
			name, err := m.plain(key, depth+1)
			if err != nil {
				return nil, err
			}
			if err := m.plainMember(out, fmt.Sprint(name), member, depth); err != nil {
				return nil, err
			}
		}
		return out, m.err
	case *list:
		v.read()
		if !m.build(v.len() * sizeRef) {
			return nil, m.err
		}
		out := make([]any, 0, v.len())
		for i := range v.len() {
			e := v.elem(i)
			if e == nil {
				break
			}
			one, err := m.plain(e, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, m.err
	}
	// Timestamps, durations and types have a text of their own.
	if s, ok := v.ConvertToType(types.StringType).(types.String); ok {
		return string(s), nil
	}
	return nil, fmt.Errorf("its value, a %s, has no form in JSON", typeName(v))
}

func (m *meter) plainMember(out map[string]any, name string, v ref.Val, depth int) error {
	if !m.copied(len(name)) || !m.build(sizeEntry) {
		return m.err
	}
	one, err := m.plain(v, depth+1)
	if err != nil {
		return err
	}
	out[name] = one
	return nil
}

func typeName(v ref.Val) string {
	if v == nil || v.Type() == nil {
		return "value of no type"
	}
	return v.Type().TypeName()
}

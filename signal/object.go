package signal

import (
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// Object is a JSON object under construction: its members in order. The zero
// Object is the empty object and ready for use. [Object.Value] encodes it.
//
// The methods that add a member return the Object, so that calls can be chained:
//
//	signal.NewObject(2).Text("id", id).Int("turn", 3).Value()
//
// Values are kept as they are given, not copied, until Value copies them.
type Object []ObjectMember

// ObjectMember is one member of an [Object].
type ObjectMember struct {
	Name  string
	Value Value
}

// NewObject returns an empty object with room for n members.
func NewObject(n int) *Object {
	o := make(Object, 0, n)
	return &o
}

// ObjectOf returns the members of v, none if v is not an object. The members
// are views of v.
func ObjectOf(v Value) Object {
	o := make(Object, 0, min(v.Len(), len(v)))
	for name, value := range v.Members() {
		o = append(o, ObjectMember{name, value})
	}
	return o
}

// Add appends a member. An absent value adds nothing. The caller gives each
// name once; Set is for a name that may be there already.
func (o *Object) Add(name string, v Value) *Object {
	if v != nil {
		*o = append(*o, ObjectMember{name, v})
	}
	return o
}

// Text appends a member that is a string. The text must be UTF-8.
func (o *Object) Text(name, text string) *Object { return o.Add(name, Text(text)) }

// Int appends a member that is an integer.
func (o *Object) Int(name string, i int64) *Object { return o.Add(name, Int(i).Value()) }

// Uint appends a member that is an integer.
func (o *Object) Uint(name string, u uint64) *Object { return o.Add(name, Uint(u).Value()) }

// Float appends a member that is a double, null if f is not finite.
func (o *Object) Float(name string, f float64) *Object { return o.Add(name, Float(f).Value()) }

// Bool appends a member that is true or false.
func (o *Object) Bool(name string, b bool) *Object { return o.Add(name, Bool(b)) }

// Set gives a member its value: in its place if the object has the member, else
// at the end.
func (o *Object) Set(name string, v Value) *Object {
	for i := range *o {
		if (*o)[i].Name == name {
			(*o)[i].Value = v
			return o
		}
	}
	return o.Add(name, v)
}

// Remove removes a member, if the object has it.
func (o *Object) Remove(name string) {
	*o = slices.DeleteFunc(*o, func(m ObjectMember) bool { return m.Name == name })
}

// Sort orders the members by name.
func (o Object) Sort() {
	byName := func(a, b ObjectMember) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(o, byName) {
		slices.SortFunc(o, byName)
	}
}

// Value encodes the object into bytes of its own.
func (o Object) Value() Value {
	size := 5
	for _, m := range o {
		size += 5 + len(m.Name) + len(m.Value)
	}
	dst := msgp.AppendMapHeader(make([]byte, 0, size), uint32(len(o)))
	for _, m := range o {
		dst = append(msgp.AppendString(dst, m.Name), m.Value...)
	}
	return dst
}

// Null returns the value null.
func Null() Value { return Value{0xc0} }

// Text returns a string value. The text must be UTF-8.
func Text(text string) Value { return msgp.AppendString(nil, text) }

// Bool returns the value true or false.
func Bool(b bool) Value { return msgp.AppendBool(nil, b) }

// Array returns an array of values.
func Array(elements ...Value) Value {
	size := 5
	for _, e := range elements {
		size += len(e)
	}
	dst := msgp.AppendArrayHeader(make([]byte, 0, size), uint32(len(elements)))
	for _, e := range elements {
		dst = append(dst, e...)
	}
	return dst
}

// Record is one decision of a pure core, of the agents' world or of the director: a
// word that names the kind of decision, and its members as an object. An entry of
// the log keeps it as the array [Word, Value], and the core that decided it applies
// it from there again. The package of each core defines its words.
type Record struct {
	Word  string
	Value Value
}

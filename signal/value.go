package signal

import (
	"iter"
	"math"
	"strings"
	"unsafe"
)

// MaxDepth bounds how deep arrays and objects may stand inside each other.
// A scalar has depth 0, an empty array depth 1. The bound keeps every
// recursive reader of values, here and elsewhere, within a small stack.
const MaxDepth = 512

// Value is one JSON value kept exactly, as msgpack bytes. The nil Value is
// the absent one, which is not the same as JSON's null.
//
// A Value is immutable: the strings, members and elements that its methods return
// are views of the same bytes. Values come from [ParseValue] and [CheckValue], and
// as parts of such values. The methods do not panic on other bytes, and treat a
// malformed part as absent.
type Value []byte

// ValueKind is the kind of a [Value].
type ValueKind uint8

// The kinds of value. The three kinds of number differ in how they are kept:
// an integer literal that fits an int64 is [KindInt], a greater one that fits a
// uint64 is [KindUint], and a literal with a fraction or an exponent is [KindFloat].
const (
	KindAbsent ValueKind = iota
	KindNull
	KindBool
	KindInt
	KindUint
	KindFloat
	KindString
	KindArray
	KindObject
)

var kindNames = [...]string{"absent", "null", "boolean", "integer", "integer", "number", "string", "array", "object"}

// String returns JSON's name for the kind; both integer kinds are "integer",
// and a float is "number".
func (k ValueKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// IsNumber reports whether k is one of the three kinds of number.
func (k ValueKind) IsNumber() bool { return k >= KindInt && k <= KindFloat }

// Kind returns the kind of v, KindAbsent for malformed bytes.
func (v Value) Kind() ValueKind {
	k, _, size := readHead(v)
	if size == 0 {
		return KindAbsent
	}
	return k
}

// Text returns the text of a string value. It is a view of v.
func (v Value) Text() (string, bool) {
	k, n, size := readHead(v)
	if size == 0 || k != KindString || n > uint64(len(v)-size) {
		return "", false
	}
	return view(v[size : size+int(n)]), true
}

// Bool returns the truth of a boolean value; ok is false for any other value.
func (v Value) Bool() (b, ok bool) {
	k, n, size := readHead(v)
	return n == 1 && k == KindBool, size != 0 && k == KindBool
}

// Int64 returns a number whose value is an int64: an integer that fits, not a
// float, even a whole one.
func (v Value) Int64() (int64, bool) {
	k, n, size := readHead(v)
	if size == 0 || k != KindInt {
		return 0, false
	}
	return int64(n), true
}

// Float64 returns the double nearest to a number of any kind.
func (v Value) Float64() (float64, bool) {
	n, ok := v.Number()
	return n.Float64(), ok
}

// Number returns a number of any kind, exactly.
func (v Value) Number() (Number, bool) {
	k, n, size := readHead(v)
	if size == 0 || !k.IsNumber() {
		return Number{}, false
	}
	if k == KindFloat && !finite(n) {
		return Number{}, false
	}
	return Number{k, n}, true
}

// Len returns the number of elements of an array, of members of an object,
// of bytes of a string; 0 for anything else. For malformed bytes it returns the
// length that their head claims.
func (v Value) Len() int {
	k, n, size := readHead(v)
	if size == 0 || k < KindString {
		return 0
	}
	return int(n)
}

// Get returns one member of an object.
func (v Value) Get(key string) (Value, bool) {
	k, n, i := readHead(v)
	if i == 0 || k != KindObject {
		return nil, false
	}
	for ; n > 0; n-- {
		name, size := readText(v[i:])
		if size == 0 {
			return nil, false
		}
		i += size
		size = extent(v[i:])
		if size == 0 {
			return nil, false
		}
		if name == key {
			return v[i : i+size : i+size], true
		}
		i += size
	}
	return nil, false
}

// Member returns one member of an object, the absent value if v has none of
// that name. It is [Value.Get] for use in an expression:
//
//	id, ok := v.Member("id").Text()
func (v Value) Member(name string) Value {
	member, _ := v.Get(name)
	return member
}

// TextOf returns the text of a member that is a string, "" if v has none of
// that name. It is a view of v.
func (v Value) TextOf(name string) string {
	text, _ := v.Member(name).Text()
	return text
}

// IntOf returns a member that is an integer in the sense of [Value.Int64], 0 if
// v has none of that name.
func (v Value) IntOf(name string) int64 {
	i, _ := v.Member(name).Int64()
	return i
}

// BoolOf reports whether v has a member of that name that is true.
func (v Value) BoolOf(name string) bool {
	b, _ := v.Member(name).Bool()
	return b
}

// Lookup follows a dotted path: through objects by key, through arrays by
// index written in decimal ("list.0"). Nothing is found through a scalar or null.
// The path has no escapes, so a key with a dot in it cannot be reached.
func (v Value) Lookup(path string) (Value, bool) {
	for {
		name, rest, more := strings.Cut(path, ".")
		var ok bool
		if v.Kind() == KindArray {
			v, ok = v.element(name)
		} else {
			v, ok = v.Get(name)
		}
		if !ok || !more {
			return v, ok
		}
		path = rest
	}
}

// element returns the element of an array whose index is written as text:
// decimal, without sign or leading zeros.
func (v Value) element(text string) (Value, bool) {
	if text == "" || len(text) > 10 || text[0] == '0' && len(text) > 1 {
		return nil, false
	}
	index := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return nil, false
		}
		index = index*10 + int(c-'0')
	}
	for e := range v.Elements() {
		if index == 0 {
			return e, true
		}
		index--
	}
	return nil, false
}

// Members yields the members of an object in their order, none if v is not an
// object. Names are views of v.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		k, n, i := readHead(v)
		if i == 0 || k != KindObject {
			return
		}
		for ; n > 0; n-- {
			name, size := readText(v[i:])
			if size == 0 {
				return
			}
			i += size
			size = extent(v[i:])
			if size == 0 || !yield(name, v[i:i+size:i+size]) {
				return
			}
			i += size
		}
	}
}

// Elements yields the elements of an array, none if v is not an array.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		k, n, i := readHead(v)
		if i == 0 || k != KindArray {
			return
		}
		for ; n > 0; n-- {
			size := extent(v[i:])
			if size == 0 || !yield(v[i:i+size:i+size]) {
				return
			}
			i += size
		}
	}
}

// Any returns v as Go values: nil (for null and for the absent value), bool,
// int64, uint64 (only beyond int64), float64, string, []any, map[string]any.
// Strings are views of v.
func (v Value) Any() any {
	out, _ := anyValue(v, 0)
	return out
}

// anyValue decodes the value at the front of b and returns its size, 0 if it
// is malformed or nested deeper than MaxDepth.
func anyValue(b []byte, depth int) (any, int) {
	k, n, i := readHead(b)
	if i == 0 {
		return nil, 0
	}
	switch k {
	case KindBool:
		return n == 1, i
	case KindInt:
		return int64(n), i
	case KindUint:
		return n, i
	case KindFloat:
		return math.Float64frombits(n), i
	case KindString:
		s, size := readText(b)
		if size == 0 {
			return nil, 0
		}
		return s, size
	case KindArray:
		// A malformed count may claim more than there are bytes.
		if depth == MaxDepth || n > uint64(len(b)-i) {
			return nil, 0
		}
		list := []any{}
		for ; n > 0; n-- {
			e, size := anyValue(b[i:], depth+1)
			if size == 0 {
				return nil, 0
			}
			list = append(list, e)
			i += size
		}
		return list, i
	case KindObject:
		if depth == MaxDepth || n > uint64(len(b)-i)/2 {
			return nil, 0
		}
		object := map[string]any{}
		for ; n > 0; n-- {
			name, size := readText(b[i:])
			if size == 0 {
				return nil, 0
			}
			i += size
			e, size := anyValue(b[i:], depth+1)
			if size == 0 {
				return nil, 0
			}
			object[name] = e
			i += size
		}
		return object, i
	default:
		return nil, i
	}
}

// view returns b as a string without copying. The bytes under a Value or an
// entry are never written to, so the string cannot change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

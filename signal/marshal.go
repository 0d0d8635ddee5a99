package signal

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
)

// ValueError is the error of [Marshal] and [Value.Decode]: the reason why a part
// cannot be kept as a value or stored in a Go variable, and its path.
type ValueError struct {
	Path string // JSON pointer from the whole; "" for the whole
	Err  error
}

func (e *ValueError) Error() string {
	if e.Path == "" {
		return "signal: " + e.Err.Error()
	}
	return "signal: " + e.Path + ": " + e.Err.Error()
}
func (e *ValueError) Unwrap() error { return e.Err }

// Marshal returns a Go value as a Value, for payloads that a program has as typed
// data. It reads the struct tags of [encoding/json] and calls the methods that
// encoding/json calls: whenever Marshal and [json.Marshal] both accept v, the
// result equals [ParseValue] of the JSON text. An integer that a Go program keeps
// as an int is therefore an integer, and so is a float64 that is whole.
//
// Marshal refuses with a [*ValueError] values that JSON does not have (channels,
// functions, complex numbers, NaN and the infinities, maps with other keys than
// strings, integers and text) and values that a Value does not keep: text that is not
// UTF-8, equal keys in one object, nesting beyond [MaxDepth], and so every cycle.
// A float64 that is whole and beyond 64 bits is kept as a double, though ParseValue
// refuses its JSON text.
func Marshal(v any) (Value, error) {
	var e encoder
	e.out = msgpack.NewEncoder(&e.buf)
	if err := e.value(reflect.ValueOf(v), 0); err != nil {
		return nil, &ValueError{jsonpointer.Join(e.path), err}
	}
	b := e.buf.Bytes()
	if len(b) > maxText {
		return nil, &ValueError{"", errors.New("a value of more than 1 GiB")}
	}
	return b[:len(b):len(b)], nil
}

// encoder walks over a Go value. The bytes in buf and path belong together: when
// a call fails, path leads to the value that failed.
type encoder struct {
	buf  bytes.Buffer
	out  *msgpack.Encoder // into buf, without a buffer between
	path []string

	fields fieldCache
}

// at encodes a member or element.
func (e *encoder) at(name string, v reflect.Value, depth int) error {
	e.path = append(e.path, name)
	err := e.value(v, depth)
	if err == nil {
		e.path = e.path[:len(e.path)-1]
	}
	return err
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	numberType      = reflect.TypeFor[json.Number]()
)

// value encodes v, which stands within depth arrays and objects.
func (e *encoder) value(v reflect.Value, depth int) error {
	// Pointers and interfaces open no level, but may form a cycle too.
	for hops := 0; ; hops++ {
		switch {
		case !v.IsValid():
			return e.out.EncodeNil()
		case hops > MaxDepth:
			return errTooDeep
		case v.CanAddr() && v.CanInterface() && v.Kind() != reflect.Pointer && hasMethod(v.Addr().Type()):
			return e.byJSON(v.Addr().Interface(), depth)
		case v.CanInterface() && (hasMethod(v.Type()) || v.Type() == numberType):
			return e.byJSON(v.Interface(), depth)
		case v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface:
			return e.plain(v, depth)
		}
		v = v.Elem()
	}
}

func hasMethod(t reflect.Type) bool {
	return t.Implements(jsonMarshaler) || t.Implements(textMarshaler)
}

var errTooDeep = fmt.Errorf("nested deeper than %d levels", MaxDepth)

// byJSON encodes, by its JSON text, a value whose type has its own rules in
// encoding/json.
func (e *encoder) byJSON(v any, depth int) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.parsed(text, depth)
}

// parsed encodes a JSON text.
func (e *encoder) parsed(text []byte, depth int) error {
	v, err := ParseValue(text)
	if err != nil {
		return err
	}
	if _, err := checkAt(v, 0, MaxDepth-depth); err != nil {
		return errTooDeep // ParseValue would have refused anything else
	}
	e.buf.Write(v)
	return nil
}

// plain encodes a value whose type has no methods that encode it.
func (e *encoder) plain(v reflect.Value, depth int) error {
	switch v.Kind() {
	case reflect.Bool:
		return e.out.EncodeBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return e.integer(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if u := v.Uint(); u > math.MaxInt64 {
			return e.out.EncodeUint64(u)
		}
		return e.integer(int64(v.Uint()))
	case reflect.Float32, reflect.Float64:
		return e.float(v, depth)
	case reflect.String:
		return e.text(v.String())
	case reflect.Slice:
		if v.IsNil() {
			return e.out.EncodeNil()
		}
		if isBytes(v.Type()) {
			return e.byJSON(v.Bytes(), depth) // in base64
		}
		return e.array(v, depth)
	case reflect.Array:
		return e.array(v, depth)
	case reflect.Map:
		return e.object(v, depth)
	case reflect.Struct:
		return e.structure(v, depth)
	default:
		return fmt.Errorf("a %v has no JSON form", v.Type())
	}
}

// isBytes reports whether encoding/json writes a slice in base64.
func isBytes(t reflect.Type) bool {
	return t.Elem().Kind() == reflect.Uint8 && !hasMethod(reflect.PointerTo(t.Elem()))
}

// integer encodes i in the form that the rest of the package writes. EncodeInt
// would take the unsigned forms for positive numbers.
func (e *encoder) integer(i int64) error {
	switch {
	case i >= -32 && i <= math.MaxInt8:
		return e.out.EncodeInt(i)
	case i == int64(int8(i)):
		return e.out.EncodeInt8(int8(i))
	case i == int64(int16(i)):
		return e.out.EncodeInt16(int16(i))
	case i == int64(int32(i)):
		return e.out.EncodeInt32(int32(i))
	default:
		return e.out.EncodeInt64(i)
	}
}

// float encodes the number that encoding/json writes: the shortest decimal, an
// integer where that is whole.
func (e *encoder) float(v reflect.Value, depth int) error {
	f := v.Float()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("%v is not a JSON number", f)
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return err
	}
	if f == math.Trunc(f) && math.Abs(f) >= 1<<63 {
		if _, err := strconv.ParseUint(string(text), 10, 64); err != nil {
			// As an integer it would not fit. The decimal of a float32 is
			// another double than the float32.
			if f, err = strconv.ParseFloat(string(text), 64); err != nil {
				return err
			}
			return e.out.EncodeFloat64(f)
		}
	}
	return e.parsed(text, depth)
}

var errNotUTF8 = errors.New("a string that is not UTF-8")

func (e *encoder) text(s string) error {
	if !utf8.ValidString(s) {
		return errNotUTF8
	}
	return e.out.EncodeString(s)
}

func (e *encoder) array(v reflect.Value, depth int) error {
	if depth == MaxDepth {
		return errTooDeep
	}
	if err := e.out.EncodeArrayLen(v.Len()); err != nil {
		return err
	}
	for i := range v.Len() {
		if err := e.at(strconv.Itoa(i), v.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// object encodes a map, with its keys in order.
func (e *encoder) object(v reflect.Value, depth int) error {
	switch k := v.Type().Key(); k.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
	default:
		if !k.Implements(textMarshaler) {
			return fmt.Errorf("a map with keys of type %v has no JSON form", k)
		}
	}
	if v.IsNil() {
		return e.out.EncodeNil()
	}
	if depth == MaxDepth {
		return errTooDeep
	}
	type member struct {
		name  string
		value reflect.Value
	}
	members := make([]member, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		name, err := keyText(it.Key())
		if err != nil {
			return err
		}
		members = append(members, member{name, it.Value()})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	if err := e.out.EncodeMapLen(len(members)); err != nil {
		return err
	}
	for i, m := range members {
		if i > 0 && m.name == members[i-1].name {
			return fmt.Errorf("the key %q stands twice in one object", clip(m.name))
		}
		if err := e.text(m.name); err != nil {
			return err
		}
		if err := e.at(m.name, m.value, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// keyText returns the name that encoding/json gives a key of a map.
func keyText(k reflect.Value) (string, error) {
	if k.Kind() == reflect.String {
		return k.String(), nil
	}
	if m, ok := k.Interface().(encoding.TextMarshaler); ok {
		if k.Kind() == reflect.Pointer && k.IsNil() {
			return "", nil
		}
		text, err := m.MarshalText()
		return string(text), err
	}
	if k.CanInt() {
		return strconv.FormatInt(k.Int(), 10), nil
	}
	return strconv.FormatUint(k.Uint(), 10), nil
}

func (e *encoder) structure(v reflect.Value, depth int) error {
	if depth == MaxDepth {
		return errTooDeep
	}
	type member struct {
		field *field
		value reflect.Value
	}
	var members []member
	for _, f := range e.fields.of(v.Type()) {
		if value, ok := f.in(v); ok && !(f.omitEmpty && isEmpty(value)) && !(f.omitZero && isZero(value)) {
			members = append(members, member{f, value})
		}
	}
	if err := e.out.EncodeMapLen(len(members)); err != nil {
		return err
	}
	for _, m := range members {
		if err := e.text(m.field.name); err != nil {
			return err
		}
		if m.field.quoted {
			e.path = append(e.path, m.field.name)
			box := m.field.box(m.value)
			text, err := json.Marshal(box.Interface())
			if err != nil {
				return err
			}
			boxed, err := ParseValue(text)
			if err != nil {
				return err
			}
			e.buf.Write(boxed.Member(boxName))
			e.path = e.path[:len(e.path)-1]
			continue
		}
		if err := e.at(m.field.name, m.value, depth+1); err != nil {
			return err
		}
	}
	return nil
}

package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
)

// Decode stores v in the variable that out points to, by the rules of
// [json.Unmarshal]: the result is that of json.Unmarshal with v's JSON text, struct
// tags, names in another case and null included. Strings are copied, so that
// nothing in the variable is a view of v.
//
// Decode checks v as [CheckValue] does before it reads it, so v may be bytes of
// unknown origin. If a part does not fit the variable, the error is a
// [*ValueError], and the variable is then partly set.
func (v Value) Decode(out any) error {
	target := reflect.ValueOf(out)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return &ValueError{"", fmt.Errorf("decode into a %T, which is not a pointer to a variable", out)}
	}
	// The msgpack library allocates as much as lengths claim, so it reads only
	// checked bytes.
	checked, rest, err := CheckValue(v)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return corrupt(len(checked), "something after the end of the value")
	}
	d := decoder{data: checked, rest: bytes.NewReader(checked)}
	d.in = msgpack.NewDecoder(d.rest)
	if err := d.value(target); err != nil {
		return &ValueError{jsonpointer.Join(d.path), err}
	}
	return nil
}

// decoder reads checked bytes. A bytes.Reader is read without a buffer between, so
// rest is always at the value that comes next. When a call fails, path leads to
// the value that failed.
type decoder struct {
	data []byte
	rest *bytes.Reader
	in   *msgpack.Decoder // from rest
	path []string

	fields fieldCache
}

// next returns the values that are still to be read, the next one first.
func (d *decoder) next() Value { return d.data[len(d.data)-d.rest.Len():] }

// at decodes a member or element.
func (d *decoder) at(name string, v reflect.Value) error {
	d.path = append(d.path, name)
	err := d.value(v)
	if err == nil {
		d.path = d.path[:len(d.path)-1]
	}
	return err
}

// take passes the next value and returns it.
func (d *decoder) take() (Value, error) {
	raw, err := d.in.DecodeRaw()
	return Value(raw), err
}

// value decodes the next value into v, which can be set or is a pointer.
func (d *decoder) value(v reflect.Value) error {
	for hops := 0; ; hops++ {
		null := d.next().Kind() == KindNull
		switch {
		case hops > MaxDepth:
			return errors.New("a pointer that leads to itself")
		case v.Kind() == reflect.Pointer && null && v.CanSet():
			v.SetZero()
			return d.in.DecodeNil()
		case v.CanAddr() && v.CanInterface() && v.Kind() != reflect.Pointer && decodesItself(v.Addr().Type()):
			return d.byJSON(v.Addr())
		case v.Kind() != reflect.Pointer:
			return d.plain(v)
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
}

// decodesItself reports whether encoding/json calls a method of a pointer type.
func decodesItself(t reflect.Type) bool {
	return t.Implements(jsonUnmarshaler) || t.Implements(textUnmarshaler)
}

// byJSON decodes, by its JSON text, into a type that has its own rules in
// encoding/json.
func (d *decoder) byJSON(pointer reflect.Value) error {
	v, err := d.take()
	if err != nil {
		return err
	}
	return json.Unmarshal(v.AppendJSON(nil), pointer.Interface())
}

// plain decodes into a value whose type has no methods that decode it.
func (d *decoder) plain(v reflect.Value) error {
	kind := d.next().Kind()
	if kind == KindNull {
		switch v.Kind() {
		case reflect.Interface, reflect.Map, reflect.Slice:
			v.SetZero()
		default: // stays as it is
		}
		return d.in.DecodeNil()
	}
	switch v.Kind() {
	case reflect.Bool:
		if kind != KindBool {
			return d.misfit(v)
		}
		b, err := d.in.DecodeBool()
		v.SetBool(b)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if kind != KindInt {
			return d.misfit(v)
		}
		i, err := d.in.DecodeInt64()
		if v.OverflowInt(i) {
			return fmt.Errorf("%d does not fit %v", i, v.Type())
		}
		v.SetInt(i)
		return err
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if i, isInt := d.next().Int64(); kind != KindUint && (!isInt || i < 0) {
			return d.misfit(v)
		}
		u, err := d.in.DecodeUint64()
		if v.OverflowUint(u) {
			return fmt.Errorf("%d does not fit %v", u, v.Type())
		}
		v.SetUint(u)
		return err
	case reflect.Float32, reflect.Float64:
		return d.float(v)
	case reflect.String:
		if v.Type() == numberType {
			return d.byJSON(v.Addr())
		}
		if kind != KindString {
			return d.misfit(v)
		}
		s, err := d.in.DecodeString()
		v.SetString(s)
		return err
	case reflect.Slice:
		if kind == KindString && v.Type().Elem().Kind() == reflect.Uint8 {
			return d.byJSON(v.Addr()) // base64
		}
		return d.array(v)
	case reflect.Array:
		return d.array(v)
	case reflect.Map:
		return d.object(v)
	case reflect.Struct:
		return d.structure(v)
	case reflect.Interface:
		return d.byJSON(v.Addr())
	default:
		return d.misfit(v)
	}
}

func (d *decoder) misfit(v reflect.Value) error {
	return fmt.Errorf("%s does not fit %v", d.next().Kind().WithArticle(), v.Type())
}

// float decodes the JSON text, because the float32 nearest to a decimal may differ
// from the float32 nearest to the double of that decimal.
func (d *decoder) float(v reflect.Value) error {
	raw, err := d.take()
	if err != nil {
		return err
	}
	n, ok := raw.Number()
	if !ok {
		return fmt.Errorf("%s does not fit %v", raw.Kind().WithArticle(), v.Type())
	}
	f, err := strconv.ParseFloat(n.String(), v.Type().Bits())
	if err != nil || v.OverflowFloat(f) {
		return fmt.Errorf("%v does not fit %v", n, v.Type())
	}
	v.SetFloat(f)
	return nil
}

// array decodes into a slice or an array. Like encoding/json it decodes into the
// elements that a slice has room for, and zeroes the rest of an array.
func (d *decoder) array(v reflect.Value) error {
	if d.next().Kind() != KindArray {
		return d.misfit(v)
	}
	n, err := d.in.DecodeArrayLen()
	if err != nil {
		return err
	}
	if v.Kind() == reflect.Slice && n == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return nil
	}
	for i := range n {
		if v.Kind() == reflect.Slice {
			if i >= v.Cap() {
				v.Grow(1)
			}
			if i >= v.Len() {
				v.SetLen(i + 1)
			}
		}
		if i >= v.Len() {
			if err := d.in.Skip(); err != nil { // an array has no more room
				return err
			}
			continue
		}
		if err := d.at(strconv.Itoa(i), v.Index(i)); err != nil {
			return err
		}
	}
	switch {
	case v.Kind() == reflect.Slice:
		v.SetLen(n)
	default:
		for i := n; i < v.Len(); i++ {
			v.Index(i).SetZero()
		}
	}
	return nil
}

// object decodes into a map. One whose keys are not plain strings is decoded by
// JSON.
func (d *decoder) object(v reflect.Value) error {
	if d.next().Kind() != KindObject {
		return d.misfit(v)
	}
	t := v.Type()
	if t.Key().Kind() != reflect.String || decodesItself(reflect.PointerTo(t.Key())) {
		return d.byJSON(v.Addr())
	}
	n, err := d.in.DecodeMapLen()
	if err != nil {
		return err
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	}
	for range n {
		name, err := d.in.DecodeString()
		if err != nil {
			return err
		}
		element := reflect.New(t.Elem()).Elem()
		if err := d.at(name, element); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), element)
	}
	return nil
}

// structure decodes into a struct and skips the members that the struct lacks.
func (d *decoder) structure(v reflect.Value) error {
	if d.next().Kind() != KindObject {
		return d.misfit(v)
	}
	n, err := d.in.DecodeMapLen()
	if err != nil {
		return err
	}
	fields := d.fields.of(v.Type())
	for range n {
		name, err := d.in.DecodeString()
		if err != nil {
			return err
		}
		f := fieldNamed(fields, name)
		if f == nil {
			if err := d.in.Skip(); err != nil {
				return err
			}
			continue
		}
		d.path = append(d.path, name)
		if err := d.member(v, f); err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
	}
	return nil
}

// member decodes the next value into a field of a struct.
func (d *decoder) member(v reflect.Value, f *field) error {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					return fmt.Errorf("an embedded pointer to the type %v, which is not exported, cannot be set", v.Type().Elem())
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if !f.quoted {
		return d.value(v)
	}
	raw, err := d.take()
	if err != nil {
		return err
	}
	box := f.box(v)
	text := append(raw.AppendJSON([]byte(`{"`+boxName+`":`)), '}')
	if err := json.Unmarshal(text, box.Interface()); err != nil {
		return err
	}
	v.Set(box.Elem().Field(0))
	return nil
}

// fieldNamed returns the field of that name, or else the first whose name differs
// from it only in case.
func fieldNamed(fields []*field, name string) *field {
	for _, f := range fields {
		if f.name == name {
			return f
		}
	}
	for _, f := range fields {
		if strings.EqualFold(f.name, name) {
			return f
		}
	}
	return nil
}

package redact

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/signal"
)

// walk is the state of the search of one record.
type walk struct {
	*finder
	nodes int
	bytes int
	path  map[visit]struct{} // the values that contain the current one
}

// visit is an address in memory and the type of its value.
type visit struct {
	at    uintptr
	shape reflect.Type
}

// spend counts one more value; it returns false if the bound is exceeded.
func (w *walk) spend() bool {
	w.nodes++
	return w.nodes <= maxNodes
}

// read counts n more bytes; it returns false if the bound is exceeded.
func (w *walk) read(n int) bool {
	w.bytes += min(n, maxBytes+1)
	return w.bytes <= maxBytes
}

func (w *walk) text(s string, id bool) string {
	if !w.read(min(len(s), w.maxText)) {
		return Cut
	}
	return w.finder.text(s, id)
}

// attr redacts an attribute and reports whether it changed.
func (w *walk) attr(a slog.Attr, depth int) (slog.Attr, bool) {
	v := a.Value.Resolve()
	changed := a.Value.Kind() == slog.KindLogValuer // its LogValue may return another value next time
	out, c := w.logValue(a.Key, v, depth)
	changed = changed || c
	if key := w.text(a.Key, false); key != a.Key {
		a.Key, changed = key, true
	}
	return slog.Attr{Key: a.Key, Value: out}, changed
}

func (w *walk) logValue(name string, v slog.Value, depth int) (slog.Value, bool) {
	if !w.spend() || depth > maxDepth {
		return slog.StringValue(Cut), true
	}
	l := w.level(name)
	switch v.Kind() {
	case slog.KindBool, slog.KindDuration, slog.KindTime:
		return v, false
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64:
		if l == plain || l == token {
			return v, false
		}
		return slog.StringValue(Mark), true
	case slog.KindGroup:
		if l != plain {
			return slog.StringValue(Mark), true
		}
		var attrs []slog.Attr
		changed := false
		for _, a := range v.Group() {
			if w.nodes >= maxNodes {
				attrs, changed = append(attrs, slog.String("cut", Cut)), true
				break
			}
			a, c := w.attr(a, depth+1)
			attrs, changed = append(attrs, a), changed || c
		}
		if !changed {
			return v, false
		}
		return slog.GroupValue(attrs...), true
	case slog.KindString:
		s, changed := w.named(name, l, v.String())
		return slog.StringValue(s), changed
	default:
		out, changed := w.value(name, l, reflect.ValueOf(v.Any()), depth)
		if !changed {
			return v, false
		}
		return slog.AnyValue(out), true
	}
}

// named redacts a text that has a name.
func (w *walk) named(name string, l level, s string) (string, bool) {
	if s == "" || w.marked(s) == len(s) {
		return s, false
	}
	if l > plain && (l != place || postal(s)) && (l != token || strings.Trim(s, "0123456789.,") != "") {
		return Mark, true
	}
	out := w.text(s, w.kept(name))
	return out, out != s
}

// value redacts any value that has a name, which may be "". out is the redacted value
// if it changed; otherwise the value itself is passed on.
func (w *walk) value(name string, l level, v reflect.Value, depth int) (out any, changed bool) {
	if !v.IsValid() {
		return nil, false
	}
	if !w.spend() || depth > maxDepth {
		return Cut, true
	}
	switch v.Kind() {
	case reflect.Bool, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return nil, false
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return nil, false
		}
	default:
	}
	if v.Type() == signalType {
		return w.signal(name, l, signal.Value(v.Bytes()), depth)
	}
	if l != plain && v.Kind() != reflect.Interface && v.Kind() != reflect.Pointer {
		return w.sensitive(name, l, v)
	}
	spoken := false
	if v.CanInterface() {
		switch x := v.Interface().(type) {
		case json.Number:
			return nil, false // its name has been checked
		case json.RawMessage:
			return w.raw(x, depth)
		case slog.Attr:
			a, changed := w.attr(x, depth+1)
			return a, changed
		case []slog.Attr:
			group, changed := w.logValue(name, slog.GroupValue(x...), depth+1)
			return group, changed
		case slog.LogValuer:
			out, _ := w.logValue(name, slog.AnyValue(x).Resolve(), depth+1)
			return out.Any(), true
		default:
			if out, changed := w.forms(name, l, x, depth); changed {
				return out, true
			}
			spoken = speaks(x)
		}
	}
	switch v.Kind() {
	case reflect.String:
		return w.named(name, l, v.String())
	case reflect.Interface:
		return w.value(name, l, v.Elem(), depth)
	case reflect.Pointer, reflect.Map:
		at := visit{v.Pointer(), v.Type()}
		if _, ok := w.path[at]; ok {
			return Cut, true // inside of itself
		}
		if w.path == nil {
			w.path = map[visit]struct{}{}
		}
		w.path[at] = struct{}{}
		defer delete(w.path, at)
		switch {
		case v.Kind() == reflect.Map:
			return w.mapping(v, depth)
		case spoken && v.Elem().Kind() == reflect.Struct && l == plain:
			return w.structure(v.Elem(), true, depth+1)
		default:
			return w.value(name, l, v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		return w.list(name, l, v, depth)
	case reflect.Struct:
		return w.structure(v, spoken, depth)
	default:
		return nil, false // a number
	}
}

var signalType = reflect.TypeFor[signal.Value]()

// sensitive redacts a value whose name is sensitive.
func (w *walk) sensitive(name string, l level, v reflect.Value) (out any, changed bool) {
	switch v.Kind() {
	case reflect.String:
		return w.named(name, l, v.String())
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 {
			return nil, false
		}
	case reflect.Array, reflect.Struct:
	default: // a number
		if l == token {
			return nil, false
		}
	}
	return Mark, true
}

// speaks reports whether a value formats itself, so that its unexported fields are not
// printed.
func speaks(v any) bool {
	switch v.(type) {
	case error, fmt.Stringer, encoding.TextMarshaler, fmt.Formatter:
		return true
	}
	return false
}

// forms redacts a value by the texts of its own methods. The next handler chooses which
// one it prints, so each is searched.
func (w *walk) forms(name string, l level, v any, depth int) (out any, changed bool) {
	check := func(text func() string) bool {
		s, ok := guarded(text)
		if !ok {
			return false // the next handler meets the same failure and reports it
		}
		out, changed = w.named(name, l, s)
		return changed
	}
	if e, ok := v.(error); ok && check(e.Error) {
		return out, changed
	}
	if s, ok := v.(fmt.Stringer); ok && check(s.String) {
		return out, changed
	}
	if t, ok := v.(encoding.TextMarshaler); ok && check(func() string { b, _ := t.MarshalText(); return string(b) }) {
		return out, changed
	}
	if _, ok := v.(fmt.Formatter); ok && check(func() string { return fmt.Sprintf("%+v", v) }) {
		return out, changed
	}
	if m, ok := v.(json.Marshaler); ok {
		if s, ok := guarded(func() string { b, _ := m.MarshalJSON(); return string(b) }); ok && s != "" {
			return w.raw(json.RawMessage(s), depth)
		}
	}
	return nil, false
}

// guarded calls a method of a foreign type; it returns false if the method panicked.
func guarded(text func() string) (s string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return text(), true
}

// raw redacts JSON text.
func (w *walk) raw(b json.RawMessage, depth int) (any, bool) {
	if !w.read(len(b)) {
		return Cut, true
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		s := w.text(string(b), false)
		return s, s != string(b)
	}
	return w.value("", plain, reflect.ValueOf(v), depth+1)
}

// signal redacts a value of a signal or of an effect.
func (w *walk) signal(name string, l level, v signal.Value, depth int) (any, bool) {
	if !w.read(len(v)) {
		return Cut, true
	}
	return w.value(name, l, reflect.ValueOf(v.Any()), depth+1)
}

func (w *walk) mapping(v reflect.Value, depth int) (any, bool) {
	out, changed := map[string]any{}, false
	for i := v.MapRange(); i.Next(); {
		if w.nodes >= maxNodes {
			out["cut"], changed = Cut, true
			break
		}
		key := keyText(i.Key())
		e, c := w.value(key, w.level(key), i.Value(), depth+1)
		if redacted := w.text(key, false); redacted != key {
			key, changed = redacted, true
		}
		out[key], changed = or(e, c, i.Value()), changed || c
	}
	return out, changed
}

// keyText returns a map's key as a text.
func keyText(k reflect.Value) string {
	for k.Kind() == reflect.Interface {
		k = k.Elem()
	}
	switch k.Kind() {
	case reflect.String:
		return k.String()
	case reflect.Bool:
		return strconv.FormatBool(k.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(k.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.FormatUint(k.Uint(), 10)
	default:
		return fmt.Sprint(k) // prints what a Value holds
	}
}

func (w *walk) list(name string, l level, v reflect.Value, depth int) (any, bool) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return w.octets(name, v)
	}
	var out []any
	changed := false
	for i := range v.Len() {
		if w.nodes >= maxNodes {
			out, changed = append(out, Cut), true
			break
		}
		e, c := w.value(name, l, v.Index(i), depth+1)
		out, changed = append(out, or(e, c, v.Index(i))), changed || c
	}
	return out, changed
}

// octets redacts bytes that are a text. With a match they are not passed on, whether
// the next handler prints them as text, numbers or base64.
func (w *walk) octets(name string, v reflect.Value) (any, bool) {
	n := v.Len()
	if !w.read(n) {
		return Cut, true
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(v.Index(i).Uint())
	}
	if !utf8.Valid(b) {
		return nil, false
	}
	s, changed := w.named(name, plain, string(b))
	return s, changed
}

// structure redacts a struct. Some handlers print unexported fields, so these are
// searched too, and left out if there is a match.
func (w *walk) structure(v reflect.Value, spoken bool, depth int) (any, bool) {
	out, changed := map[string]any{}, false
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && spoken {
			continue
		}
		if w.nodes >= maxNodes {
			out["cut"], changed = Cut, true
			break
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		l := max(w.level(f.Name), w.level(tag))
		name := f.Name
		if tag != "" && tag != "-" {
			name = tag
		}
		e, c := w.value(name, l, v.Field(i), depth+1)
		changed = changed || c
		if f.IsExported() && tag != "-" {
			out[name] = or(e, c, v.Field(i))
		}
	}
	return out, changed
}

// or returns the value to pass on for a part: the redacted one, or the original.
func or(out any, changed bool, v reflect.Value) any {
	switch {
	case changed:
		return out
	case !v.IsValid() || !v.CanInterface():
		return nil // below an unexported field, and left out with it
	default:
		return v.Interface()
	}
}

package signal

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is one field of a struct that encoding/json reads and writes.
type field struct {
	name      string
	index     []int // the way to it, through embedded structs
	typ       reflect.Type
	tagged    bool // the name comes from the tag
	omitEmpty bool
	omitZero  bool
	quoted    bool // the option "string": a scalar written as a string
}

// in returns the field of a struct; false if an embedded pointer on the way to it
// is nil.
func (f *field) in(v reflect.Value) (reflect.Value, bool) {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// boxName is the name of the only field of a box.
const boxName = "x"

// box returns a pointer to a new struct with a single field like f, which holds
// v: encoding/json then applies the option "string" as it does in f's struct.
func (f *field) box(v reflect.Value) reflect.Value {
	box := reflect.New(reflect.StructOf([]reflect.StructField{{
		Name: "X", Type: f.typ, Tag: `json:"` + boxName + `,string"`,
	}}))
	box.Elem().Field(0).Set(v)
	return box
}

// fieldCache holds the fields of the struct types of one call.
type fieldCache map[reflect.Type][]*field

func (c *fieldCache) of(t reflect.Type) []*field {
	fields, ok := (*c)[t]
	if !ok {
		if *c == nil {
			*c = fieldCache{}
		}
		fields = fieldsOf(t)
		(*c)[t] = fields
	}
	return fields
}

// fieldsOf returns the fields of a struct type by the rules of encoding/json: of
// those with the same name the one embedded least deep counts, of several of these
// the only one whose tag gives the name, and otherwise none.
func fieldsOf(t reflect.Type) []*field {
	all := allFields(t)
	slices.SortStableFunc(all, func(a, b *field) int {
		tagFirst := 0
		if a.tagged != b.tagged {
			tagFirst = 1
			if a.tagged {
				tagFirst = -1
			}
		}
		return cmp.Or(strings.Compare(a.name, b.name), len(a.index)-len(b.index), tagFirst, slices.Compare(a.index, b.index))
	})
	var fields []*field
	for i := 0; i < len(all); {
		n := i + 1
		for n < len(all) && all[n].name == all[i].name {
			n++
		}
		if n == i+1 || len(all[i].index) < len(all[i+1].index) || all[i].tagged != all[i+1].tagged {
			fields = append(fields, all[i])
		}
		i = n
	}
	slices.SortFunc(fields, func(a, b *field) int { return slices.Compare(a.index, b.index) })
	return fields
}

// allFields returns the fields of a struct type and of the structs embedded in
// it, level by level. A field of a type that a level embeds several times is
// listed twice, so that it counts for nothing.
func allFields(t reflect.Type) []*field {
	type embedded struct {
		typ   reflect.Type
		index []int
	}
	var fields []*field
	level, times := []embedded{{typ: t}}, map[reflect.Type]int{}
	visited := map[reflect.Type]bool{}
	for len(level) > 0 {
		var next []embedded
		nextTimes := map[reflect.Type]int{}
		for _, s := range level {
			if visited[s.typ] {
				continue
			}
			visited[s.typ] = true
			for i := range s.typ.NumField() {
				sf := s.typ.Field(i)
				f, ok := fieldOf(sf)
				if !ok {
					continue
				}
				f.index = append(slices.Clone(s.index), i)
				direct := sf.Type
				if direct.Name() == "" && direct.Kind() == reflect.Pointer {
					direct = direct.Elem()
				}
				if f.tagged || !sf.Anonymous || direct.Kind() != reflect.Struct {
					fields = append(fields, f)
					if times[s.typ] > 1 {
						fields = append(fields, f)
					}
					continue
				}
				if nextTimes[direct]++; nextTimes[direct] == 1 {
					next = append(next, embedded{direct, f.index})
				}
			}
		}
		level, times = next, nextTimes
	}
	return fields
}

// fieldOf reads the tag of a struct field; false if encoding/json ignores the
// field.
func fieldOf(sf reflect.StructField) (*field, bool) {
	if sf.Anonymous {
		t := sf.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if !sf.IsExported() && t.Kind() != reflect.Struct {
			return nil, false
		}
	} else if !sf.IsExported() {
		return nil, false
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return nil, false
	}
	name, rest, _ := strings.Cut(tag, ",")
	options := strings.Split(rest, ",")
	f := &field{name: sf.Name, typ: sf.Type, omitEmpty: slices.Contains(options, "omitempty"), omitZero: slices.Contains(options, "omitzero")}
	if isName(name) {
		f.name, f.tagged = name, true
	}
	t := sf.Type
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		f.quoted = slices.Contains(options, "string")
	default:
	}
	return f, true
}

// isName reports whether encoding/json takes a tag's text for a name.
func isName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}

// isEmpty reports whether "omitempty" leaves v out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// isZero reports whether "omitzero" leaves v out: a method IsZero decides, if
// there is one.
func isZero(v reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	t := v.Type()
	switch {
	case t.Kind() == reflect.Interface && t.Implements(reflect.TypeFor[zeroer]()):
		if v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
			return true
		}
		return v.Interface().(zeroer).IsZero()
	case t.Kind() == reflect.Pointer && t.Implements(reflect.TypeFor[zeroer]()):
		return v.IsNil() || v.Interface().(zeroer).IsZero()
	case t.Implements(reflect.TypeFor[zeroer]()):
		return v.Interface().(zeroer).IsZero()
	case reflect.PointerTo(t).Implements(reflect.TypeFor[zeroer]()):
		if !v.CanAddr() {
			copied := reflect.New(t).Elem()
			copied.Set(v)
			v = copied
		}
		return v.Addr().Interface().(zeroer).IsZero()
	default:
		return v.IsZero()
	}
}

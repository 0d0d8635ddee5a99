package signal_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
)

// A payload goes in as typed data and comes out as typed data.
func ExampleMarshal() {
	type call struct {
		Tool  string         `json:"toolName"`
		Agent string         `json:"agentId"`
		Input map[string]any `json:"input,omitempty"`
	}
	payload, err := signal.Marshal(call{Tool: "search", Agent: "anna", Input: map[string]any{"limit": 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := signal.Signal{
		ID: "1", Type: "tool_call", Source: "adapter:demo", Timestamp: signal.Int(0), Payload: payload,
	}
	fmt.Println(payload, s.Validate())

	var out call
	if err := s.Payload.Decode(&out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", out)
	// Output:
	// {"toolName":"search","agentId":"anna","input":{"limit":3}} <nil>
	// {Tool:search Agent:anna Input:map[limit:3]}
}

// The types of the properties. Between them they have every rule of encoding/json
// that depends on a type.

type byValue struct{ N int8 }

func (b byValue) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `{"by value": %d}`, b.N), nil }

func (b *byValue) UnmarshalJSON(text []byte) error {
	_, err := fmt.Sscanf(string(text), `{"by value":%d}`, &b.N)
	return err
}

type byPointer struct{ N int8 }

func (b *byPointer) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d]", b.N), nil }

func (b *byPointer) UnmarshalJSON(text []byte) error {
	_, err := fmt.Sscanf(string(text), "[%d]", &b.N)
	return err
}

type textual int8

func (x textual) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "no %d", int8(x)), nil }
func (x *textual) UnmarshalText(text []byte) error {
	return json.Unmarshal(bytes.TrimPrefix(text, []byte("no ")), (*int8)(x))
}

type even int8

func (e even) IsZero() bool { return e%2 == 0 }

type odd int8

func (o *odd) IsZero() bool { return *o%2 != 0 }

type word string

type base struct {
	Base   string
	Shared int `json:"shared"`
}

type Deep struct {
	Shared int `json:"shared"`
	Lower  bool
}

type Twice struct{ Both, Once int }

type Other struct{ Both int }

type tagged struct{ T int }

// Both embed the same type, whose fields then count for nothing.
type (
	embeddedTwice struct{ InBoth int }
	left          struct{ embeddedTwice }
	Right         struct{ embeddedTwice }
)

type all struct {
	base
	*Deep
	Twice
	Other
	tagged   `json:"tagged"`
	Bool     bool    `json:"bool"`
	Int      int     `json:",omitempty"`
	Int8     int8    `json:"-,"`
	Hidden   int     `json:"-"`
	Int16    int16   `json:"bad\"name,omitempty"`
	Int64    int64   `json:"int 64"`
	Uint8    uint8   `json:"uint8,omitzero"`
	Uint64   uint64  `json:",string"`
	Float32  float32 `json:",string,omitempty"`
	Float64  float64
	String   string        `json:"string,string"`
	Plain    word          `json:"Plain"`
	Quoted   *int          `json:",string"`
	Bytes    []byte        `json:",omitempty"`
	Array    [3]int8       `json:",omitempty"`
	Runes    [2]uint8      `json:",omitzero"`
	Slice    []*word       `json:",omitempty"`
	Map      map[word]int  `json:",omitempty"`
	Keys     map[int8]bool `json:",omitzero"`
	Texts    map[textual]int8
	Any      any `json:",omitempty"`
	Pointer  **int8
	Value    byValue
	Values   []byValue
	Point    byPointer
	Points   map[string]byPointer
	Text     textual
	Texted   *textual
	Even     even  `json:",omitzero"`
	Odd      odd   `json:",omitzero"`
	EvenPtr  *even `json:",omitzero"`
	Time     time.Time
	Zero     time.Time `json:",omitzero"`
	Number   json.Number
	Raw      json.RawMessage
	Exact    signal.Value
	Iface    encoding.TextMarshaler
	internal int
	Struct   base `json:",omitempty"`
	Nested   *all `json:",omitempty"`
	left
	Right
}

func pointerTo[T any](g *rapid.Generator[T]) *rapid.Generator[*T] {
	return rapid.Custom(func(t *rapid.T) *T {
		if rapid.Bool().Draw(t, "nil") {
			return nil
		}
		v := g.Draw(t, "value")
		return &v
	})
}

func genText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("aB<&>\"\\\u2028é\x00")), 0, 4, -1))
}

func genFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int32(), func(i int32) float64 { return float64(i) }),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-7, 1e20, 1e21, 1 << 53, 1 << 63, -(1 << 63), 1<<64 - 2048, 0.1, math.MaxFloat64}))
}

// genAny draws what an any can hold, types of this file among it.
func genAny(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		most := 12
		if depth > 0 {
			most = 15
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.Int64().Draw(t, "int64")
		case 3:
			return rapid.Uint64().Draw(t, "uint64")
		case 4:
			return genFloat().Draw(t, "float64")
		case 5:
			return rapid.Float32().Draw(t, "float32")
		case 6:
			return genText().Draw(t, "string")
		case 7:
			return byValue{rapid.Int8().Draw(t, "n")}
		case 8:
			return &byPointer{rapid.Int8().Draw(t, "n")}
		case 9:
			return byPointer{rapid.Int8().Draw(t, "n")}
		case 10:
			return map[textual]*odd{textual(rapid.Int8().Draw(t, "key")): nil}
		case 11:
			return json.Number(rapid.SampledFrom([]string{"", "0", "-1", "1.5", "1e400", "x", "5.0"}).Draw(t, "number"))
		case 12:
			return map[uint16]int8{rapid.Uint16().Draw(t, "key"): 1}
		case 13:
			return rapid.SliceOfN(genAny(depth-1), 0, 3).Draw(t, "list")
		case 14:
			return rapid.MapOfN(genText(), genAny(depth-1), 0, 3).Draw(t, "object")
		default:
			return genAll(depth-1).Draw(t, "all")
		}
	})
}

func genAll(depth int) *rapid.Generator[all] {
	return rapid.Custom(func(t *rapid.T) all {
		small, integer := rapid.Int8(), rapid.Int()
		words := rapid.Map(genText(), func(s string) word { return word(s) })
		a := all{
			base: base{genText().Draw(t, "base"), integer.Draw(t, "shared")}, Twice: Twice{1, 2}, Other: Other{3}, tagged: tagged{integer.Draw(t, "T")},
			Bool: rapid.Bool().Draw(t, "bool"), Int: rapid.SampledFrom([]int{0, 1, -33, 128, 70000}).Draw(t, "int"), Int8: small.Draw(t, "int8"), Hidden: 5,
			Int16: rapid.Int16().Draw(t, "int16"), Int64: rapid.Int64().Draw(t, "int64"), Uint8: rapid.Uint8().Draw(t, "uint8"),
			Uint64: rapid.Uint64().Draw(t, "uint64"), Float32: rapid.Float32().Draw(t, "float32"), Float64: genFloat().Draw(t, "float64"),
			String: genText().Draw(t, "string"), Plain: words.Draw(t, "plain"), Quoted: pointerTo(integer).Draw(t, "quoted"),
			Bytes: rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "bytes"), Array: [3]int8{small.Draw(t, "element")}, Runes: [2]uint8{rapid.Uint8().Draw(t, "rune")},
			Slice: rapid.SliceOfN(pointerTo(words), 0, 3).Draw(t, "slice"), Map: rapid.MapOfN(words, integer, 0, 3).Draw(t, "map"),
			Keys:    rapid.MapOfN(small, rapid.Bool(), 0, 3).Draw(t, "keys"),
			Texts:   rapid.MapOfN(rapid.Map(small, func(i int8) textual { return textual(i) }), small, 0, 3).Draw(t, "texts"),
			Pointer: pointerTo(pointerTo(small)).Draw(t, "pointer"), Value: byValue{small.Draw(t, "value")},
			Values: []byValue{{small.Draw(t, "values")}}, Point: byPointer{small.Draw(t, "point")},
			Points: map[string]byPointer{"p": {small.Draw(t, "points")}}, Text: textual(small.Draw(t, "text")),
			Even: even(small.Draw(t, "even")), Odd: odd(small.Draw(t, "odd")), Time: time.Unix(rapid.Int64Range(-1e9, 1e10).Draw(t, "time"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC(),
			Number: json.Number(rapid.SampledFrom([]string{"", "0", "-12", "1.25"}).Draw(t, "number")),
			Exact:  rapid.SampledFrom([]signal.Value{nil, signal.Text("é"), signal.Float(5).Value(), signal.Array()}).Draw(t, "exact"), internal: 7,
		}
		if rapid.Bool().Draw(t, "deep") {
			a.Deep = &Deep{1, true}
		}
		if rapid.Bool().Draw(t, "texted") {
			a.Texted, a.EvenPtr, a.Iface = &a.Text, &a.Even, a.Text
		}
		if depth > 0 {
			a.Any = genAny(depth-1).Draw(t, "any")
			a.Nested = pointerTo(genAll(depth-1)).Draw(t, "nested")
		}
		return a
	})
}

// If Marshal and encoding/json both accept a variable, they keep the same value, to the
// byte.
func TestMarshalEqualsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v any
		if rapid.Bool().Draw(t, "a struct") {
			a := genAll(2).Draw(t, "all")
			if v = a; rapid.Bool().Draw(t, "by pointer") {
				v = &a
			}
		} else {
			v = genAny(3).Draw(t, "any")
		}
		got, err := signal.Marshal(v)
		text, jsonErr := json.Marshal(v)
		if jsonErr != nil {
			require.Errorf(t, err, "accepted %#v, of which encoding/json says %v", v, jsonErr)
			return
		}
		want, refused := signal.ParseValue(text)
		switch {
		case err != nil && refused == nil:
			t.Fatalf("refused %s: %v", text, err)
		case err != nil:
			return
		}
		if _, rest, err := signal.CheckValue(got); err != nil || len(rest) > 0 {
			t.Fatalf("the value of %s is malformed: %v, %d bytes left", text, err, len(rest))
		}
		if size := len(got.AppendJSON(nil)); size > 6*len(got) {
			t.Fatalf("%d bytes of JSON for %d bytes: %s", size, len(got), got)
		}
		if refused == nil && !bytes.Equal(got, want) {
			t.Fatalf("got  %s (%x)\nwant %s (%x)\nof   %s", got, []byte(got), want, []byte(want), text)
		}
	})
}

// genStruct draws a struct type of few names, so that the same name stands at several
// depths, with tags and without, and the same type is embedded several times.
func genStruct(depth int) *rapid.Generator[reflect.Type] {
	tags := rapid.SampledFrom([]reflect.StructTag{"", "", `json:"A"`, `json:"B"`, `json:"a"`, `json:"-"`, `json:",omitempty"`})
	return rapid.Custom(func(t *rapid.T) reflect.Type {
		var fields []reflect.StructField
		for _, name := range rapid.Permutation([]string{"A", "B", "E", "F"}).Draw(t, "names")[:rapid.IntRange(1, 4).Draw(t, "fields")] {
			f := reflect.StructField{Name: name, Type: reflect.TypeFor[int8](), Tag: tags.Draw(t, "tag")}
			if depth > 0 && name >= "E" {
				f.Type, f.Anonymous = genStruct(depth-1).Draw(t, "embedded"), rapid.IntRange(0, 9).Draw(t, "anonymous") > 0
				if rapid.Bool().Draw(t, "by pointer") {
					f.Type = reflect.PointerTo(f.Type)
				}
			}
			fields = append(fields, f)
		}
		return reflect.StructOf(fields)
	})
}

// fill gives the numbers of a variable different values, and follows its pointers.
func fill(v reflect.Value, next *int64) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), next)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	default:
		*next++
		v.SetInt(*next)
	}
}

// Of the fields with the same name, the field that encoding/json chooses is written and
// read, and the fields are written in its order.
func TestFieldsEqualJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := reflect.New(genStruct(3).Draw(t, "type"))
		fill(v.Elem(), new(int64))
		text, err := json.Marshal(v.Interface())
		require.NoError(t, err)
		got, err := signal.Marshal(v.Interface())
		require.NoError(t, err)
		require.Equal(t, string(text), got.String(), v.Type())

		// Each name is read into the same field.
		object := signal.NewObject(4)
		for i, name := range []string{"A", "B", "a", "E"} {
			object.Int(name, int64(i+1))
		}
		read, want := reflect.New(v.Type().Elem()), reflect.New(v.Type().Elem())
		wantErr := json.Unmarshal([]byte(object.Value().String()), want.Interface())
		if err := object.Value().Decode(read.Interface()); wantErr != nil {
			require.Errorf(t, err, "%v", v.Type())
			return
		}
		require.Equal(t, want.Interface(), read.Interface())
	})
}

// Of up to four embedded structs that have the name A, with a tag, without one, or deeper,
// the field that encoding/json chooses is written.
func TestFieldsOfOneName(t *testing.T) {
	plain := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int8]()}})
	tagged := reflect.StructOf([]reflect.StructField{{Name: "T", Type: reflect.TypeFor[int8](), Tag: `json:"A"`}})
	kinds := []reflect.Type{plain, tagged, reflect.StructOf([]reflect.StructField{{Name: "D", Type: tagged, Anonymous: true}})}
	for n := range 3 * 3 * 3 * 3 * 3 {
		var fields []reflect.StructField
		for i := 0; n > 0; i, n = i+1, n/3 {
			// A field of a name of its own makes each type another one.
			own := reflect.StructField{Name: fmt.Sprint("Own", i), Type: reflect.TypeFor[int8]()}
			typ := reflect.StructOf(append(reflect.VisibleFields(kinds[n%3])[:1:1], own))
			fields = append(fields, reflect.StructField{Name: fmt.Sprint("E", i), Type: typ, Anonymous: true})
		}
		v := reflect.New(reflect.StructOf(fields))
		fill(v.Elem(), new(int64))
		text, err := json.Marshal(v.Interface())
		require.NoError(t, err)
		got, err := signal.Marshal(v.Interface())
		require.NoError(t, err)
		require.Equal(t, string(text), got.String(), v.Type())
	}
}

type endless struct {
	*endless //nolint:unused // encoding/json meets it
	Value    int8
	Next     *endless
}

// A type that embeds itself has its fields once.
func TestFieldsOfATypeThatEmbedsItself(t *testing.T) {
	v := endless{Value: 1, Next: &endless{Value: 2}}
	got, err := signal.Marshal(v)
	require.NoError(t, err)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, string(text), got.String())
	var back endless
	require.NoError(t, got.Decode(&back))
	require.Equal(t, v, back)
}

// Decode leaves a variable as encoding/json does, new or used before.
func TestDecodeEqualsJSON(t *testing.T) {
	targets := []func(t *rapid.T) (a, b any){
		func(*rapid.T) (a, b any) { return new(all), new(all) },
		func(t *rapid.T) (a, b any) {
			text, _ := json.Marshal(genAll(1).Draw(t, "used")) // nothing of what it refuses
			var used, again all
			_, _ = json.Unmarshal(text, &used), json.Unmarshal(text, &again) // as far as they get
			return &used, &again
		},
		func(*rapid.T) (a, b any) { return new(any), new(any) },
		func(*rapid.T) (a, b any) { return new(map[string]any), new(map[string]any) },
		func(*rapid.T) (a, b any) { return new([]any), new([]any) },
		func(*rapid.T) (a, b any) { return &[]int{1, 2, 3, 4}, &[]int{1, 2, 3, 4} },
		func(*rapid.T) (a, b any) { return new([2]*float32), new([2]*float32) },
		func(*rapid.T) (a, b any) { return new(float32), new(float32) },
		func(*rapid.T) (a, b any) { return new(*int8), new(*int8) },
		func(*rapid.T) (a, b any) { return new(uint16), new(uint16) },
		func(*rapid.T) (a, b any) { return new(word), new(word) },
		func(*rapid.T) (a, b any) { return new([]byte), new([]byte) },
		func(*rapid.T) (a, b any) { return new(json.Number), new(json.Number) },
		func(*rapid.T) (a, b any) { return new(signal.Value), new(signal.Value) },
		func(*rapid.T) (a, b any) { return new(map[textual]uint8), new(map[textual]uint8) },
		func(*rapid.T) (a, b any) { return new(struct{ *base }), new(struct{ *base }) },
		func(*rapid.T) (a, b any) { return new(struct{ SHARED, Lower any }), new(struct{ SHARED, Lower any }) },
	}
	rapid.Check(t, func(t *rapid.T) {
		v, err := signal.Marshal(rapid.OneOf(genAny(2), rapid.Map(genAll(1), func(a all) any { a.Iface = nil; return a })).Draw(t, "value"))
		if err != nil {
			return
		}
		got, want := rapid.SampledFrom(targets).Draw(t, "target")(t)
		err, wantErr := v.Decode(got), json.Unmarshal([]byte(v.String()), want)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s into %T: got the error %v, want %v", v, got, err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s into %T:\n%s", v, got, cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	})
}

// A variable without a JSON form or exact value is refused, with its place.
// As many pointers as there may be levels lead to a value, and one more is refused: a
// cycle of pointers has no end.
func TestMarshalPointers(t *testing.T) {
	var v any = 7
	for range signal.MaxDepth {
		p := v
		v = &p
	}
	for hops := 0; ; hops++ { // each pointer leads to an interface, which is another hop
		got, err := signal.Marshal(v)
		if 2*(signal.MaxDepth-hops) > signal.MaxDepth {
			require.ErrorContains(t, err, "nested deeper than 512")
			v = *v.(*any)
			continue
		}
		require.NoError(t, err, hops)
		require.Equal(t, "7", got.String())
		break
	}
}

func TestMarshalRefuses(t *testing.T) {
	type list struct{ Next *list }
	ring := new(list)
	ring.Next = ring
	type pointer *pointer
	var self pointer
	self = &self
	loop := map[string]any{}
	loop["a/b"] = loop
	for name, tt := range map[string]struct {
		v    any
		path string
		want string
	}{
		"channel":        {map[string]any{"a": []any{1, make(chan int)}}, "/a/1", "a chan int has no JSON form"},
		"nil function":   {struct{ F func() }{}, "/F", "a func() has no JSON form"},
		"complex":        {[]complex64{1}, "/0", "a complex64 has no JSON form"},
		"NaN":            {struct{ F float32 }{float32(math.NaN())}, "/F", "NaN is not a JSON number"},
		"infinity":       {math.Inf(-1), "", "-Inf is not a JSON number"},
		"keys":           {map[float64]int{}, "", "a map with keys of type float64 has no JSON form"},
		"nil of keys":    {map[bool]int(nil), "", "a map with keys of type bool has no JSON form"},
		"text":           {[]string{"a", "\xff"}, "/1", "a string that is not UTF-8"},
		"key":            {map[string]int{"\xff": 1}, "", "a string that is not UTF-8"},
		"key twice":      {map[same]int{1: 1, 2: 2}, "", `the key "same" stands twice in one object`},
		"number":         {json.Number("1e400"), "", "a number too great for a double"},
		"no number":      {struct{ N json.Number }{"x"}, "/N", `invalid number literal "x"`},
		"Marshaler":      {[]any{fails{}}, "/0", "it fails"},
		"its two keys":   {json.RawMessage(`{"a":1,"a":2}`), "", `the key "a" stands twice in one object`},
		"value":          {map[string]signal.Value{"v": {0xc1}}, "/v", "marshal a malformed value"},
		"ring":           {ring, strings.Repeat("/Next", 512), "nested deeper than 512 levels"},
		"pointer":        {self, "", "nested deeper than 512 levels"},
		"map":            {loop, strings.Repeat("/a~1b", 512), "nested deeper than 512 levels"},
		"deep Marshaler": {deepList(500, json.RawMessage("[[[[[[[[[[[[[]]]]]]]]]]]]]")), strings.Repeat("/0", 500), "nested deeper than 512 levels"},
		"quoted not UTF8": {struct {
			N json.Number `json:",string"`
		}{"1e"}, "/N", "invalid number literal"},
	} {
		v, err := signal.Marshal(tt.v)
		e, ok := errors.AsType[*signal.ValueError](err)
		if !ok || e.Path != tt.path || !strings.Contains(e.Err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v; want %s: %s", name, v, err, tt.path, tt.want)
		}
	}
}

type same int

func (same) MarshalText() ([]byte, error) { return []byte("same"), nil }

type fails struct{}

func (fails) MarshalJSON() ([]byte, error) { return nil, errors.New("it fails") }

func deepList(n int, inner any) any {
	for range n {
		inner = []any{inner}
	}
	return inner
}

// What does not fit a variable is refused, with its place; bytes that are no value
// are refused before they are read.
func TestDecodeRefuses(t *testing.T) {
	type target struct {
		Int8   int8
		Uint   uint
		List   []map[string]float32
		Quoted int `json:",string"`
		Chan   chan int
	}
	for text, want := range map[string]string{
		`{"Int8":128}`:                  "/Int8: 128 does not fit int8",
		`{"int8":1.0}`:                  "/int8: a number does not fit int8",
		`{"Uint":-1}`:                   "/Uint: an integer does not fit uint",
		`{"List":[{"a/b":[]}]}`:         "/List/0/a~1b: an array does not fit float32",
		`{"List":[{"x":1},{"y":1e39}]}`: "/List/1/y: 1e+39 does not fit float32",
		`{"Quoted":1}`:                  "/Quoted: json: invalid use of ,string struct tag",
		`{"Chan":1}`:                    "/Chan: an integer does not fit chan int",
		`"x"`:                           "signal: a string does not fit signal_test.target",
	} {
		err := parsed(t, text).Decode(new(target))
		if e, ok := errors.AsType[*signal.ValueError](err); !ok || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for _, out := range []any{nil, target{}, (*target)(nil)} {
		assert.Errorf(t, signal.Null().Decode(out), "decoded into %#v", out)
	}
	claims := signal.Value{0xdd, 0xff, 0xff, 0xff, 0xff} // an array of four billion
	for _, v := range []signal.Value{nil, claims, {0xc0, 0xc0}, {0xc4, 0x01, 0x00}} {
		var out []int
		if err := v.Decode(&out); !errors.Is(err, signal.ErrCorrupt) {
			t.Errorf("%x: got %v, want %v", []byte(v), err, signal.ErrCorrupt)
		}
	}
}

// A decoded variable is not a view of the value.
func TestDecodeCopies(t *testing.T) {
	v := signal.Value(bytes.Clone(parsed(t, `{"a":"text","b":["c"]}`)))
	var out struct {
		A string
		B []string
	}
	require.NoError(t, v.Decode(&out))
	clear(v)
	if out.A != "text" || out.B[0] != "c" {
		t.Errorf("got %q", out)
	}
}

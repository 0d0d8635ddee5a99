package signal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/signal"
)

// A signal from a value is the one from the text of the value, refused for the same reasons.
func TestFromValue(t *testing.T) {
	for _, text := range []string{
		`{"id":"s","type":"x","timestamp":1.5,"source":"a","payload":{"n":1}}`,
		`{"id":"s","type":"x","timestamp":1,"source":"a","correlationId":"c","metadata":{"m":[]},"payload":{}}`,
		envelope("tool_call", `{"toolName":"x","agentId":"a"}`),
		envelope("tool_call", `{"agentId":"a"}`),
		envelope("tool_call", `{"toolName":1,"agentId":"a"}`),
		envelope("x", `[]`),
		`{"id":"s"}`, `{}`, `[]`, `"text"`, `null`, `1`,
	} {
		v := parsed(t, text)
		want, wantErr := signal.Parse([]byte(text))
		got, err := signal.FromValue(v)
		require.Equal(t, wantErr, err, text)
		require.Equal(t, want, got, text)
		want, wantErr = signal.ParseLenient([]byte(text))
		got, err = signal.FromValueLenient(v)
		require.Equal(t, wantErr, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{`[]`, `"text"`, `null`} {
		_, err := signal.FromValueLenient(parsed(t, text))
		require.ErrorIs(t, err, signal.ErrSchema, text)
	}
}

// countZeros says of itself that it is zero, below ten.
type countZeros int

func (c countZeros) IsZero() bool { return c < 10 }

type zeroer interface{ IsZero() bool }

// The option omitzero asks the method IsZero of whatever is in a field, as encoding/json does.
func TestOmitZeroOfInterfaces(t *testing.T) {
	type fields struct {
		I zeroer            `json:",omitzero"`
		P *countZeros       `json:",omitzero"`
		Q **countZeros      `json:",omitzero"`
		V countZeros        `json:",omitzero"`
		A any               `json:",omitzero"`
		L []countZeros      `json:",omitzero"`
		M map[string]string `json:",omitzero"`
		S struct{ N int }   `json:",omitzero"`
		Z [2]int            `json:",omitzero"`
	}
	less, more := countZeros(9), countZeros(10)
	pointer := &less
	for _, f := range []fields{
		{},
		{I: less},
		{I: more},
		{I: (*countZeros)(nil)},
		{I: &less},
		{I: &more},
		{P: &less},
		{P: &more},
		{Q: &pointer},
		{V: less},
		{V: more},
		{A: less},
		{A: 0},
		{A: (*int)(nil)},
		{L: []countZeros{}},
		{L: []countZeros{1}},
		{M: map[string]string{}},
		{Z: [2]int{0, 1}},
	} {
		f.S.N = int(f.V)
		want, err := json.Marshal(f)
		require.NoError(t, err)
		v, err := signal.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, string(want), v.String(), "%+v", f)
		v, err = signal.Marshal(&f) // whose fields have addresses
		require.NoError(t, err)
		require.Equal(t, string(want), v.String(), "%+v", f)
	}
}

type textKey string

func (k *textKey) MarshalText() ([]byte, error) {
	if *k == "fails" {
		return nil, errors.New("a key that fails")
	}
	return []byte("key " + *k), nil
}

// The keys of maps are texts and integers, and what says its text.
func TestMarshalKeys(t *testing.T) {
	a, fails := textKey("a"), textKey("fails")
	for _, m := range []any{
		map[*textKey]int{&a: 1},
		map[*textKey]int{nil: 2, &a: 1},
		map[int8]int{math.MinInt8: 1, -1: 2, 0: 3, math.MaxInt8: 4},
		map[uint8]int{0: 1, math.MaxUint8: 2},
		map[int64]int{math.MinInt64: 1, math.MaxInt64: 2},
		map[uint64]int{math.MaxUint64: 1},
		map[uintptr]int{7: 1},
		map[same]int{1: 1},
		map[string]int{"b": 1, "a": 2, "": 3},
		map[string]any{"n": nil},
		map[textKey]int{"plain": 1},
	} {
		want, err := json.Marshal(m)
		require.NoError(t, err)
		v, err := signal.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, string(want), v.String())
	}
	_, err := signal.Marshal([]any{map[*textKey]int{&fails: 1}})
	require.EqualError(t, err, "signal: /0: a key that fails")
	var e *signal.ValueError
	require.ErrorAs(t, err, &e)
	require.Same(t, e.Err, errors.Unwrap(err))
	require.EqualError(t, &signal.ValueError{Err: errors.New("why")}, "signal: why")
}

// Arrays, slices, maps, structs and JSON texts are kept to the last level that there is.
func TestMarshalDepth(t *testing.T) {
	deep := func(n int, outer func(any) any) any {
		v := any(7)
		for range n {
			v = outer(v)
		}
		return v
	}
	for name, outer := range map[string]func(any) any{
		"slice":  func(v any) any { return []any{v} },
		"array":  func(v any) any { return [1]any{v} },
		"map":    func(v any) any { return map[string]any{"m": v} },
		"struct": func(v any) any { return struct{ M any }{v} },
	} {
		v, err := signal.Marshal(deep(signal.MaxDepth, outer))
		require.NoError(t, err, name)
		want, err := json.Marshal(deep(signal.MaxDepth, outer))
		require.NoError(t, err)
		require.Equal(t, string(want), v.String(), name)
		_, err = signal.Marshal(deep(signal.MaxDepth+1, outer))
		require.ErrorContains(t, err, "nested deeper than 512 levels", name)
	}
	for levels, ok := range map[int]bool{1: true, 2: false} {
		text := json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))
		v := any(text)
		for range signal.MaxDepth - 1 {
			v = []any{v}
		}
		_, err := signal.Marshal(v)
		require.Equal(t, ok, err == nil, "%v", err)
	}
	// Nothing that is nil opens a level, though it has one.
	for _, leaf := range []any{[]int(nil), map[string]int(nil), (*struct{})(nil), nil} {
		v, err := signal.Marshal(deepList(signal.MaxDepth, leaf))
		require.NoError(t, err)
		require.Contains(t, v.String(), "[null]")
	}
}

// A variable that is decoded into has what encoding/json would leave in it: arrays of any
// length, slices with room, maps and pointers that are there already.
func TestDecodeIntoUsedVariables(t *testing.T) {
	type inner struct{ A, B int }
	type target struct {
		Array  [2]int
		Slice  []inner
		Map    map[string]inner
		Named  map[textKey]int
		Count  map[int]string
		P      *inner
		Any    any
		Number json.Number
		Bytes  []byte
		F32    float32
	}
	used := func() *target {
		return &target{
			Array: [2]int{8, 9}, Slice: append(make([]inner, 0, 4), inner{1, 2}, inner{3, 4}, inner{5, 6})[:2], Map: map[string]inner{"old": {1, 2}, "a": {3, 4}},
			Count: map[int]string{1: "old"}, P: &inner{1, 2}, Any: 7, Number: "7", Bytes: []byte("old"), F32: 7,
		}
	}
	for _, text := range []string{
		`{"Array":[]}`, `{"Array":[1]}`, `{"Array":[1,2]}`, `{"Array":[1,2,3,[4]]}`, `{"Array":null}`,
		`{"Slice":[]}`, `{"Slice":[{"A":9}]}`, `{"Slice":[{},{},{"A":9}]}`, `{"Slice":[{},{},{},{"A":7},{"A":9}]}`, `{"Slice":null}`,
		`{"Map":{"a":{"A":9},"b":{}}}`, `{"Map":{}}`, `{"Map":null}`, `{"Named":{"x":1}}`, `{"Count":{"2":"new"}}`,
		`{"P":{"B":9}}`, `{"P":null}`, `{"Any":[1.5,"x"]}`, `{"Any":null}`, `{"Number":1.25}`, `{"Number":null}`, `{"Bytes":"aGk="}`, `{"Bytes":[1,2]}`, `{"Bytes":null}`,
		`{"F32":0.1}`, `{"F32":16777217}`, `{"F32":null}`, `{"array":[5],"SLICE":[{"a":1}],"unknown":{"a":[1]},"p":{"b":4}}`,
	} {
		for _, begin := range []func() *target{used, func() *target { return new(target) }} {
			want, got := begin(), begin()
			require.NoError(t, json.Unmarshal([]byte(text), want), text)
			require.NoError(t, parsed(t, text).Decode(got), text)
			require.Equal(t, want, got, text)
			require.Equal(t, want.Slice == nil, got.Slice == nil, text)
			require.Equal(t, reflect.ValueOf(want.Slice).Len(), reflect.ValueOf(got.Slice).Len())
		}
	}
}

// The error about a part that does not fit has its path and type, for each kind of variable.
func TestDecodeMisfits(t *testing.T) {
	for _, c := range []struct {
		text string
		out  any
		want string
	}{
		{`1`, new(bool), "signal: an integer does not fit bool"},
		{`true`, new(int), "signal: a boolean does not fit int"},
		{`18446744073709551615`, new(int64), "signal: an integer does not fit int64"},
		{`-129`, new(int8), "signal: -129 does not fit int8"},
		{`-1`, new(uint64), "signal: an integer does not fit uint64"},
		{`256`, new(uint8), "signal: 256 does not fit uint8"},
		{`1.5`, new(uint8), "signal: a number does not fit uint8"},
		{`"1"`, new(float64), "signal: a string does not fit float64"},
		{`3.5e38`, new(float32), "signal: 3.5e+38 does not fit float32"},
		{`1`, new(string), "signal: an integer does not fit string"},
		{`{}`, new([]int), "signal: an object does not fit []int"},
		{`"x"`, new([]int), "signal: a string does not fit []int"},
		{`{}`, new([1]int), "signal: an object does not fit [1]int"},
		{`[]`, new(map[string]int), "signal: an array does not fit map[string]int"},
		{`[]`, new(struct{}), "signal: an array does not fit struct {}"},
		{`1`, new(func()), "signal: an integer does not fit func()"},
		{`[0,"x"]`, new([]int), "signal: /1: a string does not fit int"},
		{`[0,"x"]`, new([2]int), "signal: /1: a string does not fit int"},
		{`{"a~/b":{"c":[true]}}`, new(map[string]map[string][]string), "signal: /a~0~1b/c/0: a boolean does not fit string"},
	} {
		err := parsed(t, c.text).Decode(c.out)
		require.EqualError(t, err, c.want, c.text)
	}
	// What was read before does not stay in the path.
	var two struct {
		A struct{ X []int }
		B struct{ Y []int }
	}
	require.EqualError(t, parsed(t, `{"A":{"X":[1,2]},"no":{"A":[]},"B":{"Y":[3,"x"]}}`).Decode(&two), "signal: /B/Y/1: a string does not fit int")
	require.Equal(t, []int{1, 2}, two.A.X)

	type cycle *cycle
	var c cycle
	c = &c
	require.EqualError(t, parsed(t, `7`).Decode(c), "signal: a pointer that leads to itself")
}

// chain has n pointers in front of a number.
func chain(n int) reflect.Value {
	t := reflect.TypeFor[int]()
	for range n {
		t = reflect.PointerTo(t)
	}
	return reflect.New(t)
}

// As many pointers as there may be levels are followed to the variable.
func TestDecodePointers(t *testing.T) {
	for _, n := range []int{0, 1, 2, signal.MaxDepth - 1} {
		v := chain(n)
		require.NoError(t, parsed(t, `7`).Decode(v.Interface()))
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		require.Equal(t, int64(7), v.Int())
	}
	require.ErrorContains(t, parsed(t, `7`).Decode(chain(signal.MaxDepth).Interface()), "a pointer that leads to itself")
}

// The reader of a value whose levels are too many, or of bytes that end early, has no JSON.
func TestJSONOfMalformedValues(t *testing.T) {
	nested := func(levels int) signal.Value {
		return append(bytes.Repeat([]byte{0x91}, levels), 0xc0)
	}
	last := nested(signal.MaxDepth)
	require.Equal(t, strings.Repeat("[", signal.MaxDepth)+"null"+strings.Repeat("]", signal.MaxDepth), last.String())
	require.NotNil(t, last.Any())
	require.Equal(t, "null", nested(signal.MaxDepth+1).String())
	require.Nil(t, nested(signal.MaxDepth+1).Any())
	require.Equal(t, "before null", string(nested(signal.MaxDepth+1).AppendJSON([]byte("before "))))
	for _, v := range []signal.Value{
		{0x92, 0x01}, {0x81, 0xa1, 'k'}, {0x81, 0xa2, 'k'}, {0x81, 0x01, 0x01}, {0xa2, 'x'}, {0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0}, {0xc1}, {},
	} {
		require.Equal(t, "null", v.String(), "%x", []byte(v))
		_, err := v.MarshalJSON()
		require.EqualError(t, err, "signal: marshal a malformed value", "%x", []byte(v))
	}
	_, err := signal.Value{0x01, 0x02}.MarshalJSON()
	require.EqualError(t, err, "signal: marshal a malformed value", "more than one value")
	require.Error(t, new(signal.Value).UnmarshalJSON([]byte("[")))
	text, err := signal.Value(nil).MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, "null", string(text))
}

// A string is refused at the byte at which it fails, before, in and behind an escape.
func TestStringsThatFail(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		reason string
	}{
		{`"a`, 0, "a string that does not end"},
		{` "a\n`, 1, "a string that does not end"},
		{`"\n`, 0, "a string that does not end"},
		{`["\n\t`, 1, "a string that does not end"},
		{`"\`, 1, "the text ends inside an escape"},
		{`"ab\n\`, 5, "the text ends inside an escape"},
		{"\"a\x1f\"", 2, "a control character in a string"},
		{"\"\\n\x00\"", 3, "a control character in a string"},
		{"\"\\na\x1f", 4, "a control character in a string"},
		{"\"a\xffb\"", 2, "a string that is not UTF-8"},
		{"\"\xc3\xa4\xff\"", 3, "a string that is not UTF-8"},
		{"\"\\n\xc3\xa4\xff\"", 5, "a string that is not UTF-8"},
		{"\"\xff\\n\"", 1, "a string that is not UTF-8"},
		{"\"\\nab\xff\\n\"", 5, "a string that is not UTF-8"},
		{`"\x"`, 1, "an escape that JSON does not have"},
		{`"a\n\'"`, 4, "an escape that JSON does not have"},
		{`"\u12"`, 1, `\u without four hexadecimal digits`},
		{`"a\u123`, 2, `\u without four hexadecimal digits`},
		{`"\u123g"`, 1, `\u without four hexadecimal digits`},
		{`"\ud800"`, 1, "half a surrogate pair"},
		{`"a\ud800\n"`, 2, "half a surrogate pair"},
		{`"\ud800\u"`, 1, "half a surrogate pair"},
		{`"\ud800\ud7ff"`, 1, "half a surrogate pair"},
		{`"\udc00\ud800"`, 1, "half a surrogate pair"},
		{`{"a":1,"b":2,"a":3}`, 13, `the key "a" stands twice in one object`},
		{`{"a" : [{"a":1}] , "\u0061" :3}`, 19, `the key "a" stands twice in one object`},
	} {
		_, err := signal.ParseValue([]byte(c.text))
		require.Equal(t, &signal.SyntaxError{Offset: c.offset, Reason: c.reason}, err, c.text)
		require.EqualError(t, err, fmt.Sprintf("signal: byte %d: %s", c.offset, c.reason))
	}
}

// The zero Number is written as null everywhere.
func TestZeroNumber(t *testing.T) {
	var n signal.Number
	require.Equal(t, signal.Null(), n.Value())
	require.Equal(t, []byte{1, 0xc0}, n.Append([]byte{1}))
	require.Equal(t, "null", n.String())
	require.Zero(t, n.Float64())
	require.False(t, n.IsSet())
	require.True(t, n.IsZero())
	require.Equal(t, signal.KindAbsent, n.Kind())
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.Equal(t, n, signal.Float(f))
	}
	require.Equal(t, `{"a":null,"b":1.0}`, signal.NewObject(2).Float("a", math.NaN()).Float("b", 1).Value().String())
}

func TestKindsWithArticle(t *testing.T) {
	var names []string
	for k := signal.KindAbsent; k <= signal.KindObject+1; k++ {
		names = append(names, k.WithArticle())
	}
	require.Equal(t, []string{"nothing", "null", "a boolean", "an integer", "an integer", "a number", "a string", "an array", "an object", "a unknown"}, names)
	var numbers []signal.ValueKind
	for k := signal.KindAbsent; k <= signal.KindObject; k++ {
		if k.IsNumber() {
			numbers = append(numbers, k)
		}
	}
	require.Equal(t, []signal.ValueKind{signal.KindInt, signal.KindUint, signal.KindFloat}, numbers)
}

// A text that is not UTF-8 is refused at any length, wherever the byte stands.
func TestCheckValueOfTexts(t *testing.T) {
	for n := 1; n <= 70; n++ {
		for _, at := range []int{0, n / 2, n - 1} {
			text := bytes.Repeat([]byte("x"), n)
			sound := signal.Text(string(text))
			_, _, err := signal.CheckValue(sound)
			require.NoError(t, err)
			broken := bytes.Clone(sound)
			broken[len(sound)-n+at] = 0xff
			_, _, err = signal.CheckValue(broken)
			require.ErrorIs(t, err, signal.ErrCorrupt, "%d bytes, at %d", n, at)
			key := append([]byte{0x81}, append(bytes.Clone(broken), 0xc0)...)
			_, _, err = signal.CheckValue(key)
			require.ErrorIs(t, err, signal.ErrCorrupt, "a key of %d bytes, at %d", n, at)
		}
	}
}

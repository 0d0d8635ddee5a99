package signal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
)

// parsed returns the value of a JSON text that must be good.
func parsed(t testing.TB, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoErrorf(t, err, "ParseValue(%.200s)", text)
	return v
}

// Each text reads as the value and is written as the text given, or as itself.
func TestParseValue(t *testing.T) {
	for _, c := range []struct {
		in   string
		want any
		out  string
	}{
		{in: `null`},
		{in: ` true `, want: true, out: `true`},
		{in: `false`, want: false},
		{in: `0`, want: int64(0)},
		{in: `-0`, want: int64(0), out: `0`},
		{in: `-1`, want: int64(-1)},
		{in: `200`, want: int64(200)},
		{in: `-129`, want: int64(-129)},
		{in: `70000`, want: int64(70000)},
		{in: `9007199254740993`, want: int64(1<<53 + 1)},
		{in: `9223372036854775807`, want: int64(math.MaxInt64)},
		{in: `-9223372036854775808`, want: int64(math.MinInt64)},
		{in: `9223372036854775808`, want: uint64(1 << 63)},
		{in: `18446744073709551615`, want: uint64(math.MaxUint64)},
		{in: `5.0`, want: 5.0},
		{in: `1e2`, want: 100.0, out: `100.0`},
		{in: `-0.0`, want: math.Copysign(0, -1)},
		{in: `0e99999999999999999999`, want: 0.0, out: `0.0`},
		{in: `0.1`, want: 0.1},
		{in: `"\u0123\u4567\u89AB\uCDEF\uabcd\uefEF"`, want: "\u0123\u4567\u89ab\ucdef\uabcd\uefef", out: "\"\u0123\u4567\u89ab\ucdef\uabcd\uefef\""},
		{in: `{"":1}`, want: map[string]any{"": int64(1)}},
		{in: `1.7389e12`, want: 1.7389e12, out: `1738900000000.0`},
		{in: `1E+21`, want: 1e21, out: `1e+21`},
		{in: `1e-7`, want: 1e-7, out: `1e-07`},
		{in: `5e-324`, want: 5e-324},
		{in: `1.7976931348623157e308`, want: math.MaxFloat64, out: `1.7976931348623157e+308`},
		// Exactly a double, with 55 digits.
		{in: `0.1000000000000000055511151231257827021181583404541015625`, want: 0.1, out: `0.1`},
		// Zeros at the end do not count, nor do those that an exponent takes back.
		{in: `0.10000000000000000000000000`, want: 0.1, out: `0.1`},
		{in: `0.` + strings.Repeat("0", 20000) + `25e20002`, want: 25.0, out: `25.0`},
		{in: `1` + strings.Repeat("0", 400) + `e-400`, want: 1.0, out: `1.0`},
		// Integral numbers that a double keeps, or is written as.
		{in: `9007199254740992.0`, want: 1.0 * (1 << 53)},
		{in: `9007199254740994e0`, want: 9007199254740994.0, out: `9007199254740994.0`},
		{in: `1e23`, want: 1e23, out: `1e+23`},
		{in: `99999999999999991611392.0`, want: 1e23, out: `1e+23`},
		{in: `1e300`, want: 1e300, out: `1e+300`},
		{in: `9223372036854775808.0`, want: 0x1p63, out: `9223372036854776000.0`},
		{in: `4503599627370497.0`, want: 4503599627370497.0},
		// Decimals with a fraction become the nearest double.
		{in: `0.12345678901234567`, want: 0.12345678901234567, out: `0.12345678901234566`},
		{in: `9007199254740993.5`, want: 9007199254740994.0, out: `9007199254740994.0`},
		{in: `""`, want: ""},
		{in: `"a\u0041\n\"\/\\ \ud83d\ude00é😀\u0000"`, want: "aA\n\"/\\ 😀é😀\x00", out: `"aA\n\"/\\ 😀é😀\u0000"`},
		{in: `"\b\f\n\r\t\u001f\u007f"`, want: "\b\f\n\r\t\x1f\x7f", out: `"\b\f\n\r\t\u001f` + "\x7f" + `"`},
		{in: `[]`, want: []any{}},
		{in: "[1 , [\"2\"],\t{}\r\n]", want: []any{int64(1), []any{"2"}, map[string]any{}}, out: `[1,["2"],{}]`},
		{in: `{"b":1,"a":{"":null}}`, want: map[string]any{"b": int64(1), "a": map[string]any{"": nil}}},
		{in: strings.Repeat("[", signal.MaxDepth) + strings.Repeat("]", signal.MaxDepth), want: nest(signal.MaxDepth)},
	} {
		v, err := signal.ParseValue([]byte(c.in))
		if err != nil {
			t.Errorf("%.60s: %v", c.in, err)
			continue
		}
		if got := v.Any(); !reflect.DeepEqual(c.want, got) {
			t.Errorf("%.60s: got %.60v, want %.60v", c.in, got, c.want)
		}
		if f, ok := c.want.(float64); ok && math.Signbit(f) != math.Signbit(v.Any().(float64)) {
			t.Errorf("%s: the sign is lost", c.in)
		}
		if c.out == "" {
			c.out = c.in
		}
		if got := v.String(); got != c.out {
			t.Errorf("%.60s: written as %.60s, want %.60s", c.in, got, c.out)
		}
		checked, rest, err := signal.CheckValue(v)
		if err != nil || len(rest) > 0 || string(checked) != string(v) {
			t.Errorf("%.60s: CheckValue leaves %d bytes, %v", c.in, len(rest), err)
		}
	}
}

func nest(depth int) any {
	list := []any{}
	for range depth - 1 {
		list = []any{list}
	}
	return list
}

// Each text is refused, at the byte and for the reason given.
func TestParseValueRefuses(t *testing.T) {
	for _, c := range []struct {
		in     string
		offset int
		reason string
	}{
		{"", 0, "the text ends where a value should be"},
		{" ", 1, "the text ends where a value should be"},
		{"\ufeff{}", 0, "where a value should be"},
		{"nul", 0, "where a value should be"},
		{"NaN", 0, "where a value should be"},
		{"1 2", 2, "something after the end of the value"},
		{"01", 0, "leading zero"},
		{"-", 1, "a digit"},
		{"+1", 0, "where a value should be"},
		{"1.", 2, "a digit"},
		{".5", 0, "where a value should be"},
		{"1e", 2, "a digit"},
		{"1e+", 3, "a digit"},
		{"0x10", 1, "something after"},
		{"1_000.0", 1, "something after"},
		{"18446744073709551616", 0, "fits no 64 bits"},
		{"-9223372036854775809", 0, "fits no 64 bits"},
		{"[1e400]", 1, "too great"},
		{"[1e99999999999999999999]", 1, "too great"},
		{"0." + strings.Repeat("0", 10000) + "1e1000000", 0, "too great"},
		{"1e-400", 0, "too small"},
		{"-1e-99999999999999999999", 0, "too small"},
		{"9007199254740993.0", 0, "integral number that a double does not keep"},
		{"-9007199254740993.0", 0, "integral number that a double does not keep"},
		{"9007199254740993e0", 0, "integral number that a double does not keep"},
		{"9.007199254740993E+15", 0, "integral number that a double does not keep"},
		{"90071992547409930e-1", 0, "integral number that a double does not keep"},
		{"9007199254740993000e-0003", 0, "integral number that a double does not keep"},
		{"[1,12345678901234567.0]", 3, "integral number that a double does not keep"},
		{"18446744073709551.615e3", 0, "more digits than a double keeps"},
		{"9223372036854775807.0", 0, "more digits than a double keeps"},
		{"1234567890123456.7e22", 0, "integral number that a double does not keep"},
		{"1e309", 0, "too great"},
		{"-1e400", 0, "too great"},
		{"1e999999999999999999999", 0, "too great"},
		{"1e-400", 0, "too small"},
		{"-1e-999999999999999999999", 0, "too small"},
		{"18446744073709551616", 0, "fits no 64 bits"},
		{"-9223372036854775809", 0, "fits no 64 bits"},
		{"0.1234567890123456789", 0, "more digits than a double keeps"},
		{"3.14159265358979323846", 0, "more digits than a double keeps"},
		{"1.23456789012345678", 0, "more digits than a double keeps"},
		{"0.123456789012345671", 0, "more digits than a double keeps"},
		{"12345678901234567.8", 0, "more digits than a double keeps"},
		{"123456789012345671e2", 0, "more digits than a double keeps"},
		{"0." + strings.Repeat("1", 801), 0, "800"},
		{`"a`, 0, "does not end"},
		{`"a\`, 2, "inside an escape"},
		{`"\x"`, 1, "an escape that JSON does not have"},
		{`"\u12g4"`, 1, "four hexadecimal digits"},
		{`"\ud800"`, 1, "surrogate"},
		{`"\ud800\u0041"`, 1, "surrogate"},
		{`"\udc00\ud800"`, 1, "surrogate"},
		{"\"a\nb\"", 2, "control character"},
		{"\"\\t\n\"", 3, "control character"},
		{"\"é\xff\"", 3, "not UTF-8"},
		{"\"\\n\xc3\"", 3, "not UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "not UTF-8"},
		{"[1", 2, "',' or ']'"},
		{"[1,]", 3, "where a value should be"},
		{"{1:2}", 1, "a key"},
		{`{"a"}`, 4, "':'"},
		{`{"a":1,}`, 7, "a key"},
		{`{"a":1 "b":2}`, 7, "',' or '}'"},
		{`{"a":1,"b":[],"\u0061":2}`, 14, `the key "a" stands twice`},
		{`{"x":{"k":1, "k":1}}`, 13, `the key "k" stands twice`},
		{strings.Repeat("[", signal.MaxDepth+1), signal.MaxDepth, "nested deeper than 512"},
		{strings.Repeat(`{"":`, 100000), 4 * signal.MaxDepth, "nested deeper than 512"},
	} {
		_, err := signal.ParseValue([]byte(c.in))
		e, ok := errors.AsType[*signal.SyntaxError](err)
		if !ok || !errors.Is(err, signal.ErrSyntax) || e.Offset != c.offset || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%.60q: %v, want byte %d: … %s …", c.in, err, c.offset, c.reason)
		}
	}
}

// Equal keys are found among many, and in an object whose keys are many the
// search takes no square of time.
func TestParseValueManyKeys(t *testing.T) {
	var b strings.Builder
	const n = 200_000
	for i := range n {
		b.WriteString(`,"` + strconv.Itoa(i) + `":0`)
	}
	text := "{" + b.String()[1:]
	v := parsed(t, text+"}")
	if got := v.Len(); got != n {
		t.Errorf("%d members, want %d", got, n)
	}
	if _, rest, err := signal.CheckValue(v); err != nil || len(rest) > 0 {
		t.Errorf("CheckValue: %d bytes left, %v", len(rest), err)
	}
	_, err := signal.ParseValue([]byte(text + `,"77":1}`))
	if e, ok := errors.AsType[*signal.SyntaxError](err); !ok || e.Offset != len(text)+1 {
		t.Errorf("a key that stands twice: %v, want byte %d", err, len(text)+1)
	}
}

// Whichever of an object's keys stands twice is found, among few and among many.
func TestEachKeyThatStandsTwice(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 40} {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf(`"k%d":%d`, i, i)
		}
		text := "{" + strings.Join(members, ",")
		sound := parsed(t, text+"}")
		for i := range n {
			name := fmt.Sprintf("k%d", i)
			_, err := signal.ParseValue([]byte(text + `,"` + name + `":0}`))
			require.ErrorContains(t, err, `the key "`+name+`" stands twice`)

			object := signal.Object{{Name: name, Value: signal.Null()}}
			for k, v := range sound.Members() {
				object = append(object, signal.ObjectMember{Name: k, Value: v})
			}
			_, _, err = signal.CheckValue(object.Value())
			require.ErrorContains(t, err, "twice", "%d keys and %s", n, name)
		}
	}
	// The text of the error has 64 letters of a long name, which is part of the format.
	for n, want := range map[int]string{63: strings.Repeat("k", 63), 64: strings.Repeat("k", 64), 65: strings.Repeat("k", 64) + "…"} {
		name := strings.Repeat("k", n)
		_, err := signal.ParseValue([]byte(`{"` + name + `":1,"` + name + `":2}`))
		require.ErrorContains(t, err, `the key "`+want+`" stands twice`)
	}
}

// White space between any two tokens is ignored.
func TestWhiteSpace(t *testing.T) {
	for _, tokens := range [][]string{
		{"{", "}"},
		{"[", "]"},
		{"{", `"a"`, ":", "[", "1", ",", "-2.5", ",", "null", "]", ",", `"b\\"`, ":", "{", `"c"`, ":", "{", "}", ",", `"d"`, ":", "[", "]", "}", "}"},
	} {
		want := parsed(t, strings.Join(tokens, ""))
		for i := range len(tokens) + 1 {
			for _, space := range []string{" ", "\t", "\n", "\r", " \r\n\t "} {
				require.Equal(t, want, parsed(t, strings.Join(tokens[:i], "")+space+strings.Join(tokens[i:], "")))
			}
		}
		require.Equal(t, want, parsed(t, " "+strings.Join(tokens, " \n")+"\t"))
		// A name that stands twice is found behind them too, at its place.
		text := strings.Join(tokens, " \n")
		_, err := signal.ParseValue([]byte(`{ "x" : ` + text + ` , "x" : 1}`))
		e, ok := errors.AsType[*signal.SyntaxError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, len(`{ "x" : `)+len(text)+len(` , `), e.Offset)
	}
}

func TestLookup(t *testing.T) {
	v := parsed(t, `{"a":{"b":[10,{"c":"x"},null]},"":{"":1},"n":5,"0":"zero","list":[]}`)
	for _, c := range []struct{ path, want string }{
		{"a.b.0", "10"},
		{"a.b.1.c", `"x"`},
		{"a.b.2", "null"},
		{"a.b", `[10,{"c":"x"},null]`},
		{"n", "5"},
		{"0", `"zero"`},
		{"", `{"":1}`},
		{".", "1"},
		{"a.b.3", ""},
		{"a.b.00", ""},
		{"a.b.+1", ""},
		{"a.b.-0", ""},
		{"a.b.99999999999999999999", ""},
		{"a.b.", ""},
		{"a.b.length", ""},
		{"a.b./", ""},
		{"a.b.:", ""},
		{"a.b.0:", ""},
		{"a.b.x", ""},
		{"a.b.0x", ""},
		{"a.b.2.x", ""},
		{"n.x", ""},
		{"list.0", ""},
		{"a..b", ""},
		{"missing", ""},
	} {
		got, ok := v.Lookup(c.path)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("Lookup(%q) = %s, %t; want %s", c.path, got, ok, c.want)
		}
	}
}

// An index of an array is written in decimal, without a sign or a leading zero: of all texts
// of one or two bytes only those find an element.
func TestLookupIndexes(t *testing.T) {
	v := parsed(t, `{"list":[0,1,2,3,4,5,6,7,8,9,10,11]}`)
	var texts []string
	for a := range byte(128) {
		texts = append(texts, string(a))
		for b := range byte(128) {
			texts = append(texts, string([]byte{a, b}))
		}
	}
	for _, text := range texts {
		n, err := strconv.Atoi(text)
		want := err == nil && strconv.Itoa(n) == text && 0 <= n && n < 12
		got, ok := v.Lookup("list." + text)
		if require.Equal(t, want, ok, "%q", text); ok {
			require.Equal(t, text, got.String())
		}
	}
}

// Members yields the members whose names and values are empty too, to the last.
func TestMembersOfEmptyNames(t *testing.T) {
	for _, text := range []string{`{"":1}`, `{"":"","b":{}}`, `{"a":[],"":null,"b":{"":{}}}`} {
		v := parsed(t, text)
		var o signal.Object
		for name, member := range v.Members() {
			o = append(o, signal.ObjectMember{Name: name, Value: member})
		}
		require.Equal(t, v, o.Value(), text)
	}
}

// The accessors answer for their own kind and for no other.
func TestAccessors(t *testing.T) {
	var kinds []string
	for _, text := range []string{`null`, `true`, `7`, `18446744073709551615`, `7.0`, `"text"`, `["k",2]`, `{"k":1}`} {
		v := parsed(t, text)
		_, isText := v.Text()
		_, isBool := v.Bool()
		_, isInt := v.Int64()
		_, isNumber := v.Float64()
		_, hasKey := v.Get("k")
		elements := len(slices.Collect(v.Elements()))
		members := len(maps.Collect(v.Members()))
		got := []bool{isText, isBool, isInt, isNumber, hasKey, elements == 2, members == 1}
		if elements != 0 && elements != 2 || members > 1 {
			t.Errorf("%s has %d elements and %d members", text, elements, members)
		}
		k := v.Kind()
		want := []bool{
			k == signal.KindString, k == signal.KindBool, k == signal.KindInt, k.IsNumber(),
			k == signal.KindObject, k == signal.KindArray, k == signal.KindObject,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
		kinds = append(kinds, k.String())
	}
	for text, want := range map[string]int{
		`null`: 0, `true`: 0, `7`: 0, `-7`: 0, `200`: 0, `7.5`: 0, `""`: 0, `"é"`: 2, `[]`: 0, `[[1,2]]`: 1, `{}`: 0, `{"a":1,"b":2}`: 2,
	} {
		if got := parsed(t, text).Len(); got != want {
			t.Errorf("Len of %s = %d, want %d", text, got, want)
		}
	}
	want := []string{"null", "boolean", "integer", "integer", "number", "string", "array", "object"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("kinds: (-want +got)\n%s", diff)
	}
	var absent signal.Value
	if absent.Kind() != signal.KindAbsent || absent.Any() != nil || absent.String() != "null" {
		t.Errorf("the absent value: %v, %v, %s", absent.Kind(), absent.Any(), absent)
	}
}

// A value inside a struct goes through encoding/json unchanged.
func TestValueInEncodingJSON(t *testing.T) {
	var box struct{ V, W signal.Value }
	require.NoError(t, json.Unmarshal([]byte(`{"V": {"b":1.0,"a":12345678901234567890}}`), &box))
	out, err := json.Marshal(box)
	if want := `{"V":{"b":1.0,"a":12345678901234567890},"W":null}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v; want %s", out, err, want)
	}
	if _, err := json.Marshal(signal.Value{0x92, 0x01}); err == nil {
		t.Error("malformed bytes were written")
	}
}

// CheckValue takes forms of integers that ParseValue does not write, returns
// what follows, and refuses what is no JSON value.
func TestCheckValue(t *testing.T) {
	for _, c := range []struct {
		in, want string
		rest     int
	}{
		{"\xcc\x05\xff", "5", 1},
		{"\xcd\x00\x05", "5", 0},
		{"\xce\x00\x00\x00\x05", "5", 0},
		{"\xcf\x00\x00\x00\x00\x00\x00\x00\x05", "5", 0},
		{"\xd0\xff", "-1", 0},
		{"\xd1\xff\xff", "-1", 0},
		{"\xdb\x00\x00\x00\x01a\x01", `"a"`, 1},
		{"\xdd\x00\x00\x00\x01\xc0", `[null]`, 0},
		{"\xdf\x00\x00\x00\x01\xa1a\xc3", `{"a":true}`, 0},
	} {
		v, rest, err := signal.CheckValue([]byte(c.in))
		if err != nil || v.String() != c.want || len(rest) != c.rest {
			t.Errorf("%x: %s, %d bytes left, %v; want %s, %d", c.in, v, len(rest), err, c.want, c.rest)
		}
	}
	nan := msgp.AppendFloat64(nil, math.NaN())
	for _, c := range []struct{ in, why string }{
		{"", "byte 0: cut off"},
		{"\xc1", "no JSON value has"},
		{"\xca\x3f\x80\x00\x00", "no JSON value has"},
		{"\xc4\x01a", "no JSON value has"},
		{"\xd4\x01a", "no JSON value has"},
		{"\xc7\x0c\xff", "no JSON value has"},
		{"\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "not finite"},
		{string(nan), "not finite"},
		{"\x81\x01\x01", "byte 1: a key that is no string"},
		{"\x82\xa1a\x01\xa1a\x02", "byte 5: a key that stands twice"},
		{"\x91\xa1\xff", "byte 1: a string that is not UTF-8"},
		{"\xdb\xff\xff\xff\xffab", "longer than the bytes"},
		{"\xdd\xff\xff\xff\xff\x01", "byte 6: cut off"},
		{"\xdf\xff\xff\xff\xff\xa1a\x01", "byte 8: cut off"},
		{strings.Repeat("\x91", signal.MaxDepth+1), "byte 512: nested too deep"},
		{strings.Repeat("\x81\xa0", 100000), "nested too deep"},
	} {
		_, _, err := signal.CheckValue([]byte(c.in))
		if !errors.Is(err, signal.ErrCorrupt) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.20x: %v, want … %s …", c.in, err, c.why)
		}
	}
}

func TestCheckValueAllocatesNothing(t *testing.T) {
	v := parsed(t, `{"toolName":"web_search","agentId":"a-1","input":{"q":"x","n":[1,2.5,null,{"a":{"b":1}}]}}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, _, err := signal.CheckValue(v); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestValueCutAtEveryLength(t *testing.T) {
	text := `{"a":[1,-200,70000,1.5,18446744073709551615,"` + strings.Repeat("é", 200) + `"],"b":{"c":null,"d":[true]}}`
	for n := range len(text) {
		if _, err := signal.ParseValue([]byte(text[:n])); !errors.Is(err, signal.ErrSyntax) {
			t.Errorf("%d of %d bytes of text: %v, want ErrSyntax", n, len(text), err)
		}
	}
	whole := parsed(t, text)
	for n := range len(whole) {
		if _, _, err := signal.CheckValue(whole[:n]); !errors.Is(err, signal.ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v, want ErrCorrupt", n, len(whole), err)
		}
		walk(whole[:n:n])
		if got := whole[:n:n].Any(); got != nil {
			t.Errorf("Any of %d of %d bytes = %v, want nil", n, len(whole), got)
		}
	}
}

// Bytes that are not a value have no parts: what a reader returns of them is absent.
func TestMalformedValues(t *testing.T) {
	for name, v := range map[string]signal.Value{
		"an object without its member":      {0x81},
		"an object without its value":       {0x81, 0xa1, 'a'},
		"a member whose name is a number":   {0x81, 0x01, 0x01},
		"a member whose value is malformed": {0x81, 0xa1, 'a', 0xc1},
		"an object that claims too many":    {0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1, 'a', 0x01},
		"an array without its element":      {0x91},
		"an array that claims too many":     {0xdd, 0xff, 0xff, 0xff, 0xff, 0x01},
		"an array of a malformed element":   {0x91, 0xc1},
		"a string that is cut":              {0xa2, 'a'},
		"a byte that begins nothing":        {0xc1},
	} {
		if text, err := json.Marshal(v); err == nil {
			t.Errorf("%s: written as %s", name, text)
		}
		if text, ok := v.Text(); ok {
			t.Errorf("%s: Text = %q", name, text)
		}
		if got := v.Any(); got != nil {
			t.Errorf("%s: Any = %v, want nil", name, got)
		}
		if got, ok := v.Lookup("b"); ok || got != nil {
			t.Errorf("%s: b = %v, %t; want nothing", name, got, ok)
		}
		if _, _, err := signal.CheckValue(v); !errors.Is(err, signal.ErrCorrupt) {
			t.Errorf("%s: err = %v, want ErrCorrupt", name, err)
		}
	}
}

// A byte with which no JSON value begins is refused, and so is a float that is not a number. The
// error tells a form of msgpack from a value that is cut off.
func TestBytesThatBeginNoValue(t *testing.T) {
	for b := range 256 {
		_, _, err := signal.CheckValue([]byte{byte(b)})
		switch {
		case b == 0xc1, b == 0xca, 0xc4 <= b && b <= 0xc9, 0xd4 <= b && b <= 0xd8:
			require.ErrorContains(t, err, "a form of msgpack that no JSON value has", "%#x", b)
		case b < 0x80, b == 0x80, b == 0x90, b == 0xa0, b == 0xc0, b == 0xc2, b == 0xc3, b >= 0xe0:
			require.NoError(t, err, "%#x", b)
		case b > 0xa0 && b < 0xc0:
			require.ErrorContains(t, err, "a string longer than the bytes there are", "%#x", b)
		default:
			require.ErrorContains(t, err, "cut off", "%#x", b)
		}
	}
	for _, v := range []signal.Value{
		{0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0},
		{0xcb, 0xff, 0xf0, 0, 0, 0, 0, 0, 0},
		{0x91, 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1},
	} {
		_, _, err := signal.CheckValue(v)
		require.ErrorContains(t, err, "a float that is not finite")
		_, err = json.Marshal(v)
		require.Error(t, err, "%x", []byte(v))
	}
}

// walk calls every reading method of v, and most of them for what is inside
// as well. None may panic, whatever the bytes are.
func walk(v signal.Value) {
	v.Any()
	_ = v.String()
	v.Lookup("a.1")
	visit(v)
}

func visit(v signal.Value) {
	v.Text()
	v.Bool()
	v.Int64()
	v.Float64()
	v.Len()
	v.Get("a")
	for _, m := range v.Members() {
		visit(m)
	}
	for e := range v.Elements() {
		visit(e)
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		n     signal.Number
		json  string
		nanos int64
		ok    bool
	}{
		{signal.Number{}, "null", 0, false},
		{signal.Int(0), "0", 0, true},
		{signal.Int(1738900000000), "1738900000000", 1738900000000_000000, true},
		{signal.Int(-5), "-5", -5_000000, true},
		{signal.Int(9223372036854), "9223372036854", 9223372036854_000000, true},
		{signal.Int(9223372036855), "9223372036855", 0, false},
		{signal.Int(math.MinInt64), "-9223372036854775808", 0, false},
		{signal.Uint(math.MaxUint64), "18446744073709551615", 0, false},
		{signal.Uint(7), "7", 7_000000, true},
		{signal.Float(1738900000000.25), "1738900000000.25", 1738900000000_250000, true},
		{signal.Float(-0.5), "-0.5", -500000, true},
		{signal.Float(1e-7), "1e-07", 0, true},
		{signal.Float(5e-7), "5e-07", 1, true},
		{signal.Float(9223372036854.775), "9223372036854.775", 9223372036854_775391, true},
		{signal.Float(9223372036854.777), "9223372036854.777", 0, false},
		{signal.Float(1e300), "1e+300", 0, false},
		{signal.Float(math.NaN()), "null", 0, false},
		{signal.Float(math.Inf(1)), "null", 0, false},
	} {
		nanos, ok := c.n.Nanos()
		if got := c.n.String(); got != c.json || nanos != c.nanos || ok != c.ok {
			t.Errorf("%s: Nanos %d, %t; want %s: %d, %t", got, nanos, ok, c.json, c.nanos, c.ok)
		}
		if c.n.IsSet() == c.n.IsZero() {
			t.Errorf("%s: IsSet and IsZero agree", c.json)
		}
	}
	if signal.Int(5) == signal.Float(5) || signal.Int(5) != signal.Uint(5) {
		t.Error("5 equals 5.0, or 5 differs from 5")
	}
}

// genJSON draws a JSON text, with every kind of number and string in it.
func genJSON() *rapid.Generator[string] {
	const levels = 3
	number := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(i int64) string { return strconv.FormatInt(i, 10) }),
		rapid.Map(rapid.Uint64(), func(u uint64) string { return strconv.FormatUint(u, 10) }),
		rapid.Map(rapid.Float64(), func(f float64) string { return string(signal.Float(f).AppendJSON(nil)) }),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,9})\.[0-9]{1,6}([eE][+-]?[0-9]{1,2})?`),
	)
	text := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) string { b, _ := json.Marshal(s); return string(b) }),
		rapid.StringMatching(`"([a-z]|\\n|\\u00e9|\\ud83d\\ude00|\\/){0,40}"`),
	)
	scalar := rapid.OneOf(rapid.SampledFrom([]string{"null", "true", "false"}), number, text)
	// The outermost level alone is wide: enough for the longer heads.
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		if depth == 0 {
			return scalar
		}
		most := 3
		if depth == levels {
			most = 18
		}
		return rapid.OneOf(
			scalar,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, most), func(l []string) string { return "[" + strings.Join(l, " ,") + "]" }),
			rapid.Custom(func(t *rapid.T) string {
				keys := rapid.SliceOfNDistinct(rapid.String(), 0, most, rapid.ID).Draw(t, "keys")
				members := make([]string, len(keys))
				for i, k := range keys {
					name, _ := json.Marshal(k)
					members[i] = string(name) + ": " + value(depth-1).Draw(t, "member")
				}
				return "{" + strings.Join(members, ",") + "}"
			}),
		)
	}
	return value(levels)
}

// reference decodes a JSON text by encoding/json, with the rules for numbers.
func reference(text []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return exact(v), err
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				return i
			}
			u, _ := strconv.ParseUint(v.String(), 10, 64)
			return u
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

// Whatever is read is what encoding/json reads, passes the check of untrusted
// bytes, and reads back from its own JSON as the same bytes.
func TestValueRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := genJSON().Draw(t, "json")
		v, err := signal.ParseValue([]byte(text))
		require.NoErrorf(t, err, "%s", text)
		sameAsReference(t, []byte(text), v)
	})
}

func sameAsReference(t rapid.TB, text []byte, v signal.Value) {
	want, err := reference(text)
	if err != nil {
		t.Fatalf("%s: encoding/json: %v", text, err)
	}
	// Not cmp.Diff, whose time doubles with every level of nesting.
	if got := v.Any(); !reflect.DeepEqual(want, got) {
		t.Fatalf("%s: read as %v, encoding/json has %v", text, got, want)
	}
	if _, rest, err := signal.CheckValue(v); err != nil || len(rest) > 0 {
		t.Fatalf("%s: CheckValue leaves %d bytes, %v", text, len(rest), err)
	}
	again, err := signal.ParseValue(v.AppendJSON(nil))
	if err != nil || string(again) != string(v) {
		t.Fatalf("%s: written as %s: %v, %x and %x", text, v, err, []byte(v), []byte(again))
	}
}

package signal_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/signal"
)

// Texts, arrays and objects on both sides of each size at which msgpack changes their
// head: parsed, built and marshaled they are the same bytes, which another library reads
// as encoding/json reads the text, and from which each element is found.
func TestSizes(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536} {
		long := strings.Repeat("x", n)
		list, elements := make([]any, n), make([]signal.Value, n)
		members, object := make(map[string]any, n), make(signal.Object, 0, n)
		for i := range n {
			list[i], elements[i] = float64(i%100), signal.Int(int64(i%100)).Value()
			name := fmt.Sprintf("m%06d", i)
			members[name] = float64(i % 100)
			object = append(object, signal.ObjectMember{Name: name, Value: elements[i]})
		}
		for _, tt := range []struct {
			what  any
			built signal.Value
			kind  signal.ValueKind
		}{
			{long, signal.Text(long), signal.KindString},
			{list, signal.Array(elements...), signal.KindArray},
			{members, object.Value(), signal.KindObject},
		} {
			text, err := json.Marshal(tt.what)
			require.NoError(t, err)
			v, err := signal.ParseValue(text)
			require.NoError(t, err)
			require.True(t, string(v) == string(tt.built), "%s of %d: parsed and built differ", tt.kind, n)
			if n <= 256 { // json.Marshal writes 1.0 as 1
				marshaled, err := signal.Marshal(json.RawMessage(text))
				require.NoError(t, err)
				require.True(t, string(v) == string(marshaled), "%s of %d: parsed and marshaled differ", tt.kind, n)
			}
			require.Equal(t, tt.kind, v.Kind(), n)
			require.Equal(t, n, v.Len(), tt.kind)
			checked, rest, err := signal.CheckValue(append(append(signal.Value{}, v...), 0xc0))
			require.NoError(t, err)
			require.Len(t, rest, 1)
			require.Len(t, checked, len(v))
			require.True(t, string(text) == string(v.AppendJSON(nil)), "%s of %d: written otherwise", tt.kind, n)
			other, err := msgptest.Decode(checked)
			require.NoError(t, err)
			again, err := json.Marshal(other)
			require.NoError(t, err)
			require.True(t, string(text) == string(again), "%s of %d: another library reads it otherwise", tt.kind, n)
			for i := range min(len(v), 200) { // the head and some elements
				_, _, err := signal.CheckValue(v[:i])
				require.Error(t, err, "%s of %d cut to %d bytes", tt.kind, n, i)
			}
		}
		if n > 0 {
			last, ok := object.Value().Get(fmt.Sprintf("m%06d", n-1))
			require.True(t, ok)
			require.Equal(t, fmt.Sprint((n-1)%100), last.String())
		}
	}
}

// A text with an escape is read on a way of its own, to the same bytes.
func TestSizesOfEscapedTexts(t *testing.T) {
	for _, n := range []int{1, 31, 32, 255, 256, 0x1234, 65535, 65536, 0x12345, 1<<24 + 1} {
		text := "\n" + strings.Repeat("x", n-1)
		v, err := signal.ParseValue([]byte(`"\n` + text[1:] + `"`))
		require.NoError(t, err)
		require.True(t, string(v) == string(signal.Text(text)), n)
	}
}

// Numbers, truths, texts and nulls go into a variable of each kind exactly if
// encoding/json lets them, and with its result. Whole floats are left out: encoding/json
// knows no difference between 1 and 1.0.
func TestDecodeScalars(t *testing.T) {
	texts := []string{
		"null", "true", "false", `""`, `"a"`, `"7"`, "[]", "[1]", "{}", `{"a":1}`, "0.5", "-0.25", "1e-7", "3.4028235e38", "3.4028236e38", "1e300",
	}
	for _, bits := range []int{7, 8, 15, 16, 31, 32, 62} {
		for d := int64(-1); d <= 1; d++ {
			texts = append(texts, fmt.Sprint(int64(1)<<bits+d), fmt.Sprint(-(int64(1)<<bits)+d))
		}
	}
	texts = append(texts, "0", "1", "-1", "9223372036854775807", "9223372036854775808", "18446744073709551615", "-9223372036854775808")
	for _, sample := range []any{
		false, 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), uintptr(0), float32(0), 0.0, "",
		[]int8(nil),
		[2]uint8{},
		map[string]uint16(nil),
		struct{ A *int32 }{},
	} {
		typ := reflect.TypeOf(sample)
		for _, text := range texts {
			for _, used := range []bool{false, true} {
				got, want := reflect.New(typ), reflect.New(typ)
				if used { // a variable that has a value already
					for _, v := range []reflect.Value{got, want} {
						switch v.Elem().Kind() {
						case reflect.Bool:
							v.Elem().SetBool(true)
						case reflect.Slice:
							v.Elem().Set(reflect.MakeSlice(typ, 3, 3))
						case reflect.Array:
							v.Elem().Index(1).SetUint(9)
						case reflect.Map:
							v.Elem().Set(reflect.ValueOf(map[string]uint16{"b": 2}))
						case reflect.String:
							v.Elem().SetString("used")
						default:
						}
					}
				}
				value, err := signal.ParseValue([]byte(text))
				require.NoError(t, err, text)
				err, wantErr := value.Decode(got.Interface()), json.Unmarshal([]byte(text), want.Interface())
				if (err == nil) != (wantErr == nil) {
					t.Errorf("%s into %v: got the error %v, want %v", text, typ, err, wantErr)
				} else if err == nil && !reflect.DeepEqual(got.Interface(), want.Interface()) {
					t.Errorf("%s into %v: got %v, want %v", text, typ, got.Elem(), want.Elem())
				}
			}
		}
	}
}

// A session time in milliseconds is read to the nanosecond, up to the last that there is.
func TestNanosBounds(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1e6, "-1": -1e6, "0.5": 5e5, "-0.5": -5e5, "0.000001": 1, "0.0000004": 0, "-0.000001": -1, "1.9999999": 2e6,
		"9223372036854": 9223372036854e6, "-9223372036854": -9223372036854e6,
		"9223372036854.5": 9223372036854.5e6, "-9223372036854.5": -9223372036854.5e6,
	} {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		n, ok := v.Number()
		require.True(t, ok)
		got, ok := n.Nanos()
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"9223372036855", "-9223372036855", "9223372036854.8", "-9223372036854.8", "9223372036855.5", "-9223372036855.5",
		"18446744073709551615", "1e15", "-1e15", "1e300", "-1e300",
	} {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		n, _ := v.Number()
		_, ok := n.Nanos()
		assert.False(t, ok, text)
	}
	_, ok := signal.Number{}.Nanos()
	assert.False(t, ok)
	assert.Less(t, int64(9223372036854e6), int64(math.MaxInt64))
}

// Floats that are written at length are those that strconv reads, zeros inside included.
func TestLongFloats(t *testing.T) {
	for _, text := range []string{
		"105e0003", "1.05e0005", "10005.0e-0004", "0.00105e0003", "100.5000000000000000000000", "1050000000000000000000000e-0020",
		"-1002.003e+0000", "0.000000000000000000000000000001", "9007199254740992.0",
		"10000000000000000000000000.0", "1e0022", "0e99999999999999999999", "-0.0e-99999999999999999999", "0.1000000000000000055511151231257827021181583404541015625e0000",
	} {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err, text)
		want, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		got, ok := v.Float64()
		require.True(t, ok)
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%s: got %v, want %v", text, got, want)
	}
	for _, text := range []string{"1e99999999999999999999", "1e0309", "1e-99999999999999999999", "1e-0400", "0.1000000000000000055511151231257827", "100000000000000005e-0017", "9007199254740993.0", "9007199254740993e0001"} {
		_, err := signal.ParseValue([]byte(text))
		require.Error(t, err, text)
	}
}

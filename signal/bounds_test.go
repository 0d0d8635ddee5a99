package signal_test

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
)

// Surrogates are read in pairs from the first to the last, and each half alone is
// refused.
func TestSurrogates(t *testing.T) {
	for text, want := range map[string]string{
		`"\ud800\udc00"`: "\U00010000", `"\uDBFF\uDFFF"`: "\U0010FFFF", `"\ud800\udfff"`: "\U000103FF", `"\udbff\udc00"`: "\U0010FC00",
		`"\ud7ff"`: "\ud7ff", `"\ue000"`: "\ue000", `"\uFFFF\uffff"`: "\uffff\uffff", `"\u09aF"`: "\u09af",
	} {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err, text)
		got, ok := v.Text()
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		`"\ud800"`, `"\udbff"`, `"\udc00"`, `"\udfff"`, `"\udc00\udc00"`, `"\udbff\udbff"`, `"\ud800\ue000"`, `"\ud800\udbff"`,
		`"\ud800x"`, `"\ud800\n"`, `"\ud800\`, `"\ud800\u"`, `"\ud800\udc0"`,
	} {
		_, err := signal.ParseValue([]byte(text))
		require.ErrorContains(t, err, "half a surrogate pair", text)
	}
	for _, text := range []string{`"\u123g"`, `"\u12"`, "\"\\u00:0\"", "\"\\u00/0\"", "\"\\u00@0\"", "\"\\u00G0\"", "\"\\u00`0\""} {
		_, err := signal.ParseValue([]byte(text))
		require.ErrorContains(t, err, "without four hexadecimal digits", text)
	}
}

// Floats are plain from 1e-6 and below 1e21, as in JavaScript.
func TestFormsOfFloats(t *testing.T) {
	for _, text := range []string{
		"0.000001", "9.99e-07", "-0.000001", "-9.99e-07", "999000000000000000000.0", "1e+21", "-1e+21", "0.0", "1.5", "5e-324",
	} {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, text, string(v.AppendJSON(nil)))
	}
}

// A number has one form, whether it was parsed or marshaled.
func TestMarshalBoundsOfIntegers(t *testing.T) {
	for _, n := range []uint64{0, 1, 127, 128, 255, 256, math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		parsed, err := signal.ParseValue(strconv.AppendUint(nil, n, 10))
		require.NoError(t, err)
		got, err := signal.Marshal(n)
		require.NoError(t, err)
		assert.Equalf(t, []byte(parsed), []byte(got), "%d", n)
		if n <= math.MaxInt64 {
			assert.Equalf(t, signal.KindInt, got.Kind(), "%d", n)
		} else {
			assert.Equalf(t, signal.KindUint, got.Kind(), "%d", n)
		}
	}
}

// Every finite float is marshaled, whatever its size, and is the same float when it is read.
func TestMarshalFloats(t *testing.T) {
	check := func(t require.TestingT, f float64) {
		v, err := signal.Marshal(f)
		require.NoError(t, err, f)
		got, ok := v.Float64()
		require.True(t, ok, f)
		require.Equal(t, f, got)
		text, err := json.Marshal(f)
		require.NoError(t, err)
		if parsed, err := signal.ParseValue(text); err == nil {
			require.Equal(t, []byte(parsed), []byte(v), f)
		}
		var back float64
		require.NoError(t, v.Decode(&back), f)
		require.Equal(t, f, back)

		// The decimal of a float32 is another double, from which the float32 is read.
		single := float32(f)
		if math.IsInf(float64(single), 0) {
			return
		}
		v, err = signal.Marshal(single)
		require.NoError(t, err, single)
		var again float32
		require.NoError(t, v.Decode(&again), single)
		require.Equal(t, single, again)
	}
	for bit := range 64 {
		for _, f := range []float64{math.Ldexp(1, bit), math.Ldexp(1, bit) - 1, math.Nextafter(math.Ldexp(1, bit), 0), math.Pow10(bit)} {
			check(t, f)
			check(t, -f)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, genFloat().Draw(t, "float")) })
}

func TestKindNames(t *testing.T) {
	assert.Equal(t, "object", signal.KindObject.String())
	assert.Equal(t, "absent", signal.KindAbsent.String())
	assert.Equal(t, "unknown", (signal.KindObject + 1).String())
	assert.Equal(t, "string", signal.FieldString.String())
	assert.Equal(t, "object", signal.FieldObject.String())
	for _, k := range []signal.FieldKind{0, signal.FieldObject + 1, 255} {
		assert.Equal(t, "unknown", k.String(), int(k))
	}
}

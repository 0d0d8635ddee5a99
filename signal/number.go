package signal

import (
	"math"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// Number is a JSON number kept exactly: an int64, a uint64 beyond it, or a
// finite double. The zero Number is not a number. Numbers compare with ==, which
// tells 5 from 5.0, and 0.0 from -0.0.
type Number struct {
	kind ValueKind // KindInt, KindUint, KindFloat; KindAbsent for the zero Number
	bits uint64    // the int64, the uint64, the IEEE 754 bits
}

// Int returns the integer i.
func Int(i int64) Number { return Number{KindInt, uint64(i)} }

// Uint returns the integer u.
func Uint(u uint64) Number {
	if u <= math.MaxInt64 {
		return Number{KindInt, u}
	}
	return Number{KindUint, u}
}

// Float returns the double f, or the zero Number if f is infinite or NaN, which
// JSON cannot represent.
func Float(f float64) Number {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Number{}
	}
	return Number{KindFloat, math.Float64bits(f)}
}

// IsSet reports whether n is a number.
func (n Number) IsSet() bool { return n.kind != KindAbsent }

// IsZero reports whether n is the zero Number, which is not the number 0.
func (n Number) IsZero() bool { return n.kind == KindAbsent }

// Kind returns KindInt, KindUint or KindFloat, or KindAbsent for the zero Number.
func (n Number) Kind() ValueKind { return n.kind }

// Float64 returns the double nearest to n, 0 for the zero Number.
func (n Number) Float64() float64 {
	switch n.kind {
	case KindInt:
		return float64(int64(n.bits))
	case KindUint:
		return float64(n.bits)
	case KindFloat:
		return math.Float64frombits(n.bits)
	default:
		return 0
	}
}

// Int64 returns n if it is an integer that fits an int64. A float is not an
// integer, even if it is whole.
func (n Number) Int64() (int64, bool) { return int64(n.bits), n.kind == KindInt }

// Nanos interprets n as a Unix time in milliseconds and returns it in
// nanoseconds, a fraction of a nanosecond rounded half away from zero. It
// returns false when n is not a number or the result does not fit an int64.
func (n Number) Nanos() (int64, bool) {
	const perMilli = 1_000_000
	var ms, frac int64
	switch n.kind {
	case KindInt:
		ms = int64(n.bits)
	case KindFloat:
		whole, part := math.Modf(math.Float64frombits(n.bits))
		if math.Abs(whole) > math.MaxInt64/perMilli+1 {
			return 0, false
		}
		ms, frac = int64(whole), int64(math.Round(float64(part*perMilli)))
	default:
		return 0, false
	}
	if ms > math.MaxInt64/perMilli || ms < math.MinInt64/perMilli {
		return 0, false
	}
	ms *= perMilli
	if frac > 0 && ms > math.MaxInt64-frac || frac < 0 && ms < math.MinInt64-frac {
		return 0, false
	}
	return ms + frac, true
}

// AppendJSON appends n as JSON: an integer as an integer, a float always with
// a point or an exponent, so that reading it gives the same Number. The zero
// Number is null.
func (n Number) AppendJSON(dst []byte) []byte {
	switch n.kind {
	case KindInt:
		return strconv.AppendInt(dst, int64(n.bits), 10)
	case KindUint:
		return strconv.AppendUint(dst, n.bits, 10)
	case KindFloat:
		return appendFloat(dst, math.Float64frombits(n.bits))
	default:
		return append(dst, "null"...)
	}
}

// String returns n as JSON.
func (n Number) String() string { return string(n.AppendJSON(nil)) }

// Append appends n as msgpack; the zero Number as nil.
func (n Number) Append(dst []byte) []byte {
	switch n.kind {
	case KindInt:
		return msgp.AppendInt64(dst, int64(n.bits))
	case KindUint:
		return msgp.AppendUint64(dst, n.bits)
	case KindFloat:
		return msgp.AppendFloat64(dst, math.Float64frombits(n.bits))
	default:
		return msgp.AppendNil(dst)
	}
}

// Value returns n as a value, null for the zero Number.
func (n Number) Value() Value { return n.Append(nil) }

// appendFloat writes the shortest digits that read back as f, plain between
// 1e-6 and 1e21 as JavaScript does, and always as something that is not an
// integer literal.
func appendFloat(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, '.', '0')
}

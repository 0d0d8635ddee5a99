package jsondoc

import (
	"math"
	"strconv"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/signal"
)

// AppendCanonical appends v as canonical JSON: members in the order of their
// names' code points, no blanks, text as it is but for what JSON must escape,
// integers as integers, floats always with a point or an exponent: 2.0, not 2.
// The absent value is null.
//
// The form of a float is its shortest digits, written plainly from 1e-5 up to
// 1e16 and else with an exponent without a plus: 1e16, 1.5e-7. The encoder of the
// multi-agent design, "Event Log Schema", writes this form, so checksums agree with it.
func AppendCanonical(dst []byte, v signal.Value) []byte {
	switch v.Kind() {
	case signal.KindFloat:
		f, _ := v.Float64()
		return appendFloat(dst, f)
	case signal.KindArray:
		dst = append(dst, '[')
		first := true
		for e := range v.Elements() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = AppendCanonical(dst, e)
		}
		return append(dst, ']')
	case signal.KindObject:
		dst = append(dst, '{')
		for i, m := range jsonvalue.SortedFields(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendText(dst, m.Name)
			dst = append(dst, ':')
			dst = AppendCanonical(dst, m.Value)
		}
		return append(dst, '}')
	default:
		return v.AppendJSON(dst)
	}
}

// AppendText appends a JSON string.
func AppendText(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' {
			return jsonvalue.Text(s).AppendJSON(dst)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendFloat(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-5 || abs >= 1e16) {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// strconv writes at least two digits and always a sign: 1e+16, 1e-07.
		for i := start; i < len(dst); i++ {
			if dst[i] != 'e' {
				continue
			}
			digits := i + 2
			for digits < len(dst)-1 && dst[digits] == '0' {
				digits++
			}
			tail := string(dst[digits:])
			if dst[i+1] == '-' {
				return append(append(dst[:i], "e-"...), tail...)
			}
			return append(append(dst[:i], 'e'), tail...)
		}
		return dst
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

package mcap

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// members is a part of a view that is read member by member, which makes no maps: the
// stage and its entities are some thousand values at each of the moments of a session.
type members interface {
	Names() []string
	Member(name string) (any, bool)
}

// appendView appends a value of a view as JSON. The members of an object are in the order
// of Names, or sorted if it is a map. The error is that of a number that JSON does not have.
func appendView(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case members:
		return appendMembers(dst, v.Names(), v.Member)
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		return appendMembers(dst, names, func(name string) (any, bool) { return v[name], true })
	case string:
		return appendText(dst, v), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		if abs := math.Abs(v); abs < 1e15 && (abs >= 1e-6 || abs == 0) { // otherwise with an exponent, or no number
			return strconv.AppendFloat(dst, v, 'f', -1, 64), nil
		}
	case []any:
		dst = append(dst, '[')
		for i := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendView(dst, v[i]); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
	data, err := json.Marshal(v)
	return append(dst, data...), err
}

func appendMembers(dst []byte, names []string, member func(string) (any, bool)) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for _, name := range names {
		m, ok := member(name)
		if !ok {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		var err error
		if dst, err = appendView(append(appendText(dst, name), ':'), m); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendText appends a text as JSON. One without a character that has to be escaped, as
// most are, needs no copy.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			data, _ := json.Marshal(s) // a string always has a JSON form
			return append(dst, data...)
		}
	}
	dst = append(append(dst, '"'), s...)
	return append(dst, '"')
}

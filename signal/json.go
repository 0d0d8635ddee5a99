package signal

import "errors"

// AppendJSON appends v as compact JSON that reads back as the same value:
// integers as integers, floats with a point or an exponent, members in their
// order. The absent value, and one that is malformed, is null. The text of another value
// has at most six bytes for each of its bytes, which a control character takes.
func (v Value) AppendJSON(dst []byte) []byte {
	start := len(dst)
	dst, size := appendValue(dst, v, 0)
	if size == 0 {
		return append(dst[:start], "null"...)
	}
	return dst
}

// String returns v as compact JSON.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

// MarshalJSON implements [encoding/json.Marshaler]. Only malformed bytes give
// an error; the absent value is null.
func (v Value) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	dst, size := appendValue(nil, v, 0)
	if size == 0 || size != len(v) {
		return nil, errors.New("signal: marshal a malformed value")
	}
	return dst, nil
}

// UnmarshalJSON implements [encoding/json.Unmarshaler] with the rules of
// [ParseValue]. It never makes v absent: JSON's null is the null value.
func (v *Value) UnmarshalJSON(b []byte) error {
	parsed, err := ParseValue(b)
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}

// appendValue writes the value at the front of b as JSON and returns its
// size, 0 if it is malformed or nested deeper than MaxDepth.
func appendValue(dst, b []byte, depth int) ([]byte, int) {
	k, n, i := readHead(b)
	if i == 0 {
		return dst, 0
	}
	switch k {
	case KindNull:
		dst = append(dst, "null"...)
	case KindBool:
		if n == 1 {
			dst = append(dst, "true"...)
		} else {
			dst = append(dst, "false"...)
		}
	case KindInt, KindUint, KindFloat:
		number, ok := Value(b).Number()
		if !ok {
			return dst, 0
		}
		dst = number.AppendJSON(dst)
	case KindString:
		s, size := readText(b)
		if size == 0 {
			return dst, 0
		}
		return appendText(dst, s), size
	default: // array, object
		if depth == MaxDepth {
			return dst, 0
		}
		ends := "[]"
		if k == KindObject {
			ends = "{}"
		}
		dst = append(dst, ends[0])
		for j := range n {
			if j > 0 {
				dst = append(dst, ',')
			}
			if k == KindObject {
				name, size := readText(b[i:])
				if size == 0 {
					return dst, 0
				}
				dst = append(appendText(dst, name), ':')
				i += size
			}
			var size int
			if dst, size = appendValue(dst, b[i:], depth+1); size == 0 {
				return dst, 0
			}
			i += size
		}
		dst = append(dst, ends[1])
	}
	return dst, i
}

// appendText writes a JSON string. It escapes only the characters that
// JSON requires; s is UTF-8.
func appendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

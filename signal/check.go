package signal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// ErrCorrupt is wrapped by errors about MessagePack bytes that are not a value, or
// not a signal, in the form that this package writes.
var ErrCorrupt = errors.New("corrupt")

// readHead reads the first bytes of a msgpack value: its kind, its bits (a
// bool, an int64, a uint64, a double) or its length, and the size of this head.
// The size is 0 if b is too short or starts with a form that a Value cannot have.
func readHead(b []byte) (kind ValueKind, n uint64, size int) {
	if len(b) == 0 {
		return KindAbsent, 0, 0
	}
	c := b[0]
	switch {
	case c <= 0x7f:
		return KindInt, uint64(c), 1
	case c <= 0x8f:
		return KindObject, uint64(c & 0x0f), 1
	case c <= 0x9f:
		return KindArray, uint64(c & 0x0f), 1
	case c <= 0xbf:
		return KindString, uint64(c & 0x1f), 1
	case c >= 0xe0:
		return KindInt, uint64(int64(int8(c))), 1
	}
	switch c {
	case 0xc0:
		return KindNull, 0, 1
	case 0xc2, 0xc3:
		return KindBool, uint64(c & 1), 1
	case 0xcc, 0xd0, 0xd9:
		if len(b) >= 2 {
			n, size = uint64(b[1]), 2
		}
	case 0xcd, 0xd1, 0xda, 0xdc, 0xde:
		if len(b) >= 3 {
			n, size = uint64(binary.BigEndian.Uint16(b[1:])), 3
		}
	case 0xce, 0xd2, 0xdb, 0xdd, 0xdf:
		if len(b) >= 5 {
			n, size = uint64(binary.BigEndian.Uint32(b[1:])), 5
		}
	case 0xcb, 0xcf, 0xd3:
		if len(b) >= 9 {
			n, size = binary.BigEndian.Uint64(b[1:]), 9
		}
	}
	switch c {
	case 0xcb:
		return KindFloat, n, size
	case 0xcc, 0xcd, 0xce, 0xd3:
		return KindInt, n, size
	case 0xcf:
		if n > math.MaxInt64 {
			return KindUint, n, size
		}
		return KindInt, n, size
	case 0xd0:
		return KindInt, uint64(int64(int8(n))), size
	case 0xd1:
		return KindInt, uint64(int64(int16(n))), size
	case 0xd2:
		return KindInt, uint64(int64(int32(n))), size
	case 0xd9, 0xda, 0xdb:
		return KindString, n, size
	case 0xdc, 0xdd:
		return KindArray, n, size
	case 0xde, 0xdf:
		return KindObject, n, size
	}
	return KindAbsent, 0, 0
}

// finite reports whether the bits of a double are those of a number.
func finite(bits uint64) bool { return bits&(0x7ff<<52) != 0x7ff<<52 }

// readText returns the string at the front of b and its whole size, 0 if
// there is none.
func readText(b []byte) (string, int) {
	k, n, size := readHead(b)
	if size == 0 || k != KindString || n > uint64(len(b)-size) {
		return "", 0
	}
	end := size + int(n)
	return view(b[size:end]), end
}

// extent returns the size of the value at the front of b, 0 if it is cut off
// or no value. It counts the values still to come and so needs no stack.
func extent(b []byte) int {
	i := 0
	for left := uint64(1); left > 0; left-- {
		k, n, size := readHead(b[i:])
		if size == 0 {
			return 0
		}
		i += size
		switch k {
		case KindString:
			if n > uint64(len(b)-i) {
				return 0
			}
			i += int(n)
		case KindArray:
			left += n
		case KindObject:
			left += 2 * n
		default:
		}
	}
	return i
}

// span is a part of a byte slice shorter than 4 GiB.
type span struct{ start, end uint32 }

func (s span) of(b []byte) []byte { return b[s.start:s.end] }

// keyStack holds the keys of the objects that are open, innermost last. The
// first few are kept in an array of the struct, not in a slice of that array: a
// slice stored through a pointer would move the struct to the heap, and reading an
// ordinary value must not allocate.
type keyStack struct {
	few  [24]span
	n    int    // of those in few, while many is nil
	many []span // all of them, once there were too many
}

func (k *keyStack) push(s span) {
	switch {
	case k.many != nil:
		k.many = append(k.many, s)
	case k.n < len(k.few):
		k.few[k.n] = s
		k.n++
	default:
		k.many = append(append(make([]span, 0, 4*len(k.few)), k.few[:]...), s)
	}
}

func (k *keyStack) len() int {
	if k.many != nil {
		return len(k.many)
	}
	return k.n
}

// from returns the keys above the first ones, to be used before the next push.
func (k *keyStack) from(first int) []span {
	if k.many != nil {
		return k.many[first:]
	}
	return k.few[first:k.n]
}

// cut drops the keys above the first ones.
func (k *keyStack) cut(first int) {
	if k.many != nil {
		k.many = k.many[:first]
		return
	}
	k.n = first
}

// duplicate returns one of two equal keys, if there are two. It may reorder keys.
// Few keys are compared in pairs; many are sorted, so that an object made of
// keys cannot cost the square of its size.
func duplicate(b []byte, keys []span) (span, bool) {
	if len(keys) <= 16 {
		for i, k := range keys {
			for _, l := range keys[:i] {
				if k.end-k.start == l.end-l.start && string(k.of(b)) == string(l.of(b)) {
					return k, true
				}
			}
		}
		return span{}, false
	}
	slices.SortFunc(keys, func(x, y span) int { return bytes.Compare(x.of(b), y.of(b)) })
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i-1].of(b), keys[i].of(b)) {
			return keys[i], true
		}
	}
	return span{}, false
}

// CheckValue checks bytes of unknown origin: it returns the one complete value
// at the front of b and the bytes after it, both as views of b.
//
// It refuses, with an error that wraps [ErrCorrupt] and names the offset, all
// msgpack that no JSON text can give: binary data, extensions and timestamps,
// 32-bit floats, keys that are not strings or occur twice in one object, text that
// is not UTF-8, infinities, nesting beyond [MaxDepth]. It allocates nothing,
// except to find equal keys among the many of a large object.
func CheckValue(b []byte) (Value, []byte, error) {
	n, err := checkAt(b, 0, MaxDepth)
	if err != nil {
		return nil, nil, err
	}
	return b[:n:n], b[n:], nil
}

// checkAt is CheckValue for the value at b[i:], with a bound on the depth. It
// returns where the value ends.
func checkAt(b []byte, i, maxDepth int) (int, error) {
	c := checker{b: b, i: i}
	if uint64(len(b)) > math.MaxUint32 {
		return 0, corrupt(0, "4 GiB or more")
	}
	if why := c.value(maxDepth); why != "" {
		return 0, corrupt(c.i, why)
	}
	return c.i, nil
}

func corrupt(offset int, why string) error {
	return fmt.Errorf("signal: byte %d: %s: %w", offset, why, ErrCorrupt)
}

// checker walks over one value.
type checker struct {
	b    []byte
	i    int
	keys keyStack
}

// value checks the value at c.i and moves behind it. It returns the fault, "" if
// there is none, with c.i near the place. depth is how many levels may be opened.
func (c *checker) value(depth int) string {
	// Most values are short strings and small integers.
	if c.i < len(c.b) {
		switch t := c.b[c.i]; {
		case t <= 0x7f:
			c.i++
			return ""
		case t&0xe0 == 0xa0:
			return c.text(uint64(t&0x1f), 1)
		}
	}
	k, n, size := readHead(c.b[c.i:])
	if size == 0 {
		return c.noHead()
	}
	switch k {
	case KindFloat:
		if !finite(n) {
			return "a float that is not finite"
		}
	case KindString:
		return c.text(n, size)
	case KindArray:
		if depth == 0 {
			return "nested too deep"
		}
		c.i += size
		for ; n > 0; n-- {
			if why := c.value(depth - 1); why != "" {
				return why
			}
		}
		return ""
	case KindObject:
		if depth == 0 {
			return "nested too deep"
		}
		return c.object(n, size, depth-1)
	default:
	}
	c.i += size
	return ""
}

func (c *checker) noHead() string {
	if c.i == len(c.b) {
		return "cut off"
	}
	switch t := c.b[c.i]; {
	case t == 0xc1, t == 0xca, t >= 0xc4 && t <= 0xc9, t >= 0xd4 && t <= 0xd8:
		return "a form of msgpack that no JSON value has"
	default:
		return "cut off"
	}
}

func (c *checker) text(n uint64, size int) string {
	if n > uint64(len(c.b)-c.i-size) {
		return "a string longer than the bytes there are"
	}
	text := c.b[c.i+size : c.i+size+int(n)]
	var high byte
	if n <= 31 {
		for _, b := range text {
			high |= b
		}
	}
	if (n > 31 || high >= utf8.RuneSelf) && !utf8.Valid(text) {
		return "a string that is not UTF-8"
	}
	c.i += size + int(n)
	return ""
}

func (c *checker) object(n uint64, size, depth int) string {
	first := c.keys.len()
	c.i += size
	for ; n > 0; n-- {
		// Most keys are short, so their head is the most frequent of all.
		k, l, size := KindString, uint64(0), 1
		if c.i < len(c.b) && c.b[c.i]&0xe0 == 0xa0 {
			l = uint64(c.b[c.i] & 0x1f)
		} else if k, l, size = readHead(c.b[c.i:]); size == 0 {
			return c.noHead()
		}
		if k != KindString {
			return "a key that is no string"
		}
		if why := c.text(l, size); why != "" {
			return why
		}
		c.keys.push(span{uint32(c.i - int(l)), uint32(c.i)})
		if why := c.value(depth); why != "" {
			return why
		}
	}
	if k, twice := duplicate(c.b, c.keys.from(first)); twice {
		c.i = int(k.start)
		return "a key that stands twice in one object"
	}
	c.keys.cut(first)
	return ""
}

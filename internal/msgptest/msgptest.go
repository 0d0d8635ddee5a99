// Package msgptest replaces parts of msgpack values, for tests of readers of untrusted
// bytes, and decodes values with a library other than the one that wrote them.
package msgptest

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/tinylib/msgp/msgp"
	"github.com/vmihailenco/msgpack/v5"
)

// Decode decodes one value with a library that shares no code with the writers and
// readers under test. The result has the types of signal.Value.Any.
//
// The library allocates as much as the lengths in the bytes claim. The caller must
// have checked those lengths against the bytes.
func Decode(checked []byte) (any, error) {
	rest := bytes.NewReader(checked)
	d := msgpack.NewDecoder(rest)
	d.UseLooseInterfaceDecoding(true) // int64 and uint64 for every size
	v, err := d.DecodeInterfaceLoose()
	if err == nil && rest.Len() > 0 {
		err = fmt.Errorf("%d bytes after the value", rest.Len())
	}
	return plain(v), err
}

// plain converts unsigned integers that fit into int64, in v and in its elements.
func plain(v any) any {
	switch v := v.(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	case map[string]any:
		for name, e := range v {
			v[name] = plain(e)
		}
	}
	return v
}

// Span is the range of a value's bytes.
type Span struct{ Start, End int }

// Spans returns the spans of the value that begins at from and of all values in it, in
// order, the outer ones first. It stops at bytes that are not a value.
func Spans(b []byte, from int) []Span {
	rest, err := msgp.Skip(b[from:])
	if err != nil {
		return nil
	}
	list := []Span{{from, len(b) - len(rest)}}
	for _, s := range elements(b, from) {
		list = append(list, Spans(b, s.Start)...)
	}
	return list
}

// elements returns the spans of an array's elements, or of an object's keys and values
// in turn.
func elements(b []byte, from int) (list []Span) {
	var count uint32
	inner := b[from:]
	var err error
	switch msgp.NextType(inner) {
	case msgp.ArrayType:
		count, inner, err = msgp.ReadArrayHeaderBytes(inner)
	case msgp.MapType:
		count, inner, err = msgp.ReadMapHeaderBytes(inner)
		count *= 2
	default:
	}
	for ; err == nil && count > 0; count-- {
		start := len(b) - len(inner)
		if inner, err = msgp.Skip(inner); err == nil {
			list = append(list, Span{start, len(b) - len(inner)})
		}
	}
	return list
}

// At returns the span of the value at a path of indexes. It panics if there is none,
// because then the test is wrong.
func At(b []byte, path ...int) Span {
	s := Span{0, len(b)}
	for i, n := range path {
		list := elements(b, s.Start)
		if n >= len(list) {
			panic(fmt.Sprintf("msgptest: %v leads nowhere: there are %d elements", path[:i+1], len(list)))
		}
		s = list[n]
	}
	return s
}

// Get returns the bytes of the value at a path.
func Get(b []byte, path ...int) []byte {
	s := At(b, path...)
	return b[s.Start:s.End]
}

// Put returns b with the bytes of a span replaced by value.
func Put(b []byte, at Span, value []byte) []byte {
	return slices.Concat(b[:at.Start], value, b[at.End:])
}

// Set returns b with the value at a path replaced by value.
func Set(b, value []byte, path ...int) []byte { return Put(b, At(b, path...), value) }

// Swap returns b with two elements of an array swapped.
func Swap(b []byte, i, j int, path ...int) []byte {
	x, y := append(slices.Clone(path), i), append(slices.Clone(path), j)
	one, other := slices.Clone(Get(b, x...)), slices.Clone(Get(b, y...))
	return Set(Set(b, other, x...), one, y...)
}

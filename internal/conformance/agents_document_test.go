package conformance

import (
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

// node is one value of a scenario's file. It records whether a judge has read it, so
// that values that none reads can be reported. The nil node is an absent value; all
// methods may be called on it.
type node struct {
	value signal.Value
	names []string // of members
	parts []*node  // elements, or the values of members
	asked bool
	whole bool // read with everything in it
	odd   bool // read as another kind than its own
}

func newNode(v signal.Value) *node {
	n := &node{value: v}
	for e := range v.Elements() {
		n.parts = append(n.parts, newNode(e))
	}
	for name, m := range v.Members() {
		n.names = append(n.names, name)
		n.parts = append(n.parts, newNode(m))
	}
	return n
}

// get returns the first of the named members that is there.
func (n *node) get(names ...string) *node {
	if n == nil {
		return nil
	}
	for _, name := range names {
		for i, m := range n.names {
			if m == name {
				n.asked, n.parts[i].asked = true, true
				return n.parts[i]
			}
		}
	}
	return nil
}

// given reports whether there is a value that is not null.
func (n *node) given() bool { return n.kind() > signal.KindNull }

func (n *node) kind() signal.ValueKind {
	if n == nil {
		return signal.KindAbsent
	}
	n.asked = true
	return n.value.Kind()
}

// all returns the value with everything in it; nil if it is not there.
func (n *node) all() signal.Value {
	if n == nil {
		return nil
	}
	n.asked, n.whole = true, true
	return n.value
}

func (n *node) String() string {
	if n == nil {
		return "nothing"
	}
	return n.value.String()
}

// text, number, integer and truth return what n is; zero, noted as odd, if it
// is there but something else.
func (n *node) text() string {
	s, ok := n.all().Text()
	n.fits(ok)
	return s
}

func (n *node) number() float64 {
	f, ok := n.all().Float64()
	n.fits(ok)
	return f
}

// integer takes 5.0 for 5.
func (n *node) integer() int64 {
	i, ok := n.all().Int64()
	if f, float := n.all().Float64(); !ok && float && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		i, ok = int64(f), true
	}
	n.fits(ok)
	return i
}

func (n *node) truth() bool {
	b, ok := n.all().Bool()
	n.fits(ok)
	return b
}

func (n *node) fits(ok bool) {
	if !ok && n.given() {
		n.odd = true
	}
}

// texts returns the strings of an array, or the one string that n is.
func (n *node) texts() []string {
	if n.kind() == signal.KindString {
		return []string{n.text()}
	}
	var list []string
	for e := range n.elements() {
		list = append(list, e.text())
	}
	return list
}

func (n *node) millis() time.Duration { return duration(n.number(), time.Millisecond) }

func (n *node) seconds() time.Duration { return duration(n.number(), time.Second) }

// duration returns f units, rounded to nanoseconds and limited to the range of a time.Duration.
func duration(f float64, unit time.Duration) time.Duration {
	const most = 1 << 62
	ns := math.Round(float64(f * float64(unit)))
	return time.Duration(min(max(ns, -most), most))
}

func (n *node) elements() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		if n.kind() != signal.KindArray {
			return
		}
		for _, e := range n.parts {
			e.asked = true
			if !yield(e) {
				return
			}
		}
	}
}

func (n *node) members() iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) {
		if n.kind() != signal.KindObject {
			return
		}
		for i, name := range n.names {
			n.parts[i].asked = true
			if !yield(name, n.parts[i]) {
				return
			}
		}
	}
}

func (n *node) len() int {
	if n == nil {
		return 0
	}
	return len(n.parts)
}

// unasked returns the paths of the values that no judge has read, except remarks.
func (n *node) unasked(path string) []string {
	switch {
	case n == nil || n.whole && !n.odd:
		return nil
	case !n.asked || n.odd:
		return []string{path}
	}
	var paths []string
	for i, p := range n.parts {
		name := strconv.Itoa(i)
		if len(n.names) > 0 {
			name = n.names[i]
		}
		switch name {
		case "note", "notes", "comment", "why":
		default:
			paths = append(paths, p.unasked(path+"/"+name)...)
		}
	}
	return paths
}

func canonical(v signal.Value) string { return string(jsondoc.AppendCanonical(nil, v)) }

// equalValues compares as JSON does: numbers are equal if their values are.
func equalValues(a, b signal.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	_, err := jsondoc.ApplyPatch(a, []jsondoc.Operation{{Op: "test", Path: "", Value: b}})
	return err == nil
}

// includes reports whether v has all that want has: of an object the members
// that want names, of anything else the whole.
func includes(v, want signal.Value) bool {
	if want.Kind() != signal.KindObject || v.Kind() != signal.KindObject {
		return equalValues(v, want)
	}
	for name, m := range want.Members() {
		if other, ok := v.Get(name); !ok || !includes(other, m) {
			return false
		}
	}
	return true
}

// made returns the value of a Go value that encoding/json can encode.
func made(v any) signal.Value {
	data, err := json.Marshal(v)
	if err != nil {
		panic("conformance: " + err.Error())
	}
	value, err := signal.ParseValue(data)
	if err != nil {
		panic("conformance: " + err.Error())
	}
	return value
}

type document = map[string]any

func canon(word string) string {
	return strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(word), " ", "_"))
}

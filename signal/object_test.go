package signal_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
)

// An object that is built has the bytes of the same object parsed.
func TestObject(t *testing.T) {
	got := signal.NewObject(2).Text("text", "é").Int("int", -1).Uint("uint", 1<<63).Float("float", 5).Bool("bool", true).
		Add("null", signal.Null()).Add("absent", nil).Add("array", signal.Array(signal.Text("a"), signal.Int(1).Value())).
		Add("texts", signal.Array(signal.Text("b"), signal.Text("c"))).Add("empty", new(signal.Object).Value()).Value()
	want := parsed(t, `{"text":"é","int":-1,"uint":9223372036854775808,"float":5.0,"bool":true,"null":null,"array":["a",1],"texts":["b","c"],"empty":{}}`)
	if !bytes.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestObjectIsEdited(t *testing.T) {
	o := signal.ObjectOf(parsed(t, `{"c":1,"a":2,"b":3}`))
	o.Set("a", signal.Text("x")).Set("d", signal.Null())
	o.Remove("c")
	o.Remove("missing")
	o.Sort()
	if got, want := o.Value().String(), `{"a":"x","b":3,"d":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if o := signal.ObjectOf(signal.Text("no object")); len(o) != 0 {
		t.Errorf("a string has the members %v", o)
	}
	if o := signal.ObjectOf(signal.Value{0xdf, 0xff, 0xff, 0xff, 0xff}); len(o) != 0 {
		t.Errorf("an object that is cut off has the members %v", o)
	}
}

// Sort orders the members of any object by name, and keeps those of one name in order.
func TestSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o signal.Object
		for i, name := range rapid.SliceOfN(rapid.StringMatching("[a-c]{0,2}"), 0, 8).Draw(t, "names") {
			o.Int(name, int64(i))
		}
		want := slices.Clone(o)
		slices.SortStableFunc(want, func(a, b signal.ObjectMember) int { return strings.Compare(a.Name, b.Name) })
		o.Sort()
		require.Equal(t, want, o)
	})
}

// A member that is missing or of another kind reads as the zero value.
func TestMembers(t *testing.T) {
	v := parsed(t, `{"text":"a","int":5,"float":5.0,"bool":true}`)
	type members struct {
		Text string
		Int  int64
		Bool bool
	}
	for name, want := range map[string]members{
		"text":    {Text: "a"},
		"int":     {Int: 5},
		"float":   {},
		"bool":    {Bool: true},
		"missing": {},
	} {
		got := members{v.TextOf(name), v.IntOf(name), v.BoolOf(name)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if member, ok := v.Get(name); ok != (v.Member(name) != nil) || !bytes.Equal(member, v.Member(name)) {
			t.Errorf("%s: Member gives %s, Get %s", name, v.Member(name), member)
		}
	}
	if got := signal.Text("no object").TextOf("text"); got != "" {
		t.Errorf("a string has the member %q", got)
	}
}

func BenchmarkObject(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = signal.NewObject(4).Text("agent_id", "anna").Text("req_id", "r-1").Int("turn", 7).Bool("again", true).Value()
	}
}

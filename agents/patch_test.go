package agents_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// patchTests go through RFC 6902 operation by operation, its appendix included.
// An empty want means that the patch must be refused.
var patchTests = []struct{ name, doc, patch, want string }{
	{"add a member", `{"a":1}`, `[{"op":"add","path":"/b","value":2}]`, `{"a":1,"b":2}`},
	{"add over a member", `{"a":1}`, `[{"op":"add","path":"/a","value":null}]`, `{"a":null}`},
	{"add an element", `{"a":[1,3]}`, `[{"op":"add","path":"/a/1","value":2}]`, `{"a":[1,2,3]}`},
	{"add after the last", `{"a":[1]}`, `[{"op":"add","path":"/a/1","value":2}]`, `{"a":[1,2]}`},
	{"add at the end", `[1]`, `[{"op":"add","path":"/-","value":[2]}]`, `[1,[2]]`},
	{"add past the end", `[1]`, `[{"op":"add","path":"/2","value":2}]`, ``},
	{"add the whole", `{"a":1}`, `[{"op":"add","path":"","value":7}]`, `7`},
	{"add into what is not there", `{"a":1}`, `[{"op":"add","path":"/b/c","value":1}]`, ``},
	{"add into a scalar", `{"a":1}`, `[{"op":"add","path":"/a/b","value":1}]`, ``},
	{"add a null", `{}`, `[{"op":"add","path":"/a","value":null}]`, `{"a":null}`},
	{"add without a value", `{}`, `[{"op":"add","path":"/a"}]`, ``},
	{"add to the empty name", `{}`, `[{"op":"add","path":"/","value":1}]`, `{"":1}`},
	{"add a nested one", `{"a":1}`, `[{"op":"add","path":"/b","value":{"c":{}}},{"op":"add","path":"/b/c/d","value":[]}]`, `{"a":1,"b":{"c":{"d":[]}}}`},
	{"remove a member", `{"a":1,"b":2}`, `[{"op":"remove","path":"/b"}]`, `{"a":1}`},
	{"remove an element", `[1,2,3]`, `[{"op":"remove","path":"/1"}]`, `[1,3]`},
	{"remove what is not there", `{"a":1}`, `[{"op":"remove","path":"/b"}]`, ``},
	{"remove past the end", `[1]`, `[{"op":"remove","path":"/1"}]`, ``},
	{"remove the end", `[1]`, `[{"op":"remove","path":"/-"}]`, ``},
	{"remove the whole", `[1]`, `[{"op":"remove","path":""}]`, ``},
	{"replace a member", `{"a":1,"b":2}`, `[{"op":"replace","path":"/a","value":{"c":3}}]`, `{"a":{"c":3},"b":2}`},
	{"replace an element", `[1,2]`, `[{"op":"replace","path":"/0","value":5}]`, `[5,2]`},
	{"replace the whole", `[1]`, `[{"op":"replace","path":"","value":{}}]`, `{}`},
	{"replace what is not there", `{}`, `[{"op":"replace","path":"/a","value":1}]`, ``},
	{"move a member", `{"a":{"b":1},"c":{}}`, `[{"op":"move","from":"/a/b","path":"/c/d"}]`, `{"a":{},"c":{"d":1}}`},
	{"move an element", `["a","b","c","d"]`, `[{"op":"move","from":"/1","path":"/3"}]`, `["a","c","d","b"]`},
	{"move to itself", `{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
	{"move into itself", `{"a":{"b":{}}}`, `[{"op":"move","from":"/a","path":"/a/b/c"}]`, ``},
	{"move what is not there", `{}`, `[{"op":"move","from":"/a","path":"/b"}]`, ``},
	{"move over another", `{"a":1,"b":2}`, `[{"op":"move","from":"/a","path":"/b"}]`, `{"b":1}`},
	{"copy", `{"a":{"b":[1]}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b/-","value":2}]`, `{"a":{"b":[1]},"c":{"b":[1,2]}}`},
	{"copy into itself", `{"a":{}}`, `[{"op":"copy","from":"/a","path":"/a/b"}]`, `{"a":{"b":{}}}`},
	{"copy without from", `{"a":1}`, `[{"op":"copy","path":"/b"}]`, ``},
	{"test holds", `{"a":["x",2,{"p":1,"q":null}]}`, `[{"op":"test","path":"/a","value":["x",2.0,{"q":null,"p":1}]}]`, `{"a":["x",2,{"p":1,"q":null}]}`},
	{"test fails", `{"a":"x"}`, `[{"op":"test","path":"/a","value":"y"}]`, ``},
	{"test number and text", `{"a":"10"}`, `[{"op":"test","path":"/a","value":10}]`, ``},
	{"test of great numbers", `[9007199254740993]`, `[{"op":"test","path":"/0","value":9007199254740992.0}]`, ``},
	{"test of what is not there", `{}`, `[{"op":"test","path":"/a","value":null}]`, ``},
	{"a test that fails undoes all", `{"a":1}`, `[{"op":"replace","path":"/a","value":2},{"op":"test","path":"/a","value":1}]`, ``},
	{"escapes", `{"/":9,"~1":10,"~":1}`, `[{"op":"test","path":"/~01","value":10},{"op":"remove","path":"/~1"},{"op":"remove","path":"/~0"}]`, `{"~1":10}`},
	{"a bad escape", `{"~2":1}`, `[{"op":"remove","path":"/~2"}]`, ``},
	{"a half escape", `{"~":1}`, `[{"op":"remove","path":"/~"}]`, ``},
	{"no pointer", `{"a":1}`, `[{"op":"remove","path":"a"}]`, ``},
	{"a leading zero", `[1,2]`, `[{"op":"remove","path":"/01"}]`, ``},
	{"a sign", `[1,2]`, `[{"op":"remove","path":"/+1"}]`, ``},
	{"a name for an index", `[1,2]`, `[{"op":"add","path":"/one","value":1}]`, ``},
	{"an index as a name", `{"0":1}`, `[{"op":"replace","path":"/0","value":2}]`, `{"0":2}`},
	{"members of no use", `{}`, `[{"op":"add","path":"/a","value":1,"from":7,"xyz":1}]`, `{"a":1}`},
	{"an unknown op", `{}`, `[{"op":"put","path":"/a","value":1}]`, ``},
	{"no op", `{}`, `[{"path":"/a","value":1}]`, ``},
	{"no array", `{}`, `{"op":"add","path":"/a","value":1}`, ``},
	{"no operation", `{}`, `[7]`, ``},
	{"nothing to do", `{"a":1}`, `[]`, `{"a":1}`},
	{
		"many members", `{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0}`,
		`[{"op":"remove","path":"/a"},{"op":"add","path":"/r","value":1},{"op":"add","path":"/s","value":1},{"op":"remove","path":"/q"},{"op":"replace","path":"/s","value":2}]`,
		`{"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"r":1,"s":2}`,
	},
}

// TestPatch applies the patches of the table. A refused one leaves the document
// as it was, to the byte.
func TestPatch(t *testing.T) {
	for _, tt := range patchTests {
		t.Run(tt.name, func(t *testing.T) {
			doc := parse(t, tt.doc)
			before := bytes.Clone(doc)
			got, err := applyPatch(doc, parse(t, tt.patch))
			if !bytes.Equal(before, doc) {
				t.Errorf("the document became %v", doc)
			}
			if tt.want == "" {
				if !errors.Is(err, jsondoc.ErrPatch) || got != nil {
					t.Errorf("got %v, %v, want ErrPatch", got, err)
				}
				return
			}
			if err != nil || canonical(got) != canonical(parse(t, tt.want)) {
				t.Errorf("got %v, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func applyPatch(doc, patch signal.Value) (signal.Value, error) {
	ops, err := jsondoc.ParsePatch(patch)
	if err != nil {
		return nil, err
	}
	return jsondoc.ApplyPatch(doc, ops)
}

// TestPatchError shows that an error names the operation.
func TestPatchError(t *testing.T) {
	_, err := applyPatch(parse(t, `{"a":1}`), parse(t, `[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/b/c"}]`))
	if want := `agents: patch operation 1, remove "/b/c": there is no "b"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A value may be moved or copied to where it ends at the deepest level, and not
// deeper.
func TestPatchDepth(t *testing.T) {
	nest := func(n int, in string) string { return strings.Repeat("[", n) + in + strings.Repeat("]", n) }
	// The value at /a is two levels of arrays. Below /b there are arrays, the innermost
	// of which takes it.
	const height = 2
	for _, op := range []string{"move", "copy"} {
		for levels, fits := range map[int]bool{signal.MaxDepth - height - 1: true, signal.MaxDepth - height: false} {
			doc := parse(t, `{"a":[[7],8],"b":`+nest(levels, "")+`}`)
			path := "/b" + strings.Repeat("/0", levels-1) + "/-"
			got, err := applyPatch(doc, parse(t, `[{"op":"`+op+`","from":"/a","path":"`+path+`"}]`))
			if !fits {
				require.ErrorIsf(t, err, jsondoc.ErrPatch, "%s to level %d", op, levels)
				require.ErrorContains(t, err, "nested deeper")
				continue
			}
			require.NoErrorf(t, err, "%s to level %d", op, levels)
			_, rest, err := signal.CheckValue(got)
			require.NoErrorf(t, err, "%s to level %d", op, levels)
			require.Empty(t, rest)
		}
	}
}

// TestPatchIsBounded gives patches that would make a document of 2^40 values,
// shift one of a hundred thousand elements as often, or nest without end.
func TestPatchIsBounded(t *testing.T) {
	double := strings.Repeat(`{"op":"copy","from":"","path":"/-"},`, 40)
	long := strings.Repeat("0,", 99_999) + "0"
	front := strings.Repeat(`{"op":"add","path":"/0","value":1},`, 99_999)
	deep := strings.Repeat("[", signal.MaxDepth-2) + strings.Repeat("]", signal.MaxDepth-2)
	for name, tt := range map[string]struct{ doc, patch string }{
		"doubling":   {`[1]`, `[` + double + `{"op":"remove","path":"/0"}]`},
		"shifting":   {`[` + long + `]`, `[` + front + `{"op":"remove","path":"/0"}]`},
		"deep add":   {`{"a":{"b":{}}}`, `[{"op":"add","path":"/a/b/c","value":` + deep + `}]`},
		"deep copy":  {`{"a":{"b":{}},"d":` + deep + `}`, `[{"op":"copy","from":"/d","path":"/a/b/c"}]`},
		"deep move":  {`{"a":{"b":{}},"d":` + deep + `}`, `[{"op":"move","from":"/d","path":"/a/b/c"}]`},
		"a far path": {`{}`, `[{"op":"remove","path":"` + strings.Repeat("/a", 600) + `"}]`},
	} {
		if _, err := applyPatch(parse(t, tt.doc), parse(t, tt.patch)); !errors.Is(err, jsondoc.ErrPatch) {
			t.Errorf("%s: err = %v, want ErrPatch", name, err)
		}
	}
}

// drawJSON draws a small value.
func drawJSON(t *rapid.T, depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.IntRange(-3, 3).Draw(t, "int")
	case 1:
		return rapid.SampledFrom([]string{"", "a", "群\n"}).Draw(t, "text")
	case 2:
		return rapid.Bool().Draw(t, "bool")
	case 3:
		return nil
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			list = append(list, drawJSON(t, depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "len") {
			object[rapid.SampledFrom([]string{"a", "b", "~", "/", "", "0"}).Draw(t, "name")] = drawJSON(t, depth-1)
		}
		return object
	}
}

// named gives empty names of members another one, which nothing else has.
func named(v any) any {
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, m := range v {
			if name == "" {
				name = "nameless"
			}
			object[name] = named(m)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = named(v[i])
		}
		return list
	default:
		return v
	}
}

// TestDiff makes a patch of two values and has it applied by two appliers; and
// the same for views, with any bound on operations.
func TestDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawJSON(t, 3), drawJSON(t, 3)
		if rapid.Bool().Draw(t, "views") {
			before = map[string]any{"visible_entities": before, "visible_relationships": drawJSON(t, 1)}
			after = map[string]any{"visible_entities": after, "visible_relationships": drawJSON(t, 1)}
		}
		old, now := value(t, before), value(t, after)
		maxOps := rapid.IntRange(0, 3).Draw(t, "max")
		patch := view.Diff(old, now, maxOps)
		if _, views := old.Get("visible_entities"); views && maxOps > 1 && len(patch) > maxOps {
			t.Fatalf("%d operations, at most %d are allowed", len(patch), maxOps)
		}
		got, err := applyPatch(old, jsondoc.PatchValue(patch))
		if err != nil || canonical(got) != canonical(now) {
			t.Fatalf("%v to %v by %v gives %v, %v", old, now, jsondoc.PatchValue(patch), got, err)
		}
		// The other applier takes no document that is a scalar, and loses its way
		// where a name is empty: it gets the same values with another name there.
		if old.Kind() == signal.KindObject && now.Kind() == signal.KindObject {
			old, now := value(t, named(before)), value(t, named(after))
			patch := jsondoc.PatchValue(view.Diff(old, now, maxOps))
			if got := otherApplier(t, old, patch); canonical(got) != canonical(now) {
				t.Fatalf("%v to %v by %v: the other applier gives %v", old, now, patch, got)
			}
		}
	})
}

// FuzzPatch applies any patch to any document: it must not panic, and what
// comes out must be a value.
func FuzzPatch(f *testing.F) {
	for _, tt := range patchTests {
		f.Add([]byte(tt.doc), []byte(tt.patch))
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		d, err1 := signal.ParseValue(doc)
		p, err2 := signal.ParseValue(patch)
		if err1 != nil || err2 != nil {
			return
		}
		got, err := applyPatch(d, p)
		if err != nil {
			if !errors.Is(err, jsondoc.ErrPatch) {
				t.Errorf("err = %v, want ErrPatch", err)
			}
			return
		}
		if _, rest, err := signal.CheckValue(got); err != nil || len(rest) > 0 {
			t.Errorf("the result is no value: %v", err)
		}
		ops, err := jsondoc.ParsePatch(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := jsondoc.ParsePatch(jsondoc.PatchValue(ops)); err != nil || len(again) != len(ops) {
			t.Errorf("the patch reads back as %v, %v", again, err)
		}
	})
}

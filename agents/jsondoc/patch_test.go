package jsondoc_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

func parse(t require.TestingT, text string) signal.Value {
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err, text)
	return v
}

func patchOf(t require.TestingT, text string) []jsondoc.Operation {
	patch, err := jsondoc.ParsePatch(parse(t, text))
	require.NoError(t, err, text)
	return patch
}

// A patch that cannot be applied is refused with the number of the operation and the reason.
func TestPatchReasons(t *testing.T) {
	for _, c := range []struct{ doc, patch, want string }{
		{`{}`, `[{"op":"remove","path":""}]`, `operation 0, remove "": the whole document cannot be removed`},
		{`{}`, `[{"op":"move","from":"","path":"/a"}]`, `operation 0, move "/a": a value cannot be moved into itself`},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, `operation 0, move "/a/b": a value cannot be moved into itself`},
		{`{"a":1}`, `[{"op":"test","path":"/a","value":1},{"op":"test","path":"/a","value":2}]`, `operation 1, test "/a": the value is another`},
		{`{"a":1}`, `[{"op":"test","path":"/b","value":1}]`, `operation 0, test "/b": there is no "b"`},
		{`{"a":1}`, `[{"op":"test","path":"/a/b","value":1}]`, `operation 0, test "/a/b": there is no "b"`},
		{`{"a":1}`, `[{"op":"add","path":"/a/b","value":1}]`, `operation 0, add "/a/b": there is nothing that could hold "b"`},
		{`{"a":1}`, `[{"op":"add","path":"/b/c","value":1}]`, `operation 0, add "/b/c": there is no "b"`},
		{`[1]`, `[{"op":"add","path":"/2","value":1}]`, `operation 0, add "/2": there is no place "2"`},
		{`[1]`, `[{"op":"add","path":"/x","value":1}]`, `operation 0, add "/x": there is no place "x"`},
		{`[1]`, `[{"op":"add","path":"/01","value":1}]`, `operation 0, add "/01": there is no place "01"`},
		{`[1]`, `[{"op":"replace","path":"/1","value":1}]`, `operation 0, replace "/1": there is no "1"`},
		{`[1]`, `[{"op":"replace","path":"/-","value":1}]`, `operation 0, replace "/-": there is no "-"`},
		{`[1]`, `[{"op":"remove","path":"/1"}]`, `operation 0, remove "/1": there is no "1"`},
		{`[[1]]`, `[{"op":"remove","path":"/0/0"},{"op":"remove","path":"/0/0"}]`, `operation 1, remove "/0/0": there is no "0"`},
		{`{}`, `[{"op":"copy","from":"/a","path":"/b"}]`, `operation 0, copy "/b": there is no "a"`},
		{`{}`, `[{"op":"move","from":"/a","path":"/b"}]`, `operation 0, move "/b": there is no "a"`},
		{`{}`, `[{"op":"copy","from":"a","path":"/b"}]`, `operation 0, copy "/b": "a" is no JSON pointer`},
		{`{}`, `[{"op":"move","from":"~","path":"/b"}]`, `operation 0, move "/b": "~" is no JSON pointer`},
		{`{}`, `[{"op":"add","path":"a","value":1}]`, `operation 0, add "a": "a" is no JSON pointer`},
		{`{}`, `[{"op":"add","path":"/a~","value":1}]`, `operation 0, add "/a~": "/a~" is no JSON pointer`},
		{`{}`, `[{"op":"add","path":"/~2/~0","value":1}]`, `operation 0, add "/~2/~0": "/~2/~0" is no JSON pointer`},
		{`{}`, `[{"op":"add","path":"` + strings.Repeat("/a", 514) + `","value":1}]`, `a path of more than 512 levels`},
	} {
		doc := parse(t, c.doc)
		got, err := jsondoc.ApplyPatch(doc, patchOf(t, c.patch))
		require.ErrorIs(t, err, jsondoc.ErrPatch, c.patch)
		require.Nil(t, got)
		if strings.HasPrefix(c.want, "operation") {
			require.EqualError(t, err, "agents: patch "+c.want)
		} else {
			require.ErrorContains(t, err, c.want)
		}
		d, docErr := jsondoc.NewDocument(doc)
		require.NoError(t, docErr)
		require.EqualError(t, d.Apply(patchOf(t, c.patch)), err.Error(), "in place")
	}
	for _, c := range []struct{ patch, want string }{
		{`{}`, "agents: a patch is an array: patch not applicable"},
		{`[7]`, `agents: patch operation 0,  "": an operation is an object`},
		{`[{"op":"remove","path":""},{"path":"/a"}]`, `agents: patch operation 1,  "": no op`},
		{`[{"op":1,"path":"/a"}]`, `agents: patch operation 0,  "": no op`},
		{`[{"op":"remove"}]`, `agents: patch operation 0, remove "": no path`},
		{`[{"op":"remove","path":7}]`, `agents: patch operation 0, remove "": no path`},
		{`[{"op":"add","path":"/a"}]`, `agents: patch operation 0, add "/a": no value`},
		{`[{"op":"replace","path":"/a"}]`, `agents: patch operation 0, replace "/a": no value`},
		{`[{"op":"test","path":"/a"}]`, `agents: patch operation 0, test "/a": no value`},
		{`[{"op":"move","path":"/a"}]`, `agents: patch operation 0, move "/a": no from`},
		{`[{"op":"copy","path":"/a","from":[]}]`, `agents: patch operation 0, copy "/a": no from`},
		{`[{"op":"put","path":"/a","value":1}]`, `agents: patch operation 0, put "/a": unknown op`},
	} {
		patch, err := jsondoc.ParsePatch(parse(t, c.patch))
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, jsondoc.ErrPatch)
		require.Nil(t, patch)
	}
	_, err := jsondoc.ApplyPatch(parse(t, `{}`), []jsondoc.Operation{{Op: "put"}})
	require.EqualError(t, err, `agents: patch operation 0, put "": unknown op`)
	_, err = jsondoc.ApplyPatch(parse(t, `{}`), []jsondoc.Operation{{Op: "add", Path: "/a"}})
	require.EqualError(t, err, `agents: patch operation 0, add "/a": no value`)
	_, err = jsondoc.ApplyPatch(nil, nil)
	require.EqualError(t, err, `agents: document: no value: patch not applicable`)
	_, err = jsondoc.NewDocument(nil)
	require.EqualError(t, err, `agents: document: no value: patch not applicable`)
}

// A patch has as many operations as its bound, and no more, whether it is read or applied.
func TestPatchOperations(t *testing.T) {
	test := jsondoc.Operation{Op: "test", Value: parse(t, `1`)}
	most := slices.Repeat([]jsondoc.Operation{test}, jsondoc.MaxPatchOps)
	_, err := jsondoc.ApplyPatch(parse(t, `1`), most)
	require.NoError(t, err)
	read, err := jsondoc.ParsePatch(jsondoc.PatchValue(most))
	require.NoError(t, err)
	require.Equal(t, most, read)
	_, err = jsondoc.ApplyPatch(parse(t, `1`), append(most, test))
	require.EqualError(t, err, "agents: a patch of more than 100000 operations: patch not applicable")
	_, err = jsondoc.ParsePatch(jsondoc.PatchValue(append(most, test)))
	require.EqualError(t, err, "agents: a patch of more than 100000 operations: patch not applicable")
}

// An operation is written with the members that it has.
func TestPatchValue(t *testing.T) {
	const text = `[{"op":"add","path":"/a","value":1},{"op":"replace","path":"/b","value":null},{"op":"test","path":"","value":[]},` +
		`{"op":"remove","path":"/c"},{"op":"move","path":"/d","from":"/e"},{"op":"copy","path":"/f","from":""}]`
	require.Equal(t, text, jsondoc.PatchValue(patchOf(t, text)).String())
	require.Equal(t, "[]", jsondoc.PatchValue(nil).String())
}

// A patch pays 32 bytes for each value that it adds or copies and those of its texts, and one
// for each value that it makes, moves, shifts or looks through.
func TestCostOfPatches(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"k%02d":0`, i)
		}
		return "{" + b.String() + "}"
	}
	for _, c := range []struct {
		doc, patch  string
		bytes, work int
	}{
		{`{}`, `[]`, 0, 0},
		{`{}`, `[{"op":"add","path":"/a","value":1}]`, 32 + 1, 1},
		{`{}`, `[{"op":"add","path":"/a","value":"text"}]`, 32 + 5, 1},
		{`{}`, `[{"op":"add","path":"/a","value":[1,2]}]`, 32*3 + 2, 3},
		{`{}`, `[{"op":"add","path":"/a","value":{"name":1,"n":{}}}]`, 32*3 + 1 + 4 + 1, 3},
		{`[1,2,3]`, `[{"op":"add","path":"/0","value":1}]`, 33, 1 + 3},
		{`[1,2,3]`, `[{"op":"add","path":"/2","value":1}]`, 33, 1 + 1},
		{`[1,2,3]`, `[{"op":"add","path":"/-","value":1}]`, 33, 1},
		{`[1,2,3]`, `[{"op":"replace","path":"/0","value":1}]`, 33, 1},
		{`[1,2,3]`, `[{"op":"test","path":"/0","value":1}]`, 33, 1},
		{`[1,2,3]`, `[{"op":"remove","path":"/0"}]`, 0, 3},
		{`[1,2,3]`, `[{"op":"remove","path":"/2"}]`, 0, 1},
		{`{"a":1,"b":2}`, `[{"op":"remove","path":"/a"}]`, 0, 2},
		{`{"a":["x",{"b":1}],"c":0}`, `[{"op":"copy","from":"/a","path":"/d"}]`, 32*4 + 2 + 1 + 1, 4},
		{`{"a":["x",{"b":1}],"c":0}`, `[{"op":"move","from":"/a","path":"/d"}]`, 0, 2 + 4},
		{`{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, 0, 0},
		{many(16), `[{"op":"replace","path":"/k15","value":1}]`, 33, 1},
		{many(17), `[{"op":"replace","path":"/k16","value":1}]`, 33, 1 + 16*17},
		{many(17), `[{"op":"replace","path":"/k16","value":1},{"op":"replace","path":"/k00","value":1}]`, 66, 2 + 16*17},
		{many(17), `[{"op":"replace","path":"/k16","value":1},{"op":"add","path":"/new","value":1},{"op":"replace","path":"/new","value":2}]`, 99, 3 + 16*17},
		{many(18), `[{"op":"remove","path":"/k00"},{"op":"replace","path":"/k17","value":1}]`, 33, 18 + 16*18 + 1 + 16*17},
	} {
		doc, patch := parse(t, c.doc), patchOf(t, c.patch)
		bytes, work, err := jsondoc.Cost(doc, patch)
		require.NoError(t, err, c.patch)
		require.Equal(t, []int{c.bytes, c.work}, []int{bytes, work}, "%s of %s", c.patch, c.doc)
		// The budgets hold to the last.
		b, w := jsondoc.MaxPatched, jsondoc.MaxPatchWork
		whole, each, err := jsondoc.Cost(parse(t, `[]`), []jsondoc.Operation{{Op: "add", Path: "/-", Value: doc}})
		require.NoError(t, err)
		require.NoError(t, jsondoc.ApplyWithin(whole+c.bytes, each+c.work, doc, patch), c.patch)
		if c.bytes > 0 {
			require.ErrorIs(t, jsondoc.ApplyWithin(whole+c.bytes-1, w, doc, patch), jsondoc.ErrPatch, c.patch)
		}
		if c.work > 0 {
			require.ErrorIs(t, jsondoc.ApplyWithin(b, each+c.work-1, doc, patch), jsondoc.ErrPatch, c.patch)
		}
	}
	require.Equal(t, 256<<20, jsondoc.MaxPatched)
	require.Equal(t, 1<<27, jsondoc.MaxPatchWork)
}

// pointed sets or removes a value by the plainest reading of RFC 6902; ok is false if the
// operation fails.
func pointed(doc any, path []string, change func(holder any, last string) (any, bool)) (any, bool) {
	if len(path) == 1 {
		return change(doc, path[0])
	}
	switch doc := doc.(type) {
	case map[string]any:
		inner, there := doc[path[0]]
		if !there {
			return nil, false
		}
		inner, ok := pointed(inner, path[1:], change)
		doc[path[0]] = inner
		return doc, ok
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(doc) {
			return nil, false
		}
		inner, ok := pointed(doc[i], path[1:], change)
		doc[i] = inner
		return doc, ok
	}
	return nil, false
}

func modelled(doc any, op, path string, value any) (any, bool) {
	if path == "" {
		return value, op != "remove"
	}
	segments := strings.Split(path[1:], "/")
	return pointed(doc, segments, func(holder any, last string) (any, bool) {
		switch holder := holder.(type) {
		case map[string]any:
			if _, there := holder[last]; !there && op != "add" {
				return nil, false
			}
			if holder[last] = value; op == "remove" {
				delete(holder, last)
			}
			return holder, true
		case []any:
			i, err := strconv.Atoi(last)
			if last == "-" && op == "add" {
				i, err = len(holder), nil
			}
			switch {
			case err != nil || i < 0 || i > len(holder) || i == len(holder) && op != "add":
				return nil, false
			case op == "add":
				return slices.Insert(holder, i, value), true
			case op == "remove":
				return slices.Delete(holder, i, i+1), true
			}
			holder[i] = value
			return holder, true
		}
		return nil, false
	})
}

// Additions, replacements and removals in objects of any number of members, and in arrays, have
// the results of the plainest reading of the RFC.
func TestPatchModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 20).Draw(t, "size")
		object, list := map[string]any{}, []any{}
		for i := range size {
			object[fmt.Sprint("k", i)], list = float64(i), append(list, float64(i))
		}
		model := any(map[string]any{"o": object, "l": list})
		text, err := json.Marshal(model)
		require.NoError(t, err)
		doc := parse(t, string(text))
		live, err := jsondoc.NewDocument(doc)
		require.NoError(t, err)
		for n := range rapid.IntRange(1, 12).Draw(t, "operations") {
			op := rapid.SampledFrom([]string{"add", "replace", "remove"}).Draw(t, "op")
			path := rapid.SampledFrom([]string{"/o/k", "/o/k", "/l/", "/l/", "/l/-", "/o/new", "/none/", "/l/x", "/o/k0/"}).Draw(t, "path")
			if strings.HasSuffix(path, "k") || strings.HasSuffix(path, "/") {
				path += fmt.Sprint(rapid.IntRange(0, size+1).Draw(t, "index"))
			}
			operation := jsondoc.Operation{Op: op, Path: path}
			if op != "remove" {
				operation.Value = parse(t, fmt.Sprint(100+n))
			}
			var copied any
			require.NoError(t, json.Unmarshal(text, &copied))
			want, ok := modelled(copied, op, path, float64(100+n))
			got, err := jsondoc.ApplyPatch(doc, []jsondoc.Operation{operation})
			require.Equal(t, ok, err == nil, "%s %s of %s: %v", op, path, text, err)
			if !ok {
				continue
			}
			text, err = json.Marshal(want)
			require.NoError(t, err)
			doc = got
			require.Equal(t, string(text), string(jsondoc.AppendCanonical(nil, sameNumbers(t, got))))
			require.NoError(t, live.Apply([]jsondoc.Operation{operation}))
			require.Equal(t, string(text), live.Value().String())
		}
	})
}

// sameNumbers returns the value as encoding/json reads it, whose whole floats are integers again.
func sameNumbers(t require.TestingT, v signal.Value) signal.Value { return parse(t, v.String()) }

// Two documents are equal whatever the order of members, and numbers by their value.
func TestEqual(t *testing.T) {
	many := func(first int) string {
		var list []string
		for i := range 20 {
			list = append(list, fmt.Sprintf(`"k%d":%d`, (i+first)%20, (i+first)%20))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1`, true},
		{`1`, `2`, false},
		{`1`, `1.0`, true},
		{`1.0`, `1`, true},
		{`0.0`, `-0.0`, true},
		{`0`, `-0.0`, true},
		{`1.5`, `1.5`, true},
		{`1.5`, `1`, false},
		{`1`, `1.5`, false},
		{`9007199254740993`, `9007199254740992.0`, false},
		{`9007199254740992`, `9007199254740992.0`, true},
		{`18446744073709551615`, `18446744073709551615`, true},
		{`18446744073709551615`, `-1`, false},
		{`18446744073709551615`, `1.8446744073709552e19`, false},
		{`9223372036854775808`, `9.223372036854775808e18`, true},
		{`9223372036854775807`, `9.223372036854775808e18`, false},
		{`-9223372036854775808`, `-9.223372036854775808e18`, true},
		{`18446744073709549568`, `1.8446744073709549568e19`, true},
		{`1`, `1e300`, false},
		{`-1`, `-1e300`, false},
		{`-9223372036854775808`, `-9.223372036854777856e18`, false},
		{`"a"`, `"a"`, true},
		{`"a"`, `"b"`, false},
		{`"1"`, `1`, false},
		{`null`, `null`, true},
		{`null`, `false`, false},
		{`true`, `true`, true},
		{`true`, `false`, false},
		{`[]`, `[]`, true},
		{`[]`, `{}`, false},
		{`[1,2]`, `[1,2]`, true},
		{`[1,2]`, `[2,1]`, false},
		{`[1,2]`, `[1]`, false},
		{`[1]`, `[1,2]`, false},
		{`[[1]]`, `[[2]]`, false},
		{`{"a":1,"b":2}`, `{"b":2.0,"a":1}`, true},
		{`{"a":1,"b":2}`, `{"a":1,"c":2}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, false},
		{many(0), many(7), true},
		{many(0), strings.Replace(many(7), `"k3":3`, `"k3":4`, 1), false},
		{many(0), strings.Replace(many(7), `"k3":`, `"x3":`, 1), false},
	} {
		require.Equal(t, c.want, jsondoc.Equal(parse(t, c.a), parse(t, c.b)), "%s and %s", c.a, c.b)
		require.Equal(t, c.want, jsondoc.Equal(parse(t, c.b), parse(t, c.a)), "%s and %s", c.b, c.a)
	}
	require.False(t, jsondoc.Equal(nil, nil), "an absent value equals none")
	require.False(t, jsondoc.SameNumber(signal.Float(math.MaxUint64), signal.Uint(math.MaxUint64)), "2⁶⁴ is no integer of 64 bits")
}

// Members are in the order of their names, and floats have the shortest digits, plainly from
// 1e-5 up to 1e16.
func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":{"d":null,"c":[true,{"y":1,"x":2}]},"":0}`: `{"":0,"a":{"c":[true,{"x":2,"y":1}],"d":null},"b":1}`,
		`[ ]`: `[]`, `{ }`: `{}`, `[1,[2],3]`: `[1,[2],3]`,
		`"a\u0000\n\"\\/é"`: `"a\u0000\n\"\\/é"`, `{"\n":1,"ä":2}`: `{"\n":1,"ä":2}`,
		`5`: `5`, `5.0`: `5.0`, `-0.0`: `-0.0`, `0.0`: `0.0`, `0.1`: `0.1`, `100.0`: `100.0`,
		`0.00001`: `0.00001`, `1.5e-5`: `0.000015`, `9.9e-6`: `9.9e-6`, `-9e-6`: `-9e-6`, `1e-7`: `1e-7`, `1.5e-10`: `1.5e-10`, `1e-100`: `1e-100`, `1e-300`: `1e-300`,
		`9999999999999998.0`: `9999999999999998.0`, `1e15`: `1000000000000000.0`, `1e16`: `1e16`, `-1e16`: `-1e16`, `1.5e16`: `1.5e16`, `1e20`: `1e20`, `1e100`: `1e100`, `1.5e300`: `1.5e300`,
	} {
		require.Equal(t, want, string(jsondoc.AppendCanonical(nil, parse(t, text))), text)
	}
	require.Equal(t, "x null", string(jsondoc.AppendCanonical([]byte("x "), nil)))
	for c := rune(0); c < 0x80; c++ {
		v := signal.Text("a" + string(c) + "b")
		require.Equal(t, v.String(), string(jsondoc.AppendText(nil, "a"+string(c)+"b")))
	}
}

// A pointer is read and written by the letter of RFC 6901, and leads to what it names.
func TestPointers(t *testing.T) {
	doc := parse(t, `{"a":{"b":[10,[20],{"c":null}]},"":{"":1},"~/":2,"0":3}`)
	for text, want := range map[string]string{
		"": doc.String(), "/a/b/0": "10", "/a/b/1": "[20]", "/a/b/1/0": "20", "/a/b/2/c": "null", "/": `{"":1}`, "//": "1", "/~0~1": "2", "/0": "3",
		"/a/c": "", "/a/b/3": "", "/a/b/-": "", "/a/b/00": "", "/a/b/x": "", "/a/b/0/0": "", "/a/b/2/c/d": "", "/b": "", "/a/b/1/1": "",
	} {
		p, err := jsondoc.ParsePointer(text)
		require.NoError(t, err, text)
		require.Equal(t, text, p.String())
		v, ok := p.In(doc)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, v.String(), text)
		}
	}
	_, ok := jsondoc.Pointer{}.In(nil)
	require.False(t, ok)
	for _, text := range []string{"a", "~", " /a", "/~", "/a~", "/~2", "/a/~x/b", "/~0~"} {
		_, err := jsondoc.ParsePointer(text)
		require.EqualError(t, err, fmt.Sprintf("agents: no JSON pointer: %q is no JSON pointer", text))
		require.ErrorIs(t, err, jsondoc.ErrPointer)
	}
	for levels, fits := range map[int]bool{signal.MaxDepth + 1: true, signal.MaxDepth + 2: false} {
		p, err := jsondoc.ParsePointer(strings.Repeat("/a", levels))
		if fits {
			require.NoError(t, err)
			require.Len(t, p, levels)
		} else {
			require.EqualError(t, err, "agents: no JSON pointer: a path of more than 512 levels")
		}
	}
}

// Of all texts of up to four characters, and of longer ones, only decimals without sign and
// leading zeros are indexes.
func TestElementIndex(t *testing.T) {
	check := func(text string) {
		i, err := strconv.Atoi(text)
		ok := err == nil && i >= 0 && strconv.Itoa(i) == text && len(text) <= 9
		got, isIndex := jsondoc.ElementIndex(text)
		require.Equal(t, ok, isIndex, text)
		if ok {
			require.Equal(t, i, got)
		} else {
			require.Zero(t, got)
		}
	}
	const characters = "019/:-+ "
	var each func(text string)
	each = func(text string) {
		check(text)
		if len(text) < 4 {
			for _, c := range characters {
				each(text + string(c))
			}
		}
	}
	each("")
	for _, text := range []string{"999999999", "100000000", "1000000000", "9999999999", "123456789", "12345678x", "0000000000"} {
		check(text)
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, other string
		want        bool
	}{
		{"", "", true}, {"/a", "", true}, {"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/b", "/a", false}, {"", "/a", false}, {"/a/", "/a", true},
	} {
		require.Equal(t, c.want, jsondoc.Within(c.path, c.other), "%q in %q", c.path, c.other)
	}
}

// A difference has one operation for each member that is new, gone or another, in the order of
// their names, and none for members in another order.
func TestDifferences(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1}`, `{"a":1}`, `[]`},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, `[]`},
		{`[{"a":1,"b":2}]`, `[{"b":2,"a":1}]`, `[]`},
		{`[{"a":1}]`, `[{"a":2}]`, `[{"op":"replace","path":"/at","value":[{"a":2}]}]`},
		{`1`, `1.0`, `[{"op":"replace","path":"/at","value":1.0}]`},
		{`{}`, `[]`, `[{"op":"replace","path":"/at","value":[]}]`},
		{`[]`, `{}`, `[{"op":"replace","path":"/at","value":{}}]`},
		{
			`{"b":1,"d":2,"e":{"x":1}}`, `{"f":4,"e":{"x":2},"c":3,"a":0,"d":2}`,
			`[{"op":"add","path":"/at/a","value":0},{"op":"remove","path":"/at/b"},{"op":"add","path":"/at/c","value":3},{"op":"replace","path":"/at/e/x","value":2},{"op":"add","path":"/at/f","value":4}]`,
		},
		{`{"y":1,"z":1}`, `{"x":1}`, `[{"op":"add","path":"/at/x","value":1},{"op":"remove","path":"/at/y"},{"op":"remove","path":"/at/z"}]`},
		{`{"~/":1}`, `{"/~":{"~":1}}`, `[{"op":"add","path":"/at/~1~0","value":{"~":1}},{"op":"remove","path":"/at/~0~1"}]`},
		{`{"~/":{"a":1}}`, `{"~/":{"a":2}}`, `[{"op":"replace","path":"/at/~0~1/a","value":2}]`},
	} {
		first := jsondoc.Operation{Op: "remove", Path: "/before"}
		ops := jsondoc.AppendDiff([]jsondoc.Operation{first}, "/at", parse(t, c.before), parse(t, c.after))
		require.Equal(t, first, ops[0])
		require.Equal(t, c.want, jsondoc.PatchValue(ops[1:]).String(), "%s to %s", c.before, c.after)
	}
}

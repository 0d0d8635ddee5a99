package where_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/common/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/signal"
)

// told returns the value of an expression as text: "missing", or the text of the error without
// its entry and expression.
func told(t *testing.T, set projection.Set, expr string, in where.Input) string {
	t.Helper()
	x, err := where.CompileValue(expr, set)
	require.NoError(t, err, expr)
	require.Equal(t, expr, x.String())
	v, ok, err := x.Value(t.Context(), in)
	switch {
	case err != nil:
		failed, is := errors.AsType[*where.EvalError](err)
		require.True(t, is, "%s: %v", expr, err)
		return fmt.Sprintf("error at %d: %v", failed.Seq, failed.Err)
	case !ok:
		require.Nil(t, v, expr)
		return "missing"
	}
	text, err := json.Marshal(v)
	require.NoError(t, err, expr)
	return fmt.Sprintf("%T %s", v, text)
}

// A signal that its schema refuses has the members of its envelope and a problem, and no raw
// object. A member that it does not have is missing.
func TestRefusedSignals(t *testing.T) {
	full := entryOf(t, 1, 0, `{"id":"r1","type":"tool_call","timestamp":1500.5,"source":"adapter:test","correlationId":"c","metadata":{"m":1},"payload":{"x":[1]}}`)
	bare := entryOf(t, 2, 0, `{"id":"r2","type":"tool_call","timestamp":7,"source":"s","payload":{}}`)
	for _, e := range []*eventlog.Entry{full, bare} {
		require.EqualValues(t, 0x98, e.Data[0], "the form of a refused signal")
	}
	for expr, want := range map[string][2]string{
		`entry.id`:                     {`string "r1"`, `string "r2"`},
		`entry.type`:                   {`string "tool_call"`, `string "tool_call"`},
		`entry.timestamp`:              {`float64 1500.5`, `int64 7`},
		`entry.source`:                 {`string "adapter:test"`, `string "s"`},
		`entry.correlationId`:          {`string "c"`, `missing`},
		`entry.metadata`:               {`map[string]interface {} {"m":1}`, `missing`},
		`entry.payload`:                {`map[string]interface {} {"x":[1]}`, `map[string]interface {} {}`},
		`entry.raw`:                    {`missing`, `missing`},
		`entry.data`:                   {`missing`, `missing`},
		`entry.define`:                 {`missing`, `missing`},
		`entry.problem.size() > 10`:    {`bool true`, `bool true`},
		`dyn(entry).map(k, k)`:         {`[]interface {} ["at","correlationId","hash","id","kind","metadata","payload","problem","seq","source","timestamp","type"]`, `[]interface {} ["at","hash","id","kind","payload","problem","seq","source","timestamp","type"]`},
		`[entry.source, entry.source]`: {`[]interface {} ["adapter:test","adapter:test"]`, `[]interface {} ["s","s"]`},
	} {
		for i, e := range []*eventlog.Entry{full, bare} {
			assert.Equal(t, want[i], told(t, testSet(t), expr, where.Input{Entry: e}), "%s of entry %d", expr, i+1)
		}
	}
}

// shelf is a state that reads its members one by one. Its view has values of every kind.
type shelf struct{ n int64 }

func (s *shelf) Advance(time.Duration)    {}
func (s *shelf) Apply(*eventlog.Entry)    { s.n++ }
func (s *shelf) Append(dst []byte) []byte { return append(dst, byte(s.n)) }
func (s *shelf) View() any                { return map[string]any{"unused": true} }
func (s *shelf) Len() int                 { return len(s.Names()) }
func (s *shelf) Names() []string          { return []string{"z", "b", "inner"}[:min(3, max(2, 8-s.n))] }

func (s *shelf) Member(name string) (any, bool) {
	switch name {
	case "z":
		return s.n, true
	case "b":
		return []any{"x", s.n}, true
	case "inner":
		return &shelf{s.n + 1}, s.n < 6
	}
	return nil, false
}

// motley is a state whose view is a value of each kind.
type motley struct{ shelf }

func (m *motley) Len() string { return "not a method of Members" }
func (m *motley) View() any {
	return map[string]any{
		"nothing": nil, "bool": true, "int": int64(-1), "uint": uint64(1 << 63), "float": 0.5, "text": "é", "list": []any{uint64(2), []any{}}, "object": map[string]any{"a": false},
		"shelf": &shelf{4}, "value": types.Duration{Duration: 90 * time.Second}, "odd": struct{}{}, "small": int32(1),
	}
}

// Expressions read values of every kind in a view, and members one by one; a value of another
// kind is an error where it is read.
func TestViews(t *testing.T) {
	restore := func([]byte) (projection.State, error) { return nil, errors.New("not needed") }
	set := projection.Set{
		{Name: "shelf", Version: 1, New: func() projection.State { return &shelf{} }, Restore: restore},
		{Name: "motley", Version: 1, New: func() projection.State { return &motley{} }, Restore: restore},
	}
	f := projection.NewFold(set, eventlog.Hash{})
	e := entryOf(t, 1, 0, toolCall)
	require.NoError(t, f.Apply(e))
	in := where.Input{State: f} // the entry of an error is that of the state
	for expr, want := range map[string]string{
		`state.shelf.z`:                          `int64 1`,
		`state.shelf["b"][1] + 1`:                `int64 2`,
		`state.shelf.inner.inner.z`:              `int64 3`,
		`state.shelf.other`:                      `missing`,
		`has(state.shelf.other)`:                 `bool false`,
		`has(state.shelf.inner.z)`:               `bool true`,
		`state.shelf.size()`:                     `int64 3`,
		`state.shelf.map(k, k)`:                  `[]interface {} ["z","b","inner"]`,
		`state.shelf.inner == state.shelf.inner`: `bool true`,
		`state.shelf == state.motley.shelf`:      `bool false`,
		`{"z": 4, "b": ["x", 4], "inner": state.motley.shelf.inner} == state.motley.shelf`: `bool true`,
		`state.motley.nothing`:                    `<nil> null`,
		`state.motley.bool`:                       `bool true`,
		`state.motley.int`:                        `int64 -1`,
		`state.motley.uint`:                       `uint64 9223372036854775808`,
		`state.motley.uint > 9223372036854775807`: `bool true`,
		`state.motley.float`:                      `float64 0.5`,
		`state.motley.text`:                       `string "é"`,
		`state.motley.list`:                       `[]interface {} [2,[]]`,
		`state.motley.object`:                     `map[string]interface {} {"a":false}`,
		`state.motley.shelf.z`:                    `int64 4`,
		`state.motley.value`:                      `string "90s"`,
		`state.motley.odd`:                        `error at 1: a struct {} in a view has no value in expressions`,
		`state.motley.small == 1`:                 `error at 1: a int32 in a view has no value in expressions`,
		`state.motley.size()`:                     `int64 12`,
		`entry.seq`:                               `missing`,
		`[seq, state.seq, at, state.at]`:          `[]interface {} [1,1,0,0]`,
	} {
		assert.Equal(t, want, told(t, set, expr, in), expr)
	}
}

// Operators on values of the wrong kind have errors, and values of different kinds are not
// equal.
func TestWrongKinds(t *testing.T) {
	in := input(t)
	for expr, want := range map[string]string{
		`entry.payload[dyn(null)]`:                                    "error at 2: a null_type names no member and no element",
		`entry.payload.input.list[dyn([1])]`:                          "error at 2: a list names no member and no element",
		`entry.payload[?dyn(b"n")].hasValue()`:                        "error at 2: a bytes names no member and no element",
		`entry.payload.input.list[dyn("x")]`:                          "error at 2: unsupported index type 'string' in list",
		`entry.payload.input.list[dyn(0.5)]`:                          "error at 2: unsupported index value 0.5 in list",
		`entry.payload.input.list[?dyn("x")]`:                         "error at 2: unsupported index type 'string' in list",
		`entry.payload.input.list[dyn(1.0)]`:                          `string "two"`,
		`entry.payload.input.list[dyn(1u)]`:                           `string "two"`,
		`{dyn([1]): 2}`:                                               "error at 2: a list cannot be the key of a map",
		`{dyn(0.0 / 0.0): 2}`:                                         "error at 2: a double cannot be the key of a map",
		`{dyn(1): 2, dyn(1.0): 3, dyn(1.5): 4}`:                       `map[string]interface {} {"1":3,"1.5":4}`,
		`[?dyn(1)]`:                                                   "error at 2: a int is not an optional",
		`{?"a": dyn(1)}`:                                              "error at 2: a int is not an optional",
		`optional.unwrap(dyn([optional.of(1), 2]))`:                   "error at 2: a int is not an optional",
		`optional.unwrap(dyn(1))`:                                     "error at 2: no such overload",
		`dyn(1).or(optional.of(2))`:                                   "error at 2: no such overload",
		`dyn(1).orValue(2)`:                                           "error at 2: no such overload",
		`optional.of(1).or(optional.of(2)).value()`:                   `int64 1`,
		`optional.none().or(optional.of(2)).value()`:                  `int64 2`,
		`optional.of(1).orValue(2)`:                                   `int64 1`,
		`dyn(1).hasValue(1)`:                                          "error at 2: no such overload",
		`[1] + dyn("a")`:                                              "error at 2: no such overload",
		`dyn(1).contains("a")`:                                        "error at 2: no such overload",
		`"a".contains(dyn(1))`:                                        "error at 2: no such overload",
		`"a".matches(dyn(1))`:                                         "error at 2: no such overload",
		`dyn(1).matches("a")`:                                         "error at 2: no such overload",
		`1 in dyn(1)`:                                                 "error at 2: no such overload",
		`dyn(1) && true`:                                              "error at 2: no such overload",
		`dyn(1) || true`:                                              `bool true`,
		`dyn(1) ? 1 : 2`:                                              "error at 2: no such overload",
		`dyn(1).all(x, true)`:                                         "error at 2: no such overload: a loop goes over lists and maps, not over a int",
		`dyn("abc").map(x, x)`:                                        "error at 2: no such overload: a loop goes over lists and maps, not over a string",
		`string(dyn([1]))`:                                            "error at 2: no such overload: string(list)",
		`string(dyn(entry.payload))`:                                  "error at 2: no such overload: string(map)",
		`entry.payload.input == dyn([1])`:                             `bool false`,
		`entry.payload.input.list == dyn({"a": 1})`:                   `bool false`,
		`dyn({"a": 1}) == entry.payload.input.list`:                   `bool false`,
		`dyn([1]) == dyn({"a": 1})`:                                   `bool false`,
		`dyn(optional.of(1)) == dyn(1)`:                               `bool false`,
		`dyn("a") == dyn(b"a")`:                                       `bool false`,
		`dyn(b"a") == dyn("a")`:                                       `bool false`,
		`dyn({1: "a", 2: "b"}) == dyn({2u: "b", 1.0: "a"})`:           `bool true`,
		`dyn({1: "a", 2: "b"}) == dyn({2u: "b", 3: "a"})`:             `bool false`,
		`dyn({1: "a", 2: "b"}) == dyn({2u: "a", 1: "a"})`:             `bool false`,
		`google.protobuf.NullValue.NULL_VALUE`:                        `int64 0`,
		`optional.ofNonZeroValue({}).hasValue()`:                      `bool false`,
		`optional.ofNonZeroValue({1: 2}).hasValue()`:                  `bool true`,
		`optional.ofNonZeroValue(entry.payload).hasValue()`:           `bool true`,
		`optional.ofNonZeroValue(entry.payload.input.s + "").value()`: `string "text"`,
		`optional.ofNonZeroValue([]).hasValue()`:                      `bool false`,
		`type(entry.payload.input.list) == list && type({}) == map`:   `bool true`,
	} {
		assert.Equal(t, want, told(t, testSet(t), expr, in), expr)
	}
}

// No part of an expression may build a message, wherever in it that stands.
func TestMessagesAreRefused(t *testing.T) {
	for _, around := range []string{
		`%s`, `[%s]`, `[1, %s]`, `{%s: 1}`, `{1: %s}`, `[%s].map(x, x)`, `[1].map(x, %s)`, `[1].filter(x, dyn(%s) == x)`, `[1].filter(x, x == 1 && %s.seq == 1)`, `[1].map(x, %s.seq == 1, x)`, `%s.seq`, `has(%s.seq)`, `dyn(%s) == 1`,
		`true ? dyn(%s) : dyn(1)`, `optional.of(%s)`, `optional.of(%s).optMap(x, x)`, `optional.of(1).optMap(x, %s)`, `type(%s)`, `[1, 2] + [dyn(%s)]`,
	} {
		for _, message := range []string{`sajou.Entry{}`, `sajou.State{}`} {
			expr := fmt.Sprintf(around, message)
			_, err := where.CompileValue(expr, testSet(t))
			wrong, ok := errors.AsType[*where.ExpressionError](err)
			require.True(t, ok, "%s: %v", expr, err)
			assert.Equal(t, where.ExpressionError{Expr: expr, Line: 1, Column: 1, Reason: "expressions build lists and maps, and no messages"}, *wrong)
		}
	}
}

// A value is written out down to the depth of a signal's values, and no deeper.
func TestDepthOfAValue(t *testing.T) {
	x, err := where.CompileValue(`[entry.payload]`, testSet(t))
	require.NoError(t, err)
	head := []byte{0x97, 0xa1, 's', 0xa1, 'x', 1, 0xa1, 's', 0xc0, 0xc0}
	for _, lists := range []int{0, 1, signal.MaxDepth - 2, signal.MaxDepth - 1, signal.MaxDepth} { // the list around is one more
		data := append(append(head[:len(head):len(head)], strings.Repeat("\x91", lists)...), 1)
		v, ok, err := x.Value(t.Context(), where.Input{Entry: &eventlog.Entry{Seq: 1, Kind: eventlog.KindSignal, Data: data}})
		if lists == signal.MaxDepth {
			require.ErrorContains(t, err, "its value is nested too deep")
			continue
		}
		require.NoError(t, err, "%d lists", lists)
		require.True(t, ok)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("[", lists+1)+"1"+strings.Repeat("]", lists+1), string(text))
	}
}

// Operations on texts of every length, up to those that are read piece by piece, take the
// steps and bytes that they took.
func TestRecordedCosts(t *testing.T) {
	set := testSet(t)
	exprs := []string{
		`entry.payload.s.size()`, `entry.payload.s == entry.payload.t`, `entry.payload.s < entry.payload.t`, `entry.payload.s + entry.payload.t == ""`, `bytes(entry.payload.s) + b"x" == b""`, `string(entry.payload.s) == "a"`,
		`int(entry.payload.s) == 1`, `timestamp(0).getHours(entry.payload.s) == 1`, `entry.payload.s in entry.payload`, `{entry.payload.s: 1}.size()`, `entry.payload.s.startsWith(entry.payload.t)`, `entry.payload.s.endsWith(entry.payload.t)`, `entry.payload.s.contains("zz")`, `entry.payload.s.contains(entry.payload.t)`,
	}
	for _, pattern := range []string{"b", "ab?c", "zz", "zz+", "key7.*x", "(a|b){30}", "(?i)key", "^a+$", "z{900}", "(a{0,20}){20}z"} {
		exprs = append(exprs, `entry.payload.s.matches("`+pattern+`")`, `entry.payload.s.matches(entry.payload.p + "`+pattern+`")`)
	}
	var compiled []*where.Expression
	for _, expr := range exprs {
		x, err := where.CompileValue(expr, set)
		require.NoError(t, err, expr)
		compiled = append(compiled, x)
	}
	golden.Trace(t, "testdata/textcosts.txt", func(step func(name, text string)) {
		for _, length := range []int{0, 1, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 1000, 1300, 1400, 4095, 4096, 4097, 14563, 18724, 21845, 32768, 43690, 43691, 66_000} {
			text := strings.Repeat("a", length)
			line := fmt.Sprintf(`{"id":"s1","type":"other","timestamp":1,"source":"t","payload":{"p":"","s":%q,"t":%q}}`, text, text[:length/2]+"b")
			in := where.Input{Entry: entryOf(t, 1, 0, line)}
			var out strings.Builder
			for _, x := range compiled {
				if length > 1400 && strings.Contains(x.String(), "0}") {
					continue // a large pattern is read piece by piece from a thousand characters on
				}
				v, ok, err := x.Value(t.Context(), in)
				steps, bytes := x.Spent()
				fmt.Fprintln(&out, x, v, ok, err, steps, bytes)
			}
			step(fmt.Sprint(length), out.String())
		}
	})
}

// A view before the entry may lack what the state has: that is missing, and left out of the
// whole.
func TestIncompleteViews(t *testing.T) {
	in := input(t)
	in.Prev = map[string]any{"seq": int64(1), "count": map[string]any{"n": int64(4)}}
	for expr, want := range map[string]string{
		`prev`:                                    `map[string]interface {} {"count":{"n":4},"seq":1}`,
		`[prev, prev].map(p, p.count.n)`:          `[]interface {} [4,4]`,
		`prev.seq`:                                `int64 1`,
		`prev.at`:                                 `missing`,
		`has(prev.at) || has(prev.performances)`:  `bool false`,
		`prev.performances.size() == 0`:           `missing`,
		`prev.?performances.hasValue()`:           `bool false`,
		`prev.count.n > 3 && has(prev.count.n)`:   `bool true`,
		`has(prev.count.half) || has(prev.count)`: `bool true`,
	} {
		assert.Equal(t, want, told(t, testSet(t), expr, in), expr)
	}
	in.Prev = map[string]any{}
	assert.Equal(t, `map[string]interface {} {}`, told(t, testSet(t), `prev`, in))
	in.Prev = nil
	assert.Equal(t, `map[string]interface {} {}`, told(t, testSet(t), `prev`, in))
}

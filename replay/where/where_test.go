package where_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/signal"
)

// choreographer is a state like the engine's own.
type choreographer struct{ s *choreography.Scheduler }

func (c *choreographer) Advance(at time.Duration)           { c.s.Advance(at) }
func (c *choreographer) Append(dst []byte) []byte           { return c.s.AppendState(dst) }
func (c *choreographer) Scheduler() *choreography.Scheduler { return c.s }

func (c *choreographer) Apply(e *eventlog.Entry) {
	if sig, err := signal.Decode(e.Data); err == nil {
		c.s.Signal(uint64(e.Seq), &sig)
	}
}

func (c *choreographer) View() any {
	view := map[string]any{}
	for p := range c.s.Performances() {
		running := []any{}
		for a := range p.Animations() {
			running = append(running, map[string]any{"action": a.Action, "entity": a.Entity})
		}
		view[p.ID()] = map[string]any{"on": p.On, "signal": int64(p.Signal), "running": running}
	}
	return view
}

// counter counts entries. Its view is a [where.Closed] object.
type counter struct{ n int64 }

func (c *counter) Vocabulary() []string { return []string{"n", "half", "even", "list"} }

func (c *counter) Advance(time.Duration)    {}
func (c *counter) Apply(*eventlog.Entry)    { c.n++ }
func (c *counter) Append(dst []byte) []byte { return append(dst, byte(c.n)) }
func (c *counter) View() any {
	return map[string]any{"n": c.n, "half": float64(c.n) / 2, "even": c.n%2 == 0, "list": []any{c.n, "x", nil}}
}

func testSet(tb testing.TB) projection.Set {
	v, err := signal.ParseValue([]byte(`{"on":"tool_call","steps":[{"action":"move","entity":"signal.agentId","duration":1000}]}`))
	require.NoError(tb, err)
	d, err := definition.Compile(v)
	require.NoError(tb, err)
	restore := func([]byte) (projection.State, error) { return nil, errors.New("not needed") }
	return projection.Set{
		{Name: "count", Version: 1, New: func() projection.State { return &counter{} }, Restore: restore},
		{Name: "performances", Version: 1, Restore: restore, New: func() projection.State {
			s := choreography.NewScheduler()
			if err := s.Define(d); err != nil {
				tb.Fatal(err)
			}
			return &choreographer{s}
		}},
	}
}

func entryOf(tb testing.TB, seq int, at time.Duration, line string) *eventlog.Entry {
	sig, err := signal.ParseLenient([]byte(line))
	require.NoError(tb, err)
	return &eventlog.Entry{Seq: eventlog.Seq(seq), At: at, Kind: eventlog.KindSignal, Data: sig.Append(nil), Hash: eventlog.Hash{0xab}}
}

const toolCall = `{"id":"s1","type":"tool_call","timestamp":1500,"source":"adapter:test","correlationId":"c","metadata":{"m":1},` +
	`"payload":{"toolName":"search","agentId":"scout","callId":"k","input":{"n":7,"f":5.0,"big":18446744073709551615,"null":null,"list":[1,"two",{"x":3}],"s":"text","neg":-3}}}`

// input is a tool_call as entry 2 of a session, at 250 ms.
func input(tb testing.TB) where.Input {
	f := projection.NewFold(testSet(tb), eventlog.Hash{})
	first := entryOf(tb, 1, 0, `{"id":"s0","type":"other","timestamp":1250,"source":"t","payload":{}}`)
	require.NoError(tb, f.Apply(first))
	prev := f.View()
	e := entryOf(tb, 2, 250*time.Millisecond, toolCall)
	require.NoError(tb, f.Apply(e))
	f.Advance(e.At)
	return where.Input{Entry: e, State: f, Prev: prev}
}

// TestMatch shows the values of predicates on one entry and its states.
func TestMatch(t *testing.T) {
	in := input(t)
	set := testSet(t)
	for _, tc := range []struct {
		expr string
		want bool
	}{
		{`true`, true},
		{`seq == 2`, true},
		{`at == 250.0 && at > 249 && entry.at == at`, true},
		{`entry.seq == seq && entry.kind == "signal"`, true},
		{`entry.type == "tool_call"`, true},
		{`entry.type == "error"`, false},
		{`entry.id == "s1" && entry.source.startsWith("adapter:") && entry.correlationId == "c"`, true},
		{`entry.hash.startsWith("ab00")`, true},
		{`entry.timestamp == 1500`, true},
		{`entry.metadata.m == 1`, true},
		{`entry.payload.toolName == "search"`, true},
		{`entry.payload.input.n > 6 && entry.payload.input.n < 7.5`, true},
		{`entry.payload.input.f == 5`, true},
		{`entry.payload.input.big == 18446744073709551615u`, true},
		{`entry.payload.input.big > 9223372036854775807`, true},
		{`entry.payload.input["null"] == null`, true},
		{`entry.payload.input.list[2].x == 3`, true},
		{`entry.payload.input.list.size() == 3`, true},
		{`entry.payload.input.size() == 7`, true},
		{`"s" in entry.payload.input`, true},
		{`"two" in entry.payload.input.list`, true},
		{`has(entry.payload.input.n)`, true},
		{`has(entry.payload.nothing)`, false},
		{`has(entry.problem) || has(entry.define) || has(entry.key)`, false},
		{`has(entry.payload) && has(entry.type)`, true},
		// A predicate that depends on a missing member does not match.
		{`entry.payload.nothing == 1`, false},
		{`!(entry.payload.nothing == 1)`, false},
		{`entry.payload.nothing == 1 || seq == 2`, true},
		{`entry.payload.nothing.deeper.still == 1`, false},
		{`entry.payload.toolName.x == 1`, false},
		{`entry.problem == ""`, false},
		{`entry.payload.input.list[9] == 1`, false},
		{`entry.payload.?nothing.orValue(3) == 3`, true},
		{`entry.payload.input.exists(k, k == "neg")`, true},
		{`entry.payload.input.list.map(x, type(x) == int).filter(b, b).size() == 1`, true},
		{`entry.payload == entry.payload`, true},
		{`entry.payload.input == {"n": 7}`, false},
		{`{"x": 3} == entry.payload.input.list[2] && entry.payload.input.list[2] == {"x": 3.0}`, true},
		{`state.seq == 2 && state.at == 250.0 && prev.seq == 1 && prev.at == 0.0`, true},
		{`state.count.n == 2 && prev.count.n == 1 && state.count.n - prev.count.n == 1`, true},
		{`state.count.list[1] == "x" && state.count.even && state.count.half == 1`, true},
		{`state.performances.size() == 1 && prev.performances.size() == 0`, true},
		{`"p-2-1" in state.performances && !("p-2-2" in state.performances)`, true},
		{`state.performances["p-2-1"].on == "tool_call"`, true},
		{`state.performances.exists(p, state.performances[p].running.exists(r, r.entity == "scout"))`, true},
		{`state.performances["p-9-9"].on == "tool_call"`, false},
		{`state == state && state != prev`, true},
		{`size(entry) > 5 || true`, true},
		{`entry.payload.input.s.matches("^te.t$")`, true},
		{`entry.payload.input.s + "!" == "text!"`, true},
		{`[[1], [2]].map(x, x + [9]) == [[1, 9], [2, 9]]`, true},
		{`["a", "b"].map(x, [x] + [x + x]) == [["a", "aa"], ["b", "bb"]]`, true},
		{`[[1], [2]].filter(x, (x + [9]).size() == 2).map(x, x + [3, 4]).size() == 2`, true},
		{`optional.of(42).hasValue() && !optional.none().hasValue()`, true},
		{`optional.of(42).hasValue(42)`, true},
		{`optional.of(42).hasValue(21)`, false},
		{`optional.none().hasValue(42)`, false},
		{`optional.of(optional.of(42)).hasValue(optional.of(42))`, true},
		{`optional.of(42).hasValue(dyn(optional.of(42)))`, false},
		{`entry.payload.input[?"n"].hasValue(7) && !entry.payload.input[?"n"].hasValue(8)`, true},
		{`entry.payload.input[?"nothing"].hasValue(7)`, false},
		{`entry.payload.input.list[?1].hasValue("two")`, true},
		{`entry.payload.input.list[?9].hasValue("two")`, false},
		{`optional.of([1]) == optional.of([1]) && optional.of(1) != optional.none()`, true},
		{`optional.unwrap([optional.of(1), optional.none(), optional.of(3)]) == [1, 3]`, true},
		{`[optional.none()].unwrapOpt().size() == 0`, true},
		{`entry.payload.?nothing.or(entry.payload.input.?n).value() == 7`, true},
		{`entry.payload.?toolName.optMap(x, x + "!").orValue("") == "search!"`, true},
	} {
		p, err := where.Compile(tc.expr, set)
		if err != nil {
			if strings.HasPrefix(tc.expr, "size(entry)") {
				continue
			}
			t.Errorf("Compile(%s): %v", tc.expr, err)
			continue
		}
		got, err := p.Match(context.Background(), in)
		if err != nil || got != tc.want {
			t.Errorf("%s = %v, %v, want %v", tc.expr, got, err, tc.want)
		}
	}
}

// TestLongestExpression shows that characters are counted, not bytes.
func TestLongestExpression(t *testing.T) {
	for _, letter := range []string{"a", "é", "☼"} {
		text := strings.Repeat(letter, where.MaxExpression-len(`seq==1||""==""`))
		_, err := where.Compile(`seq==1||""=="`+text+`"`, testSet(t))
		require.NoError(t, err)
		_, err = where.Compile(`seq==1||""=="`+text+`a"`, testSet(t))
		require.ErrorContains(t, err, "it is longer than 4096 characters")
	}
}

// TestCompileErrors shows that Compile reports mistakes with their column.
func TestCompileErrors(t *testing.T) {
	for _, tc := range []struct {
		expr   string
		column int
		reason string
	}{
		{``, 1, "empty"},
		{`entry.tpe == "x"`, 7, `entry has no member "tpe"; did you mean "type"?`},
		{`true && state.performnces.size() > 1`, 15, `state has no member "performnces"; did you mean "performances"?`},
		{`prev.x == 1`, 6, `prev has no member "x"; it has at, count, performances, seq`},
		{`entry.toolName == "x"`, 7, `entry has no member "toolName"; it has at, beat, correlationId, data`},
		{`state.count.evn`, 13, `state.count has no member "evn"; did you mean "even"?`},
		{`true || prev.count.elsewhere > 3`, 20, `prev.count has no member "elsewhere"; it has even, half, list, n`},
		{`has(state.count.evn)`, 0, `state.count has no member "evn"`},
		{`state.count["evn"]`, 13, `state.count has no member "evn"`},
		{`state.count[?"evn"].hasValue()`, 0, `state.count has no member "evn"`},
		{`state.count.?evn.hasValue()`, 0, `state.count has no member "evn"`},
		{`[state, prev].exists(s, s.count.evn)`, 33, `s.count has no member "evn"`},
		{"true ||\n state.count.evn || state.count.hlf > 1", 14, `state.count has no member "evn"`},
		{`has(entry.bogus)`, 0, `entry has no member "bogus"`},
		{`foo == 1`, 1, `there is no "foo"; the variables are seq, at, entry, state and prev`},
		{`has(state.count["agent-x"])`, 16, `has() takes a member after a dot; write "agent-x" in state.count`},
		{`has( state.count['a'].list["agent x"] )`, 0, `write "agent x" in state.count['a'].list`},
		{`has(state.count.agent-x)`, 0, `the hyphen is a minus; if "agent-x" is a name, write "agent-x" in state.count`},
		{`has(seq)`, 5, `has() takes a member after a dot, as in has(entry.payload.x)`},
		{`state.count.agent-x`, 19, `there is no "x"; the variables are seq, at, entry, state and prev; ` +
			`the hyphen is a minus; if "agent-x" is a name, write state.count["agent-x"]`},
		{`"é" != "" && state.count["a"].agent-x-1.n > 3`, 37, `if "agent-x-1" is a name, write state.count["a"]["agent-x-1"]`},
		{`state.count.agent-1.n > 3`, 0, `if "agent-1" is a name, write state.count["agent-1"]`},
		{"true &&\n has(state.count[\"agent-x\"])", 17, `write "agent-x" in state.count`},
		{`entry.tpe == "state.count.agent-x"`, 7, `entry has no member "tpe"; did you mean "type"?`},
		{`seq`, 1, "it is a int"},
		{`entry`, 1, "whole entry"},
		{`entry.type == 3`, 12, "there is no operation"},
		{`at == 250`, 4, "250.0"},
		{`seq ==`, 7, "not CEL"},
		{`seq == 1 &&& at`, 0, "not CEL"},
		{"entry.type.matches('(')", 20, "pattern"},
		{"matches(entry.type, '(')", 21, "pattern"},
		{"{'a': entry.type.matches('(')}.size() == 1", 0, "pattern"},
		{"{entry.type.matches('('): 'a'}.size() == 1", 0, "pattern"},
		{"[entry.type.matches('(')].size() == 1", 0, "pattern"},
		{"true ? entry.type.matches('(') : true", 0, "pattern"},
		{"false ? true : entry.type.matches('(')", 0, "pattern"},
		{"[1].exists(x, entry.type.matches('('))", 0, "pattern"},
		{"[entry.type.matches('(')].exists(x, x)", 0, "pattern"},
		{"!(entry.type.matches('('))", 0, "pattern"},
		{"{'a': 1}[entry.type.matches('(') ? 'a' : 'b'] == 1", 0, "pattern"},
		{"optional.of(entry.type.matches('(')).hasValue()", 0, "pattern"},
		{"entry.type.matches('a{2,1}') && entry.type.matches('[')", 20, "pattern"},
		{"\xff", 1, "UTF-8"},
		{strings.Repeat("a", where.MaxExpression+1), where.MaxExpression + 1, "longer"},
		{strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), 0, ""},
		{strings.Repeat("!", 3000) + "true", 0, ""},
	} {
		_, err := where.Compile(tc.expr, testSet(t))
		x, ok := errors.AsType[*where.ExpressionError](err)
		if !ok || !errors.Is(err, where.ErrExpression) {
			if tc.reason != "" {
				t.Errorf("Compile(%.80s): err = %v, want an ExpressionError", tc.expr, err)
			}
			continue
		}
		if tc.column != 0 && x.Column != tc.column || !strings.Contains(x.Reason, tc.reason) {
			t.Errorf("Compile(%.80s): column %d, %s\nwant column %d, %s", tc.expr, x.Column, x.Reason, tc.column, tc.reason)
		}
		// Of these expressions, those of two lines are wrong in the second one.
		if line := 1 + strings.Count(tc.expr, "\n"); tc.column != 0 && x.Line != line {
			t.Errorf("Compile(%.80s): line %d, want %d", tc.expr, x.Line, line)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("Compile(%.80s): the error is not one line: %v", tc.expr, err)
		}
	}
}

// TestNeeds shows which inputs an expression reports as needed.
func TestNeeds(t *testing.T) {
	for _, tc := range []struct {
		expr        string
		state, prev bool
	}{
		{`entry.type == "x" && at > 3`, false, false},
		{`state.seq == 1`, true, false},
		{`prev.seq == 1`, true, true},
		{`entry.payload.exists(k, state.seq == 1)`, true, false},
		{`entry.payload.state == "x"`, false, false},
		{`has(prev.count)`, true, true},
	} {
		p, err := where.Compile(tc.expr, testSet(t))
		require.NoError(t, err)
		if p.NeedsState() != tc.state || p.NeedsPrev() != tc.prev {
			t.Errorf("%s: needs state %v, prev %v, want %v, %v", tc.expr, p.NeedsState(), p.NeedsPrev(), tc.state, tc.prev)
		}
	}
}

// TestValue shows values of every kind.
func TestValue(t *testing.T) {
	in := input(t)
	for _, tc := range []struct {
		expr string
		want any
	}{
		{`seq`, int64(2)},
		{`at`, 250.0},
		{`entry.type`, "tool_call"},
		{`entry.payload.input.list`, []any{int64(1), "two", map[string]any{"x": int64(3)}}},
		{`entry.payload.input.big`, uint64(18446744073709551615)},
		{`entry.payload.input["null"]`, nil},
		{`state.count`, map[string]any{"n": int64(2), "half": 1.0, "even": true, "list": []any{int64(2), "x", nil}}},
		{`state.performances.map(p, p)`, []any{"p-2-1"}},
		{`{1: "a"}`, map[string]any{"1": "a"}},
		{`duration("1s")`, "1s"},
		{`b"ab"`, "YWI="},
		{`1.0/0.0`, "+Inf"},
		{`type(1)`, "int"},
		{`optional.none()`, nil},
		{`type(timestamp("1970-01-01T00:00:00Z")) == google.protobuf.Timestamp`, true},
		// Numbers are one key whatever their type, where they have one value.
		{`{9223372036854775808u: "x"}[dyn(9223372036854775808.0)]`, "x"},
		{`{10000000000000000000u: "y"}[dyn(1e19)]`, "y"},
		{`{-9223372036854775807 - 1: "z"}[dyn(-9223372036854775808.0)]`, "z"},
		{`dyn(-1e19) in {-9223372036854775807 - 1: "z"}`, false},
	} {
		x, err := where.CompileValue(tc.expr, testSet(t))
		if err != nil {
			t.Errorf("CompileValue(%s): %v", tc.expr, err)
			continue
		}
		got, ok, err := x.Value(context.Background(), in)
		if err != nil || !ok {
			t.Errorf("%s: %v, %v", tc.expr, ok, err)
		} else if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.expr, diff)
		}
	}
	x, err := where.CompileValue(`entry.payload.nothing`, testSet(t))
	require.NoError(t, err)
	if v, ok, err := x.Value(context.Background(), in); v != nil || ok || err != nil {
		t.Errorf("a missing value: %v, %v, %v, want nothing", v, ok, err)
	}
	whole, err := where.CompileValue(`entry`, testSet(t))
	require.NoError(t, err)
	v, _, err := whole.Value(context.Background(), in)
	if m, ok := v.(map[string]any); err != nil || !ok || m["type"] != "tool_call" || m["seq"] != int64(2) {
		t.Errorf("entry = %v, %v", v, err)
	}
}

// TestKinds shows the members of entries that are not plain signals.
func TestKinds(t *testing.T) {
	worded := func(word, value string) []byte {
		v, err := signal.ParseValue([]byte(`[` + word + `,` + value + `]`))
		require.NoError(t, err)
		return v
	}
	define := &eventlog.Entry{Seq: 1, Kind: eventlog.KindDefine, Key: "k", Data: worded(`"choreography"`, `{"on":"x"}`)}
	opened := &eventlog.Entry{Seq: 1, Kind: eventlog.KindSession, Data: worded(`"opened"`, `{"time":"wall"}`)}
	broken := &eventlog.Entry{Seq: 1, Kind: eventlog.KindSignal, Data: []byte{0xc1}}
	effect := &eventlog.Entry{Seq: 1, Kind: eventlog.KindEffect, Data: []byte{0x01}}
	accepted := &eventlog.Entry{Seq: 1, Kind: eventlog.KindEffect, Data: worded(`"effect"`, `{"kind":"Move"}`)}
	landed := &eventlog.Entry{Seq: 1, Kind: eventlog.KindBeat, Data: worded(`"beatLanded"`, `{"turn":4,"beat":"salary"}`)}
	irregular := entryOf(t, 1, 0, `{"type":"x","payload":{"a":1},"extra":true}`)
	flagged := entryOf(t, 1, 0, `{"id":"1","type":"tool_call","timestamp":1,"source":"s","payload":{"a":1}}`)
	for _, tc := range []struct {
		entry *eventlog.Entry
		expr  string
	}{
		{define, `entry.kind == "define" && entry.define.choreography.on == "x" && entry.key == "k"`},
		{define, `!has(entry.type) && !has(entry.payload) && !has(entry.data) && !has(entry.session)`},
		{opened, `entry.session.opened.time == "wall" && !has(entry.define) && !has(entry.key)`},
		{broken, `entry.data == "c1" && !has(entry.type)`},
		{effect, `entry.data == "01" && entry.kind == "effect"`},
		{accepted, `entry.effect.effect.kind == "Move" && !has(entry.data) && !has(entry.beat)`},
		{landed, `entry.beat.beatLanded.beat == "salary" && has(entry.beat.beatLanded) && !has(entry.beat.turnOpened) && !has(entry.data)`},
		{irregular, `entry.type == "x" && entry.raw.extra && !has(entry.payload) && has(entry.problem)`},
		{flagged, `entry.payload.a == 1 && entry.problem.contains("toolName") && !has(entry.raw)`},
		{nil, `seq == 0 && at == 0.0 && !has(entry.seq) && !has(state.seq) && !has(prev.count)`},
	} {
		p, err := where.Compile(tc.expr, testSet(t))
		require.NoError(t, err)
		if got, err := p.Match(context.Background(), where.Input{Entry: tc.entry}); err != nil || !got {
			t.Errorf("%s = %v, %v", tc.expr, got, err)
		}
	}
}

// TestFailures shows which errors stop a search, and that they name the entry.
func TestFailures(t *testing.T) {
	in := input(t)
	for _, tc := range []struct{ expr, want string }{
		{`entry.payload.toolName > 3`, "no such overload"},
		{`seq / (seq - 2) == 1`, "division by zero"},
		{`entry.payload.toolName`, "not true or false"},
		{strings.NewReplacer("LIST", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]", "LONG", strings.Repeat("x", 2000)).
			Replace(`LIST.all(a, LIST.all(b, LIST.all(c, LIST.map(d, "LONG" + "y").size() > 0)))`), "costs too much"},
	} {
		p, err := where.Compile(tc.expr, testSet(t))
		if err != nil {
			t.Errorf("Compile(%.60s): %v", tc.expr, err)
			continue
		}
		_, err = p.Match(context.Background(), in)
		x, ok := errors.AsType[*where.EvalError](err)
		if !ok || x.Seq != 2 || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.60s: err = %v, want %q at entry 2", tc.expr, err, tc.want)
		}
	}

	p, err := where.Compile(`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, true)))`, testSet(t))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Match(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("in an ended context: err = %v, want context.Canceled", err)
	}
}

// TestOrder shows that the iteration over an object's members has a fixed order.
func TestOrder(t *testing.T) {
	x, err := where.CompileValue(`[entry.payload.map(k, k), state.count.map(k, k)]`, testSet(t))
	require.NoError(t, err)
	in := input(t)
	in.Entry = entryOf(t, 2, 0, `{"id":"s","type":"x","timestamp":1,"source":"s","payload":{"z":1,"a":2,"m":3,"b":4,"y":5}}`)
	for range 20 {
		got, _, err := x.Value(context.Background(), in)
		want := []any{[]any{"z", "a", "m", "b", "y"}, []any{"even", "half", "list", "n"}}
		if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// FuzzExpression shows that no text makes Compile or an evaluation panic, and that the
// cost of an evaluation stays within the limits.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		`entry.type == "error"`, `state.performances.size() > 3 && entry.kind == "signal"`, `prev.x`, `[1,2].all(x, x > seq)`,
		`entry.payload.?a.b`, `has(entry.payload.a)`, `"a".matches("(a*)*b")`, `entry[`, `{"a": entry, 1: state}`, `type(entry)`, `.state.seq == 1`,
		`sajou.Entry{seq: 1}`, `entry == prev`, `dyn(entry).x`, `timestamp("2026-01-01T00:00:00Z") < timestamp(1)`, `string(entry.timestamp)`,
		`[1].map(a,[a,a]).map(a,[a,a]) == [entry]`, `optional.of(entry).?x.orValue(1)`, `"a".contains("b") || b"a" + b"b" == b"ab"`,
		`entry.payload.input.list.exists_one(x, x in [1, "two"])`, `[?optional.none(), {?1: optional.of(2)}].unwrapOpt()`,
	} {
		f.Add(s)
	}
	set := testSet(f)
	in := input(f)
	f.Fuzz(func(t *testing.T, expr string) {
		x, err := where.CompileValue(expr, set)
		if err != nil {
			if !errors.Is(err, where.ErrExpression) {
				t.Fatalf("CompileValue(%q): %v is no ErrExpression", expr, err)
			}
			return
		}
		for _, in := range []where.Input{in, {Entry: in.Entry}, {}} {
			_, _, err := x.Value(context.Background(), in)
			// The cost of the last, refused operation is included.
			steps, bytes := x.Spent()
			if over := steps > where.StepLimit || bytes > where.MemoryLimit; over && !errors.Is(err, where.ErrBudget) {
				t.Fatalf("%q: %d steps, %d bytes: err = %v", expr, steps, bytes, err)
			}
		}
	})
}

// BenchmarkMatch measures expressions on one entry, without reading and
// folding it.
func BenchmarkMatch(b *testing.B) {
	for _, expr := range []string{
		`entry.type == "error"`,
		`entry.payload.toolName == "search"`,
		`state.performances.size() > 3 && entry.kind == "signal"`,
		`state.performances.exists(p, state.performances[p].on == "x")`,
	} {
		b.Run(fmt.Sprintf("%.30s", expr), func(b *testing.B) {
			p, err := where.Compile(expr, testSet(b))
			require.NoError(b, err)
			in := input(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Match(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package where_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/signal"
)

// drawer draws expressions, of which most are well typed.
type drawer struct {
	d    *golden.Dice
	vars []string // of the loops around
}

func (w *drawer) pick(texts ...string) string { return golden.Pick(w.d, texts...) }

func (w *drawer) truth(depth int) string {
	if depth <= 0 {
		return w.pick("true", "false", `has(entry.payload.n)`, `has(entry.key)`, `has(state.count.n)`, `entry.payload.flag`, `state.count.even`, `prev.count.even`, `has(entry.payload.deep.x)`, `entry.problem == "p"`)
	}
	switch w.d.N(12) {
	case 0:
		return "(" + w.truth(depth-1) + w.pick(" && ", " || ") + w.truth(depth-1) + ")"
	case 1:
		return "!" + w.truth(depth-1)
	case 2, 3:
		return "(" + w.number(depth-1) + w.pick(" < ", " <= ", " > ", " >= ", " == ", " != ") + w.number(depth-1) + ")"
	case 4:
		return "(" + w.text(depth-1) + w.pick(" < ", " <= ", " > ", " >= ", " == ", " != ") + w.text(depth-1) + ")"
	case 5:
		return w.text(depth-1) + "." + w.pick("contains", "startsWith", "endsWith", "matches") + "(" + w.text(0) + ")"
	case 6:
		return "(" + w.any(depth-1) + w.pick(" == ", " != ", " in ") + w.any(depth-1) + ")"
	case 7:
		return "(" + w.any(depth-1) + " in " + w.list(depth-1) + ")"
	case 8:
		return "(" + w.text(depth-1) + " in " + w.object(depth-1) + ")"
	case 9:
		return w.list(depth-1) + "." + w.pick("all", "exists", "exists_one") + w.loop(func() string { return w.truth(depth - 1) })
	case 10:
		return w.object(depth-1) + "." + w.pick("all", "exists", "exists_one") + w.loop(func() string { return w.truth(depth - 1) })
	default:
		return w.optional(depth-1) + ".hasValue()"
	}
}

// loop writes (v, body).
func (w *drawer) loop(body func() string) string {
	name := fmt.Sprintf("v%d", len(w.vars))
	w.vars = append(w.vars, name)
	defer func() { w.vars = w.vars[:len(w.vars)-1] }()
	return "(" + name + ", " + body() + ")"
}

func (w *drawer) variable() string {
	if len(w.vars) > 0 {
		return w.pick(w.vars...)
	}
	return w.pick("seq", "entry.payload.n", "entry.type")
}

func (w *drawer) number(depth int) string {
	if depth <= 0 {
		return w.pick("0", "1", "2", "3", "-1", "2.5", "seq", "at", "entry.payload.n", "entry.payload.f", "entry.payload.big", "state.count.n", "prev.count.n", "state.count.half", "7u", "entry.payload.none", "state.at", "prev.seq", w.variable())
	}
	switch w.d.N(7) {
	case 0, 1:
		return "(" + w.number(depth-1) + w.pick(" + ", " - ", " * ", " / ", " % ") + w.number(depth-1) + ")"
	case 2:
		return w.pick("int", "double", "uint") + "(" + w.any(depth-1) + ")"
	case 3:
		return "size(" + w.pick(w.list(depth-1), w.object(depth-1), w.text(depth-1)) + ")"
	case 4:
		return "(" + w.truth(depth-1) + " ? " + w.number(depth-1) + " : " + w.number(depth-1) + ")"
	case 5:
		return w.list(depth-1) + "[" + w.pick("0", "1", "2", "9", "-1") + "]"
	default:
		return "-" + w.number(depth-1)
	}
}

func (w *drawer) text(depth int) string {
	if depth <= 0 {
		return w.pick(`"a"`, `"two"`, `""`, `"tool_call"`, `"x+"`, `"("`, `"n"`, "entry.type", "entry.kind", "entry.payload.s", "entry.id", "entry.source", "entry.correlationId", "entry.key", "entry.data", "string(entry.payload.n)", w.variable())
	}
	switch w.d.N(4) {
	case 0:
		return "(" + w.text(depth-1) + " + " + w.text(depth-1) + ")"
	case 1:
		return "string(" + w.any(depth-1) + ")"
	case 2:
		return "(" + w.truth(depth-1) + " ? " + w.text(depth-1) + " : " + w.text(depth-1) + ")"
	default:
		return w.text(depth - 1)
	}
}

func (w *drawer) list(depth int) string {
	if depth <= 0 {
		return w.pick("[]", "[1, 2, 3]", `["a", "two"]`, "entry.payload.list", "state.count.list", "[seq, at]", "entry.payload.none", `[1, [2, "x"], {"y": 3}]`, "[?entry.payload.?n, ?entry.payload.?none]")
	}
	switch w.d.N(6) {
	case 0:
		return "(" + w.list(depth-1) + " + " + w.list(depth-1) + ")"
	case 1:
		return w.list(depth-1) + ".map" + w.loop(func() string { return w.any(depth - 1) })
	case 2:
		return w.list(depth-1) + ".filter" + w.loop(func() string { return w.truth(depth - 1) })
	case 3:
		return w.object(depth-1) + ".map" + w.loop(func() string { return w.any(depth - 1) })
	case 4:
		return "[" + w.any(depth-1) + ", " + w.any(depth-1) + "]"
	default:
		return w.object(depth-1) + ".filter" + w.loop(func() string { return w.truth(depth - 1) })
	}
}

func (w *drawer) object(depth int) string {
	if depth <= 0 {
		return w.pick("{}", "entry.payload", "entry.payload.deep", "state", "prev", "entry", "state.count", "state.performances", `{"a": 1, "n": [2]}`, "entry.metadata", "entry.effect", "entry.session", "entry.define", "entry.beat", "entry.raw", "state.?count.orValue({})")
	}
	switch w.d.N(3) {
	case 0:
		return `{"n": ` + w.any(depth-1) + `, ` + w.text(depth-1) + `: ` + w.any(depth-1) + `}`
	case 1:
		return `{?"n": ` + w.optional(depth-1) + `}`
	default:
		return w.object(depth - 1)
	}
}

func (w *drawer) optional(depth int) string {
	return w.pick("entry.?key", "entry.payload.?n", "entry.payload.?none", "entry.payload.?deep.?x", "entry.payload[?\"n\"]", "state.?count", "optional.none()", "entry.payload.list[?9]", "entry.payload.list[?0]",
		"optional.of("+w.any(depth)+")", "optional.ofNonZeroValue("+w.any(depth)+")")
}

func (w *drawer) any(depth int) string {
	switch w.d.N(9) {
	case 0:
		return w.truth(depth)
	case 1, 2:
		return w.number(depth)
	case 3, 4:
		return w.text(depth)
	case 5:
		return w.list(depth)
	case 6:
		return w.object(depth)
	case 7:
		return w.optional(depth) + ".orValue(" + w.number(0) + ")"
	default:
		return w.pick("null", `timestamp("2026-11-21T14:02:05Z")`, `duration("90s")`, `type(1)`, `b"ab"`, `dyn(1)`, `entry.payload["null"]`, w.variable())
	}
}

// mistaken are expressions that do not compile, or fail in their own way.
var mistaken = []string{
	``, ` `, "\xff", `seq ==`, `seqq`, `entry.tipe`, `entry.x.y`, `state.cont`, `state.count.m`, `state.count["halve"]`, `prev.count.m + state.count.k`, `state["count"].q`, `entry["tipe"]`,
	"seq +\n  entry.tipe", "state.count.n +\n state.count.z", `has(seq)`, `has(state.world["agent-1"])`, `has(state.count["n"])`, `has(state.agent-1)`, `state.count.agent-1`, `entry.payload.agent-1 == 2`,
	`entry.payload.a.b-c-d.e`, `1 + 2.5`, `at + 1`, `1 + at`, `"a" + 1`, `"a".matches("(")`, `"a".matches("x{1001}{9}")`, `"a".matches(entry.payload.s + "(")`, `matches("a", "[")`,
	`entry.payload.s.matches("(x{100}){100}")`, `seq`, `entry`, `"text"`, `[1].all(x, [2].all(y, [3].all(z, [4].all(a, [5].all(b, true)))))`, strings.Repeat("(", 70) + "1" + strings.Repeat(")", 70),
	strings.Repeat("1 + ", 2000) + "1", `sajou.Entry{}`, `sajou.State{seq: 1}`, `google.protobuf.Int32Value{}`, `entry.seq.x`, `state.count.list.x`, `1 / 0`, `1 % 0`, `int("x")`, `[1][3]`, `{"a": 1}.b`, `{"a": 1, "a": 2}`,
	`9223372036854775807 + 1`, `-(-9223372036854775807 - 1)`, `entry.payload.n + "x"`, `entry.payload.s > 3`, `!entry.payload.n`, `entry.payload.n && true`, `entry.payload.n ? 1 : 2`, `entry.payload.n.all(x, true)`, `size(entry.payload.n)`,
	`entry.payload.none.all(x, true)`, `string(entry.payload.list)`, `timestamp(entry.payload.s)`, `duration("x")`, `timestamp("2026-11-21T14:02:05Z").getHours("Europe/Paris")`, `timestamp("2026-11-21T14:02:05Z").getHours("Nowhere")`,
	`[1, 2].map(x, x > 1, x * 2)`, `state.performances.all(p, state.performances[p].on == "tool_call")`, `state.performances.map(p, state.performances[p].running[0].action)`, `has(state.performances.x)`, `cel.bind(x, 1, x)`,
	`entry == entry`, `state == prev`, `state.count == prev.count`, `[entry, state].size()`, `entry.map(k, k)`, `state.map(k, k)`, `type(entry) == map`, `optional.of(1)`, `entry.payload.?n`, `[optional.of(1), optional.none()].unwrap()`, `[1].unwrap()`,
	`[[1, 2], [3]].map(x, x.map(y, y + 1))`, `entry.payload.list.exists_one(x, x == 1)`, `{"b": 1, "a": 2}.map(k, k)`, `b"ab" + b"c" == b"abc"`, `b"ab" < b"b"`, `dyn("x") == dyn(1)`, `1 == 1.0`, `1u == 1`, `[1] == [1.0]`, `{"a": 1} == {"a": 1u}`,
	`entry.payload.deep == {"x": 1, "y": [null, true]}`, `entry.payload.s.contains(entry.payload.s)`, `"aaab".matches("^a+b$") && !"aaac".matches("^a+b$")`, `entry.payload.s.matches("^$|.")`,
	`seq == 1 && state.count.one-two == 1 && state.count.three-four.five-six`, `has(state.count["n"]) && has(state.world["x"])`, `has(state.world["x"]) && has(state.count["n"]) && seqq`, `entry.payload.a-b + entry.tipe`,
	"entry.payload.a-b == 1 &&\n entry.tipe == 2", `entry.tipe == 2 || entry.payload.a-b == 1`, `"é-é" == entry.tipe && entry.payload.c-d == 1`, `has(entry.agent-one) || has(entry.agent-two)`,
}

// inputs are those of entries of all kinds.
func inputs(t *testing.T) (names []string, ins []where.Input) {
	t.Helper()
	add := func(name string, in where.Input) { names, ins = append(names, name), append(ins, in) }
	add("nothing", where.Input{})
	add("call", input(t))
	set := testSet(t)
	var before []eventlog.Entry
	var prev map[string]any
	word := func(kind eventlog.Kind, text string) eventlog.Entry {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		return eventlog.Entry{Kind: kind, Data: v}
	}
	line := func(text string) eventlog.Entry { return *entryOf(t, 0, 0, text) }
	for i, e := range []eventlog.Entry{
		line(`{"id":"a","type":"x","timestamp":1.5,"source":"s","payload":{"n":3,"f":2.5,"s":"xx two","flag":true,"list":[1,"two",null,[1]],"deep":{"x":1,"y":[null,true]},"null":null}}`),
		line(`{"id":"b","type":"two","source":"","payload":{"n":-1,"f":1,"big":18446744073709551615,"s":"","flag":false,"list":[],"deep":{}}}`),
		line(`{"type":7,"payload":[1]}`),
		line(`{"id":"c","type":"tool_call","timestamp":5,"source":"s","correlationId":"k","metadata":{"n":1},"payload":{"toolName":"n","agentId":"a","callId":"k","input":{}}}`),
		word(eventlog.KindEffect, `["moved", {"n": 1, "deep": {"x": "y"}}]`), word(eventlog.KindDefine, `["choreography", {"on": "x"}]`),
		word(eventlog.KindSession, `["time", 7]`), word(eventlog.KindBeat, `["turnOpened", {"turn": 1}]`),
		word(eventlog.KindEffect, `["moved"]`), word(eventlog.KindBeat, `[7, 8]`), word(eventlog.KindSession, `{"a": 1}`),
		{Kind: eventlog.KindSignal, Data: []byte{0x97, 1, 2}},
		{Kind: eventlog.KindSignal},
		{Kind: eventlog.KindDefine, Data: []byte{0xc1}},
	} {
		e.Seq, e.At, e.Hash = eventlog.Seq(i+1), time.Duration(i)*400*time.Millisecond, eventlog.Hash{byte(i)}
		if i%3 == 0 {
			e.Key = fmt.Sprintf("key%d", i)
		}
		before = append(before, e)
		f := projection.NewFold(set, eventlog.Hash{})
		for i := range before {
			require.NoError(t, f.Apply(&before[i]))
		}
		f.Advance(e.At)
		in := where.Input{Entry: &e, State: f, Prev: prev}
		if i%4 == 3 {
			in.State = nil // as for an expression that does not need it
		}
		prev = f.View()
		add(fmt.Sprintf("entry %d", i+1), in)
	}
	return names, ins
}

// Expressions have the values, errors and costs that they had, for entries of all kinds.
func TestRecordedExpressions(t *testing.T) {
	set := testSet(t)
	names, ins := inputs(t)
	tell := func(expr string) string {
		var out strings.Builder
		fmt.Fprintln(&out, expr)
		if _, err := where.Compile(expr, set); err != nil {
			fmt.Fprintln(&out, "as a condition:", err)
		}
		x, err := where.CompileValue(expr, set)
		if err != nil {
			fmt.Fprintln(&out, "as a value:", err)
			return out.String()
		}
		fmt.Fprintln(&out, x.NeedsState(), x.NeedsPrev(), x.Reads("count"), x.Reads("performances"), x.Reads("seq"))
		for i, in := range ins {
			v, ok, err := x.Value(context.Background(), in)
			text, jsonErr := json.Marshal(v)
			steps, bytes := x.Spent()
			fmt.Fprintf(&out, "%s: %T %s %v %v %v, %d steps, %d bytes\n", names[i], v, text, jsonErr, ok, err, steps, bytes)
		}
		return out.String()
	}
	golden.Trace(t, "testdata/expressions.txt", func(step func(name, text string)) {
		for n, expr := range mistaken {
			step(fmt.Sprintf("mistake %d", n), tell(expr))
		}
		for n := range uint64(1200) {
			w := &drawer{d: golden.NewDice(n)}
			step(fmt.Sprintf("drawn %d", n), tell(w.any(1+int(n)%4)))
		}
	})
}

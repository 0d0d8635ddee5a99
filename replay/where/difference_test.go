package where

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/signal"
)

// judge evaluates expressions by cel-go's own interpreter, on the same values.
type judge struct{ env *cel.Env }

func newJudge(tb testing.TB) judge {
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
		cel.Variable("seq", cel.IntType), cel.Variable("at", cel.DoubleType),
		cel.Variable("entry", cel.DynType), cel.Variable("state", cel.DynType), cel.Variable("prev", cel.DynType))
	require.NoError(tb, err)
	return judge{env}
}

// verdict is a value as text, "missing" or "error".
func (j judge) verdict(expr string, x *Expression, in Input) (string, bool) {
	checked, issues := j.env.Compile(expr)
	if issues.Err() != nil {
		return "", false
	}
	program, err := j.env.Program(checked)
	if err != nil {
		return "", false
	}
	m := x.machine
	m.meter.reset(context.Background())
	m.vars.reset(in)
	vars := map[string]any{}
	for _, name := range variableNames {
		v, err := m.meter.plain(m.vars.read(name), 0)
		if err != nil {
			return "", false
		}
		vars[name] = v
	}
	v, _, err := program.Eval(vars)
	switch {
	case err != nil && (strings.HasPrefix(err.Error(), "no such key") || strings.HasPrefix(err.Error(), "index out of bounds")):
		return "missing", true
	case err != nil:
		return "error", true
	}
	return show(v), true
}

// show writes a value of either evaluator. Members are sorted: cel-go's maps
// have no order.
func show(v ref.Val) string {
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return "none"
		}
		return "some(" + show(v.GetValue()) + ")"
	case traits.Mapper:
		var members []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			one, _ := v.Find(key)
			members = append(members, show(key)+":"+show(one))
		}
		sort.Strings(members)
		return "{" + strings.Join(members, ",") + "}"
	case traits.Lister:
		var elements []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, show(it.Next()))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case types.String:
		return fmt.Sprintf("%q", string(v))
	}
	return fmt.Sprintf("%s(%v)", typeName(v), v.Value())
}

// letters returns the letters of a text, sorted. cel-go iterates over maps in any
// order.
func letters(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}

func ours(x *Expression, in Input) string {
	v, err := x.eval(context.Background(), in)
	switch {
	case err != nil:
		return "error"
	case isMissing(v):
		return "missing"
	}
	return show(v)
}

const world = `{"id":"s1","type":"x","timestamp":1500,"source":"t","correlationId":"c","metadata":{"m":1},"payload":` +
	`{"n":7,"f":5.0,"big":18446744073709551615,"neg":-3,"null":null,"t":true,"s":"text","long":"ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab",` +
	`"list":[1,"two",{"x":3},[4,5],null,2.5],"nums":[3,1,2,2],"empty":[],"o":{"a":1,"b":{"c":[1,2]}},"none":{}}}`

func worldInput(tb testing.TB) Input {
	sig, err := signal.Parse([]byte(world))
	require.NoError(tb, err)
	return Input{Entry: &eventlog.Entry{Seq: 3, Kind: eventlog.KindSignal, Data: sig.Append(nil)}}
}

// author writes random expressions.
type author struct {
	*rand.Rand
	loops []string
}

func (a *author) pick(from ...string) string { return from[a.IntN(len(from))] }

func (a *author) leaf() string {
	leaves := append([]string{
		"1", "2u", "-3", "2.5", "0", `"text"`, `"ab"`, `b"ab"`, "true", "false", "null", "[]", "{}", "seq", "entry.payload.n", "entry.payload.f", "entry.payload.big",
		"entry.payload.neg", "entry.payload.s", "entry.payload.long", "entry.payload.list", "entry.payload.nums", "entry.payload.o", "entry.payload.none",
		"entry.payload.nothing", "entry.payload.t", "entry.payload.empty", "entry.type", "entry.payload", "optional.none()", "9223372036854775807", "entry.payload.list[2]", "int", "string",
	}, a.loops...)
	return a.pick(leaves...)
}

func (a *author) expr(depth int) string {
	if depth <= 0 {
		return a.leaf()
	}
	e := func() string { return a.expr(depth - 1) }
	switch a.IntN(30) {
	case 0, 1, 2:
		return "(" + e() + a.pick(" == ", " != ", " < ", " <= ", " > ", " >= ", " in ") + e() + ")"
	case 3, 4, 5:
		return "(" + e() + a.pick(" + ", " - ", " * ", " / ", " % ") + e() + ")"
	case 6, 7:
		return "(" + e() + a.pick(" && ", " || ") + e() + ")"
	case 8:
		return "(" + e() + " ? " + e() + " : " + e() + ")"
	case 9:
		return "!" + e()
	case 10:
		return "[" + e() + ", " + e() + "]"
	case 11:
		return "{" + a.pick(`"a"`, "1", "2u", "true", "entry.type") + ": " + e() + "}"
	case 12:
		return "[?" + e() + ", " + e() + "]"
	case 13:
		return "{?" + a.pick(`"a"`, "1") + ": " + e() + "}"
	case 14:
		return e() + "." + a.pick("a", "b", "x", "c", "?a", "?b.c")
	case 15:
		return e() + a.pick("[0]", "[1]", "[9]", `["a"]`, "[?0]", `[?"b"]`, "[1.0]", "[2u]", "["+e()+"]", "[?"+e()+"]")
	case 16:
		return "has(" + e() + "." + a.pick("a", "b", "x") + ")"
	case 17:
		return "size(" + e() + ")"
	case 18:
		return a.pick("string", "int", "uint", "double", "bool", "bytes", "type", "dyn", "timestamp", "duration", "optional.of", "optional.ofNonZeroValue", "optional.unwrap") + "(" + e() + ")"
	case 19:
		return e() + a.pick(".contains(", ".startsWith(", ".endsWith(", ".matches(") + e() + ")"
	case 20:
		return e() + a.pick(`.matches("a.*b")`, `.matches("^(te|ab )+")`, `.contains("b a")`, `.matches("t$")`, ".first()", ".last()", ".hasValue()", ".value()", ".unwrapOpt()")
	case 21:
		return e() + a.pick(".or(", ".orValue(", ".hasValue(") + e() + ")"
	case 22:
		return "dyn(" + e() + ")"
	default:
		name := a.pick("v", "w", "entry")
		macro := a.pick("all", "exists", "exists_one", "map", "filter", "optMap", "optFlatMap")
		over := e()
		a.loops = append(a.loops, name, name)
		body := e()
		if macro == "map" && a.IntN(3) == 0 {
			body += ", " + e()
		}
		a.loops = a.loops[:len(a.loops)-2]
		return over + "." + macro + "(" + name + ", " + body + ")"
	}
}

// TestAttackDifference compares the evaluator with cel-go's on random expressions. It
// uses no map keys of types that CEL does not allow, because cel-go accepts them.
func TestAttackDifference(t *testing.T) {
	j := newJudge(t)
	in := worldInput(t)
	compared, seen := 0, map[string]int{}
	check := func(expr string) {
		x, err := compile(expr, nil, false)
		if err != nil {
			return
		}
		want, ok := j.verdict(expr, x, in)
		if !ok {
			return
		}
		compared++
		seen[want[:min(4, len(want))]]++
		if got := ours(x, in); got != want && letters(got) != letters(want) {
			t.Errorf("%s\n  is   %s\n  want %s", expr, got, want)
		}
	}
	a := &author{Rand: rand.New(rand.NewPCG(1, 2))}
	for i := range attack.Rounds(1_500, 40_000) {
		check(a.expr(1 + i%4))
	}
	t.Logf("%d compared: %v", compared, seen)
	if compared < attack.Rounds(200, 5_000) {
		t.Errorf("only %d expressions were compared", compared)
	}
	if seen["miss"] == 0 || seen["erro"] == 0 || seen["bool"] == 0 {
		t.Errorf("the expressions give too little: %v", seen)
	}
}

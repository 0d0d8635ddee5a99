package where_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/signal"
)

// payload is a hostile payload: every part of it is as long as an entry allows.
func payload(tb testing.TB) *eventlog.Entry {
	tb.Helper()
	var b strings.Builder
	b.WriteString(`{"n":[`)
	for i := range 10_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, i)
	}
	b.WriteString(`],"a":{`)
	for i := range 30_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
	}
	b.WriteString(`},"b":{`)
	for i := 29_999; i >= 0; i-- {
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
		if i > 0 {
			b.WriteByte(',')
		}
	}
	text := strings.Repeat("a", 900_000)
	fmt.Fprintf(&b, `},"text":%q,"part":%q,"words":%q,"nest":%s}`, text, collision(text), strings.Repeat("ab ", 300_000),
		strings.Repeat("[", 400)+"1"+strings.Repeat("]", 400))
	line := `{"id":"s","type":"x","timestamp":1,"source":"s","payload":` + b.String() + `}`
	sig, err := signal.Parse([]byte(line))
	require.NoError(tb, err)
	return &eventlog.Entry{Seq: 7, Kind: eventlog.KindSignal, Data: sig.Append(nil)}
}

// collision returns a text half as long as text, a text of one letter. It has the same
// 32-bit hash as half of text and differs from it near its end.
func collision(text string) string {
	const prime = 16777619 // of strings.Index
	half := []byte(text[:len(text)/2])
	// The hash stays the same if one element grows by d and the next falls by
	// d*prime mod 2^32; a longer tail keeps the elements within a byte.
	tail := half[len(half)-24:]
	var want uint32
	for _, c := range tail {
		want = want*prime + uint32(c)
	}
	seed := uint32(1)
	seen := map[uint32][12]byte{}
	shift := uint32(1)
	for range 12 {
		shift *= prime
	}
	for range 1 << 17 {
		var front, back [12]byte
		var f, k uint32
		for i := range front {
			seed = seed*1664525 + 1013904223
			front[i] = 'b' + byte(seed>>24)%20
			f = f*prime + uint32(front[i])
			seed = seed*1664525 + 1013904223
			back[i] = 'b' + byte(seed>>24)%20
			k = k*prime + uint32(back[i])
		}
		seen[f*shift] = front
		if found, ok := seen[want-k]; ok {
			copy(tail, found[:])
			copy(tail[12:], back[:])
			break
		}
	}
	return string(half)
}

// nested returns an expression whose value holds another value 200^4 times.
func nested(in string) string { return wrapped(in, "["+strings.Repeat("a,", 200)+"]") }

// wrapped wraps a list of one value four times in an expression of a.
func wrapped(in, expr string) string {
	return "[" + in + "]" + strings.Repeat(".map(a,"+expr+")", 4)
}

// asMap is a map that holds a 60 times.
func asMap() string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "%d:a,", i)
	}
	return "{" + b.String() + "}"
}

// doubled returns an expression whose value is 40^4 copies of a text.
func doubled(text string) string { return wrapped(text, "a"+strings.Repeat("+a", 39)) }

// bombs are short expressions with a very high cost. fails says that the cost exceeds
// every budget.
var bombs = []struct {
	name, expr string
	fails      bool
}{
	{"a list for each element", `entry.payload.n.map(a, entry.payload.n).size()`, false},
	{"a list for each element, written out", `entry.payload.n.map(a, entry.payload.n)`, true},
	{"a copy of a list for each element", `entry.payload.n.map(a, entry.payload.n + [a]).size()`, true},
	{"a list of lists of lists", `entry.payload.n.map(a, entry.payload.n.map(b, a + b).size()).size()`, true},
	{"a filter of a filter", `entry.payload.n.filter(a, entry.payload.n.filter(b, b == a).size() == 1).size()`, true},
	{"equal objects", `entry.payload.a == entry.payload.b`, false},
	{"equal objects, many times", `entry.payload.n.all(i, entry.payload.a == entry.payload.b)`, true},
	{"an object in a list of objects", `entry.payload.a in entry.payload.n.map(i, entry.payload.b)`, false},
	{"unequal objects", `entry.payload.a != entry.payload.b`, false},
	{"a pattern over a long text", `entry.payload.text.matches("(a?){20}(x+x+)+y")`, false},
	{"a large pattern over a long text", `entry.payload.text.matches("(a{0,30}){30}b")`, true},
	{"a large pattern, again and again", `entry.payload.n.exists(i, entry.payload.words.matches("(ab |b |a )*(c|d){900}$"))`, true},
	{"a pattern of a payload", `entry.payload.text.matches(entry.payload.words)`, false},
	{"patterns that are made", `entry.payload.n.exists(i, "x".matches("(a{900}|b){" + string(i % 9 + 1) + "}"))`, true},
	{"a text sought in a text", `entry.payload.text.contains(entry.payload.part)`, false},
	{"a text sought in a text, many times", `entry.payload.n.exists(i, entry.payload.text.contains(entry.payload.part))`, true},
	{"a text that doubles", doubled(`"`+strings.Repeat("x", 100)+`"`) + `.size()`, true},
	{"bytes that double", doubled(`b"`+strings.Repeat("x", 100)+`"`) + `.size()`, true},
	{"a list that doubles", doubled(`[1]`) + `.size()`, true},
	{"a long text that doubles", doubled(`entry.payload.text`) + `.size()`, true},
	{"a value that holds itself twice", nested("1") + ".size()", false},
	{"a value that holds itself twice, compared", nested("1") + "==" + nested("1"), true},
	{"a value that holds itself twice, sought", nested("1") + "[0] in " + nested("1"), true},
	{"a value that holds itself twice, written out", nested("1"), true},
	{"a value that holds a text twice, written out", nested("entry.payload.text"), true},
	{"a map that holds itself twice, compared", wrapped("1", asMap()) + "==" + wrapped("1", asMap()), true},
	{"an optional that holds itself twice", wrapped("1", "optional.of(["+strings.Repeat("a,", 100)+"])") + "==" + wrapped("1", "optional.of(["+strings.Repeat("a,", 100)+"])"), true},
	{"a key that is a map", `{}[` + nested("1") + `]`, false},
	{"a key that is a long text", `entry.payload.n.all(i, !has(entry.payload.a.x) && !(entry.payload.text in entry.payload.a))`, true},
	{"an error with a long text", `entry.payload.n.all(i, i < 0 || timestamp(entry.payload.text) == timestamp(0) || true)`, true},
	{"a number of a long text", `int(entry.payload.text) == 1`, false},
	{"a duration of a long text", `duration(entry.payload.text) == duration("1s")`, false},
	{"bytes of a long text", `entry.payload.n.map(i, bytes(entry.payload.text)).size()`, true},
	{"texts of long bytes", `[bytes(entry.payload.text)].all(b, entry.payload.n.map(i, string(b)).size() > 0)`, true},
	{"the size of a long text", `entry.payload.n.all(i, size(entry.payload.text) > 0)`, true},
	{"long texts compared", `entry.payload.n.all(i, entry.payload.text <= entry.payload.text)`, true},
	{"long texts at their ends", `entry.payload.n.all(i, entry.payload.text.endsWith(entry.payload.text))`, true},
	{"the zone of each", `entry.payload.n.map(i, timestamp(i).getHours("Europe/Paris")).size()`, true},
	{"four loops", `entry.payload.n.all(a, entry.payload.n.all(b, entry.payload.n.all(c, entry.payload.n.exists_one(d, d == 1))))`, true},
	{"a deep value", `entry.payload.nest == entry.payload.nest`, false},
	{"a member of a large object for each", `entry.payload.n.all(i, entry.payload.a.k29999 == 29999)`, false},
	{"all names of a large object for each", `entry.payload.n.all(i, entry.payload.a.all(k, k != ""))`, true},
	{"a map of long keys", `entry.payload.n.map(i, {entry.payload.text: i}).size()`, true},
	{"optionals", `optional.unwrap(entry.payload.n.map(i, optional.of(entry.payload.n)))`, true},
	{"the whole entry", `[entry, entry, entry].map(e, [e, e, e]) == [entry, entry, entry].map(e, [e, e, e])`, false},
}

// TestAttackExpressions shows that no expression exceeds the limits: the work and the
// allocation of one evaluation are bounded, and a refusal names its reason.
func TestAttackExpressions(t *testing.T) {
	entry := payload(t)
	set := testSet(t)
	for _, tc := range bombs {
		t.Run(tc.name, func(t *testing.T) {
			x, err := where.CompileValue(tc.expr, set)
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			_, _, err = x.Value(context.Background(), where.Input{Entry: entry})
			took := time.Since(begun)
			runtime.ReadMemStats(&after)
			steps, bytes := x.Spent()
			made := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d steps, %d bytes, %d allocated, %v: %.100v", steps, bytes, made, took, err)
			if made > 3*where.MemoryLimit {
				t.Errorf("%d bytes were allocated, more than three times the limit", made)
			}
			if took > 2*time.Minute {
				t.Errorf("it took %v", took)
			}
			if refused := errors.Is(err, where.ErrBudget); refused != tc.fails {
				t.Errorf("err = %v, want refused %v", err, tc.fails)
			}
			if err != nil && len(err.Error()) > 5000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// TestAttackEquality shows that comparing objects takes linear work.
func TestAttackEquality(t *testing.T) {
	cost := func(n int) int64 {
		var a, b strings.Builder
		for i := range n {
			fmt.Fprintf(&a, `,"k%d":%d`, i, i)
			fmt.Fprintf(&b, `,"k%d":%d`, n-1-i, n-1-i)
		}
		line := `{"id":"s","type":"x","timestamp":1,"source":"s","payload":{"a":{` + a.String()[1:] + `},"b":{` + b.String()[1:] + `}}}`
		p, err := where.Compile(`entry.payload.a == entry.payload.b`, testSet(t))
		require.NoError(t, err)
		if same, err := p.Match(context.Background(), where.Input{Entry: entryOf(t, 1, 0, line)}); err != nil || !same {
			t.Fatalf("%d members: %v, %v", n, same, err)
		}
		steps, _ := p.Spent()
		return steps
	}
	for _, n := range []int{1000, 8000} {
		if one, two := cost(n), cost(2*n); two > 3*one || two > int64(40*n) {
			t.Errorf("%d members take %d steps, twice as many %d", n, one, two)
		}
	}
}

// patience is a context that ends after a number of calls of Err.
type patience struct {
	context.Context
	left atomic.Int64
}

func (p *patience) Err() error {
	if p.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestAttackInterrupts shows that a context ends an evaluation within its operations:
// between two checks of the context the evaluation takes a bounded number of steps,
// which take well below a tenth of a second.
func TestAttackInterrupts(t *testing.T) {
	entry := payload(t)
	set := testSet(t)
	for _, tc := range bombs {
		for _, looks := range []int64{0, 2, 10}[:attack.Rounds(2, 3)] {
			x, err := where.CompileValue(tc.expr, set)
			require.NoError(t, err)
			ctx := &patience{Context: context.Background()}
			ctx.left.Store(looks)
			_, _, err = x.Value(ctx, where.Input{Entry: entry})
			steps, _ := x.Spent()
			if ctx.left.Load() >= 0 {
				continue // it finished earlier
			}
			if !errors.Is(err, context.Canceled) && !errors.Is(err, where.ErrBudget) {
				t.Errorf("%s, after %d looks: err = %v, want context.Canceled", tc.name, looks, err)
			}
			// An indivisible operation makes a text of at most the memory limit.
			if most := (looks+1)*where.ContextEvery + 1_300_000; steps > most {
				t.Errorf("%s, after %d looks: %d steps, want at most %d", tc.name, looks, steps, most)
			}
		}
	}
}

// TestAttackRefusalNames shows that a refusal names the expression, the entry
// and the limit.
func TestAttackRefusalNames(t *testing.T) {
	for _, tc := range []struct {
		expr, unit string
		limit      int64
	}{
		{`entry.payload.n.all(a, entry.payload.n.all(b, true))`, "steps", where.StepLimit},
		{doubled(`"`+strings.Repeat("x", 100)+`"`) + `.size() == 1`, "bytes", where.MemoryLimit},
	} {
		p, err := where.Compile(tc.expr, testSet(t))
		require.NoError(t, err)
		_, err = p.Match(context.Background(), where.Input{Entry: payload(t)})
		at, ok := errors.AsType[*where.EvalError](err)
		if !ok || at.Expr != tc.expr || at.Seq != 7 {
			t.Errorf("err = %v, want an EvalError at entry 7", err)
		}
		over, ok := errors.AsType[*where.BudgetError](err)
		if !ok || over.Unit != tc.unit || over.Limit != tc.limit || !strings.Contains(err.Error(), fmt.Sprint(tc.limit)) {
			t.Errorf("err = %v, want a BudgetError of %d %s", err, tc.limit, tc.unit)
		}
	}
}

// TestAttackSource shows that Compile refuses an invalid expression with little work.
func TestAttackSource(t *testing.T) {
	set := testSet(t)
	repeat := strings.Repeat
	for _, expr := range []string{
		repeat("(", 4000), repeat("[", 4000), repeat("{", 4000), repeat("!", 4000) + "1", repeat("-", 4000) + "1", repeat("a.", 2000) + "a",
		repeat("1+", 2000) + "1", repeat("a?b:", 1000) + "c", repeat("[1,", 1300) + "1" + repeat("]", 100), repeat("true||", 680) + "true",
		repeat("a[", 1300) + repeat("]", 1300), repeat("f(", 1300) + repeat(")", 1300), repeat("{1:", 1300) + "1" + repeat("}", 1000),
		repeat("1<", 2000) + "1", repeat("a.b(", 1000) + repeat(")", 1000), repeat("`a`.", 1000) + "a", "'" + repeat("\\", 4000) + "'",
		`"x".matches("` + repeat("a{1000}", 580) + `")`, `"x".matches("((((a{30}){30}){30}){30}){30}")`, `"x".matches("` + repeat("(a|", 1000) + repeat(")", 1000) + `")`,
		`"x".matches("` + repeat(`\\pL`, 1000) + `")`, `"x".matches("(?i)` + repeat(`[\\pL\\pN]`, 400) + `")`, `"x".matches("` + repeat("a?", 2000) + `")`,
		`"x".matches("` + repeat("(", 2000) + `")`, `"x".matches("` + repeat("[^a]{100}", 400) + `")`,
		"99999999999999999999999999999999", repeat("9", 4000), "0x" + repeat("f", 4000), repeat("9", 2000) + "." + repeat("9", 2000), "1e" + repeat("9", 4000),
		repeat("[a].map(a,", 380) + "a" + repeat(")", 380), "[1]" + repeat(".map(a,[a])", 360), "[1]" + repeat(".exists_one(a,true).all(a,", 5) + "true" + repeat(")", 5),
		"{" + repeat("'a':1,", 650) + "'a':1}", repeat("has(", 900) + "a.b" + repeat(")", 900), repeat("\n", 4000) + "1", "/*" + repeat("*", 4000),
		repeat("//\n", 1300) + "1", "r'''" + repeat("'", 4000), repeat("\U0001F600", 4000), `google.protobuf.Struct{fields: {"a": google.protobuf.Value{}}}`,
		`google.protobuf.Any{type_url: "x"}`, `sajou.State{}`, `type(type(type(1)))`, `[1,2].map(a, b, c, d)`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		x, err := where.CompileValue(expr, set)
		if err == nil {
			_, _, err = x.Value(context.Background(), where.Input{})
		}
		runtime.ReadMemStats(&after)
		made, took := after.TotalAlloc-before.TotalAlloc, time.Since(begun)
		t.Logf("%.30q: %d bytes, %v, %.80v", expr, made, took, err)
		if made > 256<<20 || took > 2*time.Minute {
			t.Errorf("%.30q: %d bytes in %v", expr, made, took)
		}
	}
}

// TestAttackDamage evaluates expressions on entries whose bytes are not a signal.
func TestAttackDamage(t *testing.T) {
	set := testSet(t)
	whole := input(t).Entry.Data
	exprs := []string{
		`entry`, `entry.payload`, `entry.payload.map(k, k)`, `[entry.payload, entry.metadata, entry.raw] == []`, `entry.payload.input.list.map(x, x)`, `entry.data`,
		`entry.define`, `entry.payload == entry.payload`, `entry.payload.n[0]`, `size(entry.payload.n)`,
	}
	var compiled []*where.Expression
	for _, expr := range exprs {
		x, err := where.CompileValue(expr, set)
		require.NoError(t, err)
		compiled = append(compiled, x)
	}
	head := []byte{0x97, 0xa1, 's', 0xa1, 'x', 1, 0xa1, 's', 0xc0, 0xc0}
	bad := [][]byte{
		append(head[:len(head):len(head)], append([]byte(strings.Repeat("\x91", attack.Rounds(1<<15, 1<<20))), 1)...), // lists in lists
		append(head[:len(head):len(head)], []byte(strings.Repeat("\x81\xa1n", attack.Rounds(10_000, 300_000)))...),
		append(head[:len(head):len(head)], 0xdd, 0xff, 0xff, 0xff, 0xff, 1), // 4 billion elements
		append(head[:len(head):len(head)], 0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1, 'n', 1),
		append(head[:len(head):len(head)], 0x81, 0xa1, 'n', 0xdd, 0xff, 0xff, 0xff, 0xff, 1),
		append(head[:len(head):len(head)], 0xdb, 0xff, 0xff, 0xff, 0xff, 'n'),
	}
	for i := range attack.Rounds(len(whole), 20*len(whole)) {
		damaged := append([]byte{}, whole...)
		damaged[i%len(whole)] ^= byte(1 + i/len(whole)*13%255)
		bad = append(bad, damaged, whole[:i%len(whole)])
	}
	for _, data := range bad {
		for _, kind := range []eventlog.Kind{eventlog.KindSignal, eventlog.KindDefine, eventlog.KindEffect} {
			in := where.Input{Entry: &eventlog.Entry{Seq: 1, Kind: kind, Data: data}}
			for i, x := range compiled {
				if _, _, err := x.Value(context.Background(), in); err != nil && strings.Contains(err.Error(), "internal") {
					t.Fatalf("%s on %.20x: %v", exprs[i], data, err)
				}
			}
		}
	}
}

// Values are compared up to a depth of four times that of a signal's values, and no deeper:
// an entry that was not checked can be as deep as it is long.
func TestDepthOfComparison(t *testing.T) {
	const most = 4 * signal.MaxDepth
	p, err := where.Compile(`entry.payload == entry.payload`, testSet(t))
	require.NoError(t, err)
	head := []byte{0x97, 0xa1, 's', 0xa1, 'x', 1, 0xa1, 's', 0xc0, 0xc0}
	for _, lists := range []int{1, most - 2, most - 1, most, most + 1} { // the number within is one deeper
		data := append(append(head[:len(head):len(head)], strings.Repeat("\x91", lists)...), 1)
		same, err := p.Match(t.Context(), where.Input{Entry: &eventlog.Entry{Seq: 1, Kind: eventlog.KindSignal, Data: data}})
		if lists < most {
			require.NoError(t, err, "%d lists", lists)
			require.True(t, same, "%d lists", lists)
			continue
		}
		require.ErrorContains(t, err, "nested too deep", "%d lists", lists)
	}
}

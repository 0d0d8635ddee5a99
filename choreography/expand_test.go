package choreography_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestWrittenOut brings the declarations in testdata/written into force, in the
// order of the file, and shows what signals perform then, or why one is refused.
func TestWrittenOut(t *testing.T) {
	golden.Tell(t, "testdata/written/*.txtar", func(t *testing.T, files map[string]string) string {
		all, err := signal.ParseValue([]byte(files["declarations.json"]))
		require.NoError(t, err)
		var out strings.Builder
		c := new(language.Catalog)
		for v := range all.Elements() {
			d, err := language.CompileDeclaration(language.WordFor(v), v)
			if err != nil {
				fmt.Fprintf(&out, "refused: %v\n", err)
				continue
			}
			next, err := c.With(d)
			if err != nil {
				fmt.Fprintf(&out, "%s %q refused: %v\n", d.Word(), d.Name(), err)
				continue
			}
			c = next
			bound, err := c.Bind(d)
			require.NoErrorf(t, err, "%s %q came into force but cannot be bound", d.Word(), d.Name())
			fmt.Fprintf(&out, "%s %q\n", d.Word(), d.Name())
			for _, b := range bound {
				tell(&out, b.Value())
				again, err := definition.Compile(b.Value())
				require.NoError(t, err)
				if same, err := new(language.Catalog).Bind(again); err != nil || string(same[0].Value()) != string(b.Value()) {
					t.Errorf("%q is not complete: by itself it is %v, %v", d.Name(), same, err)
				}
			}
		}
		return out.String()
	})
}

// tell writes a definition with a step a line.
func tell(out *strings.Builder, d signal.Value) {
	for name, v := range d.Members() {
		if name != "steps" {
			fmt.Fprintf(out, "  %s: %s\n", name, v)
			continue
		}
		tellSteps(out, v, "  ")
	}
}

func tellSteps(out *strings.Builder, steps signal.Value, indent string) {
	for step := range steps.Elements() {
		var line []string
		inner := signal.Value(nil)
		for name, v := range step.Members() {
			text, ok := v.Text()
			switch {
			case name == "steps":
				inner = v
			case name == "action" && ok:
				line = append(line, text)
			default:
				line = append(line, name+"="+v.String())
			}
		}
		fmt.Fprintf(out, "%s- %s\n", indent, strings.Join(line, " "))
		tellSteps(out, inner, indent+"  ")
	}
}

// parsed reads declarations that must be clean of errors.
func parsed(t rapid.TB, texts ...string) []language.Declaration {
	t.Helper()
	ds, diagnostics := language.Parse("test.json", []byte("["+strings.Join(texts, ",\n")+"]"))
	if err := diagnostics.Err(definition.ErrInvalid); err != nil {
		t.Fatalf("%v", err)
	}
	return ds
}

// lastBound brings declarations into force and returns what the last performs.
func lastBound(t rapid.TB, ds []language.Declaration) *definition.Definition {
	t.Helper()
	c := new(language.Catalog)
	var bound []*definition.Definition
	for _, d := range ds {
		next, err := c.With(d)
		if err != nil {
			t.Fatalf("%s %q: %v", d.Word(), d.Name(), err)
		}
		c = next
		if bound, err = c.Bind(d); err != nil {
			t.Fatalf("%s %q: %v", d.Word(), d.Name(), err)
		}
	}
	return bound[0]
}

// A step as it is written with sequences, repeat and stagger, and the same by
// hand.
type twin struct{ written, byHand []any }

type step = map[string]any

// anySteps draws steps for a place inside a sequence of steps.
func anySteps(t *rapid.T, depth int) twin {
	var all twin
	for range rapid.IntRange(1, 3).Draw(t, "steps") {
		one := anyStep(t, depth)
		all.written = append(all.written, one.written...)
		all.byHand = append(all.byHand, one.byHand...)
	}
	return all
}

func anyStep(t *rapid.T, depth int) twin {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind = 0
	}
	switch kind {
	case 1: // include, of one of the sequences that the test declares
		who := rapid.SampledFrom([]string{"ann", "signal.to"}).Draw(t, "who")
		n := rapid.IntRange(0, 3).Draw(t, "n")
		hand := []any{}
		for range n {
			hand = append(hand, step{"action": "flash", "entity": who})
		}
		return twin{[]any{step{"action": "include", "sequence": "blink", "with": step{"who": who, "n": n}}}, hand}
	case 2: // repeat
		inner := anySteps(t, depth-1)
		n := rapid.IntRange(0, 3).Draw(t, "times")
		hand := []any{}
		for range n {
			hand = append(hand, inner.byHand...)
		}
		return twin{[]any{step{"action": "repeat", "times": n, "steps": inner.written}}, hand}
	case 3: // stagger
		every := rapid.IntRange(0, 30).Draw(t, "every")
		var written []any
		hand := []any{}
		for i := range rapid.IntRange(1, 3).Draw(t, "children") {
			child := anyStep(t, depth-1)
			written = append(written, child.written[0])
			hand = append(hand, later(i*every, child.byHand)...)
		}
		stagger := []any{step{"action": "stagger", "every": every, "steps": written}}
		if len(hand) == 0 {
			return twin{stagger, nil} // one that writes nothing is left out
		}
		return twin{stagger, []any{step{"action": "parallel", "steps": hand}}}
	case 4: // stagger over items
		every := rapid.IntRange(0, 30).Draw(t, "every")
		var items []any
		hand := []any{}
		for i := range rapid.IntRange(1, 3).Draw(t, "items") {
			item := rapid.SampledFrom([]string{"ann", "bob", "signal.to"}).Draw(t, "item")
			items = append(items, item)
			hand = append(hand, later(i*every, []any{step{"action": "move", "entity": item, "no": i, "duration": 10}, step{"action": "spawn"}})...)
		}
		return twin{
			[]any{step{"action": "stagger", "every": every, "each": items, "steps": []any{
				step{"action": "move", "entity": "each.item", "no": "each.index", "duration": 10}, step{"action": "spawn"},
			}}},
			[]any{step{"action": "parallel", "steps": hand}},
		}
	case 5: // parallel
		var written []any
		hand := []any{}
		for range rapid.IntRange(1, 3).Draw(t, "children") {
			child := anyStep(t, depth-1)
			written = append(written, child.written[0])
			hand = append(hand, later(0, child.byHand)...)
		}
		return twin{[]any{step{"action": "parallel", "steps": written}}, []any{step{"action": "parallel", "steps": hand}}}
	default:
		s := step{"action": rapid.SampledFrom([]string{"move", "spawn", "wait"}).Draw(t, "action"), "duration": rapid.IntRange(0, 40).Draw(t, "duration")}
		return twin{[]any{s}, []any{s}}
	}
}

// later holds steps together as one child of a group, after a pause.
func later(ms int, steps []any) []any {
	if len(steps) == 0 {
		return nil
	}
	return []any{step{"action": "onArrive", "steps": append([]any{step{"action": "wait", "duration": ms}}, steps...)}}
}

// What is written with include, repeat and stagger gives the commands of what
// one would write by hand.
func TestExpansionEqualsHandWritten(t *testing.T) {
	const blink = `{"sequence": "blink", "params": {"who": "nobody", "n": 1}, "steps": [
		{"action": "repeat", "times": "param.n", "steps": [{"action": "flash", "entity": "param.who"}]}]}`
	perform := func(t *rapid.T, ds []language.Declaration) []choreography.Command {
		s := choreography.NewScheduler()
		var sink choreography.RecordingSink
		s.SetSink(&sink)
		for _, d := range ds {
			require.NoError(t, s.Define(d))
		}
		payload, err := signal.ParseValue([]byte(`{"to": "dan"}`))
		require.NoError(t, err)
		s.Signal(1, &signal.Signal{Type: "x", Payload: payload})
		s.Advance(0)
		for {
			at, ok := s.Next()
			if !ok {
				return sink.Commands
			}
			s.Advance(at)
		}
	}
	definition := func(t *rapid.T, steps []any) string {
		if steps == nil {
			steps = []any{}
		}
		text, err := json.Marshal(step{"on": "x", "steps": steps})
		require.NoError(t, err)
		return string(text)
	}
	rapid.Check(t, func(t *rapid.T) {
		steps := anySteps(t, 3)
		got := perform(t, parsed(t, blink, definition(t, steps.written)))
		want := perform(t, parsed(t, definition(t, steps.byHand)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\nby hand: %s\n(-by hand +written out)\n%s", definition(t, steps.written), definition(t, steps.byHand), diff)
		}
	})
}

// No few bytes become very many, and none is worked on for ever.
func TestExpansionIsBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	nested := `{"action": "spawn"}`
	for range 10 {
		nested = `{"action": "repeat", "times": 1000, "steps": [` + nested + `]}`
	}
	deep := `{"action": "spawn"}`
	for range 200 {
		deep = `{"action": "parallel", "steps": [` + deep + `]}`
	}
	var chain []string
	for i := range 30 {
		chain = append(chain, fmt.Sprintf(`{"sequence": "s%d", "steps": [{"action": "include", "sequence": "s%d"}, {"action": "include", "sequence": "s%d"}]}`, i, i+1, i+1))
	}
	chain = append(chain, `{"sequence": "s30", "steps": []}`, `{"on": "x", "steps": [{"action": "include", "sequence": "s0"}]}`)
	for _, c := range []struct {
		name, text, want string
	}{
		{"steps", `[{"on": "x", "steps": [` + nested + `]}]`, "more than 100000 steps"},
		{"bytes", `[{"on": "x", "steps": [{"action": "repeat", "times": 1000, "steps": [{"action": "say", "text": "` + long + `"}]}]}]`, "bytes"},
		{"bytes of an argument", `[{"sequence": "s", "params": ["a"], "steps": [{"action": "repeat", "times": 90000, "steps": [{"action": "say", "text": "param.a"}]}]},
			{"on": "x", "steps": [{"action": "include", "sequence": "s", "with": {"a": "` + long + `"}}]}]`, "bytes"},
		{"depth", `[{"sequence": "s", "steps": [` + deep + `]}, {"sequence": "r", "params": ["a"], "steps": [` + deep[:len(deep)-400-19] +
			`{"action": "include", "sequence": "s"}` + strings.Repeat("]}", 200) + `]}, {"on": "x", "steps": [{"action": "include", "sequence": "r", "with": {"a": 1}}]}]`, "nested too deeply"},
		{"what becomes nothing", "[" + strings.Join(chain, ",") + "]", "gone through"},
		{"nothing, often", `[{"on": "x", "steps": [{"action": "repeat", "times": 9007199254740992, "steps": [{"action": "repeat", "times": 9007199254740992, "steps": []}]}]}]`, ""},
		{"every for ever", `[{"on": "x", "steps": [{"action": "stagger", "every": 1e300, "steps": [{"action": "spawn"}, {"action": "spawn"}, {"action": "spawn"}]}]}]`, ""},
	} {
		_, diagnostics := language.Parse("test.json", []byte(c.text))
		switch err := diagnostics.Err(definition.ErrInvalid); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %.300v, want %q", c.name, err, c.want)
		}
	}
}

// What is declared anew later changes nothing that is in force already.
func TestBindingIsEarly(t *testing.T) {
	ds := parsed(t,
		`{"easing": "soft", "curve": "cubic-bezier(0.2, 0, 0, 1)"}`,
		`{"sequence": "greet", "steps": [{"action": "flash", "duration": 100, "easing": "soft"}]}`,
		`{"id": "a", "on": "x", "steps": [{"action": "include", "sequence": "greet"}]}`)
	again := parsed(t,
		`{"easing": "soft", "curve": "steps(3)"}`,
		`{"sequence": "greet", "steps": [{"action": "spawn"}]}`)
	derived, diagnostics := language.ParseWith(catalog(t, ds), "derived.json", []byte(`{"extends": "a", "id": "b", "after": [{"action": "include", "sequence": "greet"}]}`))
	require.NoError(t, diagnostics.Err(definition.ErrInvalid))
	got := lastBound(t, append(append(ds, again...), derived...))
	const want = `{"id":"b","on":"x","steps":[{"action":"flash","duration":100,"easing":"soft"},{"action":"spawn"}],"easings":{"soft":"cubic-bezier(0.2, 0, 0, 1)"}}`
	if got.Value().String() != want {
		t.Errorf("got  %s\nwant %s", got.Value(), want)
	}
}

// catalog brings declarations into force.
func catalog(t rapid.TB, ds []language.Declaration) *language.Catalog {
	t.Helper()
	c := new(language.Catalog)
	for _, d := range ds {
		next, err := c.With(d)
		if err != nil {
			t.Fatalf("%s %q: %v", d.Word(), d.Name(), err)
		}
		c = next
	}
	return c
}

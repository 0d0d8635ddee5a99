package lint_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestDocs runs the examples of docs/lint.md through the linter: the bad one
// of each rule is found by that rule, and the good one by none.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/lint.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```json ([a-z]+)\n(.*?)```")
	sections := strings.Split(string(data), "\n## ")[1:]
	var documented []string
	for _, section := range sections {
		rule, body, _ := strings.Cut(section, "\n")
		documented = append(documented, rule)
		seen := map[string]int{}
		files := map[string][]lint.File{} // several blocks are several files
		for _, m := range block.FindAllStringSubmatch(body, -1) {
			seen[m[1]]++
			files[m[1]] = append(files[m[1]], lint.File{Name: fmt.Sprintf("%s%d.json", m[1], seen[m[1]]), Text: []byte(m[2])})
		}
		bad, good := lint.Check(files["bad"]...), lint.Check(files["good"]...)
		if !slices.ContainsFunc(bad, func(f lint.Issue) bool { return f.Rule == rule }) {
			t.Errorf("%s: the bad example is not found: %s", rule, list(bad))
		}
		if len(good) > 0 {
			t.Errorf("%s: the good example has findings:\n%s", rule, list(good))
		}
		if seen["bad"] == 0 || seen["good"] == 0 {
			t.Errorf("%s lacks an example: %v", rule, seen)
		}
	}
	var names []string
	for _, r := range lint.Rules() {
		names = append(names, r.Name)
	}
	if !slices.Equal(documented, names) {
		t.Errorf("docs/lint.md has the rules\n%v\nthe linter\n%v", documented, names)
	}
}

func list(found []lint.Issue) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// TestConditions shows the findings about conditions, and conditions without one.
func TestConditions(t *testing.T) {
	for _, tc := range []struct{ on, when, want string }{
		{"x", `{}`, ""},
		{"x", `[]`, ""},
		{"x", `{"signal.a": {}}`, ""},
		{"x", `{"signal.a": {"equals": "b"}}`, ""},
		{"x", `{"signal.a": {"equals": "b"}, "a": {"equals": "b"}}`, ""},
		{"x", `{"signal.a": {"equals": "b"}, "a": {"equals": "c"}}`, `when-never: signal.a: equals "b" and equals "c" never hold together`},
		{"x", `{"signal.a": {"equals": 1}, "a": {"equals": 1.0}}`, ""},
		{"x", `{"signal.a": {"equals": "bcd", "contains": "c"}}`, ""},
		{"x", `{"signal.a": {"equals": "bcd", "contains": "x"}}`, `when-never: signal.a: equals "bcd" and contains "x" never hold together`},
		{"x", `{"signal.a": {"equals": "bcd", "matches": "^c"}}`, `when-never: signal.a: equals "bcd" and matches "^c" never hold together`},
		{"x", `{"signal.a": {"contains": "b", "matches": "^c"}}`, ""}, // a pattern that is not solved
		{"x", `{"signal.a": {"equals": 5, "gt": 5}}`, `when-never: signal.a: equals 5 and gt 5 never hold together`},
		{"x", `{"signal.a": {"equals": 5, "gt": 4, "lt": 6}}`, ""},
		{"x", `{"signal.a": {"gt": 5, "lt": 5}}`, `when-never: signal.a: gt 5 and lt 5 never hold together`},
		{"x", `{"signal.a": {"gt": 5, "lt": 6}}`, ""},
		{"x", `{"signal.a": {"gt": 5, "contains": "b"}}`, `when-never: signal.a: gt 5 and contains "b" never hold together`},
		{"x", `{"signal.a": {"exists": false, "gt": 5}}`, `when-never: signal.a: exists false and gt 5 never hold together`},
		{"x", `{"signal.a": {"exists": false, "equals": null}}`, ""},
		{"x", `{"signal.a": {"exists": true, "equals": null}}`, `when-never: signal.a: exists true and equals null never hold together`},
		{"x", `{"signal.a": {"not": {"exists": true}}, "a": {"equals": 3}}`, `when-never: signal.a: not exists true and equals 3 never hold together`},
		{"x", `{"signal.a": {"not": {"equals": "b"}}, "a": {"equals": "b"}}`, `when-never: signal.a: not equals "b" and equals "b" never hold together`},
		{"x", `{"signal.a": {"not": {"equals": "b", "gt": 3}}, "a": {"equals": "b"}}`, ""},
		{"x", `{"signal.a": {"not": {"not": {"equals": "b"}}}, "a": {"equals": "c"}}`, `when-never: signal.a: equals "b" and equals "c" never hold together`},
		{"x", `{"signal.type": {"equals": "y"}}`, `when-payload: signal.type is "x" and always there: equals "y" never holds`},
		{"tool_result", `{"signal.success": {"equals": true}}`, ""},
		{"tool_result", `{"signal.success": {"equals": "true"}}`, `when-payload: signal.success is a boolean and always there: equals "true" never holds`},
		{"tool_result", `{"signal.success": {"not": {"equals": true}}, "success": {"not": {"equals": false}}}`, `when-payload: signal.success is a boolean and always there: not equals true and not equals false never hold together`},
		{"tool_result", `{"signal.output": {"exists": false}}`, ""},
		{"tool_result", `{"signal.output.lines": {"gt": 3}}`, ""},
		{"tool_result", `{"signal.output": {"gt": 3}}`, `when-payload: signal.output is an object: gt 3 never holds`},
		{"tool_call", `{"signal.toolName": {"exists": false}}`, `when-payload: signal.toolName is a string and always there: exists false never holds`},
		{"tool_call", `{"signal.toolName": {"gt": 3}}`, `when-payload: signal.toolName is a string and always there: gt 3 never holds`},
		{"agent_state_change", `{"signal.to": {"contains": "a"}}`, ""},
		{"agent_state_change", `{"signal.to": {"contains": "z"}}`, `when-payload: signal.to is one of idle, thinking, acting, waiting, done, error and always there: contains "z" never holds`},
		{"agent_state_change", `{"signal.to": {"matches": "^t"}, "signal.from": {"equals": "idle"}}`, ""},
		{"token_usage", `{"signal.promptTokens": {"gt": 3, "lt": 4}}`, `when-payload: signal.promptTokens is an integer and always there: gt 3 and lt 4 never hold together`},
		{"token_usage", `{"signal.promptTokens": {"equals": 3.5}}`, `when-payload: signal.promptTokens is an integer and always there: equals 3.5 never holds`},
		{"token_usage", `{"signal.cost": {"gt": 3, "lt": 4}}`, ""},
		{"user.click", `{"signal.position.x": {"exists": false}}`, ""}, // the position may be missing
		{"user.point", `{"signal.position.x": {"exists": false}}`, `when-payload: signal.position.x is a number and always there: exists false never holds`},
		{"x", `[{"signal.a": {"gt": 5, "lt": 5}}, {"signal.a": {"gt": 5}}]`, `when-never: signal.a: gt 5 and lt 5 never hold together; this alternative never holds`},
		{"x", `{"stage:lamp.opacity": {"gt": 0.5}}`, ""},
		{"x", `{"stage:lamp.visible": {"equals": "yes"}}`, `when-payload: stage:lamp.visible is a boolean: equals "yes" never holds`},
		{"x", `{"stage:lamp.opacty": {"gt": 0.5}}`, `unknown-property: nothing on the stage has a property "opacty"; did you mean "opacity"?`},
	} {
		file := fmt.Sprintf(`{"on": %q, "when": %s, "steps": [{"action": "playSound", "sound": "bell"}]}`, tc.on, tc.when)
		found := lint.Check(lint.File{Name: "f", Text: []byte(file)})
		got := ""
		for _, f := range found {
			got += f.Rule + ": " + f.Message
		}
		if got != tc.want {
			t.Errorf("%s of %s:\ngot  %s\nwant %s", tc.when, tc.on, got, tc.want)
		}
	}
}

// TestConditionsAreSound shows that no condition is called impossible which a
// valid signal fulfils: whatever is asked of whatever payload, choreography
// itself is the judge.
func TestConditionsAreSound(t *testing.T) {
	scalar := rapid.SampledFrom([]string{`null`, `true`, `false`, `0`, `1`, `2`, `2.5`, `-1`, `""`, `"a"`, `"ab"`, `"idle"`, `"error"`, `"text"`})
	operator := rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"equals", "contains", "matches", "gt", "lt", "exists"}), 0, 3, rapid.ID[string]).Draw(t, "names") {
			operand := scalar.Draw(t, "operand")
			switch name {
			case "contains", "matches":
				operand = rapid.SampledFrom([]string{`""`, `"a"`, `"^i"`, `"r+"`}).Draw(t, "text")
			case "gt", "lt":
				operand = rapid.SampledFrom([]string{`0`, `1`, `2`, `2.5`}).Draw(t, "number")
			case "exists":
				operand = rapid.SampledFrom([]string{`true`, `false`}).Draw(t, "truth")
			}
			members = append(members, fmt.Sprintf("%q: %s", name, operand))
		}
		op := "{" + strings.Join(members, ", ") + "}"
		for range rapid.IntRange(0, 2).Draw(t, "nots") {
			op = `{"not": ` + op + `}`
		}
		return op
	})
	types := append(signal.WellKnownTypes(), "custom")
	rapid.Check(t, func(t *rapid.T) {
		on := rapid.SampledFrom(types).Draw(t, "type")
		fields, known := signal.PayloadFields(on)
		if !known {
			fields = []signal.Field{{Name: "a", Kind: signal.FieldNumber}, {Name: "b", Kind: signal.FieldString}}
		}
		payload := payloadOf(t, fields)
		var parts []string
		for _, f := range fields {
			if rapid.Bool().Draw(t, "asked") {
				parts = append(parts, fmt.Sprintf("%q: %s", "signal."+f.Name, operator.Draw(t, "op")))
			}
			if rapid.IntRange(0, 3).Draw(t, "again") == 0 {
				parts = append(parts, fmt.Sprintf("%q: %s", f.Name, operator.Draw(t, "op")))
			}
		}
		text := fmt.Sprintf(`{"on": %q, "when": {%s}, "steps": [{"action": "playSound", "sound": "s"}]}`, on, strings.Join(parts, ", "))
		declared, diagnostics := language.Parse("f", []byte(text))
		if len(declared) != 1 {
			t.Fatalf("%s: %v", text, diagnostics)
		}
		value, err := signal.ParseValue([]byte(payload))
		require.NoError(t, err)
		sig := &signal.Signal{Type: on, Payload: value}
		if !declared[0].(*definition.Definition).Matches(sig) {
			return
		}
		for _, f := range lint.Check(lint.File{Name: "f", Text: []byte(text)}) {
			if f.Severity == authored.SeverityError {
				t.Fatalf("the payload %s fulfils\n%s\nbut: %v", payload, text, f)
			}
		}
	})
}

// payloadOf makes a payload that a type's fields allow.
func payloadOf(t *rapid.T, fields []signal.Field) string {
	var members []string
	for _, f := range fields {
		if !f.Required && rapid.Bool().Draw(t, "absent") {
			continue
		}
		var v string
		switch {
		case f.Enum != nil:
			v = fmt.Sprintf("%q", rapid.SampledFrom(f.Enum).Draw(t, "enum"))
		case f.Kind == signal.FieldBool:
			v = fmt.Sprint(rapid.Bool().Draw(t, "bool"))
		case f.Kind == signal.FieldInteger:
			v = fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "int"))
		case f.Kind == signal.FieldNumber:
			v = rapid.SampledFrom([]string{"0", "1", "1.5", "2", "2.25", "3"}).Draw(t, "number")
		case f.Kind == signal.FieldObject:
			v = payloadOf(t, f.Fields)
		default:
			v = rapid.SampledFrom([]string{`""`, `"a"`, `"ab"`, `"idle"`}).Draw(t, "string")
		}
		members = append(members, fmt.Sprintf("%q: %s", f.Name, v))
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// FuzzCheck shows that no text makes the linter panic, and that what it finds
// lies in the text.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`[{"on":"a","when":{"b":{"gt":1,"lt":0}},"steps":[]},{"sajou":"scene","version":1}]`), []byte(`{"sequence":"s","steps":[]}`))
	f.Add([]byte("PK\x03\x04"), []byte("[]"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		texts := map[string][]byte{"first": first, "second": second}
		for _, found := range lint.Check(lint.File{Name: "first", Text: first}, lint.File{Name: "second", Text: second}) {
			name, _, _ := strings.Cut(found.File, "/")
			text, ok := texts[name]
			if lines := strings.Count(string(text), "\n") + 1; ok && (found.Line < 1 || found.Line > lines || found.Column < 1) {
				t.Errorf("%v lies outside of a text of %d lines", found, lines)
			}
		}
	})
}

// TestRead shows that what stands in one list is read by who understands it,
// and that remarks name the place in the whole.
func TestRead(t *testing.T) {
	const text = `[
  { "sajou": "scene", "version": 1, "name": "one" },
  { "on": "b", "steps": [ { "action": "include", "sequence": "s" } ] }, { "sajou": "scene", "version": 1 ,
    "name": "two" }
  ,
  { "sequence": "s", "steps": [ { "action": "wait" } ] },
  { "sajou": "scene", "version": 1, "name": "three" } ]`
	declared, next, diagnostics := lint.Read(new(language.Catalog), "f", []byte(text))
	var got []string
	for _, d := range declared {
		got = append(got, d.Pointer+" "+d.Word()+" "+d.Name())
	}
	// Scenes first, and a sequence before what includes it.
	want := []string{"/0 scene one", "/2 scene two", "/4 scene three", "/3 sequence s", "/1 choreography "}
	if !slices.Equal(got, want) {
		t.Errorf("declared %q, want %q", got, want)
	}
	if next.Get("sequence", "s") == nil {
		t.Error("the catalog has no sequence s")
	}
	if got, want := fmt.Sprint(diagnostics), "f:6:33: warning: wait without a duration passes no time (/3/steps/0)"; got != want {
		t.Errorf("diagnostics\n%s\nwant\n%s", got, want)
	}

	const wrong = `[ { "on": "b", "steps": 5 },
  {"sajou":"scene", "version": 1,
   "size": 3}, { "on": "b", "steps": [ {} ] } ]`
	declared, next, diagnostics = lint.Read(new(language.Catalog), "f", []byte(wrong))
	if declared != nil || next.Get("sequence", "s") != nil {
		t.Errorf("of what is wrong %v is declared", declared)
	}
	var places []string
	for _, d := range diagnostics {
		places = append(places, fmt.Sprintf("%d:%d %s", d.Line, d.Column, d.Pointer))
	}
	if want := []string{"1:25 /0/steps", "3:12 /1/size", "3:40 /2/steps/0"}; !slices.Equal(places, want) {
		t.Errorf("places %q, want %q", places, want)
	}
}

// TestNames shows the findings about names, where there is a scene and where
// there is none.
func TestNames(t *testing.T) {
	scene := func(more string) lint.File {
		return lint.File{Name: "s", Text: []byte(`{ "sajou": "scene", "version": 1, "slots": { "left": { "x": 1, "y": 1 } },
			"routes": { "round": { "points": [ { "x": 1, "y": 1 }, { "x": 2, "y": 2 } ] } },
			"entities": [ { "id": "lamp-1", "actor": "lamp", "at": "left" } ], "agents": [ { "match": "agent-*-x", "look": "robot" } ]` + more + `}`)}
	}
	steps := func(steps string) lint.File {
		return lint.File{Name: "f", Text: []byte(`{ "on": "go", "steps": [` + steps + `] }`)}
	}
	for _, tc := range []struct {
		files []lint.File
		want  string
	}{
		{[]lint.File{steps(`{"action": "flash", "entity": "nobody", "duration": 3}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "flash", "entity": "nobody", "duration": 3}`)}, "unknown-entity"},
		{[]lint.File{scene(`, "stranger": "robot"`), steps(`{"action": "flash", "entity": "nobody", "duration": 3}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "flash", "entity": "lamp", "duration": 3}, {"action": "flash", "target": "lamp-1", "duration": 3}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "flash", "entity": "agent-7-x", "duration": 3}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "flash", "entity": "agent-7", "duration": 3}`)}, "unknown-entity"},
		{[]lint.File{scene(``), steps(`{"action": "flash", "entity": "signal.who", "duration": 3}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "spawn", "entity": "bird", "at": "left"}, {"action": "fly", "entity": "bird", "to": "lamp", "duration": 3}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "spawn", "entity": "signal.who", "at": "left"}, {"action": "fly", "entity": "bird", "to": "lamp", "duration": 3}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "move", "entity": "lamp", "to": "right"}`)}, "unknown-place"},
		{[]lint.File{scene(`, "stranger": "robot"`), steps(`{"action": "move", "entity": "lamp", "to": "right"}`)}, "unknown-place"},
		{[]lint.File{scene(``), steps(`{"action": "move", "entity": "lamp", "to": {"x": 3, "y": 4}}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "followRoute", "entity": "lamp", "route": "round", "duration": 9}`)}, ""},
		{[]lint.File{scene(``), steps(`{"action": "followRoute", "entity": "lamp", "route": "square", "duration": 9}`)}, "unknown-place"},
		{[]lint.File{scene(``), {Name: "b", Text: []byte(`{"id": "b", "targetEntityId": "lam", "property": "opacity", "sourceType": "go"}`)}}, "unknown-entity"},
		{[]lint.File{steps(`{"action": "set", "entity": "lamp", "property": "opacity", "value": 1}`)}, ""},
		{[]lint.File{steps(`{"action": "set", "entity": "lamp", "property": "opaque", "value": 1}`)}, "unknown-property"},
		{[]lint.File{steps(`{"action": "wait", "duration": 3, "when": {"stage:lamp.opaque": {"gt": 3}}}`)}, "unknown-property"},
	} {
		found := lint.Check(tc.files...)
		var rules []string
		for _, f := range found {
			rules = append(rules, f.Rule)
		}
		if got := strings.Join(rules, " "); got != tc.want {
			t.Errorf("%s\nfound %q, want %q\n%s", tc.files[len(tc.files)-1].Text, got, tc.want, list(found))
		}
	}
}

// TestMany shows that a file with more findings than can be read has an end,
// and is still judged by all of them.
func TestMany(t *testing.T) {
	var b strings.Builder
	b.WriteString(`[{"on":"go","steps":[{"action":"destroy","entity":"a"}`)
	for range 1000 {
		b.WriteString(`,{"action":"destroy","entity":"a"},{"action":"flash","entity":"a","duration":3}`)
	}
	b.WriteString(`]},{"on":"go","when":{"signal.type":{"equals":"stop"}},"steps":[{"action":"playSound","sound":"s"}]}]`)
	found := lint.Check(lint.File{Name: "f", Text: []byte(b.String())})
	if n := len(found); n != 201 || !strings.Contains(found[n-1].Message, "there is more") {
		t.Errorf("%d findings, the last %v", n, found[n-1])
	}
	if last := found[len(found)-1]; last.Severity != authored.SeverityError {
		t.Errorf("the last finding is %v, and an error is not listed", last)
	}
}

// Of two that interrupt, the second stops the first only where there is a
// correlation id: that is not sure, and no error.
func TestTwoThatInterrupt(t *testing.T) {
	found := lint.Check(lint.File{Name: "f", Text: []byte(`[{"id": "a", "on": "error", "interrupts": true, "steps": [{"action": "playSound", "sound": "bell"}]},
		{"id": "b", "on": "error", "interrupts": true, "steps": [{"action": "playSound", "sound": "gong"}]}]`)})
	if len(found) != 1 || found[0].Rule != "stopped-at-once" || found[0].Severity != authored.SeverityWarning {
		t.Errorf("found %v, want one warning", found)
	}
}

// TestContention shows the findings about two choreographies that one signal can
// begin and that want one name, for each pair of policies and whichever is
// written first; and that nothing is said where they cannot meet.
func TestContention(t *testing.T) {
	type side struct{ policy, when string }
	const readers, slow = `{"signal.toolName": {"contains": "read"}}`, `{"signal.input.slow": {"equals": true}}`
	for _, tc := range []struct {
		first, second side
		want          string // pointer and rule
	}{
		{side{"preempt", readers}, side{"preempt", slow}, "/0 stops-each-other"},
		{side{"queue", readers}, side{"preempt", slow}, "/0 may-starve"},
		{side{"skip", readers}, side{"preempt", slow}, "/0 may-starve"},
		{side{"preempt", readers}, side{"queue", slow}, "/1 may-starve"},
		{side{"preempt", readers}, side{"skip", slow}, "/1 may-starve"},
		{side{"queue", readers}, side{"skip", slow}, "/1 may-starve"},
		{side{"skip", readers}, side{"skip", slow}, "/1 may-starve"},
		{side{"skip", readers}, side{"queue", slow}, "/0 may-starve"},
		{side{"queue", readers}, side{"queue", slow}, ""},

		// What is sure keeps its own rule.
		{side{"preempt", readers}, side{"preempt", `{}`}, "/0 stopped-at-once"},
		{side{"queue", readers}, side{"preempt", `{}`}, "/0 stopped-at-once"},
		{side{"skip", `{}`}, side{"skip", slow}, "/1 always-skipped"},
		{side{"preempt", `{}`}, side{"preempt", slow}, "/0 stops-each-other"},

		// No signal begins both.
		{side{"preempt", readers}, side{"preempt", `{"signal.toolName": {"equals": "write"}}`}, ""},
		{side{"skip", readers}, side{"skip", `{"signal.toolName": {"equals": "go"}}`}, ""},
		{side{"skip", `{"signal.input.n": {"gt": 3}}`}, side{"queue", `{"signal.input.n": {"lt": 3}}`}, ""},
		{side{"skip", `[{"signal.input.n": {"gt": 3}}, ` + slow + `]`}, side{"queue", `{"signal.input.n": {"lt": 3}}`}, "/0 may-starve"},
	} {
		definition := func(id string, s side) string {
			return fmt.Sprintf(`{"id": %q, "on": "tool_call", "guard": {"entity": ["lamp", "signal.agentId"], "policy": %q}, "when": %s,
				"steps": [{"action": "flash", "entity": "lamp", "duration": 300}]}`, id, s.policy, s.when)
		}
		found := lint.Check(lint.File{Name: "f", Text: []byte("[" + definition("a", tc.first) + "," + definition("b", tc.second) + "]")})
		var got []string
		for _, f := range found {
			got = append(got, f.Pointer+" "+f.Rule)
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%v then %v:\n%swant %q", tc.first, tc.second, list(found), tc.want)
		}
	}

	// Another name, or another type, is another matter.
	for _, second := range []string{
		`{"on": "tool_call", "guard": {"entity": "signal.input.who", "policy": "preempt"}, "steps": [{"action": "flash", "entity": "lamp", "duration": 3}]}`,
		`{"on": "tool_result", "guard": {"entity": "signal.agentId", "policy": "preempt"}, "steps": [{"action": "flash", "entity": "lamp", "duration": 3}]}`,
	} {
		found := lint.Check(lint.File{Name: "f", Text: []byte(`[{"on": "tool_call", "when": ` + slow + `, "guard": {"entity": "signal.agentId", "policy": "preempt"},
			"steps": [{"action": "flash", "entity": "lamp", "duration": 300}]}, ` + second + `]`)})
		if len(found) > 0 {
			t.Errorf("%s\n%s", second, list(found))
		}
	}
}

// TestSchemas shows that the files which the schemas of Sajou's own tools refuse are
// refused, by lint and by what define add reads.
func TestSchemas(t *testing.T) {
	archive, err := txtar.ParseFile("../../stage/scene/testdata/shapes/refused.txtar")
	require.NoError(t, err)
	archive.Files = append(archive.Files, txtar.File{Name: "scene-without-board.json", Data: []byte(`{"lighting": {}}`)})
	judged := 0
	for _, f := range archive.Files {
		if !strings.HasSuffix(f.Name, ".json") {
			continue
		}
		judged++
		found := lint.Check(lint.File{Name: f.Name, Text: f.Data})
		if !slices.ContainsFunc(found, func(i lint.Issue) bool { return i.Rule == "invalid" && i.Severity == authored.SeverityError }) {
			t.Errorf("%s is not found invalid: %s", f.Name, list(found))
		}
		if declared, _, diagnostics := lint.Read(new(language.Catalog), f.Name, f.Data); declared != nil || !diagnostics.Refused() {
			t.Errorf("%s is read: %v", f.Name, diagnostics)
		}
	}
	if judged < 40 {
		t.Errorf("only %d files were judged", judged)
	}
}

package conformance

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
)

// TestOracle shows that the oracle knows the rules: it gives every expected
// stream there is, those of the tests beside it and of the shared sample.
func TestOracle(t *testing.T) {
	for _, set := range []string{"testdata", "../../../shared/conformance"} {
		if _, err := os.Stat(set); err != nil && set != "testdata" {
			continue
		}
		for _, folder := range []string{"choreo", "choreo-exact"} {
			files, err := filepath.Glob(filepath.Join(set, folder, "*.json"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s/%s: no scenarios: %v", set, folder, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				scenarios, diagnostics := rehearsal.Parse(file, text)
				if len(diagnostics) > 0 {
					t.Fatal(diagnostics)
				}
				for _, s := range scenarios {
					if v := rehearsal.Compare(runOracle(s), s.Expected); !v.Same {
						t.Errorf("%s %s: %s", s.ID, s.Name, v.Difference)
					}
				}
			}
		}
	}
}

// TestDifferential shows that two engines which share nothing give the same
// commands for any scenario, and the same ones, updates aside, when its advances
// are cut otherwise. Run it long with -rapid.checks.
func TestDifferential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(drawScenario(t))
		require.NoError(t, err)
		parsed, diagnostics := rehearsal.Parse("scenario", text)
		if len(diagnostics) > 0 {
			t.Fatalf("%v\n%s", diagnostics, text)
		}
		s := parsed[0]
		got, want := rehearsal.Run(s), runOracle(s)
		if v := rehearsal.Compare(got, want); !v.Same {
			t.Fatalf("scheduler against oracle: %s\n%s", v.Difference, text)
		}

		cut := *s
		cut.Script = recut(t, s.Script)
		if v := rehearsal.Compare(rehearsal.Run(&cut), runOracle(&cut)); !v.Same {
			t.Fatalf("cut otherwise, scheduler against oracle: %s\n%s\n%v", v.Difference, text, cut.Script)
		}
		if v := rehearsal.Compare(withoutUpdates(rehearsal.Run(&cut)), withoutUpdates(got)); !v.Same {
			t.Fatalf("cut otherwise, scheduler against itself: %s\n%s\n%v", v.Difference, text, cut.Script)
		}
	})
}

// withoutUpdates drops the commands that depend on how time is cut.
func withoutUpdates(commands []choreography.Command) []choreography.Command {
	return slices.DeleteFunc(slices.Clone(commands), func(c choreography.Command) bool {
		return c.Kind == choreography.CommandUpdate
	})
}

// recut joins advances that follow each other and cuts them again. None appears
// where there was none: whether anything runs between two signals of one instant
// is part of the scenario.
func recut(t *rapid.T, script []rehearsal.ScriptStep) []rehearsal.ScriptStep {
	var cut []rehearsal.ScriptStep
	for i := 0; i < len(script); i++ {
		if script[i].Signal != nil {
			cut = append(cut, script[i])
			continue
		}
		total := script[i].Advance
		for i+1 < len(script) && script[i+1].Signal == nil {
			i++
			total += script[i].Advance
		}
		for range rapid.IntRange(0, 4).Draw(t, "cuts") {
			part := time.Duration(rapid.Int64Range(0, int64(total)).Draw(t, "part"))
			cut = append(cut, rehearsal.ScriptStep{Advance: part})
			total -= part
		}
		cut = append(cut, rehearsal.ScriptStep{Advance: total})
	}
	return cut
}

// object is a JSON object to be.
type object = map[string]any

// pick draws one of the values: the odd ones are few, so each is likely.
func pick(t *rapid.T, label string, values ...any) any {
	return rapid.SampledFrom(values).Draw(t, label)
}

// chance is true about once in n draws.
func chance(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(1, n).Draw(t, label) == n
}

func drawScenario(t *rapid.T) object {
	definitions := []any{}
	for range rapid.IntRange(1, 6).Draw(t, "definitions") {
		definitions = append(definitions, drawDefinition(t))
	}
	if chance(t, 8, "again") {
		definitions = append(definitions, definitions[0])
	}
	script := []any{}
	for range rapid.IntRange(4, 14).Draw(t, "script") {
		switch pick(t, "what", "signal", "signal", "signal, advance 0", "advance", "advance") {
		case "signal":
			script = append(script, object{"signal": drawSignal(t)})
		case "signal, advance 0":
			script = append(script, object{"signal": drawSignal(t)}, object{"advance": 0})
		default:
			script = append(script, object{"advance": pick(t, "advance",
				0, 1, 10, 16, 25, 50, 50, 100, 100, 150, 200, 1000, 16.7, 33.4, 0.1, 1e-6, 1e7, 1e12)})
		}
	}
	return object{
		"id": "random", "name": "random", "tags": []string{}, "definitions": definitions,
		"script": append(script, object{"advance": pick(t, "last", 0, 50, 1e6)}),
	}
}

func drawDefinition(t *rapid.T) object {
	d := object{"on": pick(t, "on", "x", "x", "x", "x", "x", "y", "stop", "stop", "X", "")}
	if !chance(t, 12, "without steps") {
		d["steps"] = drawSteps(t, 3, true)
	}
	if chance(t, 4, "when") {
		d["when"] = drawWhen(t)
	}
	if d["on"] == "stop" || chance(t, 3, "interrupts") {
		d["interrupts"] = true
		if chance(t, 4, "odd interrupts") {
			d["interrupts"] = pick(t, "interrupts as", false, nil, 0, 1, "", "no", math.Copysign(0, -1), 0.5, []any{}, object{})
		}
	}
	return d
}

// drawSteps draws a list of steps; a block for interruptions only at the top.
func drawSteps(t *rapid.T, depth int, top bool) []any {
	steps := []any{}
	for range pick(t, "steps", 0, 1, 1, 2, 2, 3, 4).(int) {
		if top && chance(t, 4, "block") {
			block := object{"action": "onInterrupt", "duration": 5}
			if !chance(t, 20, "without inner steps") {
				block["steps"] = drawSteps(t, depth-1, false)
			}
			steps = append(steps, block)
		} else {
			steps = append(steps, drawStep(t, depth))
		}
	}
	return steps
}

func drawStep(t *rapid.T, depth int) object {
	kind := pick(t, "kind", "action", "action", "action", "action", "wait", "onArrive", "parallel", "parallel")
	if depth == 0 && kind != "wait" {
		kind = "action"
	}
	var s object
	switch kind {
	case "wait":
		s = object{"action": kind}
	case "onArrive", "parallel":
		s = object{"action": kind}
		if !chance(t, 20, "without inner steps") {
			s["steps"] = drawSteps(t, depth-1, false)
		}
	default:
		s = object{"action": pick(t, "action",
			"move", "move", "fly", "spawn", "destroy", "playSound", "setAnimation", "followRoute", "Wait", "PARALLEL", "")}
		drawFields(t, s)
	}
	if chance(t, 4, "delayed") {
		s["delay"] = drawLength(t, "delay")
	}
	if rapid.IntRange(1, 4).Draw(t, "timed") > 1 {
		s["duration"] = drawLength(t, "duration")
	}
	return s
}

func drawLength(t *rapid.T, label string) any {
	if chance(t, 5, "odd length") {
		return pick(t, label, nil, "100", "signal.ms", true, []any{50}, object{}, -1, -50.5, 0, math.Copysign(0, -1), 0.0, 1e-6, 1e-9, 1e12)
	}
	return pick(t, label, 50, 50, 100, 100, 150, 200, 10, 16.7, 33.4, 66.6, 0.1, 49.999999)
}

// drawFields puts in what makes an action's command.
func drawFields(t *rapid.T, s object) {
	for _, key := range []string{"entity", "target", "p", "steps", "Entity", "type", "length", ""} {
		if chance(t, 3, key) {
			s[key] = pick(t, key+" is", references...)
		}
	}
	if chance(t, 3, "eased") {
		s["easing"] = pick(t, "easing", "linear", "easeIn", "easeOut", "easeInOut", "arc", "easein", "ARC", "bounce", "", "signal.ease", nil, 1, object{})
	}
}

// references are values of a step's field: references of all kinds, things that
// look like one, and things that do not.
var references = []any{
	"signal.to", "signal.n", "signal.z", "signal.o", "signal.o.k", "signal.o.o.k", "signal.list", "signal.list.0", "signal.list.1.k",
	"signal.list.9", "signal.list.-1", "signal.list.00", "signal.list.01", "signal.list.1.0", "signal.list.", "signal.list.0x0", "signal.list.+0", "signal.list.length",
	"signal.type", "signal.type.k", "signal.o.type", "signal.correlationId", "signal.id", "signal.source", "signal.payload.to", "signal.missing", "signal.",
	"signal..", "signal..k", "signal.o.", "signal.to.length", "signal.to.0", "signal.n.k", "signal.z.k", "signal.yes", "signal.ref", "signal.toString", "signal.constructor", "signal.__proto__",
	"signal.hasOwnProperty", "signal.digits.0", "signal.digits.01", "signal.dotted.key", "signal", "Signal.to", " signal.to", "signal.to ", "SIGNAL.to", "signalto", "",
	"plain", "ütf-8 ✓", nil, 0, 5, 5.0, -1.5, 1e21, true, false,
	[]any{},
	[]any{1, "signal.to"},
	object{},
	object{"deep": "signal.to"},
}

func drawSignal(t *rapid.T) object {
	payload := object{
		"to": pick(t, "to", "forge", "", "signal.n", "Forge"), "n": pick(t, "n", 0, 5, -2, 2.5, 1e300, "5", nil), "z": nil,
		"yes": pick(t, "yes", true, false), "ref": "signal.to", "type": pick(t, "payload type", "inner", 1),
		"o":    object{"k": "deep", "o": object{"k": 7}, "type": "of o", "": "empty"},
		"list": []any{"first", object{"k": "of list"}, 3}, "digits": object{"0": "zero", "01": "one"}, "dotted.key": "no",
	}
	for _, key := range []string{"to", "n", "o", "list", "type"} {
		if chance(t, 5, "without "+key) {
			delete(payload, key)
		}
	}
	if chance(t, 5, "odd keys") {
		payload[""], payload["length"], payload["toString"] = object{"k": "nameless", "": "both"}, 3, "own"
	}
	sig := object{
		"id": "s", "type": pick(t, "type", "x", "x", "x", "x", "x", "y", "stop", "stop", "X", ""), "timestamp": 0, "source": "test:random", "payload": payload,
	}
	if id := pick(t, "correlation", "c", "c", "c", "d", "", nil); id != nil {
		sig["correlationId"] = id
	}
	return sig
}

func drawWhen(t *rapid.T) any {
	if chance(t, 4, "any of") {
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "alternatives") {
			list = append(list, drawClause(t))
		}
		return list
	}
	return drawClause(t)
}

func drawClause(t *rapid.T) object {
	clause := object{}
	for range rapid.IntRange(0, 2).Draw(t, "paths") {
		path := pick(t, "path", "signal.to", "to", "signal.n", "n", "signal.z", "signal.o", "signal.o.k", "o.o.k", "signal.list", "signal.list.0", "list.length",
			"signal.missing", "signal.type", "type", "signal.yes", "yes", "signal.", "", "signal", "signal.to.length", "signal.ref", "Signal.to", "toString").(string)
		clause[path] = drawOperator(t, 2)
	}
	return clause
}

func drawOperator(t *rapid.T, depth int) object {
	operator := object{}
	for range rapid.IntRange(0, 2).Draw(t, "operators") {
		switch name := pick(t, "operator", "equals", "contains", "matches", "gt", "lt", "exists", "not", "between", "Equals").(string); name {
		case "not":
			if depth > 0 {
				operator[name] = drawOperator(t, depth-1)
			}
		case "contains":
			operator[name] = pick(t, name, "or", "", "FORGE", "5", "deep", "signal.to")
		case "matches":
			operator[name] = pick(t, name, "^f", "g.$", "", "FORGE", "[a-f]+", "(", "a**", "^$", "\\d", "^(x|y)$", "^\\w+$")
		case "gt", "lt":
			operator[name] = pick(t, name, 0, 5, -1, 2.5, 1e300, 4.9999)
		case "exists":
			operator[name] = pick(t, name, true, false, 1, 0, "", "false", nil, []any{}, object{})
		default:
			operator[name] = pick(t, name, nil, 0, 5, 5.0, math.Copysign(0, -1), 2.5, "5", "", "forge", "x", "X", true, false, []any{}, []any{1}, object{}, 1e300, "signal.to", "type")
		}
	}
	return operator
}

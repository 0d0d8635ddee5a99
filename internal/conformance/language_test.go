package conformance

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/signal"
)

// Where the first engine writes out what is composed, the oracle performs it as
// it stands: an include goes on in another list, a repeat goes over one again, a
// stagger begins each child later.

// words holds the values of placeholders.
type words struct {
	sequences map[string]any // as they were when the choreography was declared
	params    map[string]any
	each      map[string]any // each.item and each.index
}

func (in words) mean(v any) any {
	text, _ := v.(string)
	if meant, ok := in.params[text]; ok {
		return meant
	}
	if meant, ok := in.each[text]; ok {
		return meant
	}
	return v
}

// say returns a step with its placeholders replaced.
func (in words) say(step map[string]any) map[string]any {
	if in.params == nil && in.each == nil {
		return step
	}
	said := map[string]any{}
	for key, v := range step {
		switch key {
		case "action", "steps", "sequence":
		case "when":
			v = in.ask(v)
		case "with":
			with := map[string]any{}
			for name, argument := range v.(map[string]any) {
				with[name] = in.mean(argument)
			}
			v = with
		default:
			v = in.mean(v)
		}
		said[key] = v
	}
	return said
}

// ask is say for the operands of a condition.
func (in words) ask(when any) any {
	switch when := when.(type) {
	case map[string]any:
		asked := map[string]any{}
		for key, v := range when {
			asked[key] = in.ask(v)
		}
		return asked
	default:
		return in.mean(when)
	}
}

// composed performs a step that stands for others. What stands for none at all
// takes no part.
func (a *act) composed(step map[string]any, at time.Duration, in words) time.Duration {
	steps := listOf(step["steps"])
	switch step["action"] {
	case "include":
		steps, in = in.include(step)
		return a.sequence(steps, at, in)
	case "repeat":
		times, _ := number(step["times"])
		for range int(times) {
			at = a.sequence(steps, at, in)
		}
		return at
	}
	every, _ := number(step["every"])
	end := at
	begin := func(i int, steps []any, in words) {
		if !in.empty(steps) {
			end = max(end, a.sequence(steps, later(at, lengthOf(every*float64(i))), in))
		}
	}
	items, fanned := step["each"]
	if !fanned {
		for i := range steps {
			begin(i, steps[i:i+1], in)
		}
		return end
	}
	for i, item := range listOf(items) {
		inner := in
		inner.each = map[string]any{"each.item": in.mean(item), "each.index": int64(i)}
		begin(i, steps, inner)
	}
	return end
}

// include returns the steps of a sequence and what its placeholders stand for.
func (in words) include(step map[string]any) ([]any, words) {
	if captured, ok := step["captured"]; ok {
		in.sequences = captured.(map[string]any)
	}
	seq := in.sequences[step["sequence"].(string)].(map[string]any)
	inner := words{sequences: in.sequences, params: map[string]any{}}
	for name, v := range seq["params"].(map[string]any) {
		inner.params["param."+name] = v
	}
	with, _ := step["with"].(map[string]any)
	for name, v := range with {
		inner.params["param."+name] = v
	}
	return listOf(seq["steps"]), inner
}

// empty reports whether steps stand for nothing, whatever the signal says.
func (in words) empty(steps []any) bool {
	return !slices.ContainsFunc(steps, func(step any) bool {
		s := in.say(step.(map[string]any))
		switch inner := listOf(s["steps"]); s["action"] {
		case "include":
			steps, inner := in.include(s)
			return !inner.empty(steps)
		case "repeat":
			times, _ := number(s["times"])
			return times > 0 && !in.empty(inner)
		case "stagger":
			items, fanned := s["each"]
			return (!fanned || len(listOf(items)) > 0) && !in.empty(inner)
		}
		return true
	})
}

// declare brings a declaration into force.
func (o *oracle) declare(d map[string]any) {
	if name, ok := d["sequence"].(string); ok {
		o.sequences = maps.Clone(o.sequences)
		if o.sequences == nil {
			o.sequences = map[string]any{}
		}
		o.sequences[name] = d
		return
	}
	d = maps.Clone(d)
	for _, part := range []string{"before", "steps", "after"} {
		if steps, ok := d[part]; ok {
			d[part] = o.capture(listOf(steps))
		}
	}
	if id, ok := d["extends"]; ok {
		d = o.extend(d, o.definitions[slices.IndexFunc(o.definitions, func(d map[string]any) bool { return d["id"] == id })])
	}
	if i := slices.IndexFunc(o.definitions, func(other map[string]any) bool { return d["id"] != nil && other["id"] == d["id"] }); i >= 0 {
		o.definitions[i] = d
		return
	}
	o.definitions = append(o.definitions, d)
}

// capture has each include keep the sequences that are in force.
func (o *oracle) capture(steps []any) []any {
	captured := []any{}
	for _, step := range steps {
		s := maps.Clone(step.(map[string]any))
		if s["action"] == "include" {
			s["captured"] = o.sequences
		} else if inner, ok := s["steps"]; ok {
			s["steps"] = o.capture(listOf(inner))
		}
		captured = append(captured, s)
	}
	return captured
}

func (o *oracle) extend(d, base map[string]any) map[string]any {
	whole := maps.Clone(base)
	delete(whole, "id")
	handles := func(step any) bool { return step.(map[string]any)["action"] == "onInterrupt" }
	main, replaced := d["steps"]
	if !replaced {
		main = base["steps"]
	}
	steps := slices.Concat(listOf(d["before"]), listOf(main), listOf(d["after"]))
	if replaced && !slices.ContainsFunc(steps, handles) {
		for _, step := range listOf(base["steps"]) {
			if handles(step) {
				steps = append(steps, step)
			}
		}
	}
	for key, v := range d {
		whole[key] = v
	}
	for _, key := range []string{"extends", "before", "after"} {
		delete(whole, key)
	}
	whole["steps"] = steps
	return whole
}

// drawComposed draws steps of every construct. Inside a sequence there are
// parameters.
func drawComposed(t *rapid.T, depth int, inside, top bool, sequences ...any) []any {
	who := []any{"forge", "signal.to"}
	if inside {
		who = append(who, "param.who", "param.who")
	}
	steps := []any{}
	for range pick(t, "steps", 0, 1, 1, 2, 3).(int) {
		kind := pick(t, "construct", "action", "action", "action", "wait", "onArrive", "parallel", "repeat", "repeat", "stagger", "stagger", "each", "include", "include", "onInterrupt")
		if depth == 0 && kind != "wait" || kind == "include" && len(sequences) == 0 || kind == "onInterrupt" && !top {
			kind = "action"
		}
		inner := func(more ...any) []any {
			return append(drawComposed(t, depth-1, inside, false, sequences...), more...)
		}
		step := object{"action": kind}
		switch kind {
		case "action":
			step = object{"action": pick(t, "action", "move", "pulse", "spawn"), "entity": pick(t, "entity", who...), "p": pick(t, "p", 1, "each.item", "each.index", "signal.n", "param.who")}
			if chance(t, 3, "delayed") {
				step["delay"] = pick(t, "delay", 10, 33.4)
			}
			if !chance(t, 3, "instant") {
				step["duration"] = pick(t, "duration", 0, 10, 50, 50, 100, 16.7, "each.index")
				step["easing"] = pick(t, "easing", "linear", "easeOut", "arc")
			}
			if inside && chance(t, 3, "as long as the argument says") {
				step["duration"] = "param.ms"
			}
			if !inside && step["p"] == "param.who" || step["duration"] == "each.index" {
				delete(step, "p")
			}
		case "wait":
			step["duration"] = pick(t, "wait", 0, 10, 50, 16.7)
		case "repeat":
			step["times"], step["steps"] = pick(t, "times", 0, 1, 2, 3), inner()
			if inside && chance(t, 2, "as often as the argument says") {
				step["times"] = "param.n"
			}
		case "stagger":
			step["every"], step["steps"] = pick(t, "every", 0, 10, 50, 33.3), inner()
		case "each":
			step = object{
				"action": "stagger", "every": pick(t, "every", 0, 10, 50), "each": pick(t, "items", []any{}, []any{"a", "signal.to", 7}, append([]any{1}, who...)),
				"steps": inner(object{"action": "flash", "entity": "each.item", "n": "each.index", "duration": 20}),
			}
		case "include":
			step["sequence"] = pick(t, "sequence", sequences...)
			if chance(t, 2, "given") {
				step["with"] = object{"who": pick(t, "argument", append(who, "each.item", 5)...), "ms": pick(t, "ms", 0, 30, 50), "n": pick(t, "n", 0, 2)}
			}
		default:
			step["steps"] = inner()
		}
		if chance(t, 4, "asks") {
			step["when"] = object{pick(t, "path", "signal.to", "signal.n", "missing").(string): pick(t, "operator",
				object{"exists": true}, object{"equals": "forge"}, object{"not": object{"gt": 1}})}
			if inside && chance(t, 2, "compares") {
				step["when"] = object{"signal.to": object{"not": object{"equals": "param.who"}}}
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// drawDeclaration draws what may be declared when there are certain others.
func drawDeclaration(t *rapid.T, ids []any) object {
	switch pick(t, "declares", "s1", "s2", "s2", "choreography", "choreography", "choreography") {
	case "s1":
		return object{"sequence": "s1", "params": object{"who": "king", "ms": 40, "n": 1}, "steps": drawComposed(t, 1, true, false)}
	case "s2":
		return object{"sequence": "s2", "params": object{"who": "signal.to", "ms": 20, "n": 2}, "steps": drawComposed(t, 2, true, false, "s1")}
	}
	d := object{"on": pick(t, "on", "x", "x", "y", "stop")}
	if id := pick(t, "id", "c1", "c2", nil); id != nil {
		d["id"] = id
	}
	if d["on"] == "stop" {
		d["interrupts"] = true
	}
	if len(ids) > 0 && chance(t, 2, "extends") {
		d["extends"] = pick(t, "base", ids...)
		if d["extends"] == d["id"] {
			delete(d, "id")
		}
		d["before"] = drawComposed(t, 1, false, false, "s1")
		if chance(t, 2, "after") {
			d["after"] = drawComposed(t, 1, false, false, "s1")
		}
		if chance(t, 2, "anew") {
			d["steps"] = drawComposed(t, 1, false, chance(t, 2, "handled anew"), "s1", "s2")
		}
		return d
	}
	d["steps"] = drawComposed(t, 3, false, true, "s1", "s2")
	return d
}

// TestComposed shows that what is composed is performed as the oracle does it,
// which writes nothing out: sequences with parameters, repetitions, staggered
// groups, conditions of steps and definitions that extend others, all of them
// also declared again on the way.
func TestComposed(t *testing.T) {
	for range 10 { // each is short, and much has to come together
		rapid.Check(t, sameComposed)
	}
}

func sameComposed(t *rapid.T) {
	o := &oracle{}
	var sink choreography.RecordingSink
	s := choreography.NewScheduler()
	s.SetSink(&sink)
	var log []string
	var ids []any
	declare := func(d object) {
		text, err := json.Marshal(d)
		require.NoError(t, err)
		log = append(log, string(text))
		v, err := signal.ParseValue(text)
		require.NoError(t, err)
		made, err := language.CompileDeclaration(language.WordFor(v), v)
		if err == nil {
			err = s.Define(made)
		}
		require.NoErrorf(t, err, "%s", text)
		o.declare(v.Any().(map[string]any))
		if id := d["id"]; id != nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	declare(object{"sequence": "s1", "params": object{"who": "king", "ms": 40, "n": 1}, "steps": drawComposed(t, 1, true, false)})
	declare(object{"sequence": "s2", "params": object{"who": "queen", "ms": 20, "n": 2}, "steps": drawComposed(t, 1, true, false, "s1")})
	declare(object{"id": "c1", "on": "x", "steps": drawComposed(t, 3, false, true, "s1", "s2")})
	for i := range rapid.IntRange(3, 14).Draw(t, "moves") {
		switch pick(t, "what", "declare", "signal", "signal", "signal", "advance", "advance") {
		case "declare":
			declare(drawDeclaration(t, ids))
		case "signal":
			typ := pick(t, "type", "x", "x", "x", "y", "stop").(string)
			payload := object{"to": pick(t, "to", "forge", "king", ""), "n": pick(t, "n", 1, 2, nil)}
			text, err := json.Marshal(payload)
			require.NoError(t, err)
			v, err := signal.ParseValue(text)
			require.NoError(t, err)
			id := pick(t, "correlation", "c", "d").(string)
			log = append(log, typ+" "+id+" "+string(text))
			s.Signal(uint64(i+1), &signal.Signal{Type: typ, CorrelationID: &id, Payload: v})
			o.take(envelope{typ, v.Any()}, &id)
		case "advance":
			to := s.Now() + time.Duration(pick(t, "by", 0, 10, 50, 33, 100, 400).(int))*time.Millisecond
			log = append(log, to.String())
			s.Advance(to)
			o.advance(to)
		}
	}
	s.Advance(time.Hour)
	o.advance(time.Hour)
	if v := rehearsal.Compare(inOrder(sink.Commands), inOrder(o.told)); !v.Same {
		t.Fatalf("scheduler against oracle: %s\n%s", v.Difference, log)
	}
}

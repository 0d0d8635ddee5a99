package golden

import (
	"fmt"
	"strings"
)

// Declarations draws the text of a file of choreographies with all that authors can write,
// also what has no effect and, now and then, a mistake. The signals that it waits for are
// x, y and z, with the payload members who, n and all; the stage has the entities ann, bob
// and door.
func Declarations(d *Dice) string {
	w := declarationWriter{d}
	list := []string{
		`{"easing": "soft", "curve": ` + Pick(d, `"cubic-bezier(.2,0,0,1)"`, `"spring(1,100,20)"`, `"steps(3)"`, `"linear"`) + `}`,
		`{"sequence": "greet", "params": {"who": "signal.who", "ms": 40}, "steps": [{"action": "flash", "entity": "param.who", "duration": "param.ms"}, {"action": "set", "entity": "param.who", "property": "state", "value": "greeting"}]}`,
	}
	for n := range 2 + d.N(4) {
		members := []string{fmt.Sprintf(`"id": "d%d"`, n), `"on": ` + Pick(d, `"x"`, `"x"`, `"y"`, `"z"`)}
		if d.Once(2) {
			members = append(members, `"when": `+w.condition())
		}
		if d.Once(3) {
			members = append(members, `"guard": {"entity": `+Pick(d, `"signal.who"`, `["ann", "signal.who"]`, `"door"`)+`, "policy": `+Pick(d, `"queue"`, `"skip"`, `"preempt"`)+`}`)
		}
		if d.Once(5) {
			members = append(members, `"interrupts": true`)
		}
		list = append(list, "{"+strings.Join(append(members, `"steps": `+w.steps(3)), ", ")+"}")
	}
	if d.Once(3) {
		list = append(list, `{"extends": "d0", "id": "more", "on": `+Pick(d, `"y"`, `"z"`)+`, "before": `+w.steps(1)+`, "after": `+w.steps(1)+`}`)
	}
	for n := range d.N(3) {
		list = append(list, fmt.Sprintf(`{"id": "b%d", "targetEntityId": %q, "property": %s, "sourceType": "x", "sourceField": "n", "mapping": {"fn": %q, "inputRange": [%d, %d], "outputRange": [0.2, 1]}, "transition": {"targetValue": 1, "durationMs": %d, "easing": "linear", "revert": %v}}`,
			n, Pick(d, "ann", "door"), Pick(d, `"opacity"`, `"scale"`, `"position.x"`, `"rotation"`), Pick(d, "lerp", "clamp", "step"), d.N(3), 2+d.N(9), d.N(90), d.Once(2)))
	}
	return "[" + strings.Join(list, ",\n ") + "]"
}

type declarationWriter struct{ d *Dice }

func (w declarationWriter) condition() string {
	test := Pick(w.d, `{"equals": 1}`, `{"gt": 0}`, `{"lt": 2}`, `{"exists": true}`, `{"exists": false}`, `{"not": {"equals": "bob"}}`, `{"contains": "n"}`, `{"matches": "^[ab](n+|ob)$"}`, `{"matches": "[^a]"}`, `{"equals": true}`, `{"not": {"matches": "\\d"}}`, `{"gt": 0, "lt": 1.5}`)
	name := Pick(w.d, "signal.n", "signal.who", "signal.all", "signal.deep.x", "stage:ann.visible", "stage:signal.who.x", "stage:door.state")
	one := fmt.Sprintf(`{%q: %s}`, name, test)
	switch w.d.N(5) {
	case 0:
		return "[" + one + `, {"signal.n": {"exists": true}}, {"stage:door.visible": {"equals": false}}]`
	case 1:
		return one[:len(one)-1] + `, "signal.all": {"contains": "ann"}}`
	}
	return one
}

func (w declarationWriter) steps(depth int) string {
	var list []string
	for range w.d.N(4) + 1 {
		list = append(list, w.step(depth))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (w declarationWriter) step(depth int) string {
	d := w.d
	text := func(texts ...string) string { return Pick(d, texts...) }
	members := []string{}
	add := func(name, value string) { members = append(members, fmt.Sprintf("%q: %s", name, value)) }
	who := text(`"ann"`, `"bob"`, `"door"`, `"signal.who"`, `"signal.who"`, `"signal.none"`, `"crowd"`)
	place := text(`"door"`, `"left"`, `"well"`, `"nowhere"`, `"signal.who"`, `{"x": 40, "y": 7.5}`, `[3, 4]`, `7`)
	ms := text("0", "10", "25", "50", "120", "33.3", "80")
	if d.Once(150) {
		ms = text(`"signal.n"`, "-5")
	}
	kind := d.N(22)
	if depth <= 0 {
		kind = 4 + d.N(18)
	}
	switch kind {
	case 0:
		add("action", `"parallel"`)
		add("steps", w.steps(depth-1))
	case 1:
		if depth < 3 && !d.Once(40) {
			add("action", `"onArrive"`)
		} else {
			add("action", `"onInterrupt"`)
		}
		add("steps", w.steps(depth-1))
	case 2:
		add("action", `"repeat"`)
		add("times", text("0", "1", "2", "3"))
		add("steps", w.steps(depth-1))
	case 3:
		add("action", `"stagger"`)
		add("every", text("5", "12.5", "0"))
		if d.Once(2) {
			add("each", `["ann", "bob", "signal.who"]`)
			add("steps", `[{"action": "move", "entity": "each.item", "to": "door", "duration": 30}]`)
		} else {
			add("steps", w.steps(depth-1))
		}
	case 4, 5:
		add("action", `"wait"`)
		add("duration", ms)
	case 6:
		add("action", `"include"`)
		add("sequence", `"greet"`)
		add("with", `{"who": `+who+`, "ms": `+text("10", "0", "70")+`}`)
	case 7:
		add("action", `"spawn"`)
		add("entity", who)
		add("at", place)
		add("label", text(`"L"`, `""`, "7"))
		add("scale", text("1", "0.5", "2"))
	case 8:
		add("action", `"destroy"`)
		add("entity", who)
	case 9, 10:
		add("action", `"set"`)
		add("entity", who)
		property := text("x", "y", "opacity", "scale", "rotation", "tint", "state", "label", "layer", "visible", "text")
		add("property", fmt.Sprintf("%q", property))
		add("value", text("0", "0.5", "1", "40", `"red"`, `"blue"`, "true", "null", `"toggle"`, `"signal.n"`))
		if d.Once(2) {
			add("duration", ms)
			add("easing", text(`"linear"`, `"easeIn"`, `"soft"`))
		}
	case 11:
		add("action", text(`"say"`, `"typeText"`))
		add("entity", who)
		add("text", text(`"hello there"`, `"signal.who"`, `"x"`, "7"))
		add("duration", ms)
	case 12:
		add("action", `"playSound"`)
		add("sound", text(`"gong"`, `"signal.who"`, "7"))
		add("entity", who)
	case 13:
		add("action", `"drawBeam"`)
		add("entity", who)
		add("to", place)
		add("duration", ms)
		add("color", text(`"red"`, `"signal.who"`, "7"))
	case 14:
		add("action", text(`"flash"`, `"pulse"`))
		add("entity", who)
		add("duration", ms)
		add("color", text(`"gold"`, `"#fff"`, "null"))
	case 15:
		add("action", `"followRoute"`)
		add("entity", who)
		add("route", text(`"fence"`, `"gone"`))
		add("duration", ms)
		add("reverse", text("true", "false"))
	case 16:
		add("action", text(`"fly"`, `"fly"`, `"setAnimation"`))
		add("entity", who)
		add("to", place)
		add("state", `"run"`)
		add("height", text("20", "0", "-3"))
		add("duration", ms)
	default:
		add("action", `"move"`)
		add("entity", who)
		if d.Once(5) {
			add("by", text(`{"x": 5, "y": -2}`, `[1, 1]`))
		} else {
			add("to", place)
		}
		add("duration", ms)
		if d.Once(2) {
			add("easing", text(`"linear"`, `"easeIn"`, `"easeOut"`, `"easeInOut"`, `"arc"`, `"soft"`, `"cubic-bezier(.1,.7,1,.1)"`, `"steps(4)"`))
		}
		if d.Once(3) {
			add("animationDuring", `"walk"`)
			add("animationOnArrival", `"idle"`)
		}
	}
	if d.Once(4) {
		add("delay", text("5", "20", "0"))
	}
	if d.Once(5) {
		add("when", w.condition())
	}
	if d.Once(60) {
		add(text("colour", "Duration", "entty"), "7")
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// DeclaredSignal draws a signal that declarations wait for: its type, its correlation id
// ("" for none) and its payload.
func DeclaredSignal(d *Dice) (typ, correlation, payload string) {
	payload = fmt.Sprintf(`{"who": %s, "n": %s, "all": ["ann", 7], "deep": {"x": %d}}`, Pick(d, `"ann"`, `"bob"`, `"cid"`, `"door"`, "7"), Pick(d, "0", "1", "1.5", "30", `"n"`, "-2"), d.N(3))
	return Pick(d, "x", "x", "x", "y", "z"), Pick(d, "", "c1", "c2"), payload
}

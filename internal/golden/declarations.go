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
		`{"sequence": "twice", "params": {"what": "red", "n": 2}, "steps": [{"action": "repeat", "times": "param.n", "steps": [{"action": "flash", "entity": "each.item", "color": "param.what", "duration": 15}, {"action": "include", "sequence": "greet", "with": {"who": "bob"}}]}]}`,
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
		list = append(list, fmt.Sprintf(`{"id": "c%d", "targetEntityId": %q, "property": %s, %s, "action": {"waypoint": "well", "route": "fence", "from": "corner", "to": 2, "reverse": %v, "animationDuring": "walk", "animationOnArrival": "idle", "duration": %d, "easing": "easeIn"}%s}`,
			n, Pick(d, "ann", "crowd"), Pick(d, `"moveTo"`, `"teleportTo"`, `"followRoute"`, `"animation.state"`, `"visible"`, `"speech"`, `"position.y"`), Pick(d, `"sourceType": "x"`, `"on": "y"`, `"sourceChoreographyId": "d0"`, `"sourceChoreographyId": "d1"`),
			d.Once(2), d.N(90), Pick(d, "", `, "sourceField": "n"`, `, "sourceField": "deep.x", "when": `+w.condition(), `, "mapping": {"fn": "smoothstep", "inputRange": [-2, 30], "outputRange": [9, -9]}`)))
	}
	for n := range d.N(3) {
		list = append(list, fmt.Sprintf(`{"id": "b%d", "targetEntityId": %q, "property": %s, "sourceType": "x", "sourceField": "n", "mapping": {"fn": %q, "inputRange": [%d, %d], "outputRange": [0.2, 1]}, "transition": {"targetValue": 1, "durationMs": %d, "easing": %s, "revert": %v%s}}`,
			n, Pick(d, "ann", "door"), Pick(d, `"opacity"`, `"scale"`, `"position.x"`, `"rotation"`), Pick(d, "lerp", "clamp", "step", "smoothstep"), d.N(3), 2+d.N(9), d.N(90), Pick(d, `"linear"`, `"easeInOut"`, `"arc"`, `"soft"`), d.Once(2), Pick(d, "", `, "revertDelayMs": 30`)))
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
	kind := d.N(23)
	if depth <= 0 {
		kind = 4 + d.N(19)
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
		if d.Once(3) {
			add("sequence", `"twice"`)
			add("with", text(`{}`, `{"n": 1}`, `{"what": "signal.who", "n": 0}`, `{"what": null}`))
			break
		}
		add("sequence", `"greet"`)
		add("with", `{"who": `+who+`, "ms": `+text("10", "0", "70")+`}`)
	case 7:
		add("action", `"spawn"`)
		add("entity", who)
		add("at", place)
		add("label", text(`"L"`, `""`, "7"))
		add("scale", text("1", "0.5", "2"))
		if d.Once(2) {
			add("look", text(`"body"`, `"other"`, `"signal.who"`, `""`))
			add("state", text(`"run"`, `""`, "7"))
			add("text", text(`"ho"`, `""`, "true", "{}"))
			add("opacity", text("0.25", "0", "7", `"x"`))
			add("rotation", text("45", "-1e10", "null"))
			add("layer", text("1", "0", "-4", "0.5", "1.5", "99", `"people"`, `"none"`))
		}
	case 8:
		add("action", `"destroy"`)
		add("entity", who)
	case 9, 10:
		add("action", `"set"`)
		add("entity", who)
		property := text("x", "y", "opacity", "scale", "rotation", "tint", "state", "label", "layer", "visible", "text")
		add("property", fmt.Sprintf("%q", property))
		add("value", text("0", "0.5", "1", "40", `"red"`, `"blue"`, "true", "null", `"toggle"`, `"signal.n"`, `{"color": "tan", "strength": 0.25}`, `{"strength": 2}`, `{"color": 7, "strength": "x"}`, `{"revert": true}`, `{"revert": false}`, "-1e12", `"people"`, `"none"`, `""`, "0.49", "1.5"))
		if d.Once(4) {
			add("revert", text("true", "true", "false", "1"))
		}
		if d.Once(2) {
			add("duration", ms)
			add("easing", text(`"linear"`, `"easeIn"`, `"soft"`))
		}
	case 11:
		add("action", text(`"say"`, `"typeText"`))
		add("entity", who)
		add("text", text(`"hello there"`, `"signal.who"`, `"x"`, "7", `"é日🙂 and some more words to type"`, `""`, "null", "[]"))
		add("duration", ms)
		if d.Once(2) {
			add("append", text("true", "true", "false", `"x"`))
		}
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
		add("width", text("3", "0.5", "-2", "1e9", `"x"`))
	case 14:
		add("action", text(`"flash"`, `"pulse"`))
		add("entity", who)
		add("duration", ms)
		add("color", text(`"gold"`, `"#fff"`, "null"))
		if d.Once(2) {
			add(text("amount", "scale"), text("2", "0.5", "0", "-3", `"x"`))
		}
	case 15:
		add("action", `"followRoute"`)
		add("entity", who)
		add("route", text(`"fence"`, `"fence"`, `"fence"`, `"gone"`, "7"))
		add("duration", ms)
		add("reverse", text("true", "false"))
		if d.Once(2) {
			add("from", text("0", "1", "2", "3", "-1", "0.5", `"corner"`, `"door"`, `"nowhere"`, `{"x": 90, "y": 40}`))
		}
		if d.Once(2) {
			add("to", text("0", "1", "2", "3", "7", `"corner"`, `"well"`, `[100, 50]`, "null"))
		}
		if d.Once(2) {
			add("animationDuring", text(`"walk"`, "7"))
			add("animationOnArrival", text(`"idle"`, `""`))
		}
	case 16:
		add("action", text(`"fly"`, `"fly"`, `"setAnimation"`))
		add("entity", who)
		add("to", place)
		add("state", `"run"`)
		add("height", text("20", "0", "-3"))
		add("duration", ms)
	case 17:
		// Actions that a program may add.
		add("action", text(`"shake"`, `"vanish"`, `"stumble"`))
		add("entity", who)
		add("to", place)
		add("width", text("4", "25"))
		if d.Once(2) {
			add("at", text("0", "0.5", "1", `"x"`))
		}
		if d.Once(2) {
			add("duration", ms)
		}
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
		if d.Once(4) {
			add("offset", text(`{"x": 6}`, `{"y": -6}`, `[2, 3]`, `[1]`, `"x"`, "{}"))
		}
		if d.Once(4) {
			add("height", text("12", "-7", "0", `"x"`))
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

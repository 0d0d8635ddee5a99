package choreography

import (
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// definition judges one definition.
func (v *validator) definition(p *path, d signal.Value) {
	if d.Kind() != signal.KindObject {
		v.errorf(p, "a definition must be an object, not %s", article(d.Kind()))
		return
	}
	refs := references{}
	if on, ok := d.Get("on"); ok {
		refs.on, refs.known = on.Text()
		if !refs.known {
			v.errorf(p.at("on"), "on must be a string, the signal type to answer to, not %s", article(on.Kind()))
		}
		refs.fields, refs.known = signal.PayloadFields(refs.on)
	} else {
		v.errorf(p, `"on" is missing: the signal type to answer to`)
	}
	steps, ok := d.Get("steps")
	if !ok {
		v.errorf(p, `"steps" is missing`)
	}
	for name, value := range d.Members() {
		switch name {
		case "on", "steps":
		case "id":
			if value.Kind() != signal.KindString {
				v.errorf(p.at(name), "id must be a string, not %s", article(value.Kind()))
			}
		case "when":
			v.when(p.at(name), value, refs)
		case "guard":
			v.guard(p.at(name), value, refs)
		case "interrupts":
			if value.Kind() != signal.KindBool {
				v.errorf(p.at(name), "interrupts must be true or false, not %s", article(value.Kind()))
			}
		default:
			v.add(Error, p.at(name), true, "unknown field %s: a definition has on, id, when, interrupts, guard and steps", quoted(name))
		}
	}
	// One that only interrupts needs no steps.
	if interrupts, _ := d.Get("interrupts"); ok && !(truthy(interrupts) && isEmptyArray(steps)) {
		v.steps(p.at("steps"), steps, refs, true)
	}
}

func isEmptyArray(v signal.Value) bool { return v.Kind() == signal.KindArray && v.Len() == 0 }

// steps judges a list of steps; only at the top may onInterrupt stand in it.
func (v *validator) steps(p *path, steps signal.Value, refs references, top bool) {
	if steps.Kind() != signal.KindArray {
		v.errorf(p, "steps must be an array, not %s", article(steps.Kind()))
		return
	}
	if isEmptyArray(steps) {
		v.warnf(p, "there are no steps")
	}
	i := 0
	for step := range steps.Elements() {
		v.step(p.element(i), step, refs, top)
		i++
	}
}

func (v *validator) step(p *path, step signal.Value, refs references, top bool) {
	if step.Kind() != signal.KindObject {
		v.errorf(p, "a step must be an object, not %s", article(step.Kind()))
		return
	}
	a, ok := step.Get("action")
	if !ok {
		v.errorf(p, `"action" is missing`)
		return
	}
	switch action, ok := a.Text(); {
	case !ok:
		v.errorf(p.at("action"), "action must be a string, not %s", article(a.Kind()))
	case action == "":
		v.errorf(p.at("action"), "action must not be empty")
	case action == "onInterrupt" && !top:
		v.errorf(p.at("action"), "onInterrupt must be a step of the definition itself, not inside another step")
	case action == "parallel", action == "onArrive", action == "onInterrupt":
		v.structure(p, action, step, refs)
	case action == "wait":
		v.wait(p, step, refs)
	default:
		v.action(p, action, step, refs)
	}
}

// structure judges a step that only holds other steps.
func (v *validator) structure(p *path, action string, step signal.Value, refs references) {
	steps, ok := step.Get("steps")
	if !ok {
		v.errorf(p, `"steps" is missing in %s`, action)
	}
	for name := range step.Members() {
		if name != "action" && name != "steps" && name != "when" {
			v.add(Warning, p.at(name), true, "%s is ignored in %s", quoted(name), action)
		}
	}
	v.stepWhen(p, step, refs)
	if ok {
		v.steps(p.at("steps"), steps, refs, false)
	}
}

func (v *validator) wait(p *path, step signal.Value, refs references) {
	v.stepWhen(p, step, refs)
	if d, ok := step.Get("duration"); ok {
		v.milliseconds(p.at("duration"), "duration", d, "passes no time")
	} else {
		v.warnf(p, "wait without a duration passes no time")
	}
	for name := range step.Members() {
		if name != "action" && name != "duration" && name != "when" {
			v.add(Warning, p.at(name), true, "%s is ignored in wait", quoted(name))
		}
	}
}

func (v *validator) action(p *path, action string, step signal.Value, refs references) {
	_, timed := step.Get("duration")
	timed = timed && !alwaysInstant(action)
	entity, _ := step.Get("entity")
	for name, value := range step.Members() {
		at := p.at(name)
		switch name {
		case "action":
		case "when":
			v.when(at, value, refs)
		case "steps":
			v.add(Warning, at, true, "steps is ignored in the action %s", quoted(action))
		case "entity", "target":
			v.entity(at, name, value, refs)
			if name == "target" && entity.Kind() > signal.KindNull {
				v.add(Warning, at, true, "target is lost beside entity")
			}
		case "delay":
			v.milliseconds(at, name, value, "")
		case "duration":
			v.milliseconds(at, name, value, "starts and completes at one instant")
			if !timed {
				v.add(Warning, at, true, "%s is always instant: the duration is ignored", action)
			}
		case "easing":
			v.easing(at, value)
			if !timed {
				v.add(Warning, at, true, "easing is ignored without a duration")
			}
		default:
			v.param(at, value, refs, true)
		}
	}
}

// milliseconds judges a length of time. Zero gets a warning that says what it
// does, if there is anything to say.
func (v *validator) milliseconds(p *path, name string, value signal.Value, zero string) {
	ms, ok := value.Float64()
	switch {
	case ok && ms < 0:
		v.errorf(p, "%s must not be negative", name)
	case ok && nanos(value) == 0 && zero != "":
		v.warnf(p, "%s 0 %s", name, zero)
	case ok && nanos(value) == math.MaxInt64:
		v.warnf(p, "%s is beyond the end of session time", name)
	case ok:
	default:
		if _, ref := reference(value); ref {
			v.errorf(p, "%s cannot be taken from the signal: write a number of milliseconds", name)
			return
		}
		v.errorf(p, "%s must be a number of milliseconds, not %s", name, article(value.Kind()))
	}
}

func (v *validator) easing(p *path, value signal.Value) {
	name, ok := value.Text()
	if !ok {
		v.errorf(p, "easing must be a string, not %s", article(value.Kind()))
		return
	}
	if _, ref := reference(value); ref {
		v.errorf(p, "easing cannot be taken from the signal: write one of %s", strings.Join(easingNames[:], ", "))
		return
	}
	if _, ok := easingNamed(name); !ok {
		v.errorf(p, "unknown easing %s: it is one of %s", quoted(name), strings.Join(easingNames[:], ", "))
	}
}

func (v *validator) entity(p *path, name string, value signal.Value, refs references) {
	switch value.Kind() {
	case signal.KindNull:
		return
	case signal.KindString:
	default:
		v.errorf(p, "%s must be a string, not %s", name, article(value.Kind()))
		return
	}
	if f := v.reference(p, value, refs); f != nil && f.Kind != signal.FieldString {
		v.warnf(p, "%s has no text for a name: the field is of kind %s", name, f.Kind)
	}
}

// param judges a parameter. Only a string right in the step is a reference.
func (v *validator) param(p *path, value signal.Value, refs references, direct bool) {
	switch value.Kind() {
	case signal.KindString:
		if direct {
			v.reference(p, value, refs)
		} else if _, ref := reference(value); ref {
			v.warnf(p, "a reference inside an object or array is not resolved")
		}
	case signal.KindArray:
		i := 0
		for e := range value.Elements() {
			v.param(p.element(i), e, refs, false)
			i++
		}
	case signal.KindObject:
		for name, e := range value.Members() {
			v.param(p.at(name), e, refs, false)
		}
	default:
	}
}

// references is what is known of the payload that references lead into.
type references struct {
	on     string
	fields []signal.Field
	known  bool // the type's payload has exactly these fields
}

// unreachable lists the envelope's fields that a reference does not reach.
var unreachable = []string{"id", "source", "timestamp", "correlationId", "metadata"}

// reference judges a string that may be a reference and returns the field it
// leads to, nil if it is none or the field is not known.
func (v *validator) reference(p *path, value signal.Value, refs references) *signal.Field {
	way, ok := reference(value)
	if !ok {
		return nil
	}
	return v.way(p, false, way, refs)
}

// way judges a path into the payload.
func (v *validator) way(p *path, atName bool, way string, refs references) *signal.Field {
	switch first, rest, _ := strings.Cut(way, "."); {
	case way == "":
		v.add(Error, p, atName, "the reference names no field")
		return nil
	case way == "type":
		return nil
	case first == "payload" && rest != "" && !refs.known:
		v.add(Warning, p, atName, "signal.%s looks for a payload inside the payload; did you mean signal.%s?", way, rest)
		return nil
	case !refs.known:
		return nil
	case first == "payload" && rest != "":
		v.add(Error, p, atName, "a payload of %s has no field payload; write signal.%s", refs.on, rest)
		return nil
	}
	fields, seen := refs.fields, "signal"
	var found *signal.Field
	for name := range strings.SplitSeq(way, ".") {
		i := slices.IndexFunc(fields, func(f signal.Field) bool { return f.Name == name })
		switch {
		case i >= 0:
		case seen == "signal" && slices.Contains(unreachable, name):
			v.add(Error, p, atName, "signal.%s belongs to the envelope, which references do not reach", name)
			return nil
		case seen == "signal":
			v.add(Error, p, atName, "a payload of %s has no field %s; it has %s", refs.on, quoted(name), names(fields))
			return nil
		case fields == nil:
			v.add(Error, p, atName, "%s has nothing inside it", seen)
			return nil
		default:
			v.add(Error, p, atName, "%s has no field %s; it has %s", seen, quoted(name), names(fields))
			return nil
		}
		found, seen = &fields[i], seen+"."+name
		if found.Kind == signal.FieldObject && found.Fields == nil {
			return nil // free from here on
		}
		fields = found.Fields
	}
	return found
}

func names(fields []signal.Field) string {
	var s []string
	for _, f := range fields {
		s = append(s, f.Name)
	}
	return strings.Join(s, ", ")
}

// when judges a condition.
func (v *validator) when(p *path, clause signal.Value, refs references) {
	switch clause.Kind() {
	case signal.KindObject:
		v.conjunction(p, clause, refs)
	case signal.KindArray:
		i := 0
		for e := range clause.Elements() {
			if e.Kind() == signal.KindObject {
				v.conjunction(p.element(i), e, refs)
			} else {
				v.errorf(p.element(i), "an alternative of when must be an object, not %s", article(e.Kind()))
			}
			i++
		}
	default:
		v.errorf(p, "when must be an object or an array of objects, not %s", article(clause.Kind()))
	}
}

func (v *validator) conjunction(p *path, c signal.Value, refs references) {
	for way, op := range c.Members() {
		at := p.at(way)
		if asked, ok := strings.CutPrefix(way, stagePrefix); ok {
			v.stagePath(at, asked, refs)
		} else {
			v.way(at, true, strings.TrimPrefix(way, refPrefix), refs)
		}
		v.operator(at, op)
	}
}

// operators lists what can be asked of a value in a condition.
const operators = "equals, contains, matches, gt, lt, exists and not"

func (v *validator) operator(p *path, op signal.Value) {
	if op.Kind() != signal.KindObject {
		v.errorf(p, "a condition must be an object with %s, not %s", operators, article(op.Kind()))
		return
	}
	for name, operand := range op.Members() {
		at := p.at(name)
		switch name {
		case "equals":
			if k := operand.Kind(); k == signal.KindArray || k == signal.KindObject {
				v.warnf(at, "nothing equals %s", article(k))
			}
		case "contains", "matches":
			text, ok := operand.Text()
			if !ok {
				v.errorf(at, "%s must be a string, not %s", name, article(operand.Kind()))
			} else if name == "matches" {
				if _, err := compilePattern(text); err != nil {
					v.errorf(at, "%v", err)
				}
			}
		case "gt", "lt":
			if !operand.Kind().IsNumber() {
				v.errorf(at, "%s must be a number, not %s", name, article(operand.Kind()))
			}
		case "exists":
			if operand.Kind() != signal.KindBool {
				v.errorf(at, "exists must be true or false, not %s", article(operand.Kind()))
			}
		case "not":
			if op.Len() > 1 {
				v.add(Warning, at, true, "the operators beside not are ignored")
			}
			v.operator(at, operand)
		default:
			v.add(Error, at, true, "unknown operator %s: there are %s", quoted(name), operators)
		}
	}
}

package language

import (
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// steps judges a list of steps. OnInterrupt is allowed only at the top.
func (v *validator) steps(p *authored.Location, steps signal.Value, refs references, top bool) {
	if steps.Kind() != signal.KindArray {
		v.Errorf(p, "steps must be an array, not %s", steps.Kind().WithArticle())
		return
	}
	if isEmptyArray(steps) {
		v.Warnf(p, "there are no steps")
	}
	i := 0
	for step := range steps.Elements() {
		v.step(p.Element(i), step, refs, top)
		i++
	}
}

func (v *validator) step(p *authored.Location, step signal.Value, refs references, top bool) {
	if step.Kind() != signal.KindObject {
		v.Errorf(p, "a step must be an object, not %s", step.Kind().WithArticle())
		return
	}
	a, ok := step.Get("action")
	if !ok {
		v.Errorf(p, `"action" is missing`)
		return
	}
	switch action, ok := a.Text(); {
	case !ok:
		v.Errorf(p.At("action"), "action must be a string, not %s", a.Kind().WithArticle())
	case action == "":
		v.Errorf(p.At("action"), "action must not be empty")
	case action == "onInterrupt" && !top:
		v.Errorf(p.At("action"), "onInterrupt must be a step of the definition itself, not inside another step")
	case action == "parallel", action == "onArrive", action == "onInterrupt":
		v.structure(p, action, step, refs)
	case action == "include":
		v.include(p, step, refs)
	case action == "repeat":
		v.repeat(p, step, refs)
	case action == "stagger":
		v.stagger(p, step, refs)
	case action == "wait":
		v.wait(p, step, refs)
	default:
		v.action(p, action, step, refs)
	}
}

// structure judges a step that only groups other steps.
func (v *validator) structure(p *authored.Location, action string, step signal.Value, refs references) {
	steps, ok := step.Get("steps")
	if !ok {
		v.Errorf(p, `"steps" is missing in %s`, action)
	}
	v.only(p, step, action, "steps", "when")
	v.stepWhen(p, step, refs)
	if ok {
		v.steps(p.At("steps"), steps, refs, false)
	}
}

// include judges a step that a sequence replaces.
func (v *validator) include(p *authored.Location, step signal.Value, refs references) {
	name, ok := step.Get("sequence")
	text, isText := name.Text()
	v.only(p, step, "include", "sequence", "with", "when")
	v.stepWhen(p, step, refs)
	with, given := step.Get("with")
	for name, value := range with.Members() {
		v.param(p.At("with").At(name), value, refs, true)
	}
	switch {
	case !ok:
		v.Errorf(p, `"sequence" is missing in include: the name of the sequence`)
		return
	case !isText:
		v.Errorf(p.At("sequence"), "sequence must be a string, not %s", name.Kind().WithArticle())
		return
	}
	s := v.catalog.sequence(text)
	if it := v.items[key(wordSequence, text)]; it != nil {
		if s = it.sequence; s == nil {
			return // the declaration of the sequence reports its mistakes
		}
	}
	if s == nil {
		v.Errorf(p.At("sequence"), reasonNoSequence, wording.Quoted(text))
		return
	}
	if _, err := s.arguments(with, itself); err != nil {
		if given {
			p = p.At("with")
		}
		v.Errorf(p, "%v", err)
	}
}

// repeat judges a step that performs its steps several times.
func (v *validator) repeat(p *authored.Location, step signal.Value, refs references) {
	v.only(p, step, "repeat", "times", "steps", "when")
	v.stepWhen(p, step, refs)
	times, ok := step.Get("times")
	switch n, whole := wholeNumber(times); {
	case !ok:
		v.Errorf(p, `"times" is missing in repeat`)
	case v.standsFor(p.At("times"), times):
	case !whole || n < 0:
		v.Errorf(p.At("times"), "times must be a whole number from 0, not %s", shown(times))
	case n == 0:
		v.Warnf(p.At("times"), "repeated 0 times, the steps do nothing")
	}
	v.inner(p, step, "repeat", refs)
}

// stagger judges a step that performs its steps side by side, each a little later
// than the one before.
func (v *validator) stagger(p *authored.Location, step signal.Value, refs references) {
	v.only(p, step, "stagger", "every", "each", "steps", "when")
	v.stepWhen(p, step, refs)
	if every, ok := step.Get("every"); ok {
		v.milliseconds(p.At("every"), "every", every, "has all begin at once")
	} else {
		v.Errorf(p, `"every" is missing in stagger: the milliseconds between two beginnings`)
	}
	items, ok := step.Get("each")
	if !ok {
		v.inner(p, step, "stagger", refs)
		return
	}
	switch at := p.At("each"); {
	case v.standsFor(at, items):
	case items.Kind() != signal.KindArray:
		v.Errorf(at, "each must be an array of items, not %s", items.Kind().WithArticle())
	default:
		if isEmptyArray(items) {
			v.Warnf(at, "there are no items")
		}
		i := 0
		for e := range items.Elements() {
			v.param(at.Element(i), e, refs, true)
			i++
		}
	}
	outer := v.scope.each
	v.scope.each = true
	v.inner(p, step, "stagger", refs)
	v.scope.each = outer
}

// inner judges the steps of a step that requires some.
func (v *validator) inner(p *authored.Location, step signal.Value, action string, refs references) {
	if steps, ok := step.Get("steps"); ok {
		v.steps(p.At("steps"), steps, refs, false)
	} else {
		v.Errorf(p, `"steps" is missing in %s`, action)
	}
}

// only warns of members that have no effect in a step.
func (v *validator) only(p *authored.Location, step signal.Value, action string, known ...string) {
	for name := range step.Members() {
		if name == "action" || slices.Contains(known, name) {
			continue
		}
		meant := ""
		if near, ok := spelling.Nearest(name, known); ok {
			meant = "; did you mean " + wording.Quoted(near) + "?"
		}
		v.Warnf(p.At(name).Key(), "%s is ignored in %s%s", wording.Quoted(name), action, meant)
	}
}

func (v *validator) wait(p *authored.Location, step signal.Value, refs references) {
	v.stepWhen(p, step, refs)
	if d, ok := step.Get("duration"); ok {
		v.milliseconds(p.At("duration"), "duration", d, "passes no time")
	} else {
		v.Warnf(p, "wait without a duration passes no time")
	}
	v.only(p, step, "wait", "duration", "when")
}

func (v *validator) action(p *authored.Location, action string, step signal.Value, refs references) {
	_, timed := step.Get("duration")
	timed = timed && !definition.AlwaysInstant(action)
	entity := step.Member("entity")
	for name, value := range step.Members() {
		at := p.At(name)
		switch name {
		case "action":
		case "when":
			v.when(at, value, refs)
		case "steps":
			v.Warnf(at.Key(), "steps is ignored in the action %s", wording.Quoted(action))
		case "entity", "target":
			v.entity(at, name, value, refs)
			if name == "target" && entity.Kind() > signal.KindNull {
				v.Warnf(at.Key(), "target is lost beside entity")
			}
		case "delay":
			v.milliseconds(at, name, value, "")
		case "duration":
			v.milliseconds(at, name, value, "starts and completes at one instant")
			if !timed {
				v.Warnf(at.Key(), "%s is always instant: the duration is ignored", action)
			}
		case "easing":
			v.easing(at, value)
			if !timed {
				v.Warnf(at.Key(), "easing is ignored without a duration")
			}
		default:
			v.param(at, value, refs, true)
		}
	}
}

// milliseconds judges a length of time. If zero is not empty, it is the effect of a
// zero length, and such a length gets a warning.
func (v *validator) milliseconds(p *authored.Location, name string, value signal.Value, zero string) {
	ms, ok := value.Float64()
	switch {
	case v.standsFor(p, value):
	case ok && ms < 0:
		v.Errorf(p, "%s must not be negative", name)
	case ok && definition.Nanoseconds(value) == 0 && zero != "":
		v.Warnf(p, "%s 0 %s", name, zero)
	case ok && definition.Nanoseconds(value) == math.MaxInt64:
		v.Warnf(p, "%s is beyond the end of session time", name)
	case ok:
	default:
		if _, ref := definition.Reference(value); ref {
			v.Errorf(p, "%s cannot be taken from the signal: write a number of milliseconds", name)
			return
		}
		v.Errorf(p, "%s must be a number of milliseconds, not %s", name, value.Kind().WithArticle())
	}
}

func (v *validator) easing(p *authored.Location, value signal.Value) {
	name, ok := value.Text()
	if !ok {
		v.Errorf(p, "easing must be a string, not %s", value.Kind().WithArticle())
		return
	}
	if _, ref := definition.Reference(value); ref {
		v.Errorf(p, "easing cannot be taken from the signal: write one of %s", curve.BuiltIn)
		return
	}
	if v.placeholder(p, name) || v.items[key(wordEasing, name)] != nil || v.catalog.easing(name) != nil {
		return
	}
	switch _, ok := curve.Named(name); {
	case name == curve.BindingEaseInOut, name == curve.BindingArc:
		v.Errorf(p, "%s is not for steps", wording.Quoted(name))
	case ok:
	case strings.Contains(name, "("):
		if _, err := curve.Parse(name); err != nil {
			v.Errorf(p, "%v", err)
		}
	default:
		v.Errorf(p, "unknown easing %s: it is one of %s, or a curve such as spring(1, 100, 10)", wording.Quoted(name), curve.BuiltIn)
	}
}

func (v *validator) entity(p *authored.Location, name string, value signal.Value, refs references) {
	switch value.Kind() {
	case signal.KindNull:
		return
	case signal.KindString:
		if v.standsFor(p, value) {
			return
		}
	default:
		v.Errorf(p, "%s must be a string, not %s", name, value.Kind().WithArticle())
		return
	}
	if f := v.reference(p, value, refs); f != nil && f.Kind != signal.FieldString {
		v.Warnf(p, "%s has no text for a name: the field is of kind %s", name, f.Kind)
	}
}

// param judges a parameter. A string is a reference only directly in the step.
func (v *validator) param(p *authored.Location, value signal.Value, refs references, direct bool) {
	switch value.Kind() {
	case signal.KindString:
		if direct {
			if !v.standsFor(p, value) {
				v.reference(p, value, refs)
			}
		} else if _, ref := definition.Reference(value); ref {
			v.Warnf(p, "a reference inside an object or array is not resolved")
		}
	case signal.KindArray:
		i := 0
		for e := range value.Elements() {
			v.param(p.Element(i), e, refs, false)
			i++
		}
	case signal.KindObject:
		for name, e := range value.Members() {
			if direct && (name == definition.ComputedNumber || name == definition.ComputedText) {
				v.Errorf(p.At(name).Key(), "%s is reserved", name)
			}
			v.param(p.At(name), e, refs, false)
		}
	default:
	}
}

func isEmptyArray(v signal.Value) bool { return v.Kind() == signal.KindArray && v.Len() == 0 }

// placeholders are the placeholders that a step may use where it is written.
type placeholders struct {
	sequence bool // param.NAME, of these:
	params   []string
	each     bool // each.item and each.index
}

// placeholder judges a string that may be a placeholder for an argument or an item.
// It reports whether the string is one in the present scope.
func (v *validator) placeholder(p *authored.Location, text string) bool {
	if name, ok := strings.CutPrefix(text, paramPrefix); ok && isParamName(name) {
		switch {
		case !v.scope.sequence:
			if !v.isWritten {
				v.Warnf(p, "%s stands for an argument only inside a sequence", text)
			}
			return false
		case !slices.Contains(v.scope.params, name):
			v.Errorf(p, "the sequence has no parameter %s: list it in params", wording.Quoted(name))
		}
		return true
	}
	if text == eachItem || text == eachIndex {
		if !v.scope.each && !v.isWritten {
			v.Warnf(p, "%s stands for an item only inside a stagger with each", text)
		}
		return v.scope.each
	}
	return false
}

func (v *validator) standsFor(p *authored.Location, value signal.Value) bool {
	text, ok := value.Text()
	return ok && v.placeholder(p, text)
}

package choreography

import (
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// declaration judges one declaration of a file.
func (v *validator) declaration(it *item) {
	p, d := it.p, it.value
	if d.Kind() != signal.KindObject {
		v.errorf(p, "a definition must be an object, not %s", wording.Article(d.Kind()))
		return
	}
	switch it.word {
	case wordSequence:
		v.sequence(p, d)
	case wordEasing:
		v.easingDeclaration(p, d)
	case wordBinding:
		v.binding(p, d)
	default:
		v.definition(p, d)
	}
}

// definition judges one choreography.
func (v *validator) definition(p *path, d signal.Value) {
	refs := references{}
	extends, derived := d.Get("extends")
	if on, ok := d.Get("on"); ok {
		text, isText := on.Text()
		if !isText {
			v.errorf(p.at("on"), "on must be a string, the signal type to answer to, not %s", wording.Article(on.Kind()))
		}
		refs = referencesOf(text)
	} else if derived {
		refs = referencesOf(v.onOf(firstText(d, "extends")))
	} else {
		v.errorf(p, `"on" is missing: the signal type to answer to`)
	}
	steps, ok := d.Get("steps")
	if !ok && !derived {
		v.errorf(p, `"steps" is missing`)
	}
	for name, value := range d.Members() {
		at := p.at(name)
		switch name {
		case "on", "steps":
		case "id":
			v.id(at, value)
		case "extends":
			v.extends(at, extends, d)
		case "before", "after":
			if !derived {
				v.add(Error, at, true, "%s is only for a choreography that extends another", name)
			}
			v.steps(at, value, refs, true)
		case "when":
			v.when(at, value, refs)
		case "guard":
			v.guard(at, value, refs)
		case "interrupts":
			if value.Kind() != signal.KindBool {
				v.errorf(at, "interrupts must be true or false, not %s", wording.Article(value.Kind()))
			}
		default:
			if name == "easings" && v.isWritten {
				break
			}
			v.add(Error, at, true, "unknown field %s: a choreography has id, on, when, interrupts, guard and steps, or extends, before and after", wording.Quoted(name))
		}
	}
	// One that only interrupts needs no steps.
	if interrupts, _ := d.Get("interrupts"); ok && !(truthy(interrupts) && isEmptyArray(steps)) {
		v.steps(p.at("steps"), steps, refs, true)
	}
}

// id judges what others know a declaration by.
func (v *validator) id(p *path, value signal.Value) {
	id, ok := value.Text()
	if !ok {
		v.errorf(p, "id must be a string, not %s", wording.Article(value.Kind()))
		return
	}
	if id == "" {
		v.warnf(p, "an empty id names nothing")
	} else if err := checkName("the id", id); err != nil {
		v.errorf(p, "%v", err)
	} else if strings.HasPrefix(id, bindingPrefix) {
		v.errorf(p, "an id must not begin with %s", bindingPrefix)
	}
}

func (v *validator) extends(p *path, extends, d signal.Value) {
	id, ok := extends.Text()
	switch {
	case !ok:
		v.errorf(p, "extends must be the id of a choreography, not %s", wording.Article(extends.Kind()))
	case id == firstText(d, "id"):
		v.errorf(p, "the choreography extends itself")
	case v.items[key(wordChoreography, id)] == nil && v.catalog.definition(id) == nil:
		v.errorf(p, "there is no choreography %s", wording.Quoted(id))
	}
}

// onOf returns the signal type that a choreography of the file or in force
// answers to, "" if that is not known.
func (v *validator) onOf(id string) string {
	for range MaxNesting { // it may lead in a circle
		it := v.items[key(wordChoreography, id)]
		if it == nil {
			break
		}
		if on := firstText(it.value, "on"); on != "" {
			return on
		}
		id = firstText(it.value, "extends")
	}
	if d := v.catalog.definition(id); d != nil {
		return d.on
	}
	return ""
}

// sequence judges a named sequence.
func (v *validator) sequence(p *path, d signal.Value) {
	name, _ := d.Get("sequence")
	text, _ := name.Text()
	if err := checkName("the name of the sequence", text); err != nil {
		v.errorf(p.at("sequence"), "%v", err)
	}
	v.scope = placeholders{sequence: true}
	defer func() { v.scope = placeholders{} }()
	if params, ok := d.Get("params"); ok {
		list, err := parameters(params)
		if err != nil {
			v.errorf(p.at("params"), "%v", err)
		}
		for _, param := range list {
			v.scope.params = append(v.scope.params, param.name)
		}
	}
	for name := range d.Members() {
		if name != "sequence" && name != "params" && name != "steps" {
			v.add(Error, p.at(name), true, "unknown field %s: a sequence has sequence, params and steps", wording.Quoted(name))
		}
	}
	steps, ok := d.Get("steps")
	if !ok {
		v.errorf(p, `"steps" is missing`)
		return
	}
	v.steps(p.at("steps"), steps, references{}, false)
}

// easingDeclaration judges a named easing.
func (v *validator) easingDeclaration(p *path, d signal.Value) {
	name, _ := d.Get("easing")
	text, _ := name.Text()
	if err := checkEasingName(text); err != nil {
		v.errorf(p.at("easing"), "%v", err)
	}
	curve, _ := d.Get("curve")
	if text, ok := curve.Text(); !ok {
		v.errorf(p.at("curve"), "curve must be a string, not %s", wording.Article(curve.Kind()))
	} else if _, err := ParseCurve(text); err != nil {
		v.errorf(p.at("curve"), "%v", err)
	}
	for name := range d.Members() {
		if name != "easing" && name != "curve" {
			v.add(Error, p.at(name), true, "unknown field %s: an easing has easing and curve", wording.Quoted(name))
		}
	}
}

// binding judges a binding.
func (v *validator) binding(p *path, d signal.Value) {
	before := v.refused
	v.refused = false
	defer func() { v.refused = v.refused || before }()
	refs := referencesOf(firstText(d, "sourceType", "on"))
	source, hasSource := d.Get("sourceChoreographyId")
	id, _ := source.Text()
	if hasSource && refs.on == "" {
		refs = referencesOf(v.onOf(id))
	}
	property := firstText(d, "property")
	numeric := boundProperties[property]
	_, hasField := d.Get("sourceField")
	for name, value := range d.Members() {
		at := p.at(name)
		switch name {
		case "binding", "id":
			v.id(at, value)
		case "targetEntityId", "entity", "property", "sourceType", "on":
			if value.Kind() != signal.KindString {
				v.errorf(at, "%s must be a string, not %s", name, wording.Article(value.Kind()))
			}
		case "sourceChoreographyId":
			if v.items[key(wordChoreography, id)] == nil && v.catalog.definition(id) == nil {
				v.errorf(at, "there is no choreography %s", wording.Quoted(id))
			}
		case "sourceField":
			if field, ok := value.Text(); !ok {
				v.errorf(at, "sourceField must be a string, not %s", wording.Article(value.Kind()))
			} else {
				v.way(at, false, field, refs)
			}
		case "when":
			v.when(at, value, refs)
		case "mapping":
			v.mapping(at, value)
			if !numeric {
				v.add(Warning, at, true, "mapping is ignored: %s takes no number", property)
			}
		case "action":
			if value.Kind() != signal.KindObject {
				v.errorf(at, "action must be an object, not %s", wording.Article(value.Kind()))
			}
		case "transition":
			v.transition(at, value)
			switch {
			case !numeric:
				v.add(Warning, at, true, "transition is ignored: %s takes no number", property)
			case hasField:
				v.add(Warning, at, true, "transition is ignored beside sourceField, which gives the value at once")
			}
		default:
			v.add(Error, at, true, "unknown field %s: a binding has id, targetEntityId, property, sourceType, sourceChoreographyId, when, mapping, action, sourceField and transition", wording.Quoted(name))
		}
	}
	if !v.refused { // it says only the first thing that is wrong, and not where
		if _, err := compileBinding(d); err != nil {
			v.errorf(p, "%s", strings.TrimPrefix(err.Error(), ErrDefinition.Error()+": "))
		}
	}
}

// mappings lists the functions of a mapping.
var mappings = [...]string{"lerp", "clamp", "step", "smoothstep"}

func (v *validator) mapping(p *path, m signal.Value) {
	if err := checkMapping(m); err != nil {
		v.errorf(p, "%v", err)
	}
	for name, value := range m.Members() {
		switch name {
		case "inputRange", "outputRange":
		case "fn":
			if fn, _ := value.Text(); !slices.Contains(mappings[:], fn) {
				v.errorf(p.at(name), "fn must be one of %s, not %s", strings.Join(mappings[:], ", "), shown(value))
			}
		default:
			v.add(Error, p.at(name), true, "unknown field %s: a mapping has fn, inputRange and outputRange", wording.Quoted(name))
		}
	}
	if from, to, ok := span(get(m, "inputRange")); ok && from == to {
		v.warnf(p.at("inputRange"), "a range of no width: every value becomes the first of outputRange")
	}
}

func get(v signal.Value, name string) signal.Value {
	member, _ := v.Get(name)
	return member
}

func (v *validator) transition(p *path, t signal.Value) {
	if t.Kind() != signal.KindObject {
		v.errorf(p, "transition must be an object, not %s", wording.Article(t.Kind()))
		return
	}
	if _, err := compileTransition(t); err != nil {
		v.errorf(p, "%v", err)
	}
	for name, value := range t.Members() {
		switch name {
		case "targetValue", "durationMs":
		case "easing":
			v.easing(p.at(name), value)
		case "revert":
			if value.Kind() != signal.KindBool {
				v.errorf(p.at(name), "revert must be true or false, not %s", wording.Article(value.Kind()))
			}
		case "revertDelayMs":
			if !truthy(get(t, "revert")) {
				v.add(Warning, p.at(name), true, "revertDelayMs is ignored without revert")
			}
		default:
			v.add(Error, p.at(name), true, "unknown field %s: a transition has targetValue, durationMs, easing, revert and revertDelayMs", wording.Quoted(name))
		}
	}
}

// placeholders is what strings may stand for where a step is written.
type placeholders struct {
	sequence bool // param.NAME, of these:
	params   []string
	each     bool // each.item and each.index
}

// placeholder judges a string that may stand for an argument or an item, and
// reports whether it does. It does not where there is none.
func (v *validator) placeholder(p *path, atName bool, text string) bool {
	if name, ok := strings.CutPrefix(text, paramPrefix); ok && isParamName(name) {
		switch {
		case !v.scope.sequence:
			if !v.isWritten {
				v.add(Warning, p, atName, "%s stands for an argument only inside a sequence", text)
			}
			return false
		case !slices.Contains(v.scope.params, name):
			v.add(Error, p, atName, "the sequence has no parameter %s: list it in params", wording.Quoted(name))
		}
		return true
	}
	if text == eachItem || text == eachIndex {
		if !v.scope.each && !v.isWritten {
			v.add(Warning, p, atName, "%s stands for an item only inside a stagger with each", text)
		}
		return v.scope.each
	}
	return false
}

func (v *validator) standsFor(p *path, value signal.Value) bool {
	text, ok := value.Text()
	return ok && v.placeholder(p, false, text)
}

func isEmptyArray(v signal.Value) bool { return v.Kind() == signal.KindArray && v.Len() == 0 }

// steps judges a list of steps; only at the top may onInterrupt stand in it.
func (v *validator) steps(p *path, steps signal.Value, refs references, top bool) {
	if steps.Kind() != signal.KindArray {
		v.errorf(p, "steps must be an array, not %s", wording.Article(steps.Kind()))
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
		v.errorf(p, "a step must be an object, not %s", wording.Article(step.Kind()))
		return
	}
	a, ok := step.Get("action")
	if !ok {
		v.errorf(p, `"action" is missing`)
		return
	}
	switch action, ok := a.Text(); {
	case !ok:
		v.errorf(p.at("action"), "action must be a string, not %s", wording.Article(a.Kind()))
	case action == "":
		v.errorf(p.at("action"), "action must not be empty")
	case action == "onInterrupt" && !top:
		v.errorf(p.at("action"), "onInterrupt must be a step of the definition itself, not inside another step")
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

// structure judges a step that only holds other steps.
func (v *validator) structure(p *path, action string, step signal.Value, refs references) {
	steps, ok := step.Get("steps")
	if !ok {
		v.errorf(p, `"steps" is missing in %s`, action)
	}
	for name := range step.Members() {
		if name != "action" && name != "steps" && name != "when" {
			v.add(Warning, p.at(name), true, "%s is ignored in %s", wording.Quoted(name), action)
		}
	}
	v.stepWhen(p, step, refs)
	if ok {
		v.steps(p.at("steps"), steps, refs, false)
	}
}

// include judges a step that stands for a sequence.
func (v *validator) include(p *path, step signal.Value, refs references) {
	name, ok := step.Get("sequence")
	text, isText := name.Text()
	v.only(p, step, "include", "sequence", "with", "when")
	v.stepWhen(p, step, refs)
	with, given := step.Get("with")
	for name, value := range with.Members() {
		v.param(p.at("with").at(name), value, refs, true)
	}
	switch {
	case !ok:
		v.errorf(p, `"sequence" is missing in include: the name of the sequence`)
		return
	case !isText:
		v.errorf(p.at("sequence"), "sequence must be a string, not %s", wording.Article(name.Kind()))
		return
	}
	s := v.catalog.sequence(text)
	if it := v.items[key(wordSequence, text)]; it != nil {
		if s = it.sequence; s == nil {
			return // what is wrong with it is told where it is declared
		}
	}
	if s == nil {
		v.errorf(p.at("sequence"), "there is no sequence %s", wording.Quoted(text))
		return
	}
	if _, err := s.arguments(with, itself); err != nil {
		if given {
			p = p.at("with")
		}
		v.errorf(p, "%v", err)
	}
}

// repeat judges a step that does its steps several times.
func (v *validator) repeat(p *path, step signal.Value, refs references) {
	v.only(p, step, "repeat", "times", "steps", "when")
	v.stepWhen(p, step, refs)
	times, ok := step.Get("times")
	switch n, whole := wholeNumber(times); {
	case !ok:
		v.errorf(p, `"times" is missing in repeat`)
	case v.standsFor(p.at("times"), times):
	case !whole || n < 0:
		v.errorf(p.at("times"), "times must be a whole number from 0, not %s", shown(times))
	case n == 0:
		v.warnf(p.at("times"), "repeated 0 times, the steps do nothing")
	}
	v.inner(p, step, "repeat", refs)
}

// stagger judges a step that does its steps side by side, one a little later
// than the other.
func (v *validator) stagger(p *path, step signal.Value, refs references) {
	v.only(p, step, "stagger", "every", "each", "steps", "when")
	v.stepWhen(p, step, refs)
	if every, ok := step.Get("every"); ok {
		v.milliseconds(p.at("every"), "every", every, "has all begin at once")
	} else {
		v.errorf(p, `"every" is missing in stagger: the milliseconds between two beginnings`)
	}
	items, ok := step.Get("each")
	if !ok {
		v.inner(p, step, "stagger", refs)
		return
	}
	switch at := p.at("each"); {
	case v.standsFor(at, items):
	case items.Kind() != signal.KindArray:
		v.errorf(at, "each must be an array of items, not %s", wording.Article(items.Kind()))
	default:
		if isEmptyArray(items) {
			v.warnf(at, "there are no items")
		}
		i := 0
		for e := range items.Elements() {
			v.param(at.element(i), e, refs, true)
			i++
		}
	}
	outer := v.scope.each
	v.scope.each = true
	v.inner(p, step, "stagger", refs)
	v.scope.each = outer
}

// inner judges the steps of a step that must have some.
func (v *validator) inner(p *path, step signal.Value, action string, refs references) {
	if steps, ok := step.Get("steps"); ok {
		v.steps(p.at("steps"), steps, refs, false)
	} else {
		v.errorf(p, `"steps" is missing in %s`, action)
	}
}

// only warns of what has no meaning in a step.
func (v *validator) only(p *path, step signal.Value, action string, known ...string) {
	for name := range step.Members() {
		if name != "action" && !slices.Contains(known, name) {
			v.add(Warning, p.at(name), true, "%s is ignored in %s", wording.Quoted(name), action)
		}
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
			v.add(Warning, p.at(name), true, "%s is ignored in wait", wording.Quoted(name))
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
			v.add(Warning, at, true, "steps is ignored in the action %s", wording.Quoted(action))
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
	case v.standsFor(p, value):
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
		v.errorf(p, "%s must be a number of milliseconds, not %s", name, wording.Article(value.Kind()))
	}
}

func (v *validator) easing(p *path, value signal.Value) {
	name, ok := value.Text()
	if !ok {
		v.errorf(p, "easing must be a string, not %s", wording.Article(value.Kind()))
		return
	}
	if _, ref := reference(value); ref {
		v.errorf(p, "easing cannot be taken from the signal: write one of %s", builtInCurves)
		return
	}
	if v.placeholder(p, false, name) || v.items[key(wordEasing, name)] != nil || v.catalog.easing(name) != nil {
		return
	}
	switch k, ok := curveNamed(name); {
	case ok && k >= curveBindingInOut && k <= curveBindingArc:
		v.errorf(p, "%s is not for steps", wording.Quoted(name))
	case ok:
	case strings.Contains(name, "("):
		if _, err := ParseCurve(name); err != nil {
			v.errorf(p, "%v", err)
		}
	default:
		v.errorf(p, "unknown easing %s: it is one of %s, or a curve such as spring(1, 100, 10)", wording.Quoted(name), builtInCurves)
	}
}

func (v *validator) entity(p *path, name string, value signal.Value, refs references) {
	switch value.Kind() {
	case signal.KindNull:
		return
	case signal.KindString:
		if v.standsFor(p, value) {
			return
		}
	default:
		v.errorf(p, "%s must be a string, not %s", name, wording.Article(value.Kind()))
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
			if !v.standsFor(p, value) {
				v.reference(p, value, refs)
			}
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
			if direct && (name == computedNumber || name == computedText) {
				v.add(Error, p.at(name), true, "%s is reserved", name)
			}
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

func referencesOf(on string) references {
	fields, known := signal.PayloadFields(on)
	return references{on, fields, known}
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
			v.add(Error, p, atName, "a payload of %s has no field %s; it has %s", refs.on, wording.Quoted(name), names(fields))
			return nil
		case fields == nil:
			v.add(Error, p, atName, "%s has nothing inside it", seen)
			return nil
		default:
			v.add(Error, p, atName, "%s has no field %s; it has %s", seen, wording.Quoted(name), names(fields))
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
				v.errorf(p.element(i), "an alternative of when must be an object, not %s", wording.Article(e.Kind()))
			}
			i++
		}
	default:
		v.errorf(p, "when must be an object or an array of objects, not %s", wording.Article(clause.Kind()))
	}
}

func (v *validator) conjunction(p *path, c signal.Value, refs references) {
	for way, op := range c.Members() {
		at := p.at(way)
		if asked, ok := strings.CutPrefix(way, stagePrefix); ok {
			placeholder, _, cut := cutPlaceholder(asked)
			if !cut || !v.placeholder(at, true, placeholder) {
				v.stagePath(at, asked, refs)
			}
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
		v.errorf(p, "a condition must be an object with %s, not %s", operators, wording.Article(op.Kind()))
		return
	}
	for name, operand := range op.Members() {
		at := p.at(name)
		if name != "not" && v.standsFor(at, operand) {
			continue
		}
		switch name {
		case "equals":
			if k := operand.Kind(); k == signal.KindArray || k == signal.KindObject {
				v.warnf(at, "nothing equals %s", wording.Article(k))
			}
		case "contains", "matches":
			text, ok := operand.Text()
			if !ok {
				v.errorf(at, "%s must be a string, not %s", name, wording.Article(operand.Kind()))
			} else if name == "matches" {
				if _, err := compilePattern(text); err != nil {
					v.errorf(at, "%v", err)
				}
			}
		case "gt", "lt":
			if !operand.Kind().IsNumber() {
				v.errorf(at, "%s must be a number, not %s", name, wording.Article(operand.Kind()))
			}
		case "exists":
			if operand.Kind() != signal.KindBool {
				v.errorf(at, "exists must be true or false, not %s", wording.Article(operand.Kind()))
			}
		case "not":
			if op.Len() > 1 {
				v.add(Warning, at, true, "the operators beside not are ignored")
			}
			v.operator(at, operand)
		default:
			v.add(Error, at, true, "unknown operator %s: there are %s", wording.Quoted(name), operators)
		}
	}
}

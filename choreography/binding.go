package choreography

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Binding ties a property of an entity to signals: what the payload says is what
// the property becomes, or what sets it off.
//
//	{"id": "lamp", "targetEntityId": "lamp", "property": "opacity",
//	 "sourceType": "token_usage", "sourceField": "promptTokens",
//	 "mapping": {"fn": "lerp", "inputRange": [0, 4000], "outputRange": [0.2, 1]}}
//
// A binding in force is a definition of its own, see [Catalog.Bind]: it runs on
// the scheduler's clock, stands in its state and appears in its commands, as the
// actions set, say, move, followRoute and setAnimation.
type Binding struct {
	value    signal.Value
	id       string
	entity   string
	property string
	on       string // "" if it is the choreography's
	source   string // the choreography's id, if it has one
	field    string // sourceField
	mapping  signal.Value
	action   signal.Value
	when     signal.Value

	transition *transition
}

// transition is an animation to a fixed value, and back if it reverts.
type transition struct {
	target  signal.Value
	length  signal.Value // ms
	easing  string       // "" if it has none
	reverts bool
	pause   signal.Value // ms before it goes back
}

var _ Declaration = (*Binding)(nil)

// bindingPrefix begins what a binding is known by where names are kept: the id
// of its definition, and the name by which one transition stops the other.
const bindingPrefix = "binding:"

// boundProperties lists what can be bound, and whether it is a number.
var boundProperties = map[string]bool{
	"opacity": true, "rotation": true, "scale": true, "position.x": true, "position.y": true,
	"visible": false, "animation.state": false, "teleportTo": false, "moveTo": false, "followRoute": false, "speech": false,
}

const boundPropertyNames = "opacity, rotation, scale, position.x, position.y, visible, animation.state, teleportTo, moveTo, followRoute, speech"

// compileBinding makes a binding of v, which it copies.
func compileBinding(v signal.Value) (*Binding, error) {
	b := &Binding{value: slices.Clone(v)}
	v = b.value
	b.id = firstText(v, "binding", "id")
	b.entity = firstText(v, "targetEntityId", "entity")
	b.property = firstText(v, "property")
	b.on = firstText(v, "sourceType", "on")
	b.source = firstText(v, "sourceChoreographyId")
	b.field = firstText(v, "sourceField")
	b.action, _ = v.Get("action")
	b.when, _ = v.Get("when")
	b.mapping, _ = v.Get("mapping")
	if err := checkName("the id of the binding", b.id); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDefinition, err)
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: binding %s: %s", ErrDefinition, wording.Quoted(b.id), fmt.Sprintf(format, args...))
	}
	numeric, known := boundProperties[b.property]
	switch {
	case b.entity == "":
		return nil, refuse("the entity it is for is missing: write targetEntityId")
	case strings.HasPrefix(b.entity, refPrefix):
		return nil, refuse("the entity must be named, not taken from the signal")
	case !known:
		return nil, refuse("%s cannot be bound: there are %s", wording.Quoted(b.property), boundPropertyNames)
	case b.on == "" && b.source == "":
		return nil, refuse("it has no signals: write sourceType, or sourceChoreographyId")
	}
	if b.mapping != nil {
		if err := checkMapping(b.mapping); err != nil {
			return nil, refuse("%v", err)
		}
	}
	if need := map[string]string{"animation.state": "animationDuring", "teleportTo": "waypoint", "moveTo": "waypoint", "followRoute": "route"}[b.property]; need != "" {
		if firstText(b.action, need) == "" {
			return nil, refuse("%s needs an action with %s", b.property, need)
		}
	}
	if t, ok := v.Get("transition"); ok && t.Kind() != signal.KindNull && numeric {
		var err error
		if b.transition, err = compileTransition(t); err != nil {
			return nil, refuse("%v", err)
		}
	}
	return b, nil
}

// firstText returns the first of some members that is a text with something in
// it.
func firstText(v signal.Value, names ...string) string {
	for _, name := range names {
		member, _ := v.Get(name)
		if text, _ := member.Text(); text != "" {
			return text
		}
	}
	return ""
}

func compileTransition(v signal.Value) (*transition, error) {
	t := &transition{easing: firstText(v, "easing")}
	t.target, _ = v.Get("targetValue")
	if !t.target.Kind().IsNumber() {
		return nil, fmt.Errorf("targetValue must be a number, not %s", wording.Article(t.target.Kind()))
	}
	var ok bool
	if t.length, ok = v.Get("durationMs"); !ok || !isLength(t.length) {
		return nil, fmt.Errorf("durationMs must be a number of milliseconds from 0, not %s", shown(t.length))
	}
	revert, _ := v.Get("revert")
	t.reverts = truthy(revert)
	t.pause, ok = v.Get("revertDelayMs")
	if ok && !isLength(t.pause) {
		return nil, fmt.Errorf("revertDelayMs must be a number of milliseconds from 0, not %s", shown(t.pause))
	}
	return t, nil
}

func isLength(v signal.Value) bool {
	ms, ok := v.Float64()
	return ok && ms >= 0
}

// checkMapping refuses a mapping without ranges.
func checkMapping(v signal.Value) error {
	if v.Kind() != signal.KindObject {
		return fmt.Errorf("mapping must be an object, not %s", wording.Article(v.Kind()))
	}
	for _, name := range [...]string{"inputRange", "outputRange"} {
		r, _ := v.Get(name)
		if _, _, ok := span(r); !ok {
			return fmt.Errorf("%s must be an array of two numbers", name)
		}
	}
	return nil
}

// span reads an array of two numbers.
func span(v signal.Value) (from, to float64, ok bool) {
	if v.Kind() != signal.KindArray || v.Len() != 2 {
		return 0, 0, false
	}
	var ends [2]float64
	i := 0
	for e := range v.Elements() {
		if ends[i], ok = e.Float64(); !ok {
			return 0, 0, false
		}
		i++
	}
	return ends[0], ends[1], i == 2
}

// Word returns "binding".
func (b *Binding) Word() string { return wordBinding }

// Name returns the binding's id.
func (b *Binding) Name() string { return b.id }

// Value returns the binding as it was written. It must not be changed.
func (b *Binding) Value() signal.Value { return b.value }

// Entity returns the entity that the binding is for, and Property what of it.
func (b *Binding) Entity() string { return b.entity }

// Property returns the name of the property that is bound.
func (b *Binding) Property() string { return b.property }

// object builds an object member by member.
type object struct {
	body []byte
	n    uint32
}

func (o *object) put(name string, v signal.Value) {
	if v != nil {
		o.body = append(msgp.AppendString(o.body, name), v...)
		o.n++
	}
}

func (o *object) text(name, text string) { o.put(name, msgp.AppendString(nil, text)) }

func (o *object) truth(name string) { o.put(name, msgp.AppendBool(nil, true)) }

func (o *object) value() signal.Value { return append(msgp.AppendMapHeader(nil, o.n), o.body...) }

// definition returns what b makes signals perform.
func (c *Catalog) boundBy(b *Binding) (*Definition, error) {
	on, source := b.on, signal.Value(nil)
	if b.source != "" {
		d := c.definition(b.source)
		switch {
		case d == nil:
			return nil, fmt.Errorf("%w: binding %s: there is no choreography %s", ErrDefinition, wording.Quoted(b.id), wording.Quoted(b.source))
		case on == "":
			on = d.on
		case on != d.on:
			return nil, fmt.Errorf("%w: binding %s: it is for %s, but choreography %s answers to %s", ErrDefinition, wording.Quoted(b.id), wording.Quoted(on), wording.Quoted(b.source), wording.Quoted(d.on))
		}
		source, _ = d.value.Get("when")
	}
	steps := list(nil, func(dst []byte) ([]byte, int) {
		all := b.steps(on)
		for _, step := range all {
			dst = append(dst, step...)
		}
		return dst, len(all)
	})
	var d object
	d.text("id", bindingPrefix+b.id)
	d.text("on", on)
	switch {
	case source == nil:
		d.put("when", b.when)
	default:
		d.put("when", source)
		d.put("andWhen", b.when)
	}
	if b.animates() {
		var guard object
		guard.text("entity", bindingPrefix+b.entity+"."+b.property)
		guard.text("policy", "preempt")
		d.put("guard", guard.value())
	}
	d.put("steps", steps)
	if easings := c.bindingEasings(b, steps); easings != nil {
		d.put("easings", easings)
	}
	return Compile(d.value())
}

// animates reports whether b starts a transition. Where a field of the payload
// is named, what it says is the value at once.
func (b *Binding) animates() bool { return b.transition != nil && b.field == "" }

// bindingEasings says what the easing of a transition is: in a binding some of
// the built-in names mean other curves.
func (c *Catalog) bindingEasings(b *Binding, steps signal.Value) signal.Value {
	if !b.animates() {
		return nil
	}
	var e object
	switch b.transition.easing {
	case "easeInOut":
		e.text("easeInOut", curveNames[curveBindingInOut])
	case "arc":
		e.text("arc", curveNames[curveBindingArc])
	default:
		return c.easingsOf(nil, steps)
	}
	return e.value()
}

// steps returns what b does when its signal comes.
func (b *Binding) steps(on string) []signal.Value {
	step := func(action string) *object {
		o := new(object)
		o.text("action", action)
		o.text("entity", b.entity)
		return o
	}
	numeric := boundProperties[b.property]
	switch {
	case b.animates():
		return b.transitionSteps(step)
	case numeric:
		o := step("set")
		o.text("property", b.property)
		o.put("value", b.computed(computedNumber))
		return []signal.Value{o.value()}
	}
	from := func(o *object, name string, as string) {
		if v, ok := b.action.Get(name); ok {
			o.put(as, v)
		}
	}
	var o *object
	switch b.property {
	case "visible":
		o = step("set")
		o.text("property", "visible")
		o.truth("toggle")
	case "animation.state":
		o = step("setAnimation")
		from(o, "animationDuring", "state")
	case "speech":
		o = step("say")
		o.put("text", b.computed(computedText))
		if on == "text_delta" || on == "thinking" {
			o.truth("append")
		}
	case "teleportTo":
		o = step("move")
		from(o, "waypoint", "to")
	case "moveTo", "followRoute":
		if b.property == "moveTo" {
			o = step("move")
			from(o, "waypoint", "to")
		} else {
			o = step("followRoute")
			for _, name := range [...]string{"route", "from", "to", "reverse"} {
				from(o, name, name)
			}
		}
		for _, name := range [...]string{"duration", "easing", "animationDuring", "animationOnArrival"} {
			from(o, name, name)
		}
	}
	return []signal.Value{o.value()}
}

func (b *Binding) transitionSteps(step func(string) *object) []signal.Value {
	t := b.transition
	set := func(finish func(*object)) signal.Value {
		o := step("set")
		o.put("duration", t.length)
		if t.easing != "" {
			o.text("easing", t.easing)
		}
		o.text("property", b.property)
		finish(o)
		return o.value()
	}
	steps := []signal.Value{set(func(o *object) { o.put("value", t.target) })}
	if !t.reverts {
		return steps
	}
	if t.pause != nil {
		var wait object
		wait.text("action", "wait")
		wait.put("duration", t.pause)
		steps = append(steps, wait.value())
	}
	return append(steps, set(func(o *object) { o.truth("revert") }))
}

// A parameter of a binding's step may be computed from the payload when it is
// resolved. It is an object with one of these as its only member; authors cannot
// write it.
const (
	computedNumber = "$number"
	computedText   = "$text"
)

// computed returns the parameter that takes a number or a text from the payload:
//
//	{"$number": {"field"?, "property", "mapping"?}}
//	{"$text": {"field"?}}
func (b *Binding) computed(kind string) signal.Value {
	var how object
	if b.field != "" {
		how.text("field", b.field)
	}
	if kind == computedNumber {
		how.text("property", b.property)
		how.put("mapping", b.mapping)
	}
	var o object
	o.put(kind, how.value())
	return o.value()
}

// compute returns what a computed parameter is for a payload; false if v is
// none. Nothing is found if the payload has no such thing.
func compute(v, payload signal.Value) (result signal.Value, ok bool) {
	if v.Kind() != signal.KindObject || v.Len() != 1 {
		return nil, false
	}
	for kind, how := range v.Members() {
		field, _ := how.Get("field")
		name, _ := field.Text()
		switch kind {
		case computedNumber:
			property, _ := how.Get("property")
			text, _ := property.Text()
			raw := numberIn(payload, name, text)
			mapping, mapped := how.Get("mapping")
			if f, ok := raw.Float64(); ok && mapped {
				return signal.Float(mapNumber(f, mapping)).Append(nil), true
			}
			return raw, true
		case computedText:
			return textIn(payload, name), true
		}
	}
	return nil, false
}

// fieldOf returns a member of a payload, named by itself or by a dotted path.
func fieldOf(payload signal.Value, field string) signal.Value {
	if v, ok := payload.Get(field); ok {
		return v
	}
	v, _ := payload.Lookup(field)
	return v
}

// numberIn finds the number that a payload is about: in the field named, else
// under the property's own name (the last part of it), else in value, else the
// first one there is. It is absent if there is none.
func numberIn(payload signal.Value, field, property string) signal.Value {
	last := property[strings.LastIndexByte(property, '.')+1:]
	for _, name := range [...]string{field, last, "value"} {
		if name == "" {
			continue
		}
		if v := fieldOf(payload, name); v.Kind().IsNumber() {
			return v
		}
	}
	for _, v := range payload.Members() {
		if v.Kind().IsNumber() {
			return v
		}
	}
	return nil
}

// textIn finds the text that a payload is about: in the field named, else in
// content, text or message, else the first one there is.
func textIn(payload signal.Value, field string) signal.Value {
	for _, name := range [...]string{field, "content", "text", "message"} {
		if name == "" {
			continue
		}
		v := fieldOf(payload, name)
		if text, _ := v.Text(); text != "" {
			return v
		}
	}
	for _, v := range payload.Members() {
		if text, _ := v.Text(); text != "" {
			return v
		}
	}
	return nil
}

// mapNumber applies a mapping. An unknown function is lerp, and an input range
// of no width leads to where the output begins.
func mapNumber(raw float64, mapping signal.Value) float64 {
	in, _ := mapping.Get("inputRange")
	out, _ := mapping.Get("outputRange")
	inMin, inMax, _ := span(in)
	outMin, outMax, _ := span(out)
	above, width := raw-inMin, inMax-inMin
	if math.IsInf(width, 0) { // the ends are too far apart to be subtracted
		above, width = float64(raw/2)-float64(inMin/2), float64(inMax/2)-float64(inMin/2)
	}
	if width == 0 {
		return outMin
	}
	t := max(0, min(1, above/width))
	fn, _ := mapping.Get("fn")
	switch name, _ := fn.Text(); name {
	case "clamp":
		return math.Max(outMin, math.Min(outMax, raw))
	case "step":
		if t >= 0.5 {
			return outMax
		}
		return outMin
	case "smoothstep":
		t = float64(float64(t*t) * (3 - float64(2*t)))
	}
	if rise := outMax - outMin; !math.IsInf(rise, 0) {
		return outMin + float64(t*rise)
	}
	return float64((1-t)*outMin) + float64(t*outMax)
}

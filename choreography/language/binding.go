package language

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Binding ties a property of an entity to signals: a value of the payload becomes the
// value of the property, or triggers its transition.
//
//	{"id": "lamp", "targetEntityId": "lamp", "property": "opacity",
//	 "sourceType": "token_usage", "sourceField": "promptTokens",
//	 "mapping": {"fn": "lerp", "inputRange": [0, 4000], "outputRange": [0.2, 1]}}
//
// A binding in force is performed by a definition of its own, see [Catalog.Bind]: its
// actions are set, say, move, followRoute and setAnimation.
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

// boundBinding is a binding in force, with the definition that it performs.
type boundBinding struct {
	*Binding
	bound *definition.Definition
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

// bindingPrefix begins the id of a binding's definition, and the guarded name by
// which one transition preempts another.
const bindingPrefix = "binding:"

// PerformedAs returns the id of the definition that d performs once it is in force;
// false if it performs none.
func PerformedAs(d Declaration) (id string, ok bool) {
	switch d.(type) {
	case *definition.Definition:
		return d.Name(), true
	case *Binding:
		return bindingPrefix + d.Name(), true
	default:
		return "", false
	}
}

// boundProperties lists the properties that can be bound; true for those that are
// numbers.
var boundProperties = map[string]bool{
	"opacity": true, "rotation": true, "scale": true, "position.x": true, "position.y": true,
	"visible": false, "animation.state": false, "teleportTo": false, "moveTo": false, "followRoute": false, "speech": false,
}

const boundPropertyNames = "opacity, rotation, scale, position.x, position.y, visible, animation.state, teleportTo, moveTo, followRoute, speech"

// compileBinding compiles v, which it copies.
func compileBinding(v signal.Value) (*Binding, error) {
	b := &Binding{value: slices.Clone(v)}
	v = b.value
	b.id = firstText(v, "binding", "id")
	b.entity = firstText(v, "targetEntityId", "entity")
	b.property = firstText(v, "property")
	b.on = firstText(v, "sourceType", "on")
	b.source = firstText(v, "sourceChoreographyId")
	b.field = firstText(v, "sourceField")
	b.action = v.Member("action")
	b.when = v.Member("when")
	b.mapping = v.Member("mapping")
	if err := checkName(nameOfBinding, b.id); err != nil {
		return nil, fmt.Errorf("%w: %w", definition.ErrInvalid, err)
	}
	refuse := func(format string, args ...any) error {
		return refused(reasonBinding, wording.Quoted(b.id), fmt.Sprintf(format, args...))
	}
	numeric, known := boundProperties[b.property]
	switch {
	case b.entity == "":
		return nil, refuse(reasonNoEntity)
	case strings.HasPrefix(b.entity, definition.RefPrefix):
		return nil, refuse(reasonEntityRefers)
	case !known:
		return nil, refuse(reasonNotBindable, wording.Quoted(b.property), boundPropertyNames)
	case b.on == "" && b.source == "":
		return nil, refuse(reasonNoSignals)
	}
	if b.mapping != nil {
		if err := checkMapping(b.mapping); err != nil {
			return nil, refuse("%v", err)
		}
	}
	if need := map[string]string{"animation.state": "animationDuring", "teleportTo": "waypoint", "moveTo": "waypoint", "followRoute": "route"}[b.property]; need != "" {
		if firstText(b.action, need) == "" {
			return nil, refuse(reasonNeedsAction, b.property, need)
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

// firstText returns the first of some members that is a non-empty string.
func firstText(v signal.Value, names ...string) string {
	for _, name := range names {
		member := v.Member(name)
		if text, _ := member.Text(); text != "" {
			return text
		}
	}
	return ""
}

func compileTransition(v signal.Value) (*transition, error) {
	t := &transition{easing: firstText(v, "easing")}
	t.target = v.Member("targetValue")
	if !t.target.Kind().IsNumber() {
		return nil, fmt.Errorf(reasonTarget, t.target.Kind().WithArticle())
	}
	var ok bool
	if t.length, ok = v.Get("durationMs"); !ok || !isLength(t.length) {
		return nil, fmt.Errorf(reasonDuration, shown(t.length))
	}
	revert := v.Member("revert")
	t.reverts = definition.Truthy(revert)
	t.pause, ok = v.Get("revertDelayMs")
	if ok && !isLength(t.pause) {
		return nil, fmt.Errorf(reasonRevertDelay, shown(t.pause))
	}
	return t, nil
}

func isLength(v signal.Value) bool {
	ms, ok := v.Float64()
	return ok && ms >= 0
}

// checkMapping refuses a mapping without valid ranges.
func checkMapping(v signal.Value) error {
	if v.Kind() != signal.KindObject {
		return fmt.Errorf(reasonMappingKind, v.Kind().WithArticle())
	}
	for _, name := range [...]string{"inputRange", "outputRange"} {
		r := v.Member(name)
		if _, _, ok := definition.NumberRange(r); !ok {
			return fmt.Errorf(reasonRange, name)
		}
	}
	return nil
}

// Word returns "binding".
func (b *Binding) Word() string { return wordBinding }

// Name returns the binding's id.
func (b *Binding) Name() string { return b.id }

// Value returns the binding as it was written. It must not be changed.
func (b *Binding) Value() signal.Value { return b.value }

// Entity returns the entity that the binding is for.
func (b *Binding) Entity() string { return b.entity }

// Property returns the name of the property that is bound.
func (b *Binding) Property() string { return b.property }

// boundBy returns the definition that b performs.
func (c *Catalog) boundBy(b *Binding) (*definition.Definition, error) {
	on, source := b.on, signal.Value(nil)
	if b.source != "" {
		d := c.definition(b.source)
		switch {
		case d == nil:
			return nil, refused(reasonNoSource, wording.Quoted(b.id), wording.Quoted(b.source))
		case on == "":
			on = d.On()
		case on != d.On():
			return nil, refused(reasonOtherSource, wording.Quoted(b.id), wording.Quoted(on), wording.Quoted(b.source), wording.Quoted(d.On()))
		}
		source = d.Value().Member("when")
	}
	steps := list(nil, func(dst []byte) ([]byte, int) {
		all := b.steps(on)
		for _, step := range all {
			dst = append(dst, step...)
		}
		return dst, len(all)
	})
	var d signal.Object
	d.Text("id", bindingPrefix+b.id)
	d.Text("on", on)
	switch {
	case source == nil:
		d.Add("when", b.when)
	default:
		d.Add("when", source)
		d.Add("andWhen", b.when)
	}
	if b.animates() {
		var guard signal.Object
		guard.Text("entity", bindingPrefix+b.entity+"."+b.property)
		guard.Text("policy", "preempt")
		d.Add("guard", guard.Value())
	}
	d.Add("steps", steps)
	if easings := c.bindingEasings(b, steps); easings != nil {
		d.Add("easings", easings)
	}
	return definition.Compile(d.Value())
}

// animates reports whether b starts a transition. A named field of the payload sets
// the value at once instead.
func (b *Binding) animates() bool { return b.transition != nil && b.field == "" }

// bindingEasings returns the easings of a transition: in a binding some of the
// built-in names mean other curves.
func (c *Catalog) bindingEasings(b *Binding, steps signal.Value) signal.Value {
	if !b.animates() {
		return nil
	}
	var e signal.Object
	switch b.transition.easing {
	case "easeInOut":
		e.Text("easeInOut", curve.BindingEaseInOut)
	case "arc":
		e.Text("arc", curve.BindingArc)
	default:
		return c.easingsOf(nil, steps)
	}
	return e.Value()
}

// steps returns the steps of b's definition.
func (b *Binding) steps(on string) []signal.Value {
	step := func(action string) *signal.Object {
		o := new(signal.Object)
		o.Text("action", action)
		o.Text("entity", b.entity)
		return o
	}
	numeric := boundProperties[b.property]
	switch {
	case b.animates():
		return b.transitionSteps(step)
	case numeric:
		o := step("set")
		o.Text("property", b.property)
		o.Add("value", b.computed(definition.ComputedNumber))
		return []signal.Value{o.Value()}
	}
	from := func(o *signal.Object, name string, as string) {
		if v, ok := b.action.Get(name); ok {
			o.Add(as, v)
		}
	}
	var o *signal.Object
	switch b.property {
	case "visible":
		o = step("set")
		o.Text("property", "visible")
		o.Bool("toggle", true)
	case "animation.state":
		o = step("setAnimation")
		from(o, "animationDuring", "state")
	case "speech":
		o = step("say")
		o.Add("text", b.computed(definition.ComputedText))
		if on == "text_delta" || on == "thinking" {
			o.Bool("append", true)
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
	return []signal.Value{o.Value()}
}

func (b *Binding) transitionSteps(step func(string) *signal.Object) []signal.Value {
	t := b.transition
	set := func(finish func(*signal.Object)) signal.Value {
		o := step("set")
		o.Add("duration", t.length)
		if t.easing != "" {
			o.Text("easing", t.easing)
		}
		o.Text("property", b.property)
		finish(o)
		return o.Value()
	}
	steps := []signal.Value{set(func(o *signal.Object) { o.Add("value", t.target) })}
	if !t.reverts {
		return steps
	}
	if t.pause != nil {
		var wait signal.Object
		wait.Text("action", "wait")
		wait.Add("duration", t.pause)
		steps = append(steps, wait.Value())
	}
	return append(steps, set(func(o *signal.Object) { o.Bool("revert", true) }))
}

// computed returns the parameter that takes a number or a text from the payload:
//
//	{"$number": {"field"?, "property", "mapping"?}}
//	{"$text": {"field"?}}
func (b *Binding) computed(kind string) signal.Value {
	var how signal.Object
	if b.field != "" {
		how.Text("field", b.field)
	}
	if kind == definition.ComputedNumber {
		how.Text("property", b.property)
		how.Add("mapping", b.mapping)
	}
	var o signal.Object
	o.Add(kind, how.Value())
	return o.Value()
}

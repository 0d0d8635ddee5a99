package language

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// binding judges a binding.
func (v *validator) binding(p *authored.Location, d signal.Value) {
	before := v.Errors()
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
		at := p.At(name)
		switch name {
		case "binding", "id":
			v.id(at, value)
		case "targetEntityId", "entity", "property", "sourceType", "on":
			if value.Kind() != signal.KindString {
				v.Errorf(at, "%s must be a string, not %s", name, value.Kind().WithArticle())
			}
		case "sourceChoreographyId":
			if v.items[key(wordChoreography, id)] == nil && v.catalog.definition(id) == nil {
				v.Errorf(at, "there is no choreography %s", wording.Quoted(id))
			}
		case "sourceField":
			if field, ok := value.Text(); !ok {
				v.Errorf(at, "sourceField must be a string, not %s", value.Kind().WithArticle())
			} else {
				v.way(at, field, refs)
			}
		case "when":
			v.when(at, value, refs)
		case "mapping":
			v.mapping(at, value)
			if !numeric {
				v.Warnf(at.Key(), "mapping is ignored: %s takes no number", property)
			}
		case "action":
			if value.Kind() != signal.KindObject {
				v.Errorf(at, "action must be an object, not %s", value.Kind().WithArticle())
			}
		case "transition":
			v.transition(at, value)
			switch {
			case !numeric:
				v.Warnf(at.Key(), "transition is ignored: %s takes no number", property)
			case hasField:
				v.Warnf(at.Key(), "transition is ignored beside sourceField, which gives the value at once")
			}
		default:
			v.Errorf(at.Key(), "unknown field %s: a binding has id, targetEntityId, property, sourceType, sourceChoreographyId, when, mapping, action, sourceField and transition", wording.Quoted(name))
		}
	}
	if v.Errors() == before { // compileBinding reports only the first mistake, without its place
		if _, err := compileBinding(d); err != nil {
			v.Errorf(p, "%s", reasonOf(err))
		}
	}
}

// mappings lists the functions of a mapping.
var mappings = [...]string{"lerp", "clamp", "step", "smoothstep"}

func (v *validator) mapping(p *authored.Location, m signal.Value) {
	if err := checkMapping(m); err != nil {
		v.Errorf(p, "%v", err)
	}
	for name, value := range m.Members() {
		switch name {
		case "inputRange", "outputRange":
		case "fn":
			if fn, _ := value.Text(); !slices.Contains(mappings[:], fn) {
				v.Errorf(p.At(name), "fn must be one of %s, not %s", strings.Join(mappings[:], ", "), shown(value))
			}
		default:
			v.Errorf(p.At(name).Key(), "unknown field %s: a mapping has fn, inputRange and outputRange", wording.Quoted(name))
		}
	}
	if from, to, ok := definition.NumberRange(m.Member("inputRange")); ok && from == to {
		v.Warnf(p.At("inputRange"), "a range of no width: every value becomes the first of outputRange")
	}
}

func (v *validator) transition(p *authored.Location, t signal.Value) {
	if t.Kind() != signal.KindObject {
		v.Errorf(p, "transition must be an object, not %s", t.Kind().WithArticle())
		return
	}
	if _, err := compileTransition(t); err != nil {
		v.Errorf(p, "%v", err)
	}
	for name, value := range t.Members() {
		switch name {
		case "targetValue", "durationMs":
		case "easing":
			v.easing(p.At(name), value)
		case "revert":
			if value.Kind() != signal.KindBool {
				v.Errorf(p.At(name), "revert must be true or false, not %s", value.Kind().WithArticle())
			}
		case "revertDelayMs":
			if !definition.Truthy(t.Member("revert")) {
				v.Warnf(p.At(name).Key(), "revertDelayMs is ignored without revert")
			}
		default:
			v.Errorf(p.At(name).Key(), "unknown field %s: a transition has targetValue, durationMs, easing, revert and revertDelayMs", wording.Quoted(name))
		}
	}
}

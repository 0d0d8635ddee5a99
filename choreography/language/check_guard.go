package language

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// guard judges a guard.
func (v *validator) guard(p *authored.Location, g signal.Value, refs references) {
	if g.Kind() != signal.KindObject {
		v.Errorf(p, "guard must be an object with entity and policy, not %s", g.Kind().WithArticle())
		return
	}
	if _, ok := g.Get("entity"); !ok {
		v.Errorf(p, `"entity" is missing in guard: the name, or the names, to be alone with`)
	}
	for name, value := range g.Members() {
		at := p.At(name)
		switch name {
		case "entity":
			v.guarded(at, value, refs)
		case "policy":
			if text, ok := value.Text(); !ok || !slices.Contains(definition.GuardPolicies(), text) {
				v.Errorf(at, "policy must be one of %s", strings.Join(definition.GuardPolicies(), ", "))
			}
		default:
			v.Errorf(at.Key(), "unknown field %s: a guard has entity and policy", wording.Quoted(name))
		}
	}
}

// guarded judges the names of a guard.
func (v *validator) guarded(p *authored.Location, entity signal.Value, refs references) {
	switch {
	case entity.Kind() == signal.KindNull:
		v.Errorf(p, "entity must be a string or an array of strings, not null")
	case entity.Kind() != signal.KindArray:
		v.entity(p, "entity", entity, refs)
	case entity.Len() == 0:
		v.Warnf(p, "a guard without names guards nothing")
	case entity.Len() > definition.MaxGuarded:
		v.Errorf(p, "a guard has at most %d names", definition.MaxGuarded)
	default:
		i := 0
		for e := range entity.Elements() {
			if at := p.Element(i); e.Kind() == signal.KindString {
				v.entity(at, "entity", e, refs)
			} else {
				v.Errorf(at, "entity must be a string, not %s", e.Kind().WithArticle())
			}
			i++
		}
	}
}

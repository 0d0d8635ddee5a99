package view

import (
	"slices"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// filteredWorld limits a world to what one agent may see. A hidden entity, field or
// relation is absent from its results, so a decision that reads nothing else is a
// function of what the agent may see: hidden and absent take the same path through
// the code and produce the same bytes.
//
// It evaluates the policy against the present world, and is valid until the world
// changes.
type filteredWorld struct {
	vp       *Viewpoint // reads the whole world
	compiled *CompiledPolicy
	known    map[string]*renderedEntity // by id; nil if the agent may not see the entity
}

// VisibleWorld returns the world as the agent may see it.
func (o *Observer) VisibleWorld(w world.ReadOnly) world.ReadOnly {
	return w.Filtered(&filteredWorld{vp: newViewpoint(w, o.agent), compiled: o.compiled, known: map[string]*renderedEntity{}})
}

// Entity returns an entity in the form that the agent may see.
func (o *filteredWorld) Entity(id string) (signal.Value, bool) {
	if shown := o.entity(id); shown != nil {
		return shown.object, true
	}
	return nil, false
}

// ShowsRelationTypes reports whether the agent's views show the type and strength
// of relations.
func (o *filteredWorld) ShowsRelationTypes() bool { return o.compiled.config.TypedRelationships }

// entity returns the form of an entity that the agent may see, nil if it may not
// see the entity.
func (o *filteredWorld) entity(id string) *renderedEntity {
	shown, asked := o.known[id]
	if !asked {
		if e, exists := o.vp.Index().Entity(id); exists && o.compiled.sees(o.vp, id) {
			shown = o.compiled.show(o.vp, id, e)
		}
		o.known[id] = shown
	}
	return shown
}

// Position returns the position of an id, if the agent may see it. An agent without
// an entity sees its own position.
func (o *filteredWorld) Position(id string) (world.Position, bool) {
	at, placed := o.vp.Position(id)
	if !placed || id != o.vp.Agent && o.entity(id) == nil || !o.compiled.shows(o.vp, id, world.FieldPosition) {
		return world.Position{}, false
	}
	return at, true
}

// Relations returns the relations from an id that the agent may see, in the form in
// which its views show them.
func (o *filteredWorld) Relations(from string) []world.Relation {
	if o.entity(from) == nil {
		return nil
	}
	var list []world.Relation
	for _, r := range o.vp.Relations(from) {
		if o.entity(r.To) == nil {
			continue
		}
		if !o.compiled.config.TypedRelationships {
			r = world.Relation{To: r.To}
		}
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// sees reports whether the agent may see an entity that exists.
func (c *CompiledPolicy) sees(vp *Viewpoint, id string) bool {
	return id == vp.Agent || c.policy.Sees(vp, id)
}

// shows reports whether the agent may see a field of an entity that it sees: the
// options and the policy must show the field, and the field that it is derived
// from.
func (c *CompiledPolicy) shows(vp *Viewpoint, id, field string) bool {
	if !c.showsItself(vp, id, field) {
		return false
	}
	base, derived := world.DerivedFrom(field)
	return !derived || c.showsItself(vp, id, base)
}

func (c *CompiledPolicy) showsItself(vp *Viewpoint, id, field string) bool {
	if field == world.FieldPosition && c.config.HidePositions {
		return false
	}
	return c.policy.Shows(vp, id, field)
}

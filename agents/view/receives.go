package view

import (
	"slices"

	"github.com/sajou-dev/sajou-go/agents/world"
)

// Receives reports whether the agent receives a message, which is any effect that
// says something. It is called after the effect was applied. An agent receives its
// own messages, and a message of another source whose effect it observes (see
// [Observer.Observes]) if
//
//   - the message is not confidential: a private message is for its target alone,
//     and a team message for the team
//   - the policy does not hide the field that keeps the message, of an entity that
//     the agent sees
//
// Only its source receives a message whose channel is malformed.
func (o *Observer) Receives(w world.ReadOnly, e world.Effect) bool {
	if e.SourceID == o.agent {
		return true
	}
	channel, err := e.Channel()
	if err != nil {
		return false
	}
	vp := newViewpoint(w, o.agent)
	if !o.observes(vp, e) {
		return false
	}
	of, field := e.SourceID, "last_message"
	switch channel {
	case world.ChannelPrivate:
		of, field = o.agent, world.FieldPrivate
	case world.ChannelTeam:
		field = world.FieldTeam
	}
	return !o.Sees(of) || o.compiled.policy.Shows(vp, of, field)
}

// Rendered holds the forms in which a view shows some entities at one moment.
type Rendered map[string]*renderedEntity

// Rendered returns the forms of those of some entities that the agent sees now;
// remembered entities are not among them.
func (o *Observer) Rendered(ids []string) Rendered {
	found := make(Rendered, len(ids))
	for _, id := range ids {
		if i, ok := o.find(id); ok && !o.seen[i].gone {
			found[id] = o.seen[i]
		}
	}
	return found
}

// VisiblePaths returns those of [world.Changes.Paths] that are about an entity that
// the agent saw before the effect, or sees after it.
func (o *Observer) VisiblePaths(c world.Changes, before Rendered) []string {
	after := o.Rendered(c.Touched())
	in := func(id string) bool { return before[id] != nil || after[id] != nil }
	shows := func(id, field string) bool {
		for _, s := range []*renderedEntity{before[id], after[id]} {
			if s == nil {
				continue
			}
			if _, ok := s.object.Get(field); ok {
				return true
			}
		}
		return false
	}
	seen := world.Changes{Seq: c.Seq}
	for _, e := range c.Entities {
		if in(e.ID) {
			e.Fields = slices.DeleteFunc(slices.Clone(e.Fields), func(field string) bool { return !shows(e.ID, field) })
			seen.Entities = append(seen.Entities, e)
		}
	}
	for _, p := range c.Places {
		if shows(p.ID, world.FieldPosition) {
			seen.Places = append(seen.Places, p)
		}
	}
	for _, r := range c.Relations {
		if in(r.From) && in(r.To) {
			seen.Relations = append(seen.Relations, r)
		}
	}
	return seen.Paths()
}

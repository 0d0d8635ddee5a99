package view

import (
	"slices"

	"github.com/tidwall/rtree"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Audience indexes the observers of a world, to name the agents that an effect may
// concern. It asks no policy: it may name an agent that the effect does not
// concern, but never omits one that it does. The cost of an effect depends on the
// number of observers near what was written, not on the number of all observers.
type Audience struct {
	members map[string]*listener
	boxes   rtree.RTreeG[*listener] // squares of the observers that see up to a distance
	teams   map[string]map[string]struct{}
	kinds   map[string]map[string]struct{}
	// unbound see everything, unplaced see ids without a position, related
	// see ids that few relations lead to. All three are sets of agents.
	unbound, unplaced, related map[string]struct{}
	depth                      int // the largest number of relations that an agent of related depends on
}

// listener is one observer, with its present place in the index.
type listener struct {
	agent     string
	deps      Dependencies
	low, high [2]float64
	boxed     bool
	team      string
}

// NewAudience returns an audience without observers.
func NewAudience() *Audience {
	set := func() map[string]struct{} { return map[string]struct{}{} }
	return &Audience{
		members: map[string]*listener{},
		teams:   map[string]map[string]struct{}{},
		kinds:   map[string]map[string]struct{}{},
		unbound: set(), unplaced: set(), related: set(),
	}
}

// Add registers an agent with its policy, at the agent's present position in w. It
// replaces an earlier registration of the agent.
func (a *Audience) Add(w world.ReadOnly, agent string, compiled *CompiledPolicy) {
	a.Remove(agent)
	l := &listener{agent: agent, deps: compiled.deps}
	a.members[agent] = l
	if l.deps.Everything || l.deps.Opaque {
		a.unbound[agent] = struct{}{}
		return
	}
	if l.deps.Unplaced {
		a.unplaced[agent] = struct{}{}
	}
	if l.deps.Depth > 0 || l.deps.Graph > 0 {
		a.related[agent] = struct{}{}
		a.depth = max(a.depth, l.deps.Depth, l.deps.Graph)
	}
	for _, k := range l.deps.Kinds {
		join(a.kinds, k, agent)
	}
	a.settle(w, l)
}

// Remove removes an agent.
func (a *Audience) Remove(agent string) {
	l, ok := a.members[agent]
	if !ok {
		return
	}
	a.unsettle(l)
	delete(a.members, agent)
	delete(a.unbound, agent)
	delete(a.unplaced, agent)
	delete(a.related, agent)
	for _, k := range l.deps.Kinds {
		part(a.kinds, k, agent)
	}
	if max(l.deps.Depth, l.deps.Graph) < a.depth {
		return
	}
	a.depth = 0
	for agent := range a.related {
		r := a.members[agent].deps
		a.depth = max(a.depth, r.Depth, r.Graph)
	}
}

func join(sets map[string]map[string]struct{}, key, agent string) {
	if sets[key] == nil {
		sets[key] = map[string]struct{}{}
	}
	sets[key][agent] = struct{}{}
}

func part(sets map[string]map[string]struct{}, key, agent string) {
	delete(sets[key], agent)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}

// settle enters the position and the team of an observer in the index.
func (a *Audience) settle(w world.ReadOnly, l *listener) {
	if _, ok := a.unbound[l.agent]; ok {
		return
	}
	if l.deps.Radius > 0 {
		at, _ := w.Position(l.agent)
		l.low, l.high = world.Square(at, l.deps.Radius)
		l.boxed = true
		a.boxes.Insert(l.low, l.high, l)
	}
	if l.team = w.Team(l.agent); l.team != "" && l.deps.Team {
		join(a.teams, l.team, l.agent)
	}
}

func (a *Audience) unsettle(l *listener) {
	if l.boxed {
		a.boxes.Delete(l.low, l.high, l)
		l.boxed = false
	}
	part(a.teams, l.team, l.agent)
}

// Follow returns the ids of the agents that an effect may concern, in order. w is
// the world after the effect and c are the changes that the effect made. Follow
// also moves the observers that the effect moved, so it must be called exactly once
// for each effect.
func (a *Audience) Follow(w world.ReadOnly, e world.Effect, c world.Changes) []string {
	agents := make([]string, 0, len(a.unbound)+16) // some perhaps several times
	add := func(agent string) {
		if _, ok := a.members[agent]; ok {
			agents = append(agents, agent)
		}
	}
	addAll := func(set map[string]struct{}) {
		for agent := range set {
			agents = append(agents, agent)
		}
	}
	near := func(at world.Position) {
		p := [2]float64{at.X, at.Y}
		a.boxes.Search(p, p, func(_, _ [2]float64, l *listener) bool {
			agents = append(agents, l.agent)
			return true
		})
	}
	addAll(a.unbound)

	// The ids that were written, and those that the payload names: an effect is
	// observed at their positions even if it writes nothing there.
	ids := append(c.Touched(), e.SourceID)
	for name, v := range e.Payload.Members() {
		switch name {
		case "entity_id", "target_id", "from", "from_entity", "to", "to_entity":
			if id, ok := v.Text(); ok {
				ids = append(ids, id)
			}
		}
		if (name == "position" || name == "to") && v.Kind() == signal.KindArray {
			if at, err := world.ParsePosition(v); err == nil {
				near(at)
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, id := range ids {
		add(id)
		if at, ok := w.Position(id); ok {
			near(at)
		} else {
			addAll(a.unplaced)
		}
		addAll(a.teams[w.Team(id)])
	}
	for _, p := range c.Places {
		if p.Before.Placed {
			near(p.Before.Position)
		} else {
			addAll(a.unplaced)
		}
	}
	for _, change := range c.Entities {
		addAll(a.teams[world.TeamOf(change.Before)])
	}
	a.relatives(w, ids, add)
	addAll(a.kinds[e.Kind])

	for _, p := range c.Places {
		a.resettle(w, p.ID)
	}
	for _, change := range c.Entities {
		a.resettle(w, change.ID)
	}
	slices.Sort(agents)
	return slices.Compact(agents)
}

func (a *Audience) resettle(w world.ReadOnly, id string) {
	if l, ok := a.members[id]; ok {
		a.unsettle(l)
		a.settle(w, l)
	}
}

// relatives adds the observers whose policies depend on relations and that are
// related, now or before the effect, closely enough to one of the ids.
func (a *Audience) relatives(w world.ReadOnly, ids []string, add func(string)) {
	if a.depth == 0 {
		return
	}
	// Both ends of a removed relation are among the ids, so the walk over the
	// present relations misses no observer.
	index := w.Index()
	for id, hops := range index.Hops(ids, a.depth, index.Neighbours) {
		l, ok := a.members[id]
		if ok && hops <= max(l.deps.Depth, l.deps.Graph) {
			add(id)
		}
	}
}

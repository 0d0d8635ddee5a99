package agents

import (
	"maps"
	"slices"

	"github.com/tidwall/rtree"

	"github.com/sajou-dev/sajou-go/signal"
)

// Audience knows who looks at the world and how far, and so whom an effect may
// concern. It asks no policy: it names too many rather than too few, and what it
// costs depends on who is near what was written, not on how many look.
type Audience struct {
	members map[string]*listener
	boxes   rtree.RTreeG[*listener] // of those that see up to a distance
	teams   map[string]map[string]struct{}
	kinds   map[string]map[string]struct{}
	// unbound are told of everything, unplaced of whatever has no position,
	// related of what happens near them in relations.
	unbound, unplaced, related map[string]struct{}
	depth                      int // the most relations that one of related minds
}

// listener is one observer as the audience knows it.
type listener struct {
	agent     string
	reach     Reach
	low, high [2]float64
	boxed     bool
	team      string
}

// NewAudience returns an audience of nobody.
func NewAudience() *Audience {
	set := func() map[string]struct{} { return map[string]struct{}{} }
	return &Audience{
		members: map[string]*listener{},
		teams:   map[string]map[string]struct{}{},
		kinds:   map[string]map[string]struct{}{},
		unbound: set(), unplaced: set(), related: set(),
	}
}

// Add lets an agent look through a lens, from where the world has it now. One
// that was there looks anew.
func (a *Audience) Add(w Reader, agent string, lens *Lens) {
	a.Remove(agent)
	l := &listener{agent: agent, reach: lens.reach}
	a.members[agent] = l
	if l.reach.Everything || l.reach.Opaque {
		a.unbound[agent] = struct{}{}
		return
	}
	if l.reach.Unplaced {
		a.unplaced[agent] = struct{}{}
	}
	if l.reach.Depth > 0 || l.reach.Graph > 0 {
		a.related[agent] = struct{}{}
		a.depth = max(a.depth, l.reach.Depth, l.reach.Graph)
	}
	for _, k := range l.reach.Kinds {
		join(a.kinds, k, agent)
	}
	a.settle(w, l)
}

// Remove takes an agent out.
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
	for _, k := range l.reach.Kinds {
		part(a.kinds, k, agent)
	}
	if max(l.reach.Depth, l.reach.Graph) < a.depth {
		return
	}
	a.depth = 0
	for agent := range a.related {
		r := a.members[agent].reach
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

// settle notes where an agent is and of what team.
func (a *Audience) settle(w Reader, l *listener) {
	if _, ok := a.unbound[l.agent]; ok {
		return
	}
	if l.reach.Radius > 0 {
		at, _ := w.Position(l.agent)
		l.low, l.high = square(at, l.reach.Radius)
		l.boxed = true
		a.boxes.Insert(l.low, l.high, l)
	}
	if l.team = w.Team(l.agent); l.team != "" && l.reach.Team {
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

// Follow takes an effect and what it wrote, and returns the agents of whom it
// may concern, in the order of ids. The world is the one after the effect. From
// then on the audience knows who has moved, so each effect must be followed once.
func (a *Audience) Follow(w Reader, e Effect, c Changes) []string {
	who := maps.Clone(a.unbound)
	add := func(agent string) {
		if _, ok := a.members[agent]; ok {
			who[agent] = struct{}{}
		}
	}
	addAll := func(set map[string]struct{}) {
		for agent := range set {
			who[agent] = struct{}{}
		}
	}
	near := func(at Point) {
		p := [2]float64{at.X, at.Y}
		a.boxes.Search(p, p, func(_, _ [2]float64, l *listener) bool {
			who[l.agent] = struct{}{}
			return true
		})
	}

	// What was written, and what the effect speaks of, at whose place it is
	// observed though nothing is written.
	ids := append(c.Touched(), e.SourceID)
	for _, name := range []string{"entity_id", "target_id", "from", "from_entity", "to", "to_entity"} {
		if id, ok := textMember(e.Payload, name); ok {
			ids = append(ids, id)
		}
	}
	for _, name := range []string{"position", "to"} {
		if v, ok := e.Payload.Get(name); ok && v.Kind() == signal.KindArray {
			if at, err := ParsePoint(v); err == nil {
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
			near(p.Before.Point)
		} else {
			addAll(a.unplaced)
		}
	}
	for _, change := range c.Entities {
		addAll(a.teams[teamOf(change.Before)])
	}
	a.relatives(w, ids, add)
	addAll(a.kinds[e.Kind])

	for _, p := range c.Places {
		a.resettle(w, p.ID)
	}
	for _, change := range c.Entities {
		a.resettle(w, change.ID)
	}
	return sortedKeys(who)
}

func (a *Audience) resettle(w Reader, id string) {
	if l, ok := a.members[id]; ok {
		a.unsettle(l)
		a.settle(w, l)
	}
}

// relatives adds those whose policies go by relations and who are, or were, so
// near to one of the ids.
func (a *Audience) relatives(w Reader, ids []string, add func(string)) {
	if a.depth == 0 {
		return
	}
	// Both ends of a relation that was removed are among the ids, so nobody
	// hangs on it alone.
	for id, hops := range w.reach(ids, a.depth, everyWay) {
		l, ok := a.members[id]
		if ok && hops <= max(l.reach.Depth, l.reach.Graph) {
			add(id)
		}
	}
}

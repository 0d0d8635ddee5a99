package world

import (
	"iter"
	"maps"
)

// Index reads the whole world through its indexes, for code that finds out what
// to look at: a filter of the ReadOnly does not apply. Its sequences come in no
// order and must be sorted before anything depends on them.
type Index struct{ s *state }

// Index returns the indexes of the world.
func (r ReadOnly) Index() Index { return Index{r.s} }

// Entity returns the current revision of an entity.
func (i Index) Entity(id string) (*EntityRevision, bool) {
	e, ok := i.s.entities[id]
	return e, ok
}

// Entities returns the ids of all entities.
func (i Index) Entities() iter.Seq[string] { return maps.Keys(i.s.entities) }

// Position returns where an id is.
func (i Index) Position(id string) (Position, bool) {
	at, ok := i.s.places.at[id]
	return at, ok
}

// Near returns the ids that have a position at most radius away from center.
func (i Index) Near(center Position, radius float64) iter.Seq[string] {
	return i.s.places.within(center, radius)
}

// Unplaced returns the ids of entities without a position.
func (i Index) Unplaced() iter.Seq[string] { return maps.Keys(i.s.unplaced) }

// Team returns the ids of entities of a team.
func (i Index) Team(team string) iter.Seq[string] { return maps.Keys(i.s.teams[team]) }

// Relations returns the relations from an id, in the order in which they were
// added. The slice is the world's own.
func (i Index) Relations(id string) []Relation { return i.s.out[id] }

// Referrers returns the ids that have a relation to an id.
func (i Index) Referrers(id string) iter.Seq[string] { return maps.Keys(i.s.in[id]) }

// Neighbours visits every id that has a relation to an id or from it.
func (i Index) Neighbours(id string, visit func(string)) {
	for _, r := range i.s.out[id] {
		visit(r.To)
	}
	for from := range i.s.in[id] {
		visit(from)
	}
}

// Hops searches breadth first from some ids, as far as depth, along what follow
// visits. Every id is visited once, so a dense graph costs its relations and no
// more. The result maps ids to their distance from the nearest start.
func (i Index) Hops(starts []string, depth int, follow func(id string, visit func(string))) map[string]int {
	hops := make(map[string]int, len(starts))
	front := make([]string, 0, len(starts))
	for _, id := range starts {
		if _, ok := hops[id]; !ok {
			hops[id] = 0
			front = append(front, id)
		}
	}
	for d := 1; d <= depth && len(front) > 0; d++ {
		var next []string
		visit := func(id string) {
			if _, ok := hops[id]; !ok {
				hops[id] = d
				next = append(next, id)
			}
		}
		for _, id := range front {
			follow(id, visit)
		}
		front = next
	}
	return hops
}

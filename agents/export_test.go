package agents

import "fmt"

// Insides says all that a core's world keeps, its indexes and revisions too.
func Insides(c *Core) string {
	s := c.world.s
	tree := map[string][2]float64{}
	s.places.tree.Scan(func(at, _ [2]float64, id string) bool {
		tree[id] = at
		return true
	})
	entities := map[string]string{}
	for id, e := range s.entities {
		entities[id] = fmt.Sprint(e.revision, e.object)
	}
	// fmt writes maps in the order of their keys.
	return fmt.Sprintf("entities %v\nplaces %v\ntree %d %v\nout %v\nin %v\nrelations %d\nteams %v\nunplaced %v\nhead %v\nmetadata %v",
		entities, s.places.at, s.places.tree.Len(), tree, s.out, s.in, s.relations, s.teams, s.unplaced, s.head, s.metadata)
}

// Crosses reports whether a path is one of others, which are in order, or lies
// above or below one.
var Crosses = crosses

package agents

import "slices"

// journal is what a state was before effects that are only tried: an undo log,
// from the first to the last. While they are tried nobody else may look.
type journal struct {
	things  []formerThing
	lists   []formerList
	head    head
	effects int // that were tried
	undone  bool
}

// formerThing is what an id was.
type formerThing struct {
	id     string
	entity *entity // nil: there was none
	place  Position
}

type formerList struct {
	from string
	list []Relation
}

// head is what every effect writes.
type head struct {
	seq    uint64 // of the last effect
	time   float64
	kind   string
	writes uint64 // counts revisions; no part of the state
}

// flip exchanges what the journal holds with what is the case: the effects are
// undone, and flipped once more, done again. Entities come back as they were,
// their revisions too, so that nobody can tell that they were ever away.
func (s *state) flip(j *journal) {
	for i := range j.things {
		f := &j.things[len(j.things)-1-i]
		f.entity, f.place = s.exchange(f.id, f.entity, f.place)
	}
	for i := range j.lists {
		f := &j.lists[len(j.lists)-1-i]
		was := s.out[f.from]
		s.relate(f.from, f.list)
		f.list = was
	}
	slices.Reverse(j.things)
	slices.Reverse(j.lists)
	s.head, j.head = j.head, s.head
	j.undone = !j.undone
}

// exchange makes of an id what it was, and returns what it is.
func (s *state) exchange(id string, e *entity, at Position) (*entity, Position) {
	now, was := s.entities[id], s.position(id)
	if now != nil {
		s.leave(teamOf(now.object), id)
	}
	delete(s.unplaced, id)
	switch {
	case at.Placed && at != was:
		s.places.set(id, at.Point)
	case !at.Placed && was.Placed:
		s.places.remove(id)
	}
	if e == nil {
		delete(s.entities, id)
		return now, was
	}
	s.entities[id] = e
	s.enter(teamOf(e.object), id)
	if !at.Placed {
		s.unplaced[id] = struct{}{}
	}
	return now, was
}

// thing notes what an id is, before it is written. A nil journal notes nothing.
func (j *journal) thing(s *state, id string) {
	if j != nil {
		j.things = append(j.things, formerThing{id, s.entities[id], s.position(id)})
	}
}

func (j *journal) list(s *state, from string) {
	if j != nil {
		j.lists = append(j.lists, formerList{from, s.out[from]})
	}
}

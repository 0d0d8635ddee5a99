package world

import "slices"

// Trial applies plans to a world so that later ones can be checked against the result,
// and undoes them. During a trial every reader sees its effects, so its owner must keep
// all other readers out.
//
// The owner must call [Trial.End], also after an error.
type Trial struct {
	w       *World
	journal journal
}

// Try begins a trial.
func (w *World) Try() *Trial { return &Trial{w: w} }

// Apply applies a plan that was made of the world as it is now.
func (t *Trial) Apply(p *Plan) { p.commit(&t.journal) }

// Swap undoes the effects of the trial or, if they are undone, applies them again.
// Entities get back their very revisions.
func (t *Trial) Swap() { t.w.s.swap(&t.journal) }

// End undoes all effects of the trial.
func (t *Trial) End() {
	if !t.journal.undone && t.journal.effects > 0 {
		t.Swap()
	}
}

// journal is the undo log of a trial, from the first write to the last.
type journal struct {
	things  []formerThing
	lists   []formerList
	head    head
	effects int // that were tried
	undone  bool
}

// formerThing is the former state of an id.
type formerThing struct {
	id     string
	entity *EntityRevision // nil: there was none
	place  Placement
}

type formerList struct {
	from string
	list []Relation
}

// swap exchanges what the journal holds with the state.
func (s *state) swap(j *journal) {
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

// exchange restores the former state of an id and returns the present one.
func (s *state) exchange(id string, e *EntityRevision, at Placement) (*EntityRevision, Placement) {
	now, was := s.entities[id], s.position(id)
	if now != nil {
		s.leave(TeamOf(now.object), id)
	}
	delete(s.unplaced, id)
	switch {
	case at.Placed && at != was:
		s.places.set(id, at.Position)
	case !at.Placed && was.Placed:
		s.places.remove(id)
	}
	if e == nil {
		delete(s.entities, id)
		return now, was
	}
	s.entities[id] = e
	s.enter(TeamOf(e.object), id)
	if !at.Placed {
		s.unplaced[id] = struct{}{}
	}
	return now, was
}

// thing records the state of an id before a write. A nil journal records nothing.
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

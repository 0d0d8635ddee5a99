package agents

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// transaction is what an effect will write. It stands before the state until
// all of it is known to be sound.
type transaction struct {
	s         *state
	entities  map[string]*draftEntity
	places    map[string]Position
	relations map[string][]Relation
	head      head // of the state after it
}

type draftEntity struct {
	gone    bool
	members object
	value   signal.Value        // of members; made by check
	fields  map[string]struct{} // that were written
}

// entity returns the draft of an entity, which may be gone.
func (t *transaction) entity(id string) *draftEntity {
	if d, ok := t.entities[id]; ok {
		return d
	}
	if t.entities == nil {
		t.entities = map[string]*draftEntity{}
	}
	d := &draftEntity{fields: map[string]struct{}{}}
	if e, ok := t.s.entities[id]; ok {
		d.members = membersOf(e.object)
	} else {
		d.gone = true
	}
	t.entities[strings.Clone(id)] = d
	return d
}

// known reports whether there will be an entity.
func (t *transaction) known(id string) bool {
	if d, ok := t.entities[id]; ok {
		return !d.gone
	}
	_, ok := t.s.entities[id]
	return ok
}

func (t *transaction) list(from string) []Relation {
	if list, ok := t.relations[from]; ok {
		return list
	}
	return t.s.out[from]
}

func (t *transaction) relate(from string, list []Relation) {
	if t.relations == nil {
		t.relations = map[string][]Relation{}
	}
	t.relations[strings.Clone(from)] = list
}

func (t *transaction) place(id string, p Position) {
	if t.places == nil {
		t.places = map[string]Position{}
	}
	t.places[strings.Clone(id)] = p
}

// stage adds one change.
func (t *transaction) stage(c Change) error {
	if err := validID(c.id); err != nil {
		return malformed("", "%q: %v", c.id, err)
	}
	switch c.op {
	case opSetField, opRemoveField:
		if !t.known(c.id) {
			return unknown("", c.id)
		}
		if len(c.field) > MaxID {
			return limit("", "a field's name of more than %d bytes", MaxID)
		}
		d := t.entity(c.id)
		d.fields[strings.Clone(c.field)] = struct{}{}
		if c.op == opRemoveField {
			d.members.remove(c.field)
			return nil
		}
		if v, rest, err := signal.CheckValue(c.value); err != nil || len(rest) > 0 || v == nil {
			return malformed("", "the value of field %q is none", c.field)
		}
		d.members.set(c.field, c.value)
	case opPutEntity:
		if v, rest, err := signal.CheckValue(c.value); err != nil || len(rest) > 0 || v.Kind() != signal.KindObject {
			return malformed("", "entity %q: an entity is an object", c.id)
		}
		d := t.entity(c.id)
		for _, m := range d.members {
			d.fields[strings.Clone(m.name)] = struct{}{}
		}
		d.gone, d.members = false, membersOf(c.value)
		for _, m := range d.members {
			d.fields[strings.Clone(m.name)] = struct{}{}
		}
	case opRemoveEntity:
		t.remove(c.id)
	case opPlace:
		if !c.at.valid() {
			return malformed("", "%q is placed beyond %g", c.id, MaxCoordinate)
		}
		t.place(c.id, Position{Point{c.at.X + 0, c.at.Y + 0, c.at.Z + 0}, true})
	case opUnplace:
		t.place(c.id, Position{})
	case opRelate:
		if !t.known(c.id) {
			return unknown("", c.id)
		}
		if !t.known(c.relation.To) {
			return unknown("", c.relation.To)
		}
		if len(c.relation.Type) > MaxID {
			return limit("", "a relation's type of more than %d bytes", MaxID)
		}
		list, err := related(t.list(c.id), c.relation)
		if err != nil {
			return limit("", "from %q: %v", c.id, err)
		}
		t.relate(c.id, list)
	case opUnrelate:
		list := slices.Clone(t.list(c.id))
		t.relate(c.id, slices.DeleteFunc(list, func(r Relation) bool {
			return r.To == c.relation.To && r.Type == c.relation.Type
		}))
	}
	return nil
}

// remove takes an entity out with everything that belongs to it.
func (t *transaction) remove(id string) {
	d := t.entity(id)
	for _, m := range d.members {
		d.fields[strings.Clone(m.name)] = struct{}{}
	}
	d.gone, d.members = true, nil
	if _, ok := t.s.places.at[id]; ok || t.places[id].Placed {
		t.place(id, Position{})
	}
	if len(t.list(id)) > 0 {
		t.relate(id, nil)
	}
	drop := func(from string) {
		list := t.list(from)
		if slices.ContainsFunc(list, func(r Relation) bool { return r.To == id }) {
			t.relate(from, slices.DeleteFunc(slices.Clone(list), func(r Relation) bool { return r.To == id }))
		}
	}
	for from := range t.s.in[id] {
		drop(from)
	}
	for from := range t.relations { // those that this effect has made
		drop(from)
	}
}

// check holds what would be against the bounds of a world.
func (t *transaction) check() error {
	entities, placed := len(t.s.entities), len(t.s.places.at)
	for _, id := range sortedKeys(t.entities) {
		d := t.entities[id]
		_, was := t.s.entities[id]
		switch {
		case was && d.gone:
			entities--
		case !was && !d.gone:
			entities++
		}
		if d.gone {
			continue
		}
		d.value = d.members.value()
		if err := validObject(d.value); err != nil {
			return limit("", "entity %q: %v", id, err)
		}
	}
	for id, p := range t.places {
		_, was := t.s.places.at[id]
		switch {
		case was && !p.Placed:
			placed--
		case !was && p.Placed:
			placed++
		}
	}
	relations := t.s.relations
	for from, list := range t.relations {
		relations += len(list) - len(t.s.out[from])
	}
	switch {
	case entities > MaxEntities && entities > len(t.s.entities):
		return limit("", "more than %d entities", MaxEntities)
	case placed > MaxEntities && placed > len(t.s.places.at):
		return limit("", "more than %d positions", MaxEntities)
	case relations > MaxAllRelations && relations > t.s.relations:
		return limit("", "more than %d relations", MaxAllRelations)
	}
	return nil
}

// commit writes to the state; the journal, if there is one, notes what was.
func (t *transaction) commit(j *journal) Changes {
	c := Changes{Seq: t.head.seq}
	if j != nil {
		if j.effects == 0 {
			j.head = t.s.head
		}
		j.effects++
	}
	for _, id := range sortedKeys(t.entities) {
		d := t.entities[id]
		change := EntityChange{ID: id, After: d.value, Fields: sortedKeys(d.fields)}
		if old, ok := t.s.entities[id]; ok {
			change.Before = old.object
		}
		if change.Before == nil && d.gone {
			continue // only its position or its relations were there
		}
		j.thing(t.s, id)
		if d.gone {
			t.s.drop(id)
		} else {
			t.s.put(id, d.value)
		}
		c.Entities = append(c.Entities, change)
	}
	for _, id := range sortedKeys(t.places) {
		change := PlaceChange{ID: id, After: t.places[id]}
		if change.Before = t.s.position(id); change.Before.Placed || change.After.Placed {
			j.thing(t.s, id)
		}
		switch {
		case change.After.Placed:
			t.s.place(id, change.After.Point)
		case change.Before.Placed:
			t.s.unplace(id)
		default:
			continue
		}
		c.Places = append(c.Places, change)
	}
	for _, from := range sortedKeys(t.relations) {
		before, after := t.s.out[from], t.relations[from]
		j.list(t.s, from)
		t.s.relate(from, after)
		c.Relations = appendRelationChanges(c.Relations, from, before, after)
	}
	t.head.writes = t.s.writes
	t.s.head = t.head
	return c
}

func appendRelationChanges(dst []RelationChange, from string, before, after []Relation) []RelationChange {
	had, has := make(map[Relation]bool, len(before)), make(map[Relation]bool, len(after))
	for _, r := range before {
		had[r] = true
	}
	for _, r := range after {
		has[r] = true
	}
	for _, r := range before {
		if !has[r] {
			dst = append(dst, RelationChange{from, r, false})
		}
	}
	for _, r := range after {
		if !had[r] {
			dst = append(dst, RelationChange{from, r, true})
		}
	}
	return dst
}

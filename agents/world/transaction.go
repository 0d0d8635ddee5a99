package world

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/signal"
)

// Plan is the write set of an effect, staged against the world that made it. Nothing is
// written before all of it has passed the bounds.
type Plan struct {
	s         *state
	changes   []Change // as planned
	entities  map[string]*draftEntity
	places    map[string]Placement
	relations map[string][]Relation
	head      head // of the state after it
}

// Changes returns the changes that the effect's kind returned.
func (t *Plan) Changes() []Change { return t.changes }

type draftEntity struct {
	gone    bool
	members jsonvalue.Fields
	value   signal.Value // of members; made by check
	fields  []string     // that were written, some perhaps several times
}

// entity returns the draft of an entity. The caller puts or removes one that does not exist.
func (t *Plan) entity(id string) *draftEntity {
	if d, ok := t.entities[id]; ok {
		return d
	}
	if t.entities == nil {
		t.entities = map[string]*draftEntity{}
	}
	d := &draftEntity{fields: make([]string, 0, 4)}
	if e, ok := t.s.entities[id]; ok {
		d.members = jsonvalue.FieldsOf(e.object)
	}
	t.entities[strings.Clone(id)] = d
	return d
}

// known reports whether the entity will exist after the plan.
func (t *Plan) known(id string) bool {
	if d, ok := t.entities[id]; ok {
		return !d.gone
	}
	_, ok := t.s.entities[id]
	return ok
}

func (t *Plan) list(from string) []Relation {
	if list, ok := t.relations[from]; ok {
		return list
	}
	return t.s.out[from]
}

func (t *Plan) relate(from string, list []Relation) {
	if t.relations == nil {
		t.relations = map[string][]Relation{}
	}
	t.relations[strings.Clone(from)] = list
}

func (t *Plan) place(id string, p Placement) {
	if t.places == nil {
		t.places = map[string]Placement{}
	}
	t.places[strings.Clone(id)] = p
}

// stage adds one change.
func (t *Plan) stage(c Change) error {
	if err := validID(c.ID); err != nil {
		return malformed("", textStagedID, c.ID, err)
	}
	switch c.Op {
	case OpSetField, OpRemoveField:
		if !t.known(c.ID) {
			return unknown("", c.ID)
		}
		if len(c.Field) > MaxID {
			return limit("", "a field's name of more than %d bytes", MaxID)
		}
		d := t.entity(c.ID)
		d.fields = append(d.fields, c.Field)
		if c.Op == OpRemoveField {
			d.members.Remove(c.Field)
			return nil
		}
		if v, rest, err := signal.CheckValue(c.Value); err != nil || len(rest) > 0 || v == nil {
			return malformed("", textStagedValue, c.Field)
		}
		d.members.Set(c.Field, c.Value)
	case OpPutEntity:
		if v, rest, err := signal.CheckValue(c.Value); err != nil || len(rest) > 0 || v.Kind() != signal.KindObject {
			return malformed("", textStagedEntity, c.ID)
		}
		d := t.entity(c.ID)
		for _, m := range d.members {
			d.fields = append(d.fields, m.Name)
		}
		d.gone, d.members = false, jsonvalue.FieldsOf(c.Value)
		for _, m := range d.members {
			d.fields = append(d.fields, m.Name)
		}
	case OpRemoveEntity:
		t.remove(c.ID)
	case OpPlace:
		if !c.At.valid() {
			return malformed("", textStagedPlace, c.ID, MaxCoordinate)
		}
		t.place(c.ID, Placement{Position{c.At.X + 0, c.At.Y + 0, c.At.Z + 0}, true})
	case OpUnplace:
		t.place(c.ID, Placement{})
	case OpRelate:
		if !t.known(c.ID) {
			return unknown("", c.ID)
		}
		if !t.known(c.Relation.To) {
			return unknown("", c.Relation.To)
		}
		if len(c.Relation.Type) > MaxID {
			return limit("", "a relation's type of more than %d bytes", MaxID)
		}
		list, err := related(t.list(c.ID), c.Relation)
		if err != nil {
			return limit("", "from %q: %v", c.ID, err)
		}
		t.relate(c.ID, list)
	case OpUnrelate:
		list := slices.Clone(t.list(c.ID))
		t.relate(c.ID, slices.DeleteFunc(list, func(r Relation) bool {
			return r.To == c.Relation.To && r.Type == c.Relation.Type
		}))
	}
	return nil
}

// remove stages the removal of an entity with its position and relations.
func (t *Plan) remove(id string) {
	d := t.entity(id)
	for _, m := range d.members {
		d.fields = append(d.fields, m.Name)
	}
	d.gone, d.members = true, nil
	if _, ok := t.s.places.at[id]; ok || t.places[id].Placed {
		t.place(id, Placement{})
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

// check checks the result of the plan against the bounds of a world.
func (t *Plan) check() error {
	entities, placed := len(t.s.entities), len(t.s.places.at)
	for _, id := range jsonvalue.SortedKeys(t.entities) {
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
		d.value = d.members.Value()
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
	case entities > MaxEntities:
		return limit("", "more than %d entities", MaxEntities)
	case placed > MaxEntities:
		return limit("", "more than %d positions", MaxEntities)
	case relations > MaxAllRelations:
		return limit("", "more than %d relations", MaxAllRelations)
	}
	return nil
}

// commit writes to the state; the journal, if there is one, records the former state.
func (t *Plan) commit(j *journal) Changes {
	c := Changes{Seq: t.head.seq}
	if j != nil {
		if j.effects == 0 {
			j.head = t.s.head
		}
		j.effects++
	}
	for _, id := range jsonvalue.SortedKeys(t.entities) {
		d := t.entities[id]
		slices.Sort(d.fields)
		d.fields = slices.Compact(d.fields)
		change := EntityChange{ID: id, After: d.value, Fields: d.fields}
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
	for _, id := range jsonvalue.SortedKeys(t.places) {
		change := PlaceChange{ID: id, After: t.places[id]}
		if change.Before = t.s.position(id); change.Before.Placed || change.After.Placed {
			j.thing(t.s, id)
		}
		switch {
		case change.After.Placed:
			t.s.place(id, change.After.Position)
		case change.Before.Placed:
			t.s.unplace(id)
		default:
			continue
		}
		c.Places = append(c.Places, change)
	}
	for _, from := range jsonvalue.SortedKeys(t.relations) {
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

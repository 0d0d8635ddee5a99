package agents

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sajou-dev/sajou-go/signal"
)

// Bounds of a world. What would go beyond one is refused before it is recorded.
const (
	MaxEntities     = 100_000  // entities, and positions
	MaxEntityBytes  = 64 << 10 // of one entity's object as msgpack
	MaxEntityDepth  = 64       // levels inside one entity's object
	MaxRelations    = 4096     // from one entity
	MaxAllRelations = 1 << 20  // in all
	MaxPayload      = 1 << 20  // bytes of an effect's payload as msgpack
	MaxChanges      = 4096     // that a handler may return
	MaxID           = 256      // bytes of an id, a field's name, a type
)

// World is what is the case: entities, how they relate, and where they are. It
// changes by effects alone.
type World struct {
	Reader
	handlers map[string]Handler // immutable after NewWorld
}

// Reader reads a world. It stays valid while the world changes, and then shows
// the change.
type Reader struct{ s *state }

// Relation is one relation of an entity. The document's plain list of ids is
// made of relations without a type.
type Relation struct {
	To       string
	Type     string  // "" for none
	Strength float64 // 0 for none said
}

type state struct {
	entities  map[string]*entity
	places    *places
	out       map[string][]Relation     // in the order in which they were added; never empty
	relations int                       // in all
	in        map[string]map[string]int // who relates to an id, by how many relations
	teams     map[string]map[string]struct{}
	unplaced  map[string]struct{} // entities without a position
	metadata  signal.Value        // without the three members of the last effect
	head
}

// entity is one entity's object. An entity is never changed but replaced, when it
// moves too.
type entity struct {
	object   signal.Value
	revision uint64 // differs from write to write, and from move to move
	shown    atomic.Pointer[sight]
}

// NewWorld returns an empty world with the given handlers. Two for one kind,
// or one for a kind that the world knows by itself, is an error.
func NewWorld(handlers ...Handler) (*World, error) {
	w := &World{Reader{newState()}, make(map[string]Handler, len(handlers))}
	for _, h := range handlers {
		switch _, twice := w.handlers[h.Kind]; {
		case h.Plan == nil || h.Kind == "" || len(h.Kind) > MaxID:
			return nil, fmt.Errorf("agents: handler of %q: want a kind and a plan", h.Kind)
		case twice:
			return nil, fmt.Errorf("agents: two handlers of %q", h.Kind)
		case planners[h.Kind] != nil:
			return nil, fmt.Errorf("agents: a handler of %q, which the world knows by itself", h.Kind)
		}
		w.handlers[h.Kind] = h
	}
	return w, nil
}

func newState() *state {
	return &state{
		entities: map[string]*entity{},
		places:   newPlaces(),
		out:      map[string][]Relation{},
		in:       map[string]map[string]int{},
		teams:    map[string]map[string]struct{}{},
		unplaced: map[string]struct{}{},
		metadata: emptyObject(),
	}
}

// ParseWorld reads a world in the document's form, an object of entities,
// relationships, spatial_index and metadata, each of which may be absent. An
// element of a list of relationships is an id or {"to", "type", "strength"}.
// Beside it, typed_relationships may list {"from", "to", "type", "strength"},
// or [from, to, type], or map from to a list of relations.
// A list may name entities that are not there.
func ParseWorld(v signal.Value, handlers ...Handler) (*World, error) {
	w, err := NewWorld(handlers...)
	if err != nil {
		return nil, err
	}
	if err := w.s.parse(v); err != nil {
		return nil, fmt.Errorf("agents: world: %w", err)
	}
	return w, nil
}

func (s *state) parse(v signal.Value) error {
	if v.Kind() != signal.KindObject {
		return errors.New("want an object")
	}
	for name, part := range v.Members() {
		var err error
		switch name {
		case "entities", "relationships", "spatial_index", "metadata":
			if part.Kind() != signal.KindObject {
				err = errors.New("want an object")
			}
		case "typed_relationships": // read last
		default:
			err = errors.New("unknown member")
		}
		if err != nil {
			return fmt.Errorf("/%s: %w", escape(name), err)
		}
	}
	for _, part := range []struct {
		name string
		read func(id string, v signal.Value) error
	}{
		{"entities", s.parseEntity},
		{"spatial_index", s.parsePlace},
		{"relationships", func(id string, v signal.Value) error { return s.parseRelations(id, v, s.addRelation) }},
	} {
		members, _ := v.Get(part.name)
		if members.Len() > MaxEntities {
			return fmt.Errorf("/%s: more than %d", part.name, MaxEntities)
		}
		for id, m := range members.Members() {
			err := validID(id)
			if err == nil {
				err = part.read(strings.Clone(id), m)
			}
			if err != nil {
				return fmt.Errorf("/%s/%s: %w", part.name, escape(id), err)
			}
		}
	}
	if typed, ok := v.Get("typed_relationships"); ok {
		if err := s.parseTyped(typed); err != nil {
			return fmt.Errorf("/typed_relationships: %w", err)
		}
	}
	metadata, _ := v.Get("metadata")
	return s.parseMetadata(metadata)
}

func (s *state) parseEntity(id string, v signal.Value) error {
	if err := validObject(v); err != nil {
		return err
	}
	s.put(id, slices.Clone(v))
	return nil
}

func validObject(v signal.Value) error {
	switch {
	case v.Kind() != signal.KindObject:
		return errors.New("an entity is an object")
	case len(v) > MaxEntityBytes:
		return fmt.Errorf("more than %d bytes", MaxEntityBytes)
	case height(v) > MaxEntityDepth:
		return fmt.Errorf("deeper than %d levels", MaxEntityDepth)
	}
	return nil
}

func (s *state) parsePlace(id string, v signal.Value) error {
	at, err := ParsePoint(v)
	if err == nil {
		s.place(id, at)
	}
	return err
}

func (s *state) parseRelations(from string, v signal.Value, add func(string, Relation) error) error {
	if v.Kind() != signal.KindArray {
		return errors.New("want an array")
	}
	for e := range v.Elements() {
		r, err := parseRelation(e)
		if err == nil {
			err = add(from, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseTyped reads typed relations: a list of {"from", "to", "type"} or of
// [from, to, type], or an object of lists by from.
func (s *state) parseTyped(v signal.Value) error {
	if v.Kind() == signal.KindObject {
		for from, list := range v.Members() {
			err := validID(from)
			if err == nil {
				err = s.parseRelations(strings.Clone(from), list, s.addTyped)
			}
			if err != nil {
				return fmt.Errorf("%q: %w", from, err)
			}
		}
		return nil
	}
	if v.Kind() != signal.KindArray {
		return errors.New("want an array")
	}
	i := 0
	for e := range v.Elements() {
		from, _ := textMember(e, "from", "from_entity")
		if e.Kind() == signal.KindArray && e.Len() == 3 {
			o := object{}
			for part := range e.Elements() {
				o = append(o, member{[]string{"from", "to", "type"}[len(o)], part})
			}
			from, _ = textMember(o.value(), "from")
			e = o[1:].value()
		}
		r, err := parseRelation(e)
		if err == nil {
			if err = validID(from); err == nil {
				err = s.addTyped(strings.Clone(from), r)
			}
		}
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		i++
	}
	return nil
}

// addRelation adds a relation while a world is read.
func (s *state) addRelation(from string, r Relation) error {
	list, err := related(s.out[from], r)
	switch {
	case err != nil:
		return err
	case s.relations >= MaxAllRelations:
		return fmt.Errorf("more than %d relations", MaxAllRelations)
	}
	s.relate(from, list)
	return nil
}

// addTyped adds one that takes the place of an untyped one to the same entity,
// which the plain lists have beside it.
func (s *state) addTyped(from string, r Relation) error {
	if i := slices.Index(s.out[from], Relation{To: r.To}); i >= 0 && r.Type != "" {
		s.relate(from, slices.Delete(slices.Clone(s.out[from]), i, i+1))
	}
	return s.addRelation(from, r)
}

func parseRelation(v signal.Value) (Relation, error) {
	var r Relation
	if to, ok := v.Text(); ok {
		r.To = strings.Clone(to)
		return r, validID(to)
	}
	if v.Kind() != signal.KindObject {
		return r, errors.New("a relation is an id or an object with to")
	}
	to, _ := textMember(v, "to", "to_entity")
	typ, _ := textMember(v, "type", "relationship_type")
	if m, ok := v.Get("strength"); ok {
		if r.Strength, ok = m.Float64(); !ok {
			return r, errors.New("strength is no number")
		}
	}
	if len(typ) > MaxID {
		return r, fmt.Errorf("a type has at most %d bytes", MaxID)
	}
	r.To, r.Type = strings.Clone(to), strings.Clone(typ)
	return r, validID(to)
}

func (s *state) parseMetadata(v signal.Value) error {
	rest := object{}
	for _, m := range sortedMembers(v) {
		switch m.name {
		case "last_effect_seq":
			i, ok := m.value.Int64()
			if !ok || i < 0 {
				return errors.New("/metadata/last_effect_seq: want a sequence number")
			}
			s.seq = uint64(i)
		case "last_effect_time":
			f, ok := m.value.Float64()
			if !ok {
				return errors.New("/metadata/last_effect_time: want a number")
			}
			s.time = f
		case "last_effect_kind":
			kind, ok := m.value.Text()
			if !ok || len(kind) > MaxID {
				return errors.New("/metadata/last_effect_kind: want a kind")
			}
			s.kind = strings.Clone(kind)
		default:
			rest = append(rest, m)
		}
	}
	s.metadata = rest.value()
	if len(s.metadata) > MaxEntityBytes || height(s.metadata) > MaxEntityDepth {
		return errors.New("/metadata: too large")
	}
	return nil
}

// Value returns the world in the form that [ParseWorld] reads; ids in order.
func (r Reader) Value() signal.Value {
	var entities, relations, index object
	for id, e := range r.Entities() {
		entities = append(entities, member{id, e})
	}
	for _, id := range sortedKeys(r.s.out) {
		list := make([]signal.Value, 0, len(r.s.out[id]))
		for _, relation := range r.s.out[id] {
			list = append(list, relation.Value())
		}
		relations = append(relations, member{id, arrayValue(list)})
	}
	for _, id := range sortedKeys(r.s.places.at) {
		index = append(index, member{id, r.s.places.at[id].Value()})
	}
	return object{
		{"entities", entities.value()},
		{"relationships", relations.value()},
		{"spatial_index", index.value()},
		{"metadata", r.Metadata()},
	}.value()
}

// Value returns the id alone for a relation without type and strength, else
// an object.
func (r Relation) Value() signal.Value {
	if r.Type == "" && r.Strength == 0 {
		return textValue(r.To)
	}
	o := object{{"to", textValue(r.To)}}
	if r.Type != "" {
		o = append(o, member{"type", textValue(r.Type)})
	}
	if r.Strength != 0 {
		o = append(o, member{"strength", numberValue(r.Strength)})
	}
	return o.value()
}

// Metadata returns what the world says of itself. last_effect_seq,
// last_effect_time and last_effect_kind are there from the first effect on.
func (r Reader) Metadata() signal.Value {
	o := membersOf(r.s.metadata)
	if r.s.kind != "" {
		o.set("last_effect_seq", integerValue(r.s.seq))
		o.set("last_effect_time", numberValue(r.s.time))
		o.set("last_effect_kind", textValue(r.s.kind))
	}
	return o.value()
}

// Entity returns an entity's object.
func (r Reader) Entity(id string) (signal.Value, bool) {
	e, ok := r.s.entities[id]
	if !ok {
		return nil, false
	}
	return e.object, true
}

// Len returns the number of entities.
func (r Reader) Len() int { return len(r.s.entities) }

// Entities goes over all entities in the order of ids.
func (r Reader) Entities() iter.Seq2[string, signal.Value] {
	return func(yield func(string, signal.Value) bool) {
		for _, id := range sortedKeys(r.s.entities) {
			if !yield(id, r.s.entities[id].object) {
				return
			}
		}
	}
}

// Position returns where an id is.
func (r Reader) Position(id string) (Point, bool) {
	at, ok := r.s.places.at[id]
	return at, ok
}

// Relations returns the relations from an id, in the order in which they were
// added. The slice is the world's own.
func (r Reader) Relations(id string) []Relation { return r.s.out[id] }

// Team returns the team of an entity, the JSON text of its field team; "" if
// it has none.
func (r Reader) Team(id string) string {
	e, ok := r.s.entities[id]
	if !ok {
		return ""
	}
	return teamOf(e.object)
}

func teamOf(object signal.Value) string {
	v, _ := object.Get("team")
	if k := v.Kind(); k == signal.KindString && v.Len() > 0 || k == signal.KindInt {
		return v.String()
	}
	return ""
}

// put writes an entity's object. The world keeps both.
func (s *state) put(id string, object signal.Value) {
	if old, ok := s.entities[id]; ok {
		s.leave(teamOf(old.object), id)
	} else if _, placed := s.places.at[id]; !placed {
		s.unplaced[id] = struct{}{}
	}
	s.writes++
	s.entities[id] = &entity{object: object, revision: s.writes}
	s.enter(teamOf(object), id)
}

func (s *state) enter(team, id string) {
	if team == "" {
		return
	}
	if s.teams[team] == nil {
		s.teams[team] = map[string]struct{}{}
	}
	s.teams[team][id] = struct{}{}
}

func (s *state) leave(team, id string) {
	delete(s.teams[team], id)
	if len(s.teams[team]) == 0 {
		delete(s.teams, team)
	}
}

func (s *state) drop(id string) {
	if old, ok := s.entities[id]; ok {
		s.leave(teamOf(old.object), id)
		delete(s.entities, id)
		delete(s.unplaced, id)
	}
}

func (s *state) position(id string) Position {
	at, ok := s.places.at[id]
	return Position{at, ok}
}

func (s *state) place(id string, at Point) {
	s.places.set(id, at)
	delete(s.unplaced, id)
	s.revise(id)
}

func (s *state) unplace(id string) {
	s.places.remove(id)
	if _, ok := s.entities[id]; ok {
		s.unplaced[id] = struct{}{}
	}
	s.revise(id)
}

// revise marks an entity as changed, since its position is shown with it.
func (s *state) revise(id string) {
	if e, ok := s.entities[id]; ok {
		s.writes++
		s.entities[id] = &entity{object: e.object, revision: s.writes}
	}
}

// relate replaces the list of relations from an id.
func (s *state) relate(from string, list []Relation) {
	s.relations += len(list) - len(s.out[from])
	for _, r := range s.out[from] {
		if s.in[r.To][from]--; s.in[r.To][from] == 0 {
			delete(s.in[r.To], from)
		}
		if len(s.in[r.To]) == 0 {
			delete(s.in, r.To)
		}
	}
	for _, r := range list {
		if s.in[r.To] == nil {
			s.in[r.To] = map[string]int{}
		}
		s.in[r.To][from]++
	}
	if len(list) == 0 {
		delete(s.out, from)
	} else {
		s.out[from] = list
	}
}

// related returns a list with r in it: in the place of the one of its type, or
// at the end. The given list is not written to.
func related(list []Relation, r Relation) ([]Relation, error) {
	if !finite(r.Strength) {
		return nil, errors.New("strength is no finite number")
	}
	same := func(o Relation) bool { return o.To == r.To && o.Type == r.Type }
	if i := slices.IndexFunc(list, same); i >= 0 {
		list = slices.Clone(list)
		list[i] = r
		return list, nil
	}
	if len(list) >= MaxRelations {
		return nil, fmt.Errorf("more than %d relations", MaxRelations)
	}
	return append(slices.Clip(list), r), nil
}

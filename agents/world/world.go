// Package world holds the state of a world of many agents: entities (an id and a JSON
// object), relations between them, and their positions.
//
// Only an [Effect] changes a [World]: [World.Plan] reports whether it can be applied,
// [World.Apply] applies it and returns the [Changes], which are the complete write set.
// An effect of an unknown kind changes only the metadata, unless a [Handler] is
// registered for it. A [ReadOnly] reads all of a world, or the part that a [ReadFilter]
// shows. A [Trial] applies plans and undoes them.
//
// The package is pure and knows nothing of agents, policies and views. It has no
// lock: the caller keeps readers out while it writes.
//
// # Invariants
//
//   - Apply does not fail for an effect that Plan accepts, and changes nothing for one
//     that Plan refuses.
//   - Equal worlds have equal bytes, see [World.AppendState].
//   - A revision of an entity is immutable, so readers may keep it.
package world

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// Bounds of a world. An effect that would exceed one is refused before it is recorded.
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

func validID(id string) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf(textBadID, MaxID)
	}
	return nil
}

// World is the state of a world: entities, relations and positions. Only effects change
// it.
type World struct {
	ReadOnly
	handlers map[string]Handler // immutable after NewWorld
}

// ReadOnly reads a world. It stays valid while the world changes, and then shows
// the change. A [agents.Validator] gets one that shows what the agent may see, and nothing
// else.
type ReadOnly struct {
	s      *state
	filter ReadFilter // nil: all of the world
}

// ReadFilter limits a [ReadOnly] to a part of the world. A ReadOnly with a filter asks
// it about everything, so that what the filter hides is absent for its user.
type ReadFilter interface {
	Entity(id string) (signal.Value, bool)
	Position(id string) (Position, bool)
	Relations(id string) []Relation
	// ShowsRelationTypes reports whether Relations includes the types of relations.
	ShowsRelationTypes() bool
}

// Filtered returns a ReadOnly of the same world that shows what the filter shows.
func (r ReadOnly) Filtered(f ReadFilter) ReadOnly { return ReadOnly{s: r.s, filter: f} }

// Relation is one relation of an entity. The plain list of ids of the
// multi-agent design, "Spatial and Relationship Models", holds relations without a type.
type Relation struct {
	To       string
	Type     string  // "" for none
	Strength float64 // 0 for none said
}

// head holds the members that every effect writes.
type head struct {
	seq    uint64 // of the last effect
	time   float64
	kind   string
	writes uint64 // counts revisions; no part of the state
}

type state struct {
	entities  map[string]*EntityRevision
	places    *places
	out       map[string][]Relation     // in the order in which they were added; never empty
	relations int                       // in all
	in        map[string]map[string]int // who relates to an id, by how many relations
	teams     map[string]map[string]struct{}
	unplaced  map[string]struct{} // entities without a position
	metadata  signal.Value        // without the three members of the last effect
	head
}

// EntityRevision is one revision of an entity. It is immutable: every write and every
// move puts another revision in its place.
type EntityRevision struct {
	object   signal.Value
	revision uint64 // differs from write to write, and from move to move
	memo     atomic.Value
}

// Object returns the entity's object.
func (e *EntityRevision) Object() signal.Value { return e.object }

// Revision returns a number that no other revision of any entity has.
func (e *EntityRevision) Revision() uint64 { return e.revision }

// Memo returns what SetMemo has kept with this revision, nil if nothing.
func (e *EntityRevision) Memo() any { return e.memo.Load() }

// SetMemo keeps a value that is derived from this revision and from nothing else,
// so that all readers can share it. It is discarded with the revision. All values must
// have one type.
func (e *EntityRevision) SetMemo(v any) { e.memo.Store(v) }

// Handles reports whether the world has a [Handler] of a kind.
func (w *World) Handles(kind string) bool {
	_, ok := w.handlers[kind]
	return ok
}

// Begun reports whether there has been an effect.
func (w *World) Begun() bool { return w.s.kind != "" }

// Seq returns the number of the last effect.
func (r ReadOnly) Seq() uint64 { return r.s.seq }

// SimTime returns the time of the last effect, in seconds.
func (w *World) SimTime() float64 { return w.s.time }

// NewWorld returns an empty world with the given handlers. Two for one kind,
// or one for a kind that the world knows by itself, is an error.
func NewWorld(handlers ...Handler) (*World, error) {
	w := &World{ReadOnly{s: newState()}, make(map[string]Handler, len(handlers))}
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
		entities: map[string]*EntityRevision{},
		places:   newPlaces(),
		out:      map[string][]Relation{},
		in:       map[string]map[string]int{},
		teams:    map[string]map[string]struct{}{},
		unplaced: map[string]struct{}{},
		metadata: jsonvalue.Empty(),
	}
}

// ParseWorld reads a world in the form of the multi-agent design, an object of entities,
// relationships, spatial_index and metadata, each of which may be absent. An
// element of a list of relationships is an id or {"to", "type", "strength"}.
// Beside it, typed_relationships may list {"from", "to", "type", "strength"},
// or [from, to, type], or map from to a list of relations.
// A list may name entities that do not exist. [CheckRelations] finds what is not kept.
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
			return fmt.Errorf("/%s: %w", jsonpointer.Escape(name), err)
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
				return fmt.Errorf("/%s/%s: %w", part.name, jsonpointer.Escape(id), err)
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
	case jsonvalue.Height(v) > MaxEntityDepth:
		return fmt.Errorf("deeper than %d levels", MaxEntityDepth)
	}
	return nil
}

func (s *state) parsePlace(id string, v signal.Value) error {
	at, err := ParsePosition(v)
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
		from, _ := jsonvalue.TextMember(e, "from", "from_entity")
		if e.Kind() == signal.KindArray && e.Len() == 3 {
			o := jsonvalue.Fields{}
			for part := range e.Elements() {
				o = append(o, jsonvalue.NamedValue{[]string{"from", "to", "type"}[len(o)], part})
			}
			from, _ = jsonvalue.TextMember(o.Value(), "from")
			e = o[1:].Value()
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
	to, _ := jsonvalue.TextMember(v, "to", "to_entity")
	typ, _ := jsonvalue.TextMember(v, "type", "relationship_type")
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

// relationMembers are the members of a relation that [parseRelation] keeps.
var relationMembers = []string{"to", "to_entity", "type", "relationship_type", "strength"}

const textRelationMember = "a relationship keeps a type and a strength only; put anything else into an entity"

// CheckRelations refuses a world to begin with, in the form that [ParseWorld] reads, in
// which a relation has a member that a [Relation] does not keep. ParseWorld ignores such
// a member, because the logs of earlier programs have worlds with some.
func CheckRelations(v signal.Value) error {
	if err := checkLists(v.Member("relationships")); err != nil {
		return fmt.Errorf("/relationships%w", err)
	}
	typed, err := v.Member("typed_relationships"), error(nil)
	if typed.Kind() == signal.KindObject {
		err = checkLists(typed)
	} else {
		err = checkList(typed, "from", "from_entity")
	}
	if err != nil {
		return fmt.Errorf("/typed_relationships%w", err)
	}
	return nil
}

// checkLists checks lists of relations by the id from which they lead.
func checkLists(v signal.Value) error {
	for from, list := range v.Members() {
		if err := checkList(list); err != nil {
			return fmt.Errorf("/%s%w", jsonpointer.Escape(from), err)
		}
	}
	return nil
}

func checkList(list signal.Value, also ...string) error {
	i := 0
	for r := range list.Elements() {
		if err := checkRelation(r, also...); err != nil {
			return fmt.Errorf("/%d%w", i, err)
		}
		i++
	}
	return nil
}

// checkRelation begins its error with the pointer to the member that is not kept. A null
// has nothing to keep.
func checkRelation(r signal.Value, also ...string) error {
	for name, m := range r.Members() {
		if m.Kind() != signal.KindNull && !slices.Contains(relationMembers, name) && !slices.Contains(also, name) {
			return fmt.Errorf("/%s: %s", jsonpointer.Escape(name), textRelationMember)
		}
	}
	return nil
}

func (s *state) parseMetadata(v signal.Value) error {
	rest := jsonvalue.Fields{}
	for _, m := range jsonvalue.SortedFields(v) {
		switch m.Name {
		case "last_effect_seq":
			i, ok := m.Value.Int64()
			if !ok || i < 0 {
				return errors.New("/metadata/last_effect_seq: want a sequence number")
			}
			s.seq = uint64(i)
		case "last_effect_time":
			f, ok := m.Value.Float64()
			if !ok {
				return errors.New("/metadata/last_effect_time: want a number")
			}
			s.time = f
		case "last_effect_kind":
			kind, ok := m.Value.Text()
			if !ok || len(kind) > MaxID {
				return errors.New("/metadata/last_effect_kind: want a kind")
			}
			s.kind = strings.Clone(kind)
		default:
			rest = append(rest, m)
		}
	}
	s.metadata = rest.Value()
	if len(s.metadata) > MaxEntityBytes || jsonvalue.Height(s.metadata) > MaxEntityDepth {
		return errors.New("/metadata: too large")
	}
	return nil
}

// Value returns the world in the form that [ParseWorld] reads; ids in order.
func (r ReadOnly) Value() signal.Value {
	var entities, relations, index jsonvalue.Fields
	for id, e := range r.Entities() {
		entities = append(entities, jsonvalue.NamedValue{id, e})
	}
	for _, id := range jsonvalue.SortedKeys(r.s.out) {
		var list []signal.Value
		for _, relation := range r.Relations(id) {
			list = append(list, relation.Value())
		}
		if len(list) > 0 {
			relations = append(relations, jsonvalue.NamedValue{id, jsonvalue.Array(list)})
		}
	}
	for _, id := range jsonvalue.SortedKeys(r.s.places.at) {
		if at, ok := r.Position(id); ok {
			index = append(index, jsonvalue.NamedValue{id, at.Value()})
		}
	}
	return jsonvalue.Fields{
		{"entities", entities.Value()},
		{"relationships", relations.Value()},
		{"spatial_index", index.Value()},
		{"metadata", r.Metadata()},
	}.Value()
}

// Value returns the id alone for a relation without type and strength, else
// an object.
func (r Relation) Value() signal.Value {
	if r.Type == "" && r.Strength == 0 {
		return jsonvalue.Text(r.To)
	}
	o := jsonvalue.Fields{{"to", jsonvalue.Text(r.To)}}
	if r.Type != "" {
		o = append(o, jsonvalue.NamedValue{"type", jsonvalue.Text(r.Type)})
	}
	if r.Strength != 0 {
		o = append(o, jsonvalue.NamedValue{"strength", jsonvalue.Float(r.Strength)})
	}
	return o.Value()
}

// Metadata returns the world's metadata. It has last_effect_seq, last_effect_time and
// last_effect_kind from the first effect on. No agent may see it, because it reveals
// effects that the agent is not sent.
func (r ReadOnly) Metadata() signal.Value {
	if r.filter != nil {
		return jsonvalue.Empty()
	}
	o := jsonvalue.FieldsOf(r.s.metadata)
	if r.s.kind != "" {
		o.Set("last_effect_seq", jsonvalue.Uint(r.s.seq))
		o.Set("last_effect_time", jsonvalue.Float(r.s.time))
		o.Set("last_effect_kind", jsonvalue.Text(r.s.kind))
	}
	return o.Value()
}

// Entity returns an entity's object.
func (r ReadOnly) Entity(id string) (signal.Value, bool) {
	if r.filter != nil {
		return r.filter.Entity(id)
	}
	e, ok := r.s.entities[id]
	if !ok {
		return nil, false
	}
	return e.object, true
}

// Len returns the number of entities.
func (r ReadOnly) Len() int {
	if r.filter == nil {
		return len(r.s.entities)
	}
	n := 0
	for range r.Entities() {
		n++
	}
	return n
}

// Entities goes over all entities in the order of ids.
func (r ReadOnly) Entities() iter.Seq2[string, signal.Value] {
	return func(yield func(string, signal.Value) bool) {
		for _, id := range jsonvalue.SortedKeys(r.s.entities) {
			if object, ok := r.Entity(id); ok && !yield(id, object) {
				return
			}
		}
	}
}

// Position returns where an id is.
func (r ReadOnly) Position(id string) (Position, bool) {
	if r.filter != nil {
		return r.filter.Position(id)
	}
	at, ok := r.s.places.at[id]
	return at, ok
}

// Relations returns the relations from an id, in the order in which they were
// added. The slice is the world's own.
func (r ReadOnly) Relations(id string) []Relation {
	if r.filter != nil {
		return r.filter.Relations(id)
	}
	return r.s.out[id]
}

// Team returns the team of an entity, the JSON text of its field team; "" if
// it has none.
func (r ReadOnly) Team(id string) string {
	object, _ := r.Entity(id)
	return TeamOf(object)
}

// TeamOf returns the team that an entity's object names, see [ReadOnly.Team].
func TeamOf(object signal.Value) string {
	v, _ := object.Get("team")
	if k := v.Kind(); k == signal.KindString && v.Len() > 0 || k == signal.KindInt {
		return v.String()
	}
	return ""
}

// put writes an entity's object. The world keeps both.
func (s *state) put(id string, object signal.Value) {
	if old, ok := s.entities[id]; ok {
		s.leave(TeamOf(old.object), id)
	} else if _, placed := s.places.at[id]; !placed {
		s.unplaced[id] = struct{}{}
	}
	s.writes++
	s.entities[id] = &EntityRevision{object: object, revision: s.writes}
	s.enter(TeamOf(object), id)
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
		s.leave(TeamOf(old.object), id)
		delete(s.entities, id)
		delete(s.unplaced, id)
	}
}

func (s *state) position(id string) Placement {
	at, ok := s.places.at[id]
	return Placement{at, ok}
}

func (s *state) place(id string, at Position) {
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
		s.entities[id] = &EntityRevision{object: e.object, revision: s.writes}
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
	if !jsonvalue.Finite(r.Strength) {
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

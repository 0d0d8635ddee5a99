// Package noninterference tests one property of the engine: everything an agent
// receives is a function of the part of the world that it may see and of the
// declassified answers.
//
// The model in this file is written from the rules of the multi-agent design
// (observation policies, world effects) and shares no code with package agents.
// It determines which entities an agent may see, and does not model deltas, refusals
// or numbers. The test builds two worlds that differ only in parts that the model
// says are hidden, runs both on the engine with the same inputs of the agent, and
// requires that everything the agent receives is equal to the byte.
//
// Wall-clock timing is out of its scope: the duration of a call may depend on hidden
// parts of the world. Session time is in its scope.
package noninterference

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// me is the agent whose view is tested.
const me = "me"

// place is a position in the plane; nil means none.
type place *[2]float64

// thing is an entity in the model.
type thing struct {
	at     place
	fields map[string]any // type and team matter for sight
}

// world is the model of one world. It has only the facts that sight depends on.
type world struct {
	things map[string]*thing
	ties   map[string]map[string]bool // directed
	types  map[[2]string]string       // of ties; no policy here is based on them
}

func newWorld() *world {
	return &world{map[string]*thing{}, map[string]map[string]bool{}, map[[2]string]string{}}
}

func (w *world) clone() *world {
	c := newWorld()
	for id, t := range w.things {
		c.things[id] = &thing{t.at, maps.Clone(t.fields)}
	}
	for from, to := range w.ties {
		c.ties[from] = maps.Clone(to)
	}
	c.types = maps.Clone(w.types)
	return c
}

func (w *world) tie(from, to string) {
	if w.ties[from] == nil {
		w.ties[from] = map[string]bool{}
	}
	w.ties[from][to] = true
}

// untie removes the relations that the payload names. A payload without a type removes
// relations of every type.
func (w *world) untie(from string, payload map[string]any) {
	to, _ := payload["to"].(string)
	ends := [][2]string{{from, to}}
	if payload["mutual"] == true {
		ends = append(ends, [2]string{to, from})
	}
	for _, end := range ends {
		if typ, given := payload["type"]; !given || w.types[end] == typ {
			delete(w.ties[end[0]], end[1])
			delete(w.types, end)
		}
	}
}

// remove removes an entity with its position and all its relations.
func (w *world) remove(id string) {
	delete(w.things, id)
	delete(w.ties, id)
	for _, to := range w.ties {
		delete(to, id)
	}
}

// json returns the world in the form of the multi-agent design.
func (w *world) json() string {
	entities, places, relations := map[string]any{}, map[string]any{}, map[string]any{}
	for id, t := range w.things {
		entities[id] = t.fields
		if t.at != nil {
			places[id] = []float64{t.at[0], t.at[1], 0}
		}
	}
	for from, to := range w.ties {
		if len(to) > 0 {
			list := []any{}
			for _, id := range slices.Sorted(maps.Keys(to)) {
				if typ := w.types[[2]string{from, id}]; typ != "" {
					list = append(list, map[string]any{"to": id, "type": typ})
				} else {
					list = append(list, id)
				}
			}
			relations[from] = list
		}
	}
	return text(map[string]any{"entities": entities, "spatial_index": places, "relationships": relations})
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// distance from me to an entity; an observer without position stands at the
// origin (multi-agent design, section 3.6).
func (w *world) distance(at place) float64 {
	from := [2]float64{}
	if t := w.things[me]; t != nil && t.at != nil {
		from = *t.at
	}
	return math.Hypot(at[0]-from[0], at[1]-from[1])
}

// policy is an observation policy: its configuration for the engine and its rules in
// the model.
type policy struct {
	config map[string]any
	// sees says whether me sees an entity other than itself.
	sees func(w *world, id string) bool
	// hears says whether me hears the speech of an entity that it does not see.
	hears func(w *world, id string) bool
	// hidden are fields of others that are never shown, with the fields derived from
	// them; hiddenPlaces says that no position is shown.
	hidden       []string
	hiddenPlaces bool
	// all says that me sees everything, including speakers that are not entities.
	all bool
	// spatial says that sight depends on positions.
	spatial bool
}

// limit is the distance up to which me sees, if the policy is based on distance.
const limit = 20.0

// near is sight by distance; an entity without a position is not seen.
func near(w *world, id string) bool {
	at := w.things[id].at
	return at != nil && w.distance(at) <= limit
}

func related(w *world, id string) bool { return w.ties[me][id] }

// acquainted reports whether an entity is directly related to me, in either direction,
// as in the conversation policy.
func acquainted(w *world, id string) bool { return w.ties[me][id] || w.ties[id][me] }

// within2 reports whether an entity is at most two relations away from me, in the
// direction of the relations.
func within2(w *world, id string) bool {
	if related(w, id) {
		return true
	}
	for middle := range w.ties[me] {
		if w.ties[middle][id] {
			return true
		}
	}
	return false
}

// ahead returns sight in a cone in front of me. degrees is the full angle of the cone;
// its axis is the field facing, or [1, 0] without it.
func ahead(limit, degrees float64) func(*world, string) bool {
	return func(w *world, id string) bool {
		at := w.things[id].at
		if at == nil {
			return false
		}
		from, facing := [2]float64{}, [2]float64{1, 0}
		if self := w.things[me]; self != nil {
			if self.at != nil {
				from = *self.at
			}
			if f, ok := self.fields["facing"].([]float64); ok && (f[0] != 0 || f[1] != 0) {
				facing = [2]float64{f[0], f[1]}
			}
		}
		x, y := at[0]-from[0], at[1]-from[1]
		distance := math.Hypot(x, y)
		if distance == 0 {
			return true
		}
		cosine := (x*facing[0] + y*facing[1]) / distance / math.Hypot(facing[0], facing[1])
		// At the border the model and the engine may differ by rounding: an entity
		// there counts as seen, so that the run does not treat it as hidden.
		return distance <= limit+1e-9 && cosine >= math.Cos(degrees/2*math.Pi/180)-1e-9
	}
}

func teammate(w *world, id string) bool {
	mine, _ := w.things[me].fields["team"].(string)
	return mine != "" && w.things[id].fields["team"] == mine
}

// policies returns the policies of section 3.6, and others that users requested.
func policies() []policy {
	return []policy{
		{config: map[string]any{"distance_limit": limit}, sees: near, spatial: true},
		{config: map[string]any{"distance_limit": limit, "include_spatial_index": false}, sees: near, spatial: true, hiddenPlaces: true},
		{config: map[string]any{"distance_limit": limit, "field_visibility": map[string]any{"secret": false}}, sees: near, spatial: true, hidden: []string{"secret"}},
		{config: map[string]any{"policy": "distance", "limit": limit}, sees: near, spatial: true},
		{config: map[string]any{"policy": "fog", "of": map[string]any{"policy": "distance", "limit": limit}}, sees: near, spatial: true},
		{config: map[string]any{"policy": "relationships"}, sees: related},
		{config: map[string]any{"policy": "relationships", "include_spatial_index": false}, sees: related, hiddenPlaces: true},
		{config: map[string]any{"policy": "team"}, sees: teammate},
		{config: map[string]any{"policy": "relationships", "depth": 2, "typed_relationships": true}, sees: within2},
		{config: map[string]any{"policy": "relationships", "depth": 2, "on_disappear": "keep"}, sees: within2},
		{config: map[string]any{"policy": "cone", "range": limit, "angle": 100}, sees: ahead(limit, 100), spatial: true},
		{config: map[string]any{"policy": "fog", "of": map[string]any{"policy": "team"}, "capacity": 1}, sees: teammate},
		{config: map[string]any{"policy": "self"}, sees: func(*world, string) bool { return false }},
		{config: map[string]any{"policy": "conversation"}, sees: func(w *world, id string) bool {
			return acquainted(w, id) && w.things[id].fields["type"] == "agent"
		}, hears: acquainted},
		{config: map[string]any{"policy": "everything", "include_spatial_index": false}, all: true, sees: func(*world, string) bool { return true }, hiddenPlaces: true},
		{config: map[string]any{"policy": "fields", "fields": map[string]any{"secret": false, "position": false}}, all: true, sees: func(*world, string) bool { return true }, hidden: []string{"secret"}, hiddenPlaces: true},
		{
			config: map[string]any{"policy": "all", "of": []any{map[string]any{"policy": "distance", "limit": limit}, map[string]any{"policy": "team"}}},
			sees:   func(w *world, id string) bool { return near(w, id) && teammate(w, id) }, spatial: true,
		},
		{
			config: map[string]any{"policy": "any", "of": []any{map[string]any{"policy": "distance", "limit": limit}, map[string]any{"policy": "relationships"}}},
			sees:   func(w *world, id string) bool { return near(w, id) || related(w, id) }, spatial: true,
		},
	}
}

// visible returns the parts of a world that me may see, other than itself.
func (p *policy) visible(w *world) []string {
	var ids []string
	for id := range w.things {
		if id != me && p.sees(w, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// pair is two worlds that differ only in hidden parts.
type pair struct {
	policy *policy
	a, b   *world
	differ map[string]bool // ids of entities that differ, and must stay hidden
}

// agree reports whether me may see the same part of both worlds: the same entities,
// and none that differs.
func (p *pair) agree() bool {
	seen := p.policy.visible(p.a)
	if !slices.Equal(seen, p.policy.visible(p.b)) {
		return false
	}
	return !slices.ContainsFunc(seen, func(id string) bool { return p.differ[id] })
}

// blocked reports whether an entity that differs between the worlds, or whose position
// me may not know, is within a distance of a place. The answer to a move there is
// declassified.
func (p *pair) blocked(to [2]float64, distance float64) bool {
	for _, w := range []*world{p.a, p.b} {
		for id, t := range w.things {
			hidden := p.differ[id] || p.policy.hiddenPlaces
			if hidden && id != me && t.at != nil && math.Hypot(t.at[0]-to[0], t.at[1]-to[1]) < distance+1e-9 {
				return true
			}
		}
	}
	return false
}

func (p *pair) String() string {
	return fmt.Sprintf("policy %s\nworld A %s\nworld B %s\ndiffer %s", text(p.policy.config), p.a.json(), p.b.json(),
		strings.Join(slices.Sorted(maps.Keys(p.differ)), ", "))
}

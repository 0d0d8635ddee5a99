// Package scene reads declarative scenes: where things stand and what they look
// like before anything happens.
//
// A [Scene] has slots and waypoints, which are named places; routes between
// them; looks; entities that stand somewhere from the start; and rules that say
// how an agent looks which nobody placed. [Parse] reads one from a file and
// tells an author what is wrong with it and where. [Compile] makes one of the
// value that a log recorded. [Default] is what is shown when there is no scene.
//
// # Format
//
// A scene is a JSON object. Only "sajou" and "version" must be there.
//
//	{
//	  "sajou": "scene",
//	  "version": 1,
//	  "name": "yard",
//	  "size": {"width": 960, "height": 540},
//	  "background": "#101826",
//	  "layers": ["ground", "people"],
//	  "looks": {"smith": {"figure": "person", "color": "tomato", "size": 60}},
//	  "slots": {"left": {"x": 240, "y": 330}, "right": {"x": 720, "y": 330}},
//	  "waypoints": {"forge": {"x": 480, "y": 200}},
//	  "routes": {"round": {"points": ["left", {"x": 480, "y": 400}, "right"], "closed": true}},
//	  "entities": [{"id": "smith-1", "actor": "smith", "look": "smith", "at": "forge", "layer": "people"}],
//	  "agents": [{"match": "agent-*", "look": "robot"}, {"match": "boss", "entity": "smith"}],
//	  "stranger": "robot",
//	  "impressions": true
//	}
//
// scene.schema.json ([Schema]) says which members there are and of what form,
// and docs/scenes.md what they mean. Beyond the schema, a scene is refused if
//
//   - it refers to a look, layer, place or entity that is not there;
//   - two entities have one id, two slots one name, or a waypoint the name of
//     a slot;
//   - a name is longer than 256 bytes, where the schema counts characters.
//
// Parse also reads the scenes of Sajou's own tools and makes a scene of this
// format of them, with a warning for all that cannot be shown: the scene-builder's
// export ([ParseFiles]), the state that its server holds ([ParseBundle]), stage
// scenes with a board, and the entity visuals of themes.
//
// # Invariants
//
//   - What Parse refuses Compile refuses. The Value of a scene compiles to an
//     equal scene.
//   - A scene's slots are in the order in which they were written.
//   - The same text gives the same scene and the same diagnostics, on every
//     machine: nothing here depends on map order, time or chance.
//   - No text makes this package panic, and none makes it allocate more than a
//     small multiple of the text's size.
package scene

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/signal"
)

// Limits of a scene.
const (
	// MaxItems bounds the layers, looks, slots, waypoints, routes, entities and
	// rules of a scene, each for themselves, and the points of one route.
	MaxItems = 10_000
	// MaxName bounds a name in bytes, MaxTitle a title in characters.
	MaxName  = 256
	MaxTitle = 1024
	// Farthest bounds every number: none lies beyond it on either side of 0.
	Farthest = 1_000_000
)

// Point is a place in the scene: units from the upper left corner, y downwards.
type Point struct{ X, Y float64 }

// Scene is a stage before anything happens. It is immutable and may be shared.
type Scene struct {
	Title         string
	Width, Height float64          // units, 1 or more
	Background    string           // a color
	Layers        []string         // names, from back to front; never empty
	Looks         map[string]Look  // those that the scene declares, and the built-in ones
	Slots         []Slot           // free ones are taken in this order
	Waypoints     map[string]Point // no name is a slot's too
	Routes        map[string]Route
	Entities      []Entity
	Agents        []Rule // the first that matches decides
	Stranger      string // look of a figure that no rule names; one of Looks
	Impressions   bool   // signals show by themselves while no choreography is in force

	name  string
	value signal.Value

	slots   map[string]int   // indices of Slots by name
	figures map[string][]int // indices of Entities by id and actor
}

// Look is how a figure is drawn. Colors are as CSS writes them: #rgb, #rgba,
// #rrggbb, #rrggbbaa or a name in lower case.
type Look struct {
	Figure string // person, robot, bird, building, …; what package picture does not know is a token
	Color  string
	Size   float64 // units high at scale 1
}

// Slot is a named place for one figure.
type Slot struct {
	Name string
	At   Point
}

// Entity is a figure that the scene places.
type Entity struct {
	ID       string // unique
	Actor    string // shared by all that one reference means; the ID if the scene says nothing
	Look     string // one of Looks
	Label    string // shown below it, "" for none; the ID if the scene says nothing
	At       Point
	Layer    int // index in Layers
	Hidden   bool
	Opacity  float64 // 0 to 1
	Scale    float64 // 0 or more
	Rotation float64 // degrees clockwise
	State    string  // animation state
}

// Rule maps agents that the scene does not know by name.
type Rule struct {
	Match  string // an agent id, where * stands for any text
	Entity string // the entity or actor that stands for it, or "" for a new figure
	Look   string // of the new figure; one of Looks
	Slot   string // where it stands, "" for the first free one
	Layer  int    // of the new figure; index in Layers
}

var _ choreography.Declaration = (*Scene)(nil)

// Compile makes a scene of a value in the format of this package, which it
// copies. It refuses what [Parse] refuses; the error wraps
// [choreography.ErrDefinition] and names the first place that is wrong.
func Compile(v signal.Value) (*Scene, error) {
	switch _, rest, err := signal.CheckValue(v); {
	case err != nil:
		return nil, fmt.Errorf("%w: a scene: %w", choreography.ErrDefinition, err)
	case len(rest) > 0:
		return nil, fmt.Errorf("%w: a scene: more than one value", choreography.ErrDefinition)
	}
	var r reader
	s := r.scene(&node{value: slices.Clone(v)})
	if f := r.firstError(); f != nil {
		return nil, fmt.Errorf("%w: a scene: %s: %s", choreography.ErrDefinition, jsonplace.Pointer(f.Segments), f.message)
	}
	return s, nil
}

// Word returns "scene".
func (s *Scene) Word() string { return "scene" }

// Name returns the scene's name; a session has one scene, the last declared.
func (s *Scene) Name() string { return s.name }

// Value returns the scene in the format of this package: as it was written, or
// translated if another was read. It is absent for [Default], which nobody
// declared. It must not be changed.
func (s *Scene) Value() signal.Value { return s.value }

// Place returns where a slot or a waypoint is.
func (s *Scene) Place(name string) (Point, bool) {
	if i, ok := s.slots[name]; ok {
		return s.Slots[i].At, true
	}
	at, ok := s.Waypoints[name]
	return at, ok
}

// Route returns a route.
func (s *Scene) Route(name string) (Route, bool) {
	r, ok := s.Routes[name]
	return r, ok
}

// Figures returns the entities that a reference means, those whose id or actor
// it is, as indices of Entities in rising order. The caller must not change the
// result.
func (s *Scene) Figures(ref string) []int { return s.figures[ref] }

// Rule returns the first rule for an agent that no entity stands for by name.
// It takes time proportional to the rules' patterns and the length of the name.
func (s *Scene) Rule(agent string) (Rule, bool) {
	for _, r := range s.Agents {
		if matches(r.Match, agent) {
			return r, true
		}
	}
	return Rule{}, false
}

// LookNamed returns a look; for a name that is none, the stranger's.
func (s *Scene) LookNamed(name string) Look {
	if look, ok := s.Looks[name]; ok {
		return look
	}
	if look, ok := s.Looks[s.Stranger]; ok {
		return look
	}
	return builtIn[defaultLook]
}

// index prepares the ways to find things.
func (s *Scene) index() {
	s.slots = make(map[string]int, len(s.Slots))
	for i := range s.Slots {
		s.slots[s.Slots[i].Name] = i
	}
	s.figures = make(map[string][]int, len(s.Entities))
	for i := range s.Entities {
		e := &s.Entities[i]
		s.figures[e.ID] = append(s.figures[e.ID], i)
		if e.Actor != e.ID {
			s.figures[e.Actor] = append(s.figures[e.Actor], i)
		}
	}
}

// matches reports whether text is like a pattern in which * stands for any text,
// also for none. The parts of the pattern are looked for one after the other,
// each where it comes first, so no part of the text is tried twice.
func matches(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	for ok {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		_, text, ok = strings.Cut(text, part)
		rest = after
	}
	return false
}

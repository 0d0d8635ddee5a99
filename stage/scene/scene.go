// Package scene reads declarative scenes: the positions and looks of figures before
// anything happens.
//
// A [Scene] has slots and waypoints, which are named places; routes between
// them; looks; entities that stand somewhere from the start; and rules for the looks
// of agents that the scene does not place. [Parse] reads one from a file, with
// diagnostics for its author. [Compile] makes one of the value that a log recorded.
// [Default] is the scene of a session that declares none.
//
// # Format
//
// A scene is a JSON object. Only "sajou" and "version" are required.
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
// scene.schema.json ([Schema]) defines the members and their forms, docs/scenes.md
// their meaning. Beyond the schema, a scene is refused if
//
//   - it refers to a look, layer, place or entity that it does not have;
//   - two entities have the same id, two slots the same name, or a waypoint has the
//     name of a slot;
//   - a name is longer than 256 bytes, where the schema counts characters.
//
// Parse also reads the scenes of Sajou's own tools and translates them to this format,
// with a warning for everything that cannot be shown: the scene-builder's export
// ([ParseFiles]), the state that its server holds ([ParseBundle]), stage scenes with a
// board, and the entity visuals of themes.
//
// # Invariants
//
//   - Compile refuses every scene that Parse refuses. The Value of a scene compiles to an
//     equal scene.
//   - A scene's slots are in the order in which they were written.
//   - The same text gives the same scene and the same diagnostics, on every
//     machine: nothing here depends on map order, time or chance.
//   - No text makes this package panic. Its allocations are proportional to the text.
//
// docs/glossary.md has the nouns of all packages.
package scene

import (
	"fmt"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/find"
	"github.com/sajou-dev/sajou-go/signal"
)

// Limits of a scene.
const (
	// MaxItems bounds the layers, looks, slots, waypoints, routes, entities and
	// rules of a scene, each separately, and the points of one route.
	MaxItems = 10_000
	// MaxName bounds a name in bytes, maxTitle a title in characters.
	MaxName  = 256
	maxTitle = 1024
	// farthest bounds the absolute value of every number.
	farthest = 1_000_000
)

// Point is a place in the scene: units from the upper left corner, y downwards.
type Point struct{ X, Y float64 }

// Distance returns the distance between two points.
func Distance(a, b Point) float64 {
	x, y := b.X-a.X, b.Y-a.Y
	return math.Sqrt(float64(x*x) + float64(y*y))
}

// Scene is a stage before anything happens. It is immutable and may be shared.
type Scene struct {
	Title         string
	Width, Height float64          // units, 1 or more
	Background    string           // a color
	Layers        []string         // names, from back to front; never empty
	Looks         map[string]Look  // those that the scene declares, and the built-in ones
	Slots         []Slot           // free ones are taken in this order
	Waypoints     map[string]Point // their names differ from those of the slots
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
	Figure string // person, robot, bird, building, …; a name that package picture does not know is a token
	Color  string
	Size   float64 // units high at scale 1
}

// Route is a way along points; a closed one leads back to its first.
type Route struct {
	Points []Point  // two or more
	Names  []string // of the points, "" for one without; as long as Points
	Closed bool
}

// Index returns the index of the first point with a name.
func (r Route) Index(name string) (int, bool) {
	i := slices.Index(r.Names, name)
	return i, i >= 0 && name != ""
}

// Slot is a named place for one figure.
type Slot struct {
	Name string
	At   Point
}

// Entity is a figure that the scene places.
type Entity struct {
	ID       string // unique
	Actor    string // shared by all entities of one reference; the ID by default
	Look     string // one of Looks
	Label    string // shown below it, "" for none; the ID by default
	At       Point
	Layer    int // index in Layers
	Hidden   bool
	Opacity  float64 // 0 to 1
	Scale    float64 // 0 or more
	Rotation float64 // degrees clockwise
	State    string  // animation state
}

// Rule assigns a look and a place to agents that the scene does not place.
type Rule struct {
	Match  string // an agent id, where * stands for any text
	Entity string // the entity or actor that represents it, or "" for a new figure
	Look   string // of the new figure; one of Looks
	Slot   string // its home, "" for the first free slot
	Layer  int    // of the new figure; index in Layers
}

var _ language.Declaration = (*Scene)(nil)

// Compile makes a scene of a value in the format of this package, which it
// copies. It refuses every scene that [Parse] refuses; the error wraps
// [definition.ErrInvalid] and names the first place that is wrong.
func Compile(v signal.Value) (*Scene, error) {
	switch _, rest, err := signal.CheckValue(v); {
	case err != nil:
		return nil, fmt.Errorf("%w: a scene: %w", definition.ErrInvalid, err)
	case len(rest) > 0:
		return nil, fmt.Errorf("%w: a scene: more than one value", definition.ErrInvalid)
	}
	var r reader
	s := r.scene(&node{value: slices.Clone(v)})
	if f, refused := r.firstError(); refused {
		return nil, fmt.Errorf("%w: a scene: %s: %s", definition.ErrInvalid, f.Location.Pointer(), f.Message)
	}
	return s, nil
}

// Word returns "scene".
func (s *Scene) Word() string { return "scene" }

// Name returns the scene's name; a session has one scene, the last declared.
func (s *Scene) Name() string { return s.name }

// Value returns the scene in the format of this package: as it was written,
// or translated from another format. It is absent for [Default], which is not
// declared. It must not be changed.
func (s *Scene) Value() signal.Value { return s.value }

// Place returns the point of a slot or a waypoint.
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

// Figures returns the entities whose id or actor is the reference, as indices of Entities
// in rising order. The caller must not change the result.
func (s *Scene) Figures(ref string) []int { return s.figures[ref] }

// Rule returns the first rule for an agent that is not the id or actor of an entity.
// It takes time proportional to the rules' patterns and the length of the name.
func (s *Scene) Rule(agent string) (Rule, bool) {
	for _, r := range s.Agents {
		if find.Wildcard(r.Match, agent) {
			return r, true
		}
	}
	return Rule{}, false
}

// LookNamed returns the look with a name, or the stranger's for an unknown name.
func (s *Scene) LookNamed(name string) Look {
	if look, ok := s.Looks[name]; ok {
		return look
	}
	if look, ok := s.Looks[s.Stranger]; ok {
		return look
	}
	return builtIn[defaultLook]
}

// index builds the lookup tables.
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

// Package scene reads declarative scenes: where things stand and what they look
// like before anything happens.
package scene

import "github.com/sajou-dev/sajou-go/signal"

// Point is a place in the scene: units from the upper left corner, y downwards.
type Point struct{ X, Y float64 }

// Scene is a stage before anything happens. It is immutable and may be shared.
type Scene struct {
	Title         string
	Width, Height float64  // units, above 0
	Background    string   // "#rrggbb"
	Layers        []string // names, from back to front; never empty
	Looks         map[string]Look
	Slots         []Slot // free ones are taken in this order
	Waypoints     map[string]Point
	Routes        map[string]Route
	Entities      []Entity
	Agents        []Rule // the first that matches decides
	Stranger      string // look of a figure that no rule names
	Impressions   bool   // signals show by themselves while no choreography is in force

	name  string
	value signal.Value
}

// Look is how a figure is drawn.
type Look struct {
	Figure string  // person, robot, bird, building, box, star, dot, …: what package picture can draw
	Color  string  // "#rrggbb"
	Size   float64 // units high at scale 1
}

// Slot is a named place for one figure.
type Slot struct {
	Name string
	At   Point
}

// Route is a way along points; a closed one leads back to its first.
type Route struct {
	Points []Point // two or more
	Closed bool
}

// Entity is a figure that the scene places.
type Entity struct {
	ID       string // unique
	Actor    string // shared by all that one reference means; the ID if empty
	Look     string
	Label    string // shown below it; the ID if the scene says nothing
	At       Point
	Layer    int // index in Layers
	Hidden   bool
	Opacity  float64 // 0 to 1
	Scale    float64
	Rotation float64 // degrees clockwise
	State    string  // animation state
}

// Rule maps agents that the scene does not know by name.
type Rule struct {
	Match  string // an agent id, where * stands for any text
	Entity string // the entity or actor that stands for it, or "" for a new figure
	Look   string // of the new figure
	Slot   string // where it stands, "" for the first free one
}

// Word returns "scene".
func (s *Scene) Word() string { return "scene" }

// Name returns the scene's name; a session has one scene, the last declared.
func (s *Scene) Name() string { return s.name }

// Value returns the scene as it was written.
func (s *Scene) Value() signal.Value { return s.value }

// Default is the built-in scene.
func Default() *Scene {
	return &Scene{Width: 960, Height: 540, Background: "#101826", Layers: []string{"stage"}, Impressions: true}
}

// Compile makes a scene of a value that [Parse] accepted, or refuses it.
func Compile(v signal.Value) (*Scene, error) { s := Default(); s.value = v; return s, nil }

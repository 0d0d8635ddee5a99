package scene

import (
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/signal"
)

// number adds a number. A whole one is written as an integer, as an author would.
func number(o *signal.Object, name string, f float64) {
	if i := int64(f); float64(i) == f {
		o.Int(name, i)
		return
	}
	o.Float(name, f)
}

// write returns s as a value in the format of this package, which compiles to an
// equal scene. Members with their default value are left out.
func (s *Scene) write() signal.Value {
	var o signal.Object
	o.Text("sajou", "scene")
	number(&o, "version", Version)
	if s.name != "" {
		o.Text("name", s.name)
	}
	if s.Title != "" {
		o.Text("title", s.Title)
	}
	var size signal.Object
	number(&size, "width", s.Width)
	number(&size, "height", s.Height)
	o.Add("size", size.Value())
	o.Text("background", s.Background)
	var layers []signal.Value
	for _, name := range s.Layers {
		layers = append(layers, signal.Text(name))
	}
	o.Add("layers", signal.Array(layers...))

	var looks signal.Object
	for _, name := range slices.Sorted(maps.Keys(s.Looks)) {
		if look := s.Looks[name]; look != builtIn[name] {
			var l signal.Object
			l.Text("figure", look.Figure)
			l.Text("color", look.Color)
			number(&l, "size", look.Size)
			looks.Add(name, l.Value())
		}
	}
	if len(looks) > 0 {
		o.Add("looks", looks.Value())
	}
	var slots signal.Object
	for _, slot := range s.Slots {
		slots.Add(slot.Name, pointValue(slot.At, ""))
	}
	if len(slots) > 0 {
		o.Add("slots", slots.Value())
	}
	var waypoints signal.Object
	for _, name := range slices.Sorted(maps.Keys(s.Waypoints)) {
		waypoints.Add(name, pointValue(s.Waypoints[name], ""))
	}
	if len(waypoints) > 0 {
		o.Add("waypoints", waypoints.Value())
	}
	var routes signal.Object
	for _, name := range slices.Sorted(maps.Keys(s.Routes)) {
		routes.Add(name, s.Routes[name].write())
	}
	if len(routes) > 0 {
		o.Add("routes", routes.Value())
	}
	var entities []signal.Value
	for i := range s.Entities {
		entities = append(entities, s.Entities[i].write(s))
	}
	if len(entities) > 0 {
		o.Add("entities", signal.Array(entities...))
	}
	var agents []signal.Value
	for _, r := range s.Agents {
		agents = append(agents, r.write(s))
	}
	if len(agents) > 0 {
		o.Add("agents", signal.Array(agents...))
	}
	o.Text("stranger", s.Stranger)
	o.Bool("impressions", s.Impressions)
	return o.Value()
}

func (r Route) write() signal.Value {
	var points []signal.Value
	for i, p := range r.Points {
		points = append(points, pointValue(p, r.Names[i]))
	}
	var o signal.Object
	o.Add("points", signal.Array(points...))
	if r.Closed {
		o.Bool("closed", true)
	}
	return o.Value()
}

func (e *Entity) write(s *Scene) signal.Value {
	var o signal.Object
	o.Text("id", e.ID)
	if e.Actor != e.ID {
		o.Text("actor", e.Actor)
	}
	if e.Look != s.Stranger {
		o.Text("look", e.Look)
	}
	if e.Label != e.ID {
		o.Text("label", e.Label)
	}
	o.Add("at", pointValue(e.At, ""))
	if e.Layer != 0 {
		o.Text("layer", s.Layers[e.Layer])
	}
	if e.Hidden {
		o.Bool("hidden", true)
	}
	if e.Opacity != 1 {
		number(&o, "opacity", e.Opacity)
	}
	if e.Scale != 1 {
		number(&o, "scale", e.Scale)
	}
	if e.Rotation != 0 {
		number(&o, "rotation", e.Rotation)
	}
	if e.State != "" {
		o.Text("state", e.State)
	}
	return o.Value()
}

func (r Rule) write(s *Scene) signal.Value {
	var o signal.Object
	o.Text("match", r.Match)
	if r.Entity != "" {
		o.Text("entity", r.Entity)
		return o.Value()
	}
	if r.Look != s.Stranger {
		o.Text("look", r.Look)
	}
	if r.Slot != "" {
		o.Text("slot", r.Slot)
	}
	if r.Layer != 0 {
		o.Text("layer", s.Layers[r.Layer])
	}
	return o.Value()
}

func pointValue(p Point, name string) signal.Value {
	var o signal.Object
	if name != "" {
		o.Text("name", name)
	}
	number(&o, "x", p.X)
	number(&o, "y", p.Y)
	return o.Value()
}

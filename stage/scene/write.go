package scene

import (
	"maps"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// object builds an object value member by member. No name may be put twice.
type object struct {
	body []byte
	n    uint32
}

func (o *object) put(name string, v signal.Value) {
	o.body = append(msgp.AppendString(o.body, name), v...)
	o.n++
}

func (o *object) text(name, text string) { o.put(name, msgp.AppendString(nil, text)) }

func (o *object) number(name string, f float64) {
	// A whole number is written as one, as an author would.
	if i := int64(f); float64(i) == f {
		o.put(name, signal.Int(i).Append(nil))
		return
	}
	o.put(name, signal.Float(f).Append(nil))
}

func (o *object) truth(name string, b bool) { o.put(name, msgp.AppendBool(nil, b)) }

func (o *object) list(name string, all []signal.Value) {
	v := msgp.AppendArrayHeader(nil, uint32(len(all)))
	for _, e := range all {
		v = append(v, e...)
	}
	o.put(name, v)
}

func (o *object) value() signal.Value { return append(msgp.AppendMapHeader(nil, o.n), o.body...) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func textValue(text string) signal.Value { return msgp.AppendString(nil, text) }

// write returns s as a value in the format of this package, which compiles to an
// equal scene. What says the same when it is left out is left out.
func (s *Scene) write() signal.Value {
	var o object
	o.text("sajou", "scene")
	o.number("version", Version)
	if s.name != "" {
		o.text("name", s.name)
	}
	if s.Title != "" {
		o.text("title", s.Title)
	}
	var size object
	size.number("width", s.Width)
	size.number("height", s.Height)
	o.put("size", size.value())
	o.text("background", s.Background)
	var layers []signal.Value
	for _, name := range s.Layers {
		layers = append(layers, textValue(name))
	}
	o.list("layers", layers)

	var looks object
	for _, name := range sortedKeys(s.Looks) {
		if look := s.Looks[name]; look != builtIn[name] {
			var l object
			l.text("figure", look.Figure)
			l.text("color", look.Color)
			l.number("size", look.Size)
			looks.put(name, l.value())
		}
	}
	if looks.n > 0 {
		o.put("looks", looks.value())
	}
	var slots object
	for _, slot := range s.Slots {
		slots.put(slot.Name, pointValue(slot.At, ""))
	}
	if slots.n > 0 {
		o.put("slots", slots.value())
	}
	var waypoints object
	for _, name := range sortedKeys(s.Waypoints) {
		waypoints.put(name, pointValue(s.Waypoints[name], ""))
	}
	if waypoints.n > 0 {
		o.put("waypoints", waypoints.value())
	}
	var routes object
	for _, name := range sortedKeys(s.Routes) {
		routes.put(name, s.Routes[name].write())
	}
	if routes.n > 0 {
		o.put("routes", routes.value())
	}
	var entities []signal.Value
	for i := range s.Entities {
		entities = append(entities, s.Entities[i].write(s))
	}
	if len(entities) > 0 {
		o.list("entities", entities)
	}
	var agents []signal.Value
	for _, r := range s.Agents {
		agents = append(agents, r.write(s))
	}
	if len(agents) > 0 {
		o.list("agents", agents)
	}
	o.text("stranger", s.Stranger)
	o.truth("impressions", s.Impressions)
	return o.value()
}

func (r Route) write() signal.Value {
	var points []signal.Value
	for i, p := range r.Points {
		points = append(points, pointValue(p, r.Names[i]))
	}
	var o object
	o.list("points", points)
	if r.Closed {
		o.truth("closed", true)
	}
	return o.value()
}

func (e *Entity) write(s *Scene) signal.Value {
	var o object
	o.text("id", e.ID)
	if e.Actor != e.ID {
		o.text("actor", e.Actor)
	}
	if e.Look != s.Stranger {
		o.text("look", e.Look)
	}
	if e.Label != e.ID {
		o.text("label", e.Label)
	}
	o.put("at", pointValue(e.At, ""))
	if e.Layer != 0 {
		o.text("layer", s.Layers[e.Layer])
	}
	if e.Hidden {
		o.truth("hidden", true)
	}
	if e.Opacity != 1 {
		o.number("opacity", e.Opacity)
	}
	if e.Scale != 1 {
		o.number("scale", e.Scale)
	}
	if e.Rotation != 0 {
		o.number("rotation", e.Rotation)
	}
	if e.State != "" {
		o.text("state", e.State)
	}
	return o.value()
}

func (r Rule) write(s *Scene) signal.Value {
	var o object
	o.text("match", r.Match)
	if r.Entity != "" {
		o.text("entity", r.Entity)
		return o.value()
	}
	if r.Look != s.Stranger {
		o.text("look", r.Look)
	}
	if r.Slot != "" {
		o.text("slot", r.Slot)
	}
	if r.Layer != 0 {
		o.text("layer", s.Layers[r.Layer])
	}
	return o.value()
}

func pointValue(p Point, name string) signal.Value {
	var o object
	if name != "" {
		o.text("name", name)
	}
	o.number("x", p.X)
	o.number("y", p.Y)
	return o.value()
}

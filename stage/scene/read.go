package scene

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Version is the version of the format that this package reads and writes.
const Version = 1

// The defaults of a scene.
const (
	defaultWidth, defaultHeight = 960, 540
	defaultBackground           = "#101826"
	defaultLayer                = "stage"
	defaultLook                 = "robot"
	defaultFigure               = "person"
	defaultColor                = "#8aa4c8"
	defaultSize                 = 56
)

// reader makes a scene of a value in the format of this package.
type reader struct {
	remarks
	s      *Scene
	layers map[string]int
}

// scene reads a whole scene. The result is usable only if there is no
// error.
func (r *reader) scene(n *node) *Scene {
	if n.value.Kind() != signal.KindObject {
		r.errorf(n, "a scene must be an object, not %s", n.value.Kind().WithArticle())
		return nil
	}
	if !r.head(n) {
		return nil
	}
	r.s = &Scene{
		Width: defaultWidth, Height: defaultHeight, Background: defaultBackground, Layers: []string{defaultLayer},
		Looks: maps.Clone(builtIn), Waypoints: map[string]Point{}, Routes: map[string]Route{},
		Stranger: defaultLook, Impressions: true, value: n.value,
	}
	fields := map[string]*node{}
	for name, v := range n.value.Members() {
		at := n.at(name, v)
		switch name {
		case "sajou", "version":
		case "$schema":
			r.text(at)
		case "name":
			r.s.name = r.name(at)
		case "title":
			r.s.Title = r.title(at)
		case "size", "background", "layers", "looks", "slots", "waypoints", "routes", "entities", "agents", "stranger", "impressions":
			fields[name] = at
		default:
			r.unknown(at, "a scene", "name, title, size, background, layers, looks, slots, waypoints, routes, entities, agents, stranger and impressions")
		}
	}
	read := func(name string, read func(*node)) {
		if at := fields[name]; at != nil {
			read(at)
		}
	}
	// The order matters: each member may refer to those before it.
	read("size", r.size)
	read("background", func(n *node) { r.s.Background = r.color(n) })
	read("impressions", func(n *node) { r.s.Impressions = r.truth(n) })
	read("layers", r.readLayers)
	r.layers = make(map[string]int, len(r.s.Layers))
	for i, name := range r.s.Layers {
		r.layers[name] = i
	}
	read("looks", r.looks)
	read("stranger", func(n *node) { r.s.Stranger = r.look(n) })
	read("slots", r.slots)
	read("waypoints", r.waypoints)
	r.s.index()
	read("routes", r.routes)
	read("entities", r.entities)
	r.s.index()
	read("agents", r.agents)
	return r.s
}

// head reads the marker of a scene and its version. It returns false for another
// version, of which nothing else can be judged.
func (r *reader) head(n *node) bool {
	sajou := n.get("sajou")
	switch text, ok := sajou.value.Text(); {
	case !sajou.there():
		r.errorf(n, `"sajou" is missing: write "sajou": "scene"`)
	case !ok:
		r.errorf(sajou, `sajou must be "scene", not %s`, sajou.value.Kind().WithArticle())
		return false
	case text != "scene":
		r.errorf(sajou, `sajou must be "scene", not %s`, wording.Quoted(text))
		return false
	}
	version := n.get("version")
	switch number, ok := version.value.Float64(); {
	case !version.there():
		r.errorf(n, `"version" is missing: write "version": %d`, Version)
	case !ok:
		r.errorf(version, "version must be %d, not %s", Version, version.value.Kind().WithArticle())
		return false
	case number != Version:
		r.errorf(version, "version %s of the scene format is not known here: this program reads version %d", version.value, Version)
		return false
	}
	return true
}

func (r *reader) size(n *node) {
	if !r.object(n) {
		return
	}
	for _, name := range [...]string{"width", "height"} {
		if !n.get(name).there() {
			r.errorf(n, "%q is missing in size", name)
		}
	}
	for name, v := range n.value.Members() {
		switch at := n.at(name, v); name {
		case "width":
			r.s.Width = r.number(at, 1, farthest)
		case "height":
			r.s.Height = r.number(at, 1, farthest)
		default:
			r.unknown(at, "size", "width and height")
		}
	}
}

func (r *reader) readLayers(n *node) {
	if !r.array(n) {
		return
	}
	if n.value.Len() == 0 {
		r.errorf(n, "layers must name at least one layer; leave it out for the layer %q", defaultLayer)
		return
	}
	seen := map[string]bool{}
	r.s.Layers = make([]string, 0, n.value.Len())
	for i, at := range elements(n) {
		if i >= MaxItems {
			return // reported already
		}
		name := r.name(at)
		if seen[name] && name != "" {
			r.errorf(at, "the layer %s appears twice", wording.Quoted(name))
		}
		seen[name] = true
		r.s.Layers = append(r.s.Layers, name)
	}
}

func (r *reader) looks(n *node) {
	r.named(n, func(name string, at *node) {
		look := Look{defaultFigure, defaultColor, defaultSize}
		if !r.object(at) {
			return
		}
		for field, v := range at.value.Members() {
			switch f := at.at(field, v); field {
			case "figure":
				look.Figure = r.name(f)
			case "color":
				look.Color = r.color(f)
			case "size":
				look.Size = r.number(f, 1, farthest)
			default:
				r.unknown(f, "a look", "figure, color and size")
			}
		}
		r.s.Looks[name] = look
	})
}

// slots reads an object of points by name, or an array of points with names.
func (r *reader) slots(n *node) {
	if n.value.Kind() == signal.KindArray {
		seen := map[string]bool{}
		r.array(n)
		for i, at := range elements(n) {
			if i >= MaxItems {
				return
			}
			name, p := r.point(at, nameNeeded)
			if seen[name] && name != "" {
				r.refuse(at.get("name"), "the slot %s appears twice", wording.Quoted(name))
			}
			seen[name] = true
			r.s.Slots = append(r.s.Slots, Slot{name, p})
		}
		return
	}
	if n.value.Kind() != signal.KindObject {
		r.errorf(n, "slots must be an object of places by name or an array of places with names, not %s", n.value.Kind().WithArticle())
		return
	}
	r.named(n, func(name string, at *node) {
		_, p := r.point(at, nameNone)
		r.s.Slots = append(r.s.Slots, Slot{name, p})
	})
}

func (r *reader) waypoints(n *node) {
	slots := map[string]bool{}
	for _, s := range r.s.Slots {
		slots[s.Name] = true
	}
	r.named(n, func(name string, at *node) {
		_, p := r.point(at, nameNone)
		if slots[name] {
			r.refuse(at, "the waypoint %s could never be reached: a slot has that name", wording.Quoted(name))
		}
		r.s.Waypoints[name] = p
	})
}

func (r *reader) routes(n *node) {
	r.named(n, func(name string, at *node) {
		if !r.object(at) {
			return
		}
		var route Route
		if !at.get("points").there() {
			r.errorf(at, `"points" is missing in the route`)
		}
		for field, v := range at.value.Members() {
			switch f := at.at(field, v); field {
			case "points":
				r.points(f, &route)
			case "closed":
				route.Closed = r.truth(f)
			default:
				r.unknown(f, "a route", "points and closed")
			}
		}
		r.s.Routes[name] = route
	})
}

func (r *reader) points(n *node, route *Route) {
	if !r.array(n) {
		return
	}
	if n.value.Len() < 2 {
		r.errorf(n, "a route needs two points or more, not %d", n.value.Len())
	}
	for i, at := range elements(n) {
		if i >= MaxItems {
			return
		}
		name, p := r.place(at, nameAllowed)
		route.Points, route.Names = append(route.Points, p), append(route.Names, name)
	}
}

func (r *reader) entities(n *node) {
	if !r.array(n) {
		return
	}
	ids := map[string]bool{}
	for i, at := range elements(n) {
		if i >= MaxItems {
			return
		}
		e := r.entity(at)
		if ids[e.ID] && e.ID != "" {
			r.refuse(at.get("id"), "two entities have the id %s; entities that one reference means share an actor", wording.Quoted(e.ID))
		}
		ids[e.ID] = true
		r.s.Entities = append(r.s.Entities, e)
	}
}

func (r *reader) entity(n *node) Entity {
	e := Entity{Look: r.s.Stranger, Opacity: 1, Scale: 1}
	if !r.object(n) {
		return e
	}
	for _, name := range [...]string{"id", "at"} {
		if !n.get(name).there() {
			r.errorf(n, "%q is missing in the entity", name)
		}
	}
	labelled := false
	for name, v := range n.value.Members() {
		switch at := n.at(name, v); name {
		case "id":
			e.ID = r.name(at)
		case "actor":
			e.Actor = r.name(at)
		case "look":
			e.Look = r.look(at)
		case "label":
			e.Label, labelled = r.title(at), true
		case "at":
			_, e.At = r.place(at, nameNone)
		case "layer":
			e.Layer = r.layer(at)
		case "hidden":
			e.Hidden = r.truth(at)
		case "opacity":
			e.Opacity = r.number(at, 0, 1)
		case "scale":
			e.Scale = r.number(at, 0, farthest)
		case "rotation":
			e.Rotation = r.number(at, -farthest, farthest)
		case "state":
			e.State = r.name(at)
		default:
			r.unknown(at, "an entity", "id, actor, look, label, at, layer, hidden, opacity, scale, rotation and state")
		}
	}
	if e.Actor == "" {
		e.Actor = e.ID
	}
	if !labelled {
		e.Label = e.ID
	}
	return e
}

func (r *reader) agents(n *node) {
	if !r.array(n) {
		return
	}
	for i, at := range elements(n) {
		if i >= MaxItems {
			return
		}
		r.s.Agents = append(r.s.Agents, r.rule(at))
	}
}

func (r *reader) rule(n *node) Rule {
	rule := Rule{Look: r.s.Stranger}
	if !r.object(n) {
		return rule
	}
	if !n.get("match").there() {
		r.errorf(n, `"match" is missing in the rule: the agents that it is for`)
	}
	stands := n.get("entity").there()
	for name, v := range n.value.Members() {
		at := n.at(name, v)
		if stands && (name == "look" || name == "slot" || name == "layer") {
			r.errorf(at, "%s is for a new figure, and entity names an existing one: write one of them", name)
			continue
		}
		switch name {
		case "match":
			rule.Match = r.name(at)
		case "entity":
			rule.Entity = r.name(at)
			if rule.Entity != "" && len(r.s.figures[rule.Entity]) == 0 {
				r.refuse(at, "there is no entity with the id or actor %s", wording.Quoted(rule.Entity))
			}
		case "look":
			rule.Look = r.look(at)
		case "slot":
			rule.Slot = r.name(at)
			if _, ok := r.s.slots[rule.Slot]; !ok && rule.Slot != "" {
				r.refuse(at, "there is no slot %s", wording.Quoted(rule.Slot))
			}
		case "layer":
			rule.Layer = r.layer(at)
		default:
			r.unknown(at, "a rule", "match and either entity or look, slot and layer")
		}
	}
	if stands {
		rule.Look = ""
	}
	return rule
}

// naming reports whether a point may have a name.
type naming int

const (
	nameNone naming = iota
	nameAllowed
	nameNeeded
)

// place reads the name of a slot or a waypoint, or a point.
func (r *reader) place(n *node, naming naming) (string, Point) {
	if _, ok := n.value.Text(); !ok {
		if n.value.Kind() == signal.KindObject {
			return r.point(n, naming)
		}
		r.errorf(n, `want the name of a place or {"x": …, "y": …}, not %s`, n.value.Kind().WithArticle())
		return "", Point{}
	}
	name := r.name(n)
	p, ok := r.s.Place(name)
	if !ok && name != "" {
		r.refuse(n, "there is no slot or waypoint %s", wording.Quoted(name))
	}
	return name, p
}

func (r *reader) point(n *node, naming naming) (name string, p Point) {
	if !r.object(n) {
		return "", p
	}
	for _, field := range [...]string{"x", "y", "name"} {
		if (field != "name" || naming == nameNeeded) && !n.get(field).there() {
			r.errorf(n, "%q is missing in the point", field)
		}
	}
	for field, v := range n.value.Members() {
		switch at := n.at(field, v); {
		case field == "x":
			p.X = r.number(at, -farthest, farthest)
		case field == "y":
			p.Y = r.number(at, -farthest, farthest)
		case field == "name" && naming != nameNone:
			name = r.name(at)
		case naming == nameNone:
			r.unknown(at, "a point", "x and y")
		default:
			r.unknown(at, "a point", "x, y and name")
		}
	}
	return name, p
}

// named iterates over an object whose member names are names.
func (r *reader) named(n *node, each func(name string, at *node)) {
	if !r.object(n) {
		return
	}
	if n.value.Len() > MaxItems {
		r.errorf(n, "%s holds more than %d", n.name, MaxItems)
		return
	}
	for name, v := range n.value.Members() {
		at := n.at(name, v)
		r.nameText(at, name)
		each(name, at)
	}
}

// elements iterates over an array.
func elements(n *node) func(yield func(int, *node) bool) {
	return func(yield func(int, *node) bool) {
		i := 0
		for v := range n.value.Elements() {
			if !yield(i, n.element(i, v)) {
				return
			}
			i++
		}
	}
}

func (r *reader) object(n *node) bool {
	if n.value.Kind() != signal.KindObject {
		r.errorf(n, "%s must be an object, not %s", called(n), n.value.Kind().WithArticle())
		return false
	}
	return true
}

func (r *reader) array(n *node) bool {
	switch {
	case n.value.Kind() != signal.KindArray:
		r.errorf(n, "%s must be an array, not %s", called(n), n.value.Kind().WithArticle())
		return false
	case n.value.Len() > MaxItems:
		r.errorf(n, "%s holds more than %d", called(n), MaxItems)
	}
	return true
}

func (r *reader) text(n *node) string {
	text, ok := n.value.Text()
	if !ok {
		r.errorf(n, "%s must be a string, not %s", called(n), n.value.Kind().WithArticle())
	}
	return text
}

func (r *reader) name(n *node) string {
	text, ok := n.value.Text()
	if !ok {
		return r.text(n)
	}
	r.nameText(n, text)
	return text
}

func (r *reader) nameText(n *node, name string) {
	switch {
	case name == "":
		r.errorf(n, "a name must not be empty")
	case utf8.RuneCountInString(name) > MaxName:
		r.errorf(n, "a name must not be longer than %d bytes", MaxName)
	case len(name) > MaxName:
		r.refuse(n, "a name must not be longer than %d bytes", MaxName)
	}
}

func (r *reader) title(n *node) string {
	text := r.text(n)
	if utf8.RuneCountInString(text) > maxTitle {
		r.errorf(n, "%s must not be longer than %d characters", called(n), maxTitle)
	}
	return text
}

func (r *reader) truth(n *node) bool {
	b, ok := n.value.Bool()
	if !ok {
		r.errorf(n, "%s must be true or false, not %s", called(n), n.value.Kind().WithArticle())
	}
	return b
}

func (r *reader) number(n *node, least, most float64) float64 {
	f, ok := n.value.Float64()
	switch {
	case !ok:
		r.errorf(n, "%s must be a number, not %s", called(n), n.value.Kind().WithArticle())
	case f < least || f > most:
		r.errorf(n, "%s must be from %.0f to %.0f, not %s", called(n), least, most, n.value)
	}
	return f + 0 // no negative zero
}

func (r *reader) color(n *node) string {
	text := r.text(n)
	if _, ok := n.value.Text(); ok && !isColor(text) {
		r.errorf(n, `%s is not a color: write "#rgb", "#rrggbb", "#rrggbbaa" or a CSS name in lower case`, wording.Quoted(text))
	}
	return text
}

func (r *reader) look(n *node) string {
	name := r.name(n)
	if _, ok := r.s.Looks[name]; !ok && name != "" {
		r.refuse(n, "there is no look %s; there are %s", wording.Quoted(name), offered(slices.Sorted(maps.Keys(r.s.Looks))))
	}
	return name
}

func (r *reader) layer(n *node) int {
	name := r.name(n)
	i, ok := r.layers[name]
	if !ok && name != "" {
		r.refuse(n, "there is no layer %s; there are %s", wording.Quoted(name), offered(r.s.Layers))
	}
	return i
}

// called names a value for a message.
func called(n *node) string {
	if n.member {
		return n.name
	}
	return "an element"
}

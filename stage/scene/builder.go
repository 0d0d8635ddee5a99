package scene

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// curvePieces is the number of straight pieces of a smooth corner of a route.
const curvePieces = 8

// readState reads a scene of the scene-builder.
func (i *importer) readState(n *node) {
	i.known(n, "a scene", "version", "dimensions", "background", "layers", "entities", "positions", "routes",
		"zoneTypes", "zoneGrid", "lighting", "particles", "shaders", "name", "title")
	i.s.name, i.s.Title = i.name(n, "name"), i.text(n, "title")
	size := n.get("dimensions")
	i.known(size, "dimensions", "width", "height")
	i.s.Width = i.number(size, "width", 1, farthest, defaultWidth)
	i.s.Height = i.number(size, "height", 1, farthest, defaultHeight)
	background := n.get("background")
	i.known(background, "a background", "color")
	i.s.Background = i.color(background, "color", defaultBackground)
	i.unseen(n, "lighting", "particles", "shaders")
	places := i.readPositions(i.list(n, "positions"))
	i.readZones(n.get("zoneTypes"), n.get("zoneGrid"))
	i.readRoutes(i.list(n, "routes"), places)
	i.readPlaced(i.list(n, "entities"), i.readStack(i.list(n, "layers")))
}

// stacked is a layer of the scene-builder.
type stacked struct {
	id, name string
	order    float64
	visible  bool
	index    int // in the scene's layers
}

// readStack reads the layers, and returns them by id as they are in the scene.
func (i *importer) readStack(list *node) map[string]stacked {
	var stack []stacked
	for _, at := range elements(list) {
		i.known(at, "a layer", "id", "name", "order", "visible", "locked")
		stack = append(stack, stacked{
			id: i.name(at, "id"), name: i.name(at, "name"), order: i.coordinate(at, "order"), visible: i.truth(at, "visible", true),
		})
	}
	slices.SortStableFunc(stack, func(a, b stacked) int { return cmp.Compare(a.order, b.order) })
	byID := map[string]stacked{}
	taken := map[string]bool{}
	var names []string
	for k, l := range stack {
		l.index = k
		name := l.name
		for _, other := range [...]string{l.id, "layer " + strconv.Itoa(k+1)} {
			if name == "" || taken[name] {
				name = other
			}
		}
		for taken[name] {
			name += "'"
		}
		taken[name] = true
		names = append(names, name)
		if _, ok := byID[l.id]; !ok {
			byID[l.id] = l
		}
	}
	if len(names) > 0 {
		i.s.Layers = names
	}
	return byID
}

// readPositions reads the named places and returns them by id. A place at which figures
// are meant to appear becomes a slot, any other place a waypoint.
func (i *importer) readPositions(list *node) map[string]Point {
	byID := map[string]Point{}
	for _, at := range elements(list) {
		i.known(at, "a position", "id", "name", "x", "y", "color", "entityBinding", "typeHint")
		id, name := i.name(at, "id"), i.name(at, "name")
		p := Point{i.coordinate(at, "x"), i.coordinate(at, "y")}
		if name == "" {
			name = id
		}
		if _, ok := byID[id]; !ok && id != "" {
			byID[id] = p
		}
		hint := i.text(at, "typeHint")
		if name == "" {
			i.lose("position without a name", at, "a position without a name cannot be reached, and is left out")
		} else if !i.put(name, p, hint == "spawn") {
			i.lose("position", at, "there is a position "+wording.Quoted(name)+" already: this one is left out")
		}
		if i.text(at, "entityBinding") != "" {
			i.lose("entityBinding", at.get("entityBinding"), "entityBinding has no effect: choreographies decide which entity appears at a position")
		}
	}
	return byID
}

// readZones makes the middle of each zone a place, since zones are not painted.
func (i *importer) readZones(types, grid *node) {
	type painted struct{ cells, columns, rows int }
	zones := map[string]*painted{}
	var order []string
	columns, _ := grid.get("cols").value.Int64()
	if columns < 1 && grid.get("cells").value.Len() > 0 {
		i.lose("zoneGrid", grid, "zoneGrid has no columns, and is left out")
		return
	}
	for k, at := range elements(grid.get("cells")) {
		id, ok := at.value.Text()
		if !ok || id == "" {
			continue
		}
		z := zones[id]
		if z == nil {
			if len(zones) >= MaxItems {
				i.errorf(grid, "zoneGrid holds more than %d zones", MaxItems)
				return
			}
			z = new(painted)
			zones[id] = z
			order = append(order, id)
		}
		z.cells++
		z.columns += k % int(columns)
		z.rows += k / int(columns)
	}
	cell := i.number(grid, "cellSize", 0, farthest, 32)
	middle := func(sum, n int) float64 {
		f := float64((float64(sum)/float64(n) + 0.5) * cell)
		return min(f, farthest)
	}
	defined := map[string]*node{}
	for _, at := range elements(i.bounded(types, "zoneTypes")) {
		i.known(at, "a type of zone", "id", "name", "description", "color", "capacity")
		defined[i.text(at, "id")] = at
	}
	for _, id := range order {
		z, at := zones[id], defined[id]
		if at == nil {
			at = grid
		}
		if len(id) <= MaxName {
			i.put(id, Point{middle(z.columns, z.cells), middle(z.rows, z.cells)}, false)
		}
		i.lose("zone", at, "zones are not painted; the middle of each is the place of its id, unless a position has that name")
	}
}

func (i *importer) readRoutes(list *node, places map[string]Point) {
	for _, at := range elements(list) {
		i.known(at, "a route", "id", "name", "points", "style", "color", "bidirectional", "fromPositionId", "toPositionId")
		name := i.name(at, "name")
		if name == "" {
			name = i.name(at, "id")
		}
		_, taken := i.s.Routes[name]
		points := i.list(at, "points")
		switch {
		case name == "":
			i.lose("route without a name", at, "a route without a name cannot be followed, and is left out")
			continue
		case taken:
			i.lose("route", at, "there is a route "+wording.Quoted(name)+" already: this one is left out")
			continue
		case points.value.Len() > MaxItems:
			i.errorf(points, "points holds more than %d", MaxItems)
			continue
		case points.value.Len() < 2:
			i.lose("short route", at, "a route of less than two points leads nowhere, and is left out")
			continue
		}
		i.s.Routes[name] = i.route(at, points, places)
	}
}

// route reads a route. Its ends lie on the positions that they are tied to. A smooth
// corner is a quadratic curve from the end of the line so far to the middle of the next
// segment, with the corner as its control point.
func (i *importer) route(n, list *node, places map[string]Point) Route {
	type corner struct {
		Point
		name   string
		smooth bool
	}
	var corners []corner
	for _, at := range elements(list) {
		i.known(at, "a point of a route", "x", "y", "cornerStyle", "tension", "name", "id")
		corners = append(corners, corner{
			Point{i.coordinate(at, "x"), i.coordinate(at, "y")}, i.name(at, "name"), i.text(at, "cornerStyle") == "smooth",
		})
	}
	last := len(corners) - 1
	for _, end := range [...]struct {
		field string
		index int
	}{{"fromPositionId", 0}, {"toPositionId", last}} {
		if id := i.text(n, end.field); id != "" {
			if p, ok := places[id]; ok {
				corners[end.index].Point = p
			} else {
				i.lose("end of a route", n.get(end.field), "there is no position with this id: the route ends where it was drawn")
			}
		}
	}
	r := Route{Points: []Point{corners[0].Point}, Names: []string{corners[0].name}}
	for k := 1; k <= last; k++ {
		c := corners[k]
		if !c.smooth || k == last {
			r.Points, r.Names = append(r.Points, c.Point), append(r.Names, c.name)
			continue
		}
		from, next := r.Points[len(r.Points)-1], corners[k+1]
		to := Point{(c.X + next.X) / 2, (c.Y + next.Y) / 2}
		for piece := 1; piece <= curvePieces; piece++ {
			t := float64(float64(piece) / curvePieces)
			r.Points, r.Names = append(r.Points, Point{bend(from.X, c.X, to.X, t), bend(from.Y, c.Y, to.Y, t)}), append(r.Names, "")
		}
		r.Names[len(r.Names)-1] = c.name
	}
	return r
}

// bend returns the point of a quadratic curve at t.
func bend(from, by, to, t float64) float64 {
	s := 1 - t
	return float64(from*float64(s*s)) + float64(by*float64(2*float64(s*t))) + float64(to*float64(t*t))
}

// readPlaced reads the placed entities.
func (i *importer) readPlaced(list *node, layers map[string]stacked) {
	ids := map[string]bool{}
	type drawn struct {
		layer int
		z     float64
		index int
		at    *node
	}
	var all []drawn
	for k, at := range elements(list) {
		i.known(at, "a placed entity", "id", "entityId", "x", "y", "scale", "rotation", "layerId", "zIndex", "opacity",
			"flipH", "flipV", "locked", "visible", "activeState", "semanticId", "actorId", "topology")
		id := i.name(at, "id")
		if id == "" {
			id = "entity-" + strconv.Itoa(k+1)
		}
		if ids[id] {
			i.lose("entity", at, "there is an entity "+wording.Quoted(id)+" already: this one is left out")
			continue
		}
		ids[id] = true
		visual := i.name(at, "entityId")
		defaults := i.looks[visual].get("defaults")
		e := Entity{
			ID: id, Actor: i.name(at, "semanticId"), Look: i.lookFor(at, visual),
			At:       Point{i.coordinate(at, "x"), i.coordinate(at, "y")},
			Opacity:  i.number(at, "opacity", 0, 1, i.number(defaults, "opacity", 0, 1, 1)),
			Rotation: i.coordinate(at, "rotation"),
			State:    i.name(at, "activeState"),
		}
		if e.Actor == "" {
			e.Actor = i.name(at, "actorId")
		}
		e.Label = e.Actor // an entity that no reference can reach has no label
		if e.Actor == "" {
			e.Actor = id
		}
		e.Scale = i.number(at, "scale", -farthest, farthest, i.number(defaults, "scale", -farthest, farthest, 1))
		if e.Scale < 0 || i.truth(at, "flipH", false) || i.truth(at, "flipV", false) {
			i.lose("flip", at, "figures are not mirrored: flipH and flipV have no effect")
			e.Scale = max(e.Scale, -e.Scale)
		}
		layer, ok := layers[i.text(at, "layerId")]
		if !ok && at.get("layerId").there() && len(layers) > 0 {
			i.lose("layerId", at.get("layerId"), "there is no layer with this id: the first is taken")
		}
		e.Layer, e.Hidden = layer.index, ok && !layer.visible || !i.truth(at, "visible", true)
		if topology := at.get("topology"); topology.value.Len() > 0 {
			i.lose("topology", topology, "topology has no effect: choreographies decide where an entity goes")
		}
		all = append(all, drawn{e.Layer, i.coordinate(at, "zIndex"), len(i.s.Entities), at})
		i.s.Entities = append(i.s.Entities, e)
	}
	// Within a layer, the figure further down is drawn in front.
	slices.SortStableFunc(all, func(a, b drawn) int { return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.z, b.z)) })
	for k := 1; k < len(all); k++ {
		a, b := all[k-1], all[k]
		if a.layer == b.layer && i.s.Entities[a.index].At.Y > i.s.Entities[b.index].At.Y {
			i.lose("zIndex", b.at.get("zIndex"), "zIndex has no effect: in one layer, figures further down are drawn in front")
		}
	}
}

// lookFor returns the look with the name of an image. It makes one if no table of looks
// has it.
func (i *importer) lookFor(at *node, visual string) string {
	if visual == "" {
		i.lose("entityId", at, "entityId is missing: it looks like a stranger")
		return i.s.Stranger
	}
	if _, ok := i.s.Looks[visual]; !ok {
		i.lose("missing look", at.get("entityId"), "the table of entities is not here, or has no "+wording.Quoted(visual)+": it gets a figure by its name")
		i.s.Looks[visual] = Look{figureFor(visual), paints[len(i.s.Looks)%len(paints)], defaultSize}
	}
	return visual
}

// readVisuals makes looks of a table of entities: of the scene-builder's, whose
// members have a visual, or of a theme's, whose members have states.
func (i *importer) readVisuals(table *node) {
	for name, v := range table.value.Members() {
		at := table.at(name, v)
		if name == "" || len(name) > MaxName || v.Kind() != signal.KindObject {
			i.lose("odd look", at, "it is not a look with a usable name, and is left out")
			continue
		}
		i.known(at, "an entity", "id", "tags", "displayWidth", "displayHeight", "fallbackColor", "defaults", "visual", "states", "sounds")
		i.looks[name] = at
		names := []string{name, i.text(at, "id")}
		for _, tag := range elements(at.get("tags")) {
			text, _ := tag.value.Text()
			names = append(names, text)
		}
		i.s.Looks[name] = Look{
			figureFor(names...), i.color(at, "fallbackColor", paints[len(i.s.Looks)%len(paints)]),
			i.number(at, "displayHeight", 1, farthest, defaultSize),
		}
		for _, field := range [...]string{"visual", "states"} {
			if image := at.get(field); image.value.Len() > 0 {
				i.lose("images", image, "images are not shown: a figure in the fallback color stands for them")
			}
		}
		if sounds := at.get("sounds"); sounds.value.Len() > 0 {
			i.lose("sounds", sounds, "sounds of entities are not played")
		}
		defaults := at.get("defaults")
		i.known(defaults, "defaults", "scale", "opacity", "zIndex", "anchor", "flat")
		if anchor := defaults.get("anchor"); anchor.there() && !standsOnFoot(anchor.value) {
			i.lose("anchor", anchor, "anchor has no effect: a figure's place is the middle of its foot")
		}
		if i.truth(defaults, "flat", false) {
			i.lose("flat", defaults.get("flat"), "figures stand: flat has no effect")
		}
	}
}

func standsOnFoot(anchor signal.Value) bool {
	x, _ := anchor.Lookup("0")
	y, _ := anchor.Lookup("1")
	fx, _ := x.Float64()
	fy, _ := y.Float64()
	return fx == 0.5 && fy == 1
}

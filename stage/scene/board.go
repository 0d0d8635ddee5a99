package scene

import (
	"maps"
	"math"
	"slices"
)

// readBoard reads a stage scene, which has the shape stageScene: a board with zones,
// seen from above.
func (i *importer) readBoard(n *node) {
	board := n.get("board")
	if i.text(board, "projection") == "isometric" {
		i.lose("projection", board.get("projection"), "the board is shown from above")
	}
	i.unseen(n, "lighting", "particles")
	zones := i.list(board, "zones")
	middles := i.readBounds(zones)
	for _, at := range elements(zones) {
		i.readZone(at, middles)
	}
	for _, name := range slices.Sorted(maps.Keys(middles)) {
		i.put(name, middles[name], false)
	}
	i.readActors(i.list(n, "entities"))
}

// readBounds makes the scene large enough for all zones, and returns their middles by
// id.
func (i *importer) readBounds(zones *node) map[string]Point {
	middles := map[string]Point{}
	left, top, right, bottom := math.Inf(1), math.Inf(1), 0.0, 0.0
	for _, at := range elements(zones) {
		bounds := at.get("bounds")
		x, y := i.coordinate(bounds, "x"), i.coordinate(bounds, "y")
		w, h := i.number(bounds, "w", 0, farthest, 0), i.number(bounds, "h", 0, farthest, 0)
		left, top = min(left, x), min(top, y)
		right, bottom = max(right, x+w), max(bottom, y+h)
		if id := i.name(at, "id"); id != "" {
			if _, ok := middles[id]; !ok {
				middles[id] = Point{min(x+float64(w/2), farthest), min(y+float64(h/2), farthest)}
			}
		}
	}
	if left < 0 || top < 0 {
		i.lose("negative", zones, "anything to the left of 0 or above it is out of the picture")
	}
	if right >= 1 && bottom >= 1 {
		i.s.Width, i.s.Height = min(right, farthest), min(bottom, farthest)
	}
	return middles
}

func (i *importer) readZone(n *node, middles map[string]Point) {
	id := i.name(n, "id")
	if i.number(n, "elevation", -farthest, farthest, 0) != 0 {
		i.lose("elevation", n.get("elevation"), "the board is flat: elevation has no effect")
	}
	if at := n.get("ambiance"); at.value.Len() > 0 {
		i.lose("ambiance", at, "the ambiance of zones is not shown")
	}
	i.lose("zone", n, "zones are not drawn; the middle of each is the place of its name")
	for _, at := range elements(i.list(n, "slots")) {
		name := i.name(at, "id")
		position := at.get("position")
		if name == "" || !i.put(name, Point{i.coordinate(position, "x"), i.coordinate(position, "y")}, true) {
			i.lose("slot", at, "a slot without a name, or with one that there is already, is left out")
		}
	}
	for _, at := range elements(i.list(n, "connections")) {
		to := i.name(at, "to")
		a, ok := middles[id]
		b, found := middles[to]
		if !ok || !found {
			i.lose("connection", at, "there is no zone with this id: the connection is left out")
			continue
		}
		name := i.name(at, "path")
		if name == "" {
			name = id + "-" + to
		}
		if _, taken := i.s.Routes[name]; taken || len(name) > MaxName {
			i.lose("route", at, "there is a route of this name already: the connection is left out")
			continue
		}
		i.s.Routes[name] = Route{Points: []Point{a, b}, Names: []string{id, to}}
		i.lose("drawn connection", at, "connections are not drawn; each is a route from middle to middle")
	}
}

// readActors reads the entities of a stage scene.
func (i *importer) readActors(list *node) {
	ids := map[string]bool{}
	for _, at := range elements(list) {
		id := i.name(at, "id")
		if id == "" || ids[id] {
			i.lose("entity", at, "an entity without an id, or with one that there is already, is left out")
			continue
		}
		ids[id] = true
		visual := at.get("visual")
		look := Look{figureFor(id, i.text(at, "rig")), paints[len(i.s.Looks)%len(paints)], defaultSize}
		if height, ok := visual.get("frameSize").value.Lookup("1"); ok {
			if f, ok := height.Float64(); ok {
				look.Size = max(1, min(f, farthest))
			}
		}
		if _, ok := i.s.Looks[id]; !ok {
			i.s.Looks[id] = look
		}
		if visual.there() {
			i.lose("images", visual, "images are not shown: a figure stands for them")
		}
		if interactions := at.get("interactions"); interactions.value.Len() > 0 {
			i.lose("interactions", interactions, "interactions have no effect")
		}
		e := Entity{ID: id, Actor: id, Look: id, Label: id, Opacity: 1, Scale: 1, State: i.name(at, "state")}
		if label := i.text(at, "displayName"); label != "" {
			e.Label = label
		}
		slot := i.name(at, "slot")
		p, ok := i.places[slot]
		if !ok {
			p = Point{i.s.Width / 2, i.s.Height / 2}
			i.lose("entity without a slot", at, "its slot is missing or unknown: it stands in the middle of the board")
		}
		e.At = p
		i.s.Entities = append(i.s.Entities, e)
	}
}

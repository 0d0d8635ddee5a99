package stage

import (
	"math"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// spot is what a place means.
type spot struct {
	at     scene.Point
	entity *entity // nil: a point
	slot   bool    // name is a slot's
	name   string  // of the slot, waypoint or entity, lent; "" for bare numbers
}

// place returns what a value means as a place: numbers, or the name of a slot,
// a waypoint, an entity or an agent. When it means none, a diagnostic says so.
func (s *Stage) place(param string) (spot, bool) {
	v, ok := s.deed.Param(param)
	if !ok {
		s.report(notePlace, "", "")
		return spot{}, false
	}
	name, ok := v.Text()
	if !ok {
		at, ok := pointOf(v, true)
		if !ok {
			s.report(notePlace, "", "")
		}
		return spot{at: at}, ok
	}
	if at, ok := s.slots[name]; ok {
		return spot{at: inside(at), slot: true, name: name}, true
	}
	if at, ok := s.scene.Waypoints[name]; ok {
		return spot{at: inside(at), name: name}, true
	}
	group := s.names[name]
	if len(group) == 0 && name != "" && s.isAgent(name) {
		group = s.cast(name, nil)
	}
	if len(group) == 0 {
		s.report(notePlace, "", name)
		return spot{}, false
	}
	e := group[0]
	return spot{at: e.position(s.now), entity: e, name: e.id}, true
}

// isAgent reports whether a name that is no place's is taken for an agent's, so
// that it appears where somebody wants to go to it. Where an author wrote a
// scene, that is for its rules to say: any other name is a slip of the pen.
func (s *Stage) isAgent(name string) bool {
	if len(s.scene.Value()) == 0 {
		return true
	}
	_, ok := s.scene.Rule(name)
	return ok
}

// pointOf reads {x, y} or [x, y]. Where not both are needed, one that is
// missing is 0.
func pointOf(v signal.Value, both bool) (scene.Point, bool) {
	var (
		p     scene.Point
		xs    signal.Value
		ys    signal.Value
		found bool
	)
	switch v.Kind() {
	case signal.KindObject:
		xs, _ = v.Get("x")
		ys, _ = v.Get("y")
	case signal.KindArray:
		if v.Len() != 2 {
			return p, false
		}
		for e := range v.Elements() {
			xs, ys = ys, e
		}
	default:
		return p, false
	}
	p.X, found = finite(xs)
	if !found && (both || xs.Kind() != signal.KindAbsent) {
		return p, false
	}
	p.Y, found = finite(ys)
	if !found && (both || ys.Kind() != signal.KindAbsent) {
		return p, false
	}
	return p, true
}

// finite reads a number, brought within what a stage can hold.
func finite(v signal.Value) (float64, bool) {
	f, ok := v.Float64()
	if !ok || f != f {
		return 0, false
	}
	return math.Max(-farthest, math.Min(f, farthest)) + 0, true
}

// beside returns where e stands when it goes to another entity: at its side,
// the one it comes from, by half of what both measure.
func (s *Stage) beside(e, to *entity, at scene.Point) scene.Point {
	if e == to {
		return at
	}
	own, other := s.lookOf(e), s.lookOf(to)
	gap := (float64(own.Size*e.value(chScale, s.now)) + float64(other.Size*to.value(chScale, s.now))) / 2
	if e.value(chX, s.now) <= at.X {
		gap = -gap
	}
	return inside(scene.Point{X: at.X + gap, Y: at.Y})
}

// stretch returns the points of a route between two of them. A closed one goes
// round, the other way if reversed; an open one is reversed as a whole.
func stretch(r scene.Route, from, to int, hasFrom, hasTo, reverse bool) []scene.Point {
	n := len(r.Points)
	first, last := 0, n-1
	if r.Closed {
		last = 0
	}
	if reverse {
		first, last = last, first
	}
	if hasFrom {
		first = from
	}
	switch {
	case hasTo:
		last = to
	case r.Closed:
		last = first
	}
	points := []scene.Point{inside(r.Points[first])}
	step := 1
	switch {
	case r.Closed && reverse, !r.Closed && last < first:
		step = n - 1
	case !r.Closed && last == first:
		return points
	}
	for i := (first + step) % n; ; i = (i + step) % n {
		points = append(points, inside(r.Points[i]))
		if i == last {
			return points
		}
	}
}

// waypoint reads a point of a route: its number, its name, or the place it is
// nearest to.
func (s *Stage) waypoint(param string, r scene.Route) (int, bool) {
	v, ok := s.deed.Param(param)
	if !ok {
		return 0, false
	}
	if f, ok := finite(v); ok {
		return int(math.Max(0, math.Min(math.Floor(f), float64(len(r.Points)-1)))), true
	}
	if name, ok := v.Text(); ok {
		if i, ok := r.Index(name); ok {
			return i, true
		}
	}
	place, ok := s.place(param)
	if !ok {
		return 0, false
	}
	best, nearest := 0, math.Inf(1)
	for i, p := range r.Points {
		if d := distance(inside(p), place.at); d < nearest {
			best, nearest = i, d
		}
	}
	return best, true
}

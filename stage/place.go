package stage

import (
	"math"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// resolvedPlace is a place, with the entity or slot that its name refers to.
type resolvedPlace struct {
	at     scene.Point
	entity *entity // nil: a point
	slot   bool    // name is a slot's
	name   string  // of the slot, waypoint or entity, "" for numbers; may share memory with the signal
}

// resolvePlace resolves a parameter as a place: numbers, or the name of a slot, a
// waypoint, an entity or an agent. If that fails, a diagnostic is counted.
func (s *Stage) resolvePlace(param string) (resolvedPlace, bool) {
	v, ok := s.current.Param(param)
	if !ok {
		s.report(notePlace, "", "")
		return resolvedPlace{}, false
	}
	name, ok := v.Text()
	if !ok {
		at, ok := pointOf(v, true)
		if !ok {
			s.report(notePlace, "", "")
		}
		return resolvedPlace{at: at}, ok
	}
	if at, ok := s.slots[name]; ok {
		return resolvedPlace{at: inside(at), slot: true, name: name}, true
	}
	if at, ok := s.scene.Waypoints[name]; ok {
		return resolvedPlace{at: inside(at), name: name}, true
	}
	group := s.names[name]
	if len(group) == 0 && name != "" && s.isAgent(name) {
		group = s.resolve(name, nil)
	}
	if len(group) == 0 {
		s.report(notePlace, "", name)
		return resolvedPlace{}, false
	}
	e := group[0]
	return resolvedPlace{at: e.position(s.now), entity: e, name: e.id}, true
}

// isAgent reports whether a name that names no place counts as an agent, which then
// appears when an entity goes to it. In a scene that an author wrote, only its rules
// name agents: any other name is taken for a misspelling.
func (s *Stage) isAgent(name string) bool {
	if len(s.scene.Value()) == 0 {
		return true
	}
	_, ok := s.scene.Rule(name)
	return ok
}

// pointOf reads {x, y} or [x, y]. Unless both are required, a missing coordinate is 0.
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

// finite reads a number and clamps it to the limits of a stage.
func finite(v signal.Value) (float64, bool) {
	f, ok := v.Float64()
	if !ok || f != f {
		return 0, false
	}
	return math.Max(-farthest, math.Min(f, farthest)) + 0, true
}

// beside returns the place of e when it goes to another entity: on the side that it
// comes from, at half the sum of their sizes.
func (s *Stage) beside(e, to *entity, at scene.Point) scene.Point {
	if e == to {
		return at
	}
	own, other := s.lookOf(e), s.lookOf(to)
	gap := (float64(own.Size*e.value(chScale, s.now)) + float64(other.Size*to.value(chScale, s.now))) / 2
	if e.value(channelX, s.now) <= at.X {
		gap = -gap
	}
	return inside(scene.Point{X: at.X + gap, Y: at.Y})
}

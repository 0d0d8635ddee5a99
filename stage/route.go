package stage

import (
	"math"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

func (s *Stage) followRoute() {
	v, _ := s.current.Param("route")
	name, _ := v.Text()
	r, ok := s.scene.Routes[name]
	if !ok || len(r.Points) == 0 {
		s.report(notePlace, "", name)
		return
	}
	players := s.targets()
	from, hasFrom := s.waypoint("from", r)
	to, hasTo := s.waypoint("to", r)
	points := stretch(r, from, to, hasFrom, hasTo, s.flagParam("reverse"))
	lengths := lengthsOf(points)
	during, arrival := s.nameParam("animationDuring", ""), s.nameParam("animationOnArrival", "")
	for _, e := range players {
		if s.current.instant {
			s.take(e, position)
			end := points[len(points)-1]
			e.values[channelX], e.values[channelY] = end.X, end.Y
			s.arrive(e, during, arrival)
			continue
		}
		c := s.claimChannels(e, position, asRoute)
		c.points, c.lengths, c.arrival = points, lengths, arrival
		if during != "" {
			e.state = during
		}
	}
}

// waypoint reads a point of a route: its number, its name, or a place, which means the
// point nearest to it.
func (s *Stage) waypoint(param string, r scene.Route) (int, bool) {
	v, ok := s.current.Param(param)
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
	place, ok := s.resolvePlace(param)
	if !ok {
		return 0, false
	}
	best, nearest := 0, math.Inf(1)
	for i, p := range r.Points {
		if d := scene.Distance(inside(p), place.at); d < nearest {
			best, nearest = i, d
		}
	}
	return best, true
}

// stretch returns the points of a route from one of them to another. A closed route goes
// round, in the other direction if reversed; an open route is reversed as a whole.
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

// along returns the point at a share of a path, clamped to its ends.
func along(points []scene.Point, lengths []float64, p float64) scene.Point {
	last := len(points) - 1
	gone := float64(p * lengths[last])
	if !(gone > 0) {
		return points[0]
	}
	for i := 1; i <= last; i++ {
		if step := lengths[i] - lengths[i-1]; gone < lengths[i] && step > 0 {
			q := (gone - lengths[i-1]) / step
			return scene.Point{X: between(points[i-1].X, points[i].X, q), Y: between(points[i-1].Y, points[i].Y, q)}
		}
	}
	return points[last]
}

// lengthsOf returns the length of the path up to each point.
func lengthsOf(points []scene.Point) []float64 {
	lengths := make([]float64, len(points))
	for i := 1; i < len(points); i++ {
		lengths[i] = lengths[i-1] + scene.Distance(points[i-1], points[i])
	}
	return lengths
}

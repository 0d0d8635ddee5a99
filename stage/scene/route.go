package scene

import (
	"math"
	"slices"
	"sort"
)

// Route is a way along points; a closed one leads back to its first.
type Route struct {
	Points []Point  // two or more
	Names  []string // of the points, "" for one without; as long as Points
	Closed bool
}

// Index returns which of the points has a name; the first if several have it.
func (r Route) Index(name string) (int, bool) {
	i := slices.Index(r.Names, name)
	return i, i >= 0 && name != ""
}

// Line returns the line that r follows, back to its first point if it is
// closed.
func (r Route) Line() Line {
	if r.Closed && len(r.Points) > 0 {
		return LineThrough(append(slices.Clone(r.Points), r.Points[0]))
	}
	return LineThrough(r.Points)
}

// Line is a line through points that knows its length. It is immutable; the
// zero value is at 0, 0 and has no length.
//
// Its arithmetic is of sums, products and square roots that are each rounded by
// themselves, so a place on it has the same bits on every machine.
type Line struct {
	points []Point
	from   []float64 // how far along the line each point is
}

// LineThrough returns the line through points, which must not be changed
// afterwards.
func LineThrough(points []Point) Line {
	l := Line{points: points, from: make([]float64, len(points))}
	for i := 1; i < len(points); i++ {
		l.from[i] = l.from[i-1] + Distance(points[i-1], points[i])
	}
	return l
}

// Length returns how long the line is.
func (l Line) Length() float64 {
	if len(l.from) == 0 {
		return 0
	}
	return l.from[len(l.from)-1]
}

// Along returns the point at a share of the line's length, its ends for shares
// that are not between 0 and 1. It takes time proportional to the logarithm of
// the number of points.
func (l Line) Along(share float64) Point {
	if len(l.points) == 0 {
		return Point{}
	}
	last := len(l.points) - 1
	if !(share > 0) { // nor is what is no number
		return l.points[0]
	}
	if share >= 1 {
		return l.points[last]
	}
	way := float64(l.Length() * share)
	// The first point that is further along ends the stretch that is meant, so
	// it has a length.
	i := sort.Search(len(l.from), func(i int) bool { return l.from[i] > way })
	if i == 0 || i > last {
		return l.points[last]
	}
	part := (way - l.from[i-1]) / (l.from[i] - l.from[i-1])
	a, b := l.points[i-1], l.points[i]
	return Point{a.X + float64((b.X-a.X)*part), a.Y + float64((b.Y-a.Y)*part)}
}

// Distance returns how far two points are from each other.
func Distance(a, b Point) float64 {
	x, y := b.X-a.X, b.Y-a.Y
	return math.Sqrt(float64(x*x) + float64(y*y))
}

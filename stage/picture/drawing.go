package picture

import (
	"image/color"
	"math"
	"slices"
)

// Drawing is a list of shapes in the order in which they are painted. It is immutable
// once made, so many goroutines may write it.
type Drawing struct {
	width, height float64
	shapes        []shape
	ground        int // the number of shapes of the backdrop: filled rects and ellipses
	omitted       int
	boxes         []Box
}

// Size returns the drawing's own units, which are pixels at its natural size.
func (d *Drawing) Size() (width, height float64) { return d.width, d.height }

// Omitted returns the number of elements that are left out: figures, beams and speeches
// beyond the limits of a picture, and texts without room; see the package comment.
func (d *Drawing) Omitted() int { return d.omitted }

// Boxes returns the areas of the figures and the texts, so that a program can check a
// layout, or find the element at a point. They are in the order of their kinds, and within
// a kind in that of the frame.
func (d *Drawing) Boxes() []Box { return slices.Clone(d.boxes) }

// Box is the area of one element of a drawing, in the drawing's own units.
type Box struct {
	Kind       BoxKind
	Entity     string // the figure's id, of a figure and of its badge, label and bubble; otherwise ""
	Text       string // as it is written, with its lines joined by spaces; "" for figures and badges
	X, Y, W, H float64
}

// BoxKind is what a [Box] holds.
type BoxKind string

// The kinds of boxes.
const (
	BoxFigure BoxKind = "figure" // a figure without its shadow
	BoxBadge  BoxKind = "badge"  // the badge of a state
	BoxLabel  BoxKind = "label"  // the label of a figure
	BoxPlace  BoxKind = "place"  // the name of a slot, a waypoint or a route
	BoxBubble BoxKind = "bubble" // a speech, without its tail
	BoxNote   BoxKind = "note"   // the name of a sound
	BoxCount  BoxKind = "count"  // the number of omitted elements
	BoxMark   BoxKind = "mark"   // the mark of the frame
	BoxText   BoxKind = "text"   // a text of a page, a timeline or a sequence diagram
	BoxBar    BoxKind = "bar"    // a bar of a timeline
)

// kind determines which fields of a shape are used.
type kind uint8

const (
	rect    kind = iota // x y w h, corners of radius r
	ellipse             // centre x y, radii w h
	line                // from x y to w h, round ends
	outline             // path
	text                // from baseline x y, w wide
	use                 // symbol, moved, turned and scaled
	group               // children within x y w h, with one opacity
	panel               // another drawing, clipped to x y w h
)

// shape is one element of a drawing. One struct for all kinds keeps the list
// in one block of memory, because that makes drawing fast.
type shape struct {
	kind         kind
	bold         bool
	whole        bool // the built-in font has all characters of the text
	fill, stroke color.NRGBA
	opacity      float64 // of a use or a group

	x, y, w, h, r float64
	pen           float64 // width of the stroke, or of the line
	size          float64 // of the text, or the scale of a use
	turn          float64 // degrees clockwise of a use, about its pivot

	text     string
	path     []segment
	symbol   *symbol
	children []shape
	inner    *Drawing
}

// textShape returns a text whose anchor is at x.
func textShape(x, y, size float64, a anchor, bold bool, c color.NRGBA, t string) shape {
	w, whole := extent(t, size, bold)
	switch a {
	case start:
	case middle:
		x -= float64(w / 2)
	case end:
		x -= w
	}
	return shape{kind: text, x: x, y: y, w: w, size: size, whole: whole, bold: bold, fill: c, text: t}
}

// textBox returns the area of a text: its width, and the height that its letters can take.
func (s *shape) textBox() Box {
	return Box{Kind: BoxText, Text: s.text, X: s.x, Y: s.y - float64(s.size*.8), W: s.w, H: s.size}
}

// anchor is the point of a text that is at its x.
type anchor uint8

const (
	start anchor = iota
	middle
	end
)

// symbol is a list of shapes that many uses share. Its name is made of everything that
// determines its shapes, so that two symbols of one name are equal.
type symbol struct {
	name       string
	pivot      float64 // the y about which a use turns
	x, y, w, h float64 // its box
	cover      area    // what its shapes cover, of a figure
	shapes     []shape
}

// coverOf returns the area that shapes of a figure cover at most.
func coverOf(shapes []shape) area {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	reach := func(x, y, rx, ry float64) {
		low = point{math.Min(low.x, x-rx), math.Min(low.y, y-ry)}
		high = point{math.Max(high.x, x+rx), math.Max(high.y, y+ry)}
	}
	for i := range shapes {
		s := &shapes[i]
		e := float64(s.pen / 2)
		switch s.kind {
		case rect:
			reach(s.x+float64(s.w/2), s.y+float64(s.h/2), float64(s.w/2)+e, float64(s.h/2)+e)
		case ellipse:
			reach(s.x, s.y, s.w+e, s.h+e)
		case line:
			reach(s.x, s.y, e, e)
			reach(s.w, s.h, e, e)
		case outline: // a curve is within its control points
			for _, p := range s.path {
				for _, at := range p.p[:points(p.verb)] {
					reach(at.x, at.y, e, e)
				}
			}
		default: // figures have no others
		}
	}
	return area{low.x, low.y, high.x - low.x, high.y - low.y}
}

// points returns the number of points of a verb.
func points(verb byte) int {
	switch verb {
	case 'Z':
		return 0
	case 'Q':
		return 2
	case 'C':
		return 3
	}
	return 1
}

// segment is one command of a path. The points that its verb does not use are zero.
type segment struct {
	verb byte // M, L, Q, C or Z
	p    [3]point
}

type point struct{ x, y float64 }

// path reads the part of SVG's path syntax that the figures are written in:
// absolute M, L, Q, C and Z, each letter written out. It is for literals of
// this package only: a malformed one panics in the first test.
func path(d string) []segment {
	var segments []segment
	wants := map[byte]int{'M': 2, 'L': 2, 'Q': 4, 'C': 6, 'Z': 0}
	var verb byte
	var args []float64
	flush := func() {
		if verb == 0 {
			return
		}
		if len(args) != wants[verb] {
			panic("picture: bad path literal " + d)
		}
		s := segment{verb: verb}
		for i := 0; i < len(args); i += 2 {
			s.p[i/2] = point{args[i], args[i+1]}
		}
		segments = append(segments, s)
		args = args[:0]
	}
	for i := 0; i < len(d); {
		c := d[i]
		if _, ok := wants[c]; ok {
			flush()
			verb = c
			i++
			continue
		}
		if c == ' ' {
			i++
			continue
		}
		sign, n, scale, seen := 1.0, 0.0, 1.0, false
		if c == '-' {
			sign = -1
			i++
		}
		for point := false; i < len(d); i++ {
			if d[i] == '.' && !point {
				point = true
				continue
			}
			if d[i] < '0' || d[i] > '9' {
				break
			}
			seen = true
			n = float64(n*10) + float64(d[i]-'0')
			if point {
				scale *= 10
			}
		}
		if !seen {
			panic("picture: bad path literal " + d)
		}
		args = append(args, sign*n/scale)
	}
	flush()
	return segments
}

// finite reports whether every value is a number small enough to be drawn.
func finite(values ...float64) bool {
	for _, v := range values {
		if !(math.Abs(v) < 1e9) {
			return false
		}
	}
	return true
}

// clamp returns v within low and high, and low for NaN.
func clamp(v, low, high float64) float64 {
	if !(v > low) {
		return low
	}
	return min(v, high)
}

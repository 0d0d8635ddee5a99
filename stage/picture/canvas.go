package picture

import (
	"image/color"
	"strings"
)

// Canvas composes a drawing of plain shapes and texts, such as a diagram. Its texts are
// clean lines in the built-in fonts, and never wider than they may be.
type Canvas struct {
	// Colors are those of the theme.
	Colors Colors

	p page
}

// Colors are the colors of a diagram under a theme.
type Colors struct {
	Ground, Text, Dim color.NRGBA
	Good, Bad, Note   color.NRGBA
}

// NewCanvas returns an empty canvas of the given width, in units of a drawing.
func NewCanvas(width float64, theme Theme) *Canvas {
	c := &Canvas{p: page{inks: theme.page(), d: &Drawing{width: clamp(width, leastWidth, 4*mostWidth)}}}
	c.Colors = Colors{Ground: c.p.ground, Text: c.p.text, Dim: c.p.dim, Good: green, Bad: red, Note: amber}
	return c
}

// Width returns the width of the canvas.
func (c *Canvas) Width() float64 { return c.p.d.width }

// Finish returns the drawing with its height. The canvas must not be used any more.
func (c *Canvas) Finish(height float64) *Drawing { return c.p.finish(clamp(height, 1, 1e6)) }

// Omit counts elements that are left out, for [Drawing.Omitted].
func (c *Canvas) Omit(n int) { c.p.d.omitted += n }

// Mix returns a color with a share of another one, from 0 to 1.
func Mix(c, other color.NRGBA, share float64) color.NRGBA { return mix(c, other, clamp(share, 0, 1)) }

// Fade returns a color with a share of its opacity, from 0 to 1.
func Fade(c color.NRGBA, share float64) color.NRGBA { return fade(c, clamp(share, 0, 1)) }

// TextWidth returns the width of a text that [Canvas.Write] writes in full.
func TextWidth(text string, size float64, bold bool) float64 {
	return width(strings.TrimSpace(clean(text)), size, bold)
}

// CanvasText is a line of text on a canvas.
type CanvasText struct {
	Text  string
	X, Y  float64 // of its baseline, at its beginning, middle or end
	Size  float64
	Most  float64 // its greatest width: a longer text is cut, and ends in an ellipsis
	Align Align
	Bold  bool
	Color color.NRGBA
}

// Align says which point of a line is at its X.
type Align uint8

// The points of a line.
const (
	AlignStart  = Align(start)
	AlignMiddle = Align(middle)
	AlignEnd    = Align(end)
)

// Write writes a line and returns its box.
func (c *Canvas) Write(l CanvasText) Box {
	if !finite(l.X, l.Y, l.Size) {
		return Box{}
	}
	text := shorten(strings.TrimSpace(clean(l.Text)), l.Size, l.Bold, l.Most)
	if text == "" || text == "…" {
		return Box{}
	}
	c.p.write(l.X, l.Y, l.Size, anchor(l.Align), l.Bold, l.Color, text)
	return c.p.d.boxes[len(c.p.d.boxes)-1]
}

// Bar draws a rectangle with corners of radius r that has a box.
func (c *Canvas) Bar(x, y, w, h, r float64, fill color.NRGBA) {
	c.Rect(x, y, w, h, r, fill)
	c.p.d.boxes = append(c.p.d.boxes, Box{Kind: BoxBar, X: x, Y: y, W: w, H: h})
}

// Rect draws a rectangle with corners of radius r.
func (c *Canvas) Rect(x, y, w, h, r float64, fill color.NRGBA) {
	c.add(shape{kind: rect, x: x, y: y, w: w, h: h, r: r, fill: fill}, x, y, w, h, r)
}

// Frame draws the outline of a rectangle with corners of radius r.
func (c *Canvas) Frame(x, y, w, h, r, pen float64, stroke color.NRGBA) {
	c.add(shape{kind: rect, x: x, y: y, w: w, h: h, r: r, stroke: stroke, pen: pen}, x, y, w, h, r)
}

// Dot draws a disc.
func (c *Canvas) Dot(x, y, r float64, fill color.NRGBA) {
	c.add(shape{kind: ellipse, x: x, y: y, w: r, h: r, fill: fill}, x, y, r)
}

// Stroke draws a straight line.
func (c *Canvas) Stroke(x1, y1, x2, y2, pen float64, stroke color.NRGBA) {
	c.add(shape{kind: line, x: x1, y: y1, w: x2, h: y2, pen: pen, stroke: stroke}, x1, y1, x2, y2)
}

// Path draws a line through points, each an x and a y. A closed path is filled.
func (c *Canvas) Path(points [][2]float64, closed bool, pen float64, ink color.NRGBA) {
	if len(points) < 2 {
		return
	}
	segments := make([]segment, len(points), len(points)+1)
	for i, p := range points {
		if !finite(p[0], p[1]) {
			return
		}
		segments[i] = segment{verb: 'L', p: [3]point{{p[0], p[1]}}}
	}
	segments[0].verb = 'M'
	s := shape{kind: outline, path: segments, stroke: ink, pen: pen}
	if closed {
		s.path = append(segments, segment{verb: 'Z'})
		s.fill, s.stroke, s.pen = ink, color.NRGBA{}, 0
	}
	c.add(s)
}

// add adds a shape unless one of its numbers cannot be drawn.
func (c *Canvas) add(s shape, numbers ...float64) {
	if finite(numbers...) {
		c.p.d.shapes = append(c.p.d.shapes, s)
	}
}

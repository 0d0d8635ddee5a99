package picture

import (
	"image/color"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An image has the proportions of its drawing, down to a unit of width or height.
func TestImageOfSmallDrawings(t *testing.T) {
	for _, c := range []struct{ width, height, at, wantHeight float64 }{
		{1, 3, 60, 180},
		{3, 1, 60, 20},
		{1, 1, 60, 60},
		{0, 3, 60, 180},
		{3, 0, 60, 20}, // as a unit
	} {
		size := (&Drawing{width: c.width, height: c.height}).Image(int(c.at)).Rect.Size()
		assert.Equal(t, [2]float64{c.at, c.wantHeight}, [2]float64{float64(size.X), float64(size.Y)}, "%v by %v", c.width, c.height)
	}
}

// What is nested within the bound is painted, panels and groups alike, and what is deeper is
// not.
func TestNestingOfShapes(t *testing.T) {
	red := color.NRGBA{R: 255, A: 255}
	for _, within := range []kind{panel, group} {
		for depth := range deepest + 2 {
			d := &Drawing{width: 32, height: 32, shapes: []shape{{kind: rect, w: 32, h: 32, fill: red}}}
			for range depth {
				s := shape{kind: within, w: 32, h: 32, opacity: 1}
				if within == panel {
					s.inner = d
				} else {
					s.children = d.shapes
				}
				d = &Drawing{width: 32, height: 32, shapes: []shape{s}}
			}
			painted := d.Image(0).RGBAAt(16, 16).R == 255
			assert.Equal(t, depth <= deepest, painted, "%d levels of kind %d", depth, within)
		}
	}
}

// A text that is exactly as wide as its room is not shortened.
func TestShortenLeftKeepsWhatFits(t *testing.T) {
	const text, size = "… one two three", 14.0
	most := width(text, size, false)
	assert.Equal(t, text, shortenLeft(text, size, most))
	assert.Equal(t, "… two three", shortenLeft(text, size, most-1))
}

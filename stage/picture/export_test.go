package picture

import (
	"image"
	"image/color"
)

// Unexported functions that the external tests use.

// ParseColor returns the color as four channels.
func ParseColor(text string) [4]uint8 {
	c := parseColor(text, black)
	return [4]uint8{c.R, c.G, c.B, c.A}
}

// AppendNumber appends a number in the form of SVG.
func AppendNumber(dst []byte, v float64) []byte { return (&svg{b: dst}).num(v).b }

var (
	Clean   = clean
	Shorten = shorten
	Wrap    = wrap
	Width   = width
	Sincos  = sincos
	Blend   = blend
)

// ReadSVG makes a drawing of a document that AppendSVG wrote.
var ReadSVG = readSVG

// MostFigures is the limit of figures in a picture.
const MostFigures = mostFigures

// Palette returns at most n colors for the images.
func Palette(n int, images ...*image.RGBA) []color.RGBA {
	var h histogram
	for _, img := range images {
		h.add(img)
	}
	return h.palette(n)
}

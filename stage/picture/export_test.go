package picture

import (
	"image"
	"image/color"
	"reflect"
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

func plain(a area) [4]float64 { return [4]float64{a.x, a.y, a.w, a.h} }

// Inked returns the area of a figure of a hundred pixels, and the area that it is painted on.
func Inked(name string, turn float64) (kept, ink [4]float64) {
	art := artOf(name)
	sym := figureSymbol(art, neutral, color.NRGBA{}, 0, awake)
	d := &Drawing{width: 400, height: 400, shapes: []shape{{kind: use, symbol: sym, x: 200, y: 250, size: 1, turn: turn, opacity: 1}}}
	img := d.Image(0)
	var box image.Rectangle
	for y := range 400 {
		for x := range 400 {
			if img.RGBAAt(x, y).A > 40 { // not the faint outer pixels of an edge
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	a := (&stylist{}).covered(&actor{x: 200, y: 250, h: tall}, sym.cover, turn)
	kept = plain(area{a.x - 1, a.y - 1, a.w + 2, a.h + 2})
	return kept, [4]float64{float64(box.Min.X), float64(box.Min.Y), float64(box.Dx()), float64(box.Dy())}
}

// Find finds a free area by the sum of its distances.
func Find(width, height float64, taken [][4]float64, wanted, within [4]float64) (found [4]float64, ok bool) {
	g := newGrid(width, height)
	for _, b := range taken {
		g.take(area{b[0], b[1], b[2], b[3]})
	}
	at, ok := g.find(area{wanted[0], wanted[1], wanted[2], wanted[3]}, area{within[0], within[1], within[2], within[3]}, nearness)
	return plain(at), ok
}

// NewPlainRasterizer returns a rasterizer without sprites.
func NewPlainRasterizer() *Rasterizer {
	r := NewRasterizer()
	r.sprites.off = true
	return r
}

// Sprites returns the number of sprites that a rasterizer has made.
func (r *Rasterizer) Sprites() (n int) {
	for _, k := range r.sprites.young {
		if k.s != nil {
			n++
		}
	}
	return n
}

// Looks returns the number of looks that a rasterizer knows.
func (r *Rasterizer) Looks() int { return len(r.sprites.young) + len(r.sprites.old) }

// MostLooks is the limit of the looks in one generation.
const MostLooks = mostLooks

// Visual returns the characters of a text as they are painted.
var Visual = visual

// ShapeHashes returns the hash of a drawing of one empty shape, and of one for each field
// of a shape, in which that field alone is set.
func ShapeHashes() map[string][32]byte {
	hashes := map[string][32]byte{"": (&Drawing{shapes: []shape{{}}}).Hash()}
	set := map[string]func(*shape){
		"kind": func(s *shape) { s.kind = panel }, "bold": func(s *shape) { s.bold = true }, "whole": func(s *shape) { s.whole = true },
		"fill": func(s *shape) { s.fill.R = 1 }, "stroke": func(s *shape) { s.stroke.R = 1 }, "opacity": func(s *shape) { s.opacity = 1 },
		"x": func(s *shape) { s.x = 1 }, "y": func(s *shape) { s.y = 1 }, "w": func(s *shape) { s.w = 1 }, "h": func(s *shape) { s.h = 1 },
		"r": func(s *shape) { s.r = 1 }, "pen": func(s *shape) { s.pen = 1 }, "size": func(s *shape) { s.size = 1 }, "turn": func(s *shape) { s.turn = 1 },
		"text": func(s *shape) { s.text = "t" }, "path": func(s *shape) { s.path = []segment{{verb: 'M'}} },
		"symbol": func(s *shape) { s.symbol = &symbol{name: "n"} }, "children": func(s *shape) { s.children = []shape{{}} },
		"inner": func(s *shape) { s.inner = &Drawing{} },
	}
	fields := reflect.TypeFor[shape]()
	for i := range fields.NumField() {
		var s shape
		set[fields.Field(i).Name](&s)
		hashes[fields.Field(i).Name] = (&Drawing{shapes: []shape{s}}).Hash()
	}
	return hashes
}

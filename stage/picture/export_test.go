package picture

import (
	"image"
	"image/color"

	"github.com/sajou-dev/sajou-go/stage"
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

// Places has the areas of a picture's figures, badges and texts: labels, then bubbles, then
// notes.
type Places struct {
	Figures, Badges, Texts [][4]float64
	Owners                 []*[4]float64 // of each text, the figure that it stays near to, if there is one
}

func plain(a area) [4]float64 { return [4]float64{a.x, a.y, a.w, a.h} }

// Layout returns where the elements of a frame are.
func Layout(f *stage.Frame) Places {
	s := newStylist(f, Options{})
	s.draw(Options{})
	var p Places
	var owners []*[4]float64
	for i := range s.cast {
		a := &s.cast[i]
		p.Figures = append(p.Figures, plain(a.area))
		if around, ok := s.badgeArea(a); ok {
			p.Badges = append(p.Badges, plain(around))
		}
		if a.figure.Label != "" {
			owners = append(owners, &p.Figures[len(p.Figures)-1])
		}
	}
	var notes [][4]float64
	for i := range s.d.shapes {
		sh := &s.d.shapes[i]
		if sh.kind != rect || i < s.d.ground || i+1 == len(s.d.shapes) {
			continue
		}
		at := [4]float64{sh.x, sh.y, sh.w, sh.h}
		switch s.d.shapes[i+1].kind {
		case text:
			p.Texts = append(p.Texts, at)
		case use:
			notes = append(notes, at)
		default:
		}
	}
	p.Owners = owners
	for _, b := range s.bubbles {
		p.Texts, p.Owners = append(p.Texts, plain(b)), append(p.Owners, nil)
	}
	for i, sound := range s.f.Sounds {
		var owner *[4]float64
		if j, ok := s.byID[sound.Entity]; ok && sound.Entity != "" {
			a := plain(s.cast[j].area)
			owner = &a
		}
		p.Texts, p.Owners = append(p.Texts, notes[i]), append(p.Owners, owner)
	}
	return p
}

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

// Deflate compresses pieces of a stream.
func Deflate(pieces ...[]byte) []byte {
	var d deflater
	d.begin(nil)
	for _, p := range pieces {
		d.write(p)
	}
	return d.end()
}

package picture

import (
	"image/color"
	"math"
	"strconv"
	"unicode/utf8"
)

// fontStack names only fonts that viewers have. The Go fonts, with which the drawing was
// laid out, are close to Helvetica.
const fontStack = "Go,Helvetica,Arial,sans-serif"

// AppendSVG appends the drawing as an SVG 1.1 document and returns the extended
// slice. The bytes are the same on every machine.
func (d *Drawing) AppendSVG(dst []byte) []byte {
	w := svg{b: dst}
	w.put(`<svg xmlns="http://www.w3.org/2000/svg" width="`).num(d.width).put(`" height="`).num(d.height)
	w.put(`" viewBox="0 0 `).num(d.width).put(" ").num(d.height)
	w.put(`" font-family="` + fontStack + `">` + "\n")
	w.symbols(d)
	w.shapes(d.shapes)
	w.put("</svg>\n")
	return w.b
}

// svg appends elements to a document.
type svg struct {
	b     []byte
	known map[string]bool
}

func (w *svg) put(s string) *svg {
	w.b = append(w.b, s...)
	return w
}

// symbols defines every symbol that the drawing uses, once.
func (w *svg) symbols(d *Drawing) {
	w.known = map[string]bool{}
	mark := len(w.b)
	w.put("<defs>\n")
	empty := len(w.b)
	w.define(d.shapes)
	if len(w.b) == empty {
		w.b = w.b[:mark]
		return
	}
	w.put("</defs>\n")
}

func (w *svg) define(shapes []shape) {
	var last *symbol // figures of one symbol often follow each other
	for i := range shapes {
		s := &shapes[i]
		switch s.kind {
		case use:
			if s.symbol == last || w.known[s.symbol.name] {
				continue
			}
			last = s.symbol
			w.known[s.symbol.name] = true
			w.put(`<g id="`).put(s.symbol.name).put("\">\n")
			w.shapes(s.symbol.shapes)
			w.put("</g>\n")
		case group:
			w.define(s.children)
		case panel:
			w.define(s.inner.shapes)
		default:
		}
	}
}

func (w *svg) shapes(shapes []shape) {
	for i := range shapes {
		w.shape(&shapes[i])
	}
}

func (w *svg) shape(s *shape) {
	switch s.kind {
	case rect:
		w.put("<rect").at("x", s.x).at("y", s.y).attr("width", s.w).attr("height", s.h).at("rx", s.r).paint(s).put("/>\n")
	case ellipse:
		if s.w == s.h {
			w.put("<circle").at("cx", s.x).at("cy", s.y).attr("r", s.w).paint(s).put("/>\n")
			return
		}
		w.put("<ellipse").at("cx", s.x).at("cy", s.y).attr("rx", s.w).attr("ry", s.h).paint(s).put("/>\n")
	case line:
		w.put("<line").at("x1", s.x).at("y1", s.y).at("x2", s.w).at("y2", s.h).paint(s).put("/>\n")
	case outline:
		w.put(`<path d="`).path(s.path).put(`"`).paint(s).put("/>\n")
	case text:
		w.text(s)
	case use:
		w.put(`<use href="#`).put(s.symbol.name).put(`" transform="translate(`).num(s.x).put(" ").num(s.y).put(")")
		if s.turn != 0 {
			w.put("rotate(").num(s.turn)
			if s.symbol.pivot != 0 {
				w.put(" 0 ").num(float64(s.symbol.pivot * s.size))
			}
			w.put(")")
		}
		w.put("scale(").fixed(s.size, 4).put(`)"`).opacity(s.opacity).put("/>\n")
	case group:
		w.put("<g").opacity(s.opacity).put(">\n")
		w.shapes(s.children)
		w.put("</g>\n")
	case panel:
		w.put("<svg").at("x", s.x).at("y", s.y).attr("width", s.w).attr("height", s.h)
		w.put(` viewBox="0 0 `).num(s.inner.width).put(" ").num(s.inner.height).put("\">\n")
		w.shapes(s.inner.shapes)
		w.put("</svg>\n")
	}
}

// at writes an attribute whose default is 0.
func (w *svg) at(name string, v float64) *svg {
	if math.Abs(v) < .005 {
		return w
	}
	return w.attr(name, v)
}

func (w *svg) attr(name string, v float64) *svg {
	return w.put(" ").put(name).put(`="`).num(v).put(`"`)
}

func (w *svg) opacity(v float64) *svg {
	if v >= 1 {
		return w
	}
	return w.attr("opacity", v)
}

func (w *svg) path(p []segment) *svg {
	for i := range p {
		w.b = append(w.b, p[i].verb)
		n := 1
		switch p[i].verb {
		case 'Q':
			n = 2
		case 'C':
			n = 3
		case 'Z':
			n = 0
		}
		for j, at := range p[i].p[:n] {
			if j > 0 {
				w.put(" ")
			}
			w.num(at.x).put(" ").num(at.y)
		}
	}
	return w
}

// paint writes the fill and the stroke of a shape.
func (w *svg) paint(s *shape) *svg {
	if s.kind != line {
		if s.fill.A == 0 {
			w.put(` fill="none"`)
		} else {
			w.color("fill", s.fill)
		}
	}
	if s.pen > 0 && s.stroke.A > 0 {
		w.color("stroke", s.stroke).attr("stroke-width", s.pen)
		if s.kind == line || s.kind == outline {
			w.put(` stroke-linecap="round" stroke-linejoin="round"`)
		}
	}
	return w
}

func (w *svg) color(name string, c color.NRGBA) *svg {
	const digits = "0123456789abcdef"
	w.put(" ").put(name).put(`="#`)
	if c.R%17 == 0 && c.G%17 == 0 && c.B%17 == 0 {
		w.b = append(w.b, digits[c.R>>4], digits[c.G>>4], digits[c.B>>4], '"')
	} else {
		w.b = append(w.b, digits[c.R>>4], digits[c.R&15], digits[c.G>>4], digits[c.G&15], digits[c.B>>4], digits[c.B&15], '"')
	}
	if c.A != 255 {
		w.put(" ").put(name).put(`-opacity="`).fixed(float64(c.A)/255, 3).put(`"`)
	}
	return w
}

func (w *svg) text(s *shape) {
	w.put("<text").attr("x", s.x).attr("y", s.y).attr("font-size", s.size)
	switch s.anchor {
	case start:
	case middle:
		w.put(` text-anchor="middle"`)
	case end:
		w.put(` text-anchor="end"`)
	}
	if s.bold {
		w.put(` font-weight="bold"`)
	}
	// The viewer's font may be wider than the one that the text was laid out with.
	if s.w > 0 {
		w.attr("textLength", s.w).put(` lengthAdjust="spacingAndGlyphs"`)
	}
	w.color("fill", s.fill).put(">").escape(s.text).put("</text>\n")
}

// escape writes character data. Texts are clean already. It still replaces the characters
// that XML cannot hold, so that every document is well-formed.
func (w *svg) escape(s string) *svg {
	for _, r := range s {
		switch {
		case r == '&':
			w.put("&amp;")
		case r == '<':
			w.put("&lt;")
		case r == '>':
			w.put("&gt;")
		case r < ' ' || r == 0xfffe || r == 0xffff:
			w.put("\ufffd")
		default:
			w.b = utf8.AppendRune(w.b, r)
		}
	}
	return w
}

// num writes a number rounded to hundredths.
func (w *svg) num(v float64) *svg { return w.fixed(v, 2) }

// fixed writes a number with at most the given decimals, in the shortest form.
// It works on whole numbers: a product, a rounding, and no more of floats.
func (w *svg) fixed(v float64, decimals int) *svg {
	scale := [...]float64{1, 10, 100, 1000, 10000}[decimals]
	n := int64(math.Round(clamp(v, -1e9, 1e9) * scale))
	if n < 0 {
		w.b = append(w.b, '-')
		n = -n
	}
	one := int64(scale)
	whole, part := n/one, n%one
	if whole > 0 || part == 0 {
		w.b = strconv.AppendInt(w.b, whole, 10)
	}
	if part == 0 {
		return w
	}
	w.b = append(w.b, '.')
	for part > 0 {
		one /= 10
		w.b = append(w.b, byte('0'+part/one))
		part %= one
	}
	return w
}

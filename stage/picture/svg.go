package picture

import (
	"image/color"
	"math"
	"strconv"
	"unicode/utf8"

	"golang.org/x/image/font/sfnt"
)

// fontStack is for the texts that the built-in fonts cannot set. The fonts that it names
// are close to the built-in ones.
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
	b      []byte
	known  map[string]bool
	common [2][0x600]bool  // the defined outlines of a face, of the characters of its table
	glyphs map[letter]bool // and of others
	font   sfnt.Buffer
}

// letter is a character of one of the built-in fonts.
type letter struct {
	bold bool
	r    rune
}

func (w *svg) put(s string) *svg {
	w.b = append(w.b, s...)
	return w
}

// symbols defines every symbol and every letter that the drawing uses, once.
func (w *svg) symbols(d *Drawing) {
	w.known, w.glyphs = map[string]bool{}, map[letter]bool{}
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
		case text:
			if s.whole {
				w.letters(s)
			}
		default:
		}
	}
}

// letters defines the outlines of a text, in the units of the font. So they are exact, and
// the places of the letters are whole numbers.
func (w *svg) letters(s *shape) {
	f := faceOf(s.bold)
	em := float64(f.em >> 6)
	for _, r := range s.text {
		l := letter{s.bold, r}
		if r == ' ' || w.defined(l) {
			continue
		}
		g, _ := f.glyph(&w.font, 0, r)
		outline := f.outline(&w.font, g)
		for i := range outline {
			for j := range outline[i].p {
				p := &outline[i].p[j]
				p.x, p.y = float64(p.x*em), float64(p.y*em)
			}
		}
		w.put(`<path id="`).letter(l).put(`" d="`).path(outline).put("\"/>\n")
	}
}

// defined reports whether a letter was defined, and notes that it is.
func (w *svg) defined(l letter) bool {
	if int(l.r) >= len(w.common[0]) {
		known := w.glyphs[l]
		w.glyphs[l] = true
		return known
	}
	face := &w.common[0]
	if l.bold {
		face = &w.common[1]
	}
	known := face[l.r]
	face[l.r] = true
	return known
}

// letter writes the name of a defined letter.
func (w *svg) letter(l letter) *svg {
	if l.bold {
		w.put("gobold")
	} else {
		w.put("go")
	}
	w.b = strconv.AppendInt(w.b, int64(l.r), 16)
	return w
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
		for j, at := range p[i].p[:points(p[i].verb)] {
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

// text writes a text so that it is as wide as the drawing says in every viewer. The
// built-in font may be missing there, so the letters are outlines, and the text is the
// label of their group. A text with other characters is left to the viewer's fonts: it is
// fitted to its width, and clipped to it by viewers that do not know textLength.
func (w *svg) text(s *shape) {
	if !s.whole {
		w.foreign(s)
		return
	}
	f := faceOf(s.bold)
	em := float64(f.em >> 6)
	w.put(`<g transform="translate(`).num(s.x).put(" ").num(s.y).put(")scale(").fixed(s.size/em, 6).put(`)"`)
	w.color("fill", s.fill).put(` aria-label="`).escape(s.text).put(`">`)
	at := 0
	for _, r := range s.text {
		if r != ' ' {
			w.put(`<use href="#`).letter(letter{s.bold, r})
			if at > 0 {
				w.put(`" x="`)
				w.b = strconv.AppendInt(w.b, int64(at), 10)
			}
			w.put(`"/>`)
		}
		if int(r) < len(f.advances) {
			at += int(f.advances[r])
		} else {
			_, advance := f.glyph(&w.font, 0, r)
			at += int(math.Round(advance * em))
		}
	}
	w.put("</g>\n")
}

// foreign writes a text that the built-in font cannot set.
func (w *svg) foreign(s *shape) {
	margin, rise, high := float64(s.size*.2), float64(s.size*1.05), float64(s.size*1.4)
	wide := s.w + float64(2*margin)
	w.put("<svg").at("x", s.x-margin).at("y", s.y-rise).attr("width", wide).attr("height", high)
	w.put(` viewBox="0 0 `).num(wide).put(" ").num(high).put("\">\n")
	w.put("<text").attr("x", margin).attr("y", rise).attr("font-size", s.size)
	if s.bold {
		w.put(` font-weight="bold"`)
	}
	if s.w > 0 {
		w.attr("textLength", s.w).put(` lengthAdjust="spacingAndGlyphs"`)
	}
	w.color("fill", s.fill).put(">").escape(s.text).put("</text>\n</svg>\n")
}

// escape writes character data or the value of an attribute. Texts are clean already. It still replaces the characters
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
		case r == '"':
			w.put("&quot;")
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
	scale := [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6}[decimals]
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

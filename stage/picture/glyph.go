package picture

import (
	"image"

	"golang.org/x/image/font/sfnt"
)

// text paints a line of text whose baseline begins at the origin. Characters without a glyph
// in the built-in fonts are painted with the rasterizer's own font, or become boxes.
func (r *Rasterizer) text(dst *image.RGBA, s *shape, m matrix) {
	f, which := faceOf(s.bold), 0
	if s.bold {
		which = 1
	}
	x := 0.0
	last := rune(0)
	for _, c := range visual(s.text, r.foreign != nil && !s.whole) {
		g, w := f.glyph(&r.font, last, c)
		last = c
		advance := float64(w * s.size)
		switch {
		case g == 0 && r.foreignLetter(c, s.size, x, advance, m):
		case g == 0 && w > 0:
			e := float64(s.size * .05)
			left, top := x+e, -float64(s.size*.7)
			r.box(left, top, advance-float64(2*e), float64(s.size*.78), 2*e, m, false)
			r.box(left+e, top+e, advance-float64(4*e), float64(s.size*.78)-float64(2*e), e, m, true)
		case g != 0 && c != ' ':
			glyphs, ok := r.glyphs[which][g]
			if !ok {
				glyphs = f.outline(&r.font, g)
				r.glyphs[which][g] = glyphs
			}
			r.path(glyphs, m.of(matrix{a: s.size, d: s.size, e: x}))
		}
		x += advance
	}
	r.fill(dst, s.fill)
}

// outline reads a glyph's outline, in ems.
func (f *face) outline(b *sfnt.Buffer, g sfnt.GlyphIndex) []segment {
	segments, err := f.font.LoadGlyph(b, g, f.em, nil)
	if err != nil {
		return nil // does not happen: the built-in fonts match their tables
	}
	out := make([]segment, 0, len(segments))
	em := float64(f.em)
	for _, s := range segments {
		t := segment{verb: [...]byte{
			sfnt.SegmentOpMoveTo: 'M', sfnt.SegmentOpLineTo: 'L', sfnt.SegmentOpQuadTo: 'Q', sfnt.SegmentOpCubeTo: 'C',
		}[s.Op]}
		for i, p := range s.Args {
			t.p[i] = point{float64(p.X) / em, float64(p.Y) / em}
		}
		out = append(out, t)
	}
	return out
}

package picture

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// MaxFont bounds the bytes of a font file. Fonts of Chinese characters have about 20 MiB.
const MaxFont = 128 << 20

// ErrFont reports that a file is not a font that pictures can use.
var ErrFont = errors.New("not a usable font")

// Font has outlines of characters that the built-in fonts lack, for images. It is immutable.
//
// Letters are placed one after the other, each fitted to the width that the drawing has for
// it. Arabic letters take the forms by which they join, if the font has the characters of
// these forms, and runs of Arabic and Hebrew are written from right to left; ligatures and
// marks above letters are not. Of emoji, only outlines are drawn, in one color: fonts that
// hold pictures have none.
type Font struct {
	face face
}

// ParseFont reads a TrueType or OpenType font, or the first font of a collection. The error
// matches [ErrFont].
func ParseFont(data []byte) (*Font, error) {
	if len(data) > MaxFont {
		return nil, fmt.Errorf("picture: %w: it has more than %d MiB", ErrFont, MaxFont>>20)
	}
	parsed, err := sfnt.Parse(data)
	if bytes.HasPrefix(data, []byte("ttcf")) {
		var all *sfnt.Collection
		if all, err = sfnt.ParseCollection(data); err == nil {
			parsed, err = all.Font(0)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("picture: %w: %w", ErrFont, err)
	}
	// The format allows these units. Others would make outlines of no size, or overflow.
	if u := parsed.UnitsPerEm(); u < 16 || u > 16384 {
		return nil, fmt.Errorf("picture: %w: it has %d units per em", ErrFont, u)
	}
	f := &Font{}
	f.face.font, f.face.em = parsed, fixed.I(int(parsed.UnitsPerEm()))
	return f, nil
}

// letter returns the outline of a character, in ems, and its advance; false if the font has
// none.
func (f *Font) letter(b *sfnt.Buffer, r rune) (outline []segment, advance float64, ok bool) {
	g, err := f.face.font.GlyphIndex(b, r)
	if err != nil || g == 0 {
		return nil, 0, false
	}
	outline = f.face.outline(b, g)
	a, err := f.face.font.GlyphAdvance(b, g, f.face.em, font.HintingNone)
	if err != nil || len(outline) == 0 {
		return nil, 0, false // a picture, or damaged
	}
	advance = float64(a) / float64(f.face.em)
	for _, s := range outline {
		for _, p := range s.p {
			if !(math.Abs(p.x) < 16 && math.Abs(p.y) < 16) {
				return nil, 0, false // no letter is so large
			}
		}
	}
	return outline, advance, true
}

// SetFont gives the rasterizer a font for the characters that the built-in fonts lack; nil
// for none. It may be set before the first image only.
func (r *Rasterizer) SetFont(f *Font) { r.foreign = f }

// foreignLetter adds the outline of a character of the rasterizer's font at x, fitted to its
// width.
func (r *Rasterizer) foreignLetter(c rune, size, x, width float64, m matrix) bool {
	if r.foreign == nil || width == 0 {
		return false
	}
	outline, advance, ok := r.foreign.letter(&r.font, c)
	if !ok {
		return false
	}
	scale := size
	if wide := float64(advance * size); wide > width {
		scale = float64(size * (width / wide))
	}
	x += math.Max(0, float64((width-float64(advance*scale))/2))
	r.path(outline, m.of(matrix{a: scale, d: scale, e: x}))
	return true
}

// Missing returns the characters of a drawing for which neither the built-in fonts nor f have
// a glyph, each once, in order. In images they are boxes. F may be nil.
func (d *Drawing) Missing(f *Font) []rune {
	missing := map[rune]bool{}
	var b sfnt.Buffer
	d.missing(f, &b, d.shapes, missing)
	all := make([]rune, 0, len(missing))
	for r := range missing {
		all = append(all, r)
	}
	slices.Sort(all)
	return all
}

func (d *Drawing) missing(f *Font, b *sfnt.Buffer, shapes []shape, missing map[rune]bool) {
	for i := range shapes {
		s := &shapes[i]
		switch s.kind {
		case group:
			d.missing(f, b, s.children, missing)
		case panel:
			d.missing(f, b, s.inner.shapes, missing)
		case text:
			if s.whole {
				continue
			}
			last := rune(0)
			for _, r := range visual(s.text, f != nil) {
				g, w := faceOf(s.bold).glyph(b, last, r)
				last = r
				if g != 0 || w == 0 {
					continue
				}
				if f != nil {
					if _, _, ok := f.letter(b, r); ok {
						continue
					}
				}
				missing[r] = true
			}
		default:
		}
	}
}

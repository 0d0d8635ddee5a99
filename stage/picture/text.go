package picture

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// mostText bounds the bytes of one text that are read.
const mostText = 4096

// clean returns s as one line of visible characters: white space becomes
// spaces; control characters become their Unicode pictures. Characters that
// change the direction of the text around them, invisible ones (except joiners and
// soft hyphens), and those that XML cannot hold become U+FFFD.
func clean(s string) string {
	if len(s) > mostText {
		s = s[:mostText]
	}
	plain := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			r = ' '
		case r < ' ':
			r += '\u2400'
		case r == 0x7f:
			r = '\u2421'
		case r < 0xa0 && r > 0x7f, r == 0xfffe, r == 0xffff, r == '\ufeff':
			r = utf8.RuneError
		case r == '\u200c' || r == '\u200d' || r == '\u00ad': // joiners, which scripts and emoji need, and soft hyphens
		case unicode.Is(unicode.Cf, r): // direction marks, zero-width spaces and tags can carry text that readers do not see
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

// face is one of the two built-in fonts of the Go family, which has Latin, Greek and
// Cyrillic letters and common signs.
type face struct {
	font     *sfnt.Font
	em       fixed.Int26_6 // one em, so that advances are whole font units
	advances [0x600]uint16 // of the characters below, in font units; 0 if there is none
	glyphs   [0x600]sfnt.GlyphIndex
}

// faces are parsed once in a process, and are safe for many goroutines.
var faces = sync.OnceValue(func() *[2]face {
	var two [2]face
	for i, data := range [2][]byte{goregular.TTF, gobold.TTF} {
		f, err := sfnt.Parse(data)
		if err != nil {
			panic("picture: a built-in font does not parse: " + err.Error())
		}
		two[i].font, two[i].em = f, fixed.I(int(f.UnitsPerEm()))
		var b sfnt.Buffer
		for r := range two[i].advances {
			if g, err := f.GlyphIndex(&b, rune(r)); err == nil && g != 0 {
				two[i].glyphs[r] = g
				two[i].advances[r] = two[i].measure(&b, g)
			}
		}
	}
	return &two
})

func faceOf(bold bool) *face {
	if bold {
		return &faces()[1]
	}
	return &faces()[0]
}

func (f *face) measure(b *sfnt.Buffer, g sfnt.GlyphIndex) uint16 {
	advance, err := f.font.GlyphAdvance(b, g, f.em, font.HintingNone)
	if err != nil || advance < 0 {
		return 0
	}
	return uint16(advance >> 6)
}

// joiner makes one emoji of two.
const joiner = '\u200d'

// glyph returns the glyph of r and its width in ems. Without one the glyph is 0, and the
// width is about that of the fonts which have the character, or 0 if it joins with the
// character before, which is last.
func (f *face) glyph(b *sfnt.Buffer, last, r rune) (sfnt.GlyphIndex, float64) {
	em := float64(f.em >> 6)
	if int(r) < len(f.glyphs) {
		if g := f.glyphs[r]; g != 0 {
			return g, float64(f.advances[r]) / em
		}
	} else if g, err := f.font.GlyphIndex(b, r); err == nil && g != 0 {
		return g, float64(f.measure(b, g)) / em
	}
	switch {
	case last == joiner, unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r >= 0x1f3fb && r <= 0x1f3ff: // the last are colors of skin
		return 0, 0
	case displaywidth.Rune(r) < 2:
		return 0, .65
	case r >= 0x1f000 && r < 0x20000: // emoji
		return 0, 1.25
	}
	return 0, 1
}

// width returns the width of a clean text of the given size in the built-in font.
func width(s string, size float64, bold bool) float64 {
	w, _ := extent(s, size, bold)
	return w
}

// extent returns the width of a clean text, and whether the built-in font has
// all of its characters.
func extent(s string, size float64, bold bool) (float64, bool) {
	f := faceOf(bold)
	sum, whole, last := 0.0, true, rune(0)
	for _, r := range s {
		g, w := f.glyph(nil, last, r)
		sum += w
		whole = whole && g != 0
		last = r
	}
	return float64(sum * size), whole
}

// shorten returns a clean text that is at most as wide as most: s, or its beginning and an
// ellipsis. It never splits a grapheme cluster.
func shorten(s string, size float64, bold bool, most float64) string {
	if width(s, size, bold) <= most {
		return s
	}
	most -= width("…", size, bold)
	used, cut := 0.0, 0
	for g := displaywidth.StringGraphemes(s); g.Next(); {
		used += width(g.Value(), size, bold)
		if used > most {
			break
		}
		cut += len(g.Value())
	}
	return strings.TrimRight(s[:cut], " ") + "…"
}

// wrap breaks a clean text into lines at most as wide as most. If there are more than
// lines, it keeps the last ones after an ellipsis, because a text that is being typed
// grows at its end.
func wrap(s string, size float64, most float64, lines int) []string {
	var out []string
	var current string
	space := width(" ", size, false)
	used := 0.0
	flush := func() {
		if current != "" {
			out = append(out, current)
		}
		current, used = "", 0
	}
	for word := range strings.FieldsSeq(s) {
		w := width(word, size, false)
		if current != "" && used+space+w <= most {
			current += " " + word
			used += space + w
			continue
		}
		flush()
		if w <= most {
			current, used = word, w
			continue
		}
		for g := displaywidth.StringGraphemes(word); g.Next(); {
			w := width(g.Value(), size, false)
			if current != "" && used+w > most {
				flush()
			}
			current += g.Value()
			used += w
		}
	}
	flush()
	if len(out) > lines {
		out = out[len(out)-lines:]
		out[0] = shortenLeft("… "+out[0], size, most)
	}
	return out
}

// shortenLeft removes words after the ellipsis at the beginning of a text until it is at
// most as wide as most.
func shortenLeft(s string, size, most float64) string {
	for width(s, size, false) > most {
		_, rest, ok := strings.Cut(s[len("… "):], " ")
		if !ok {
			return shorten(s, size, false, most)
		}
		s = "… " + rest
	}
	return s
}

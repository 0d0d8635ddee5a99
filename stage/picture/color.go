package picture

import (
	"image/color"
	"math"
	"strings"

	"golang.org/x/image/colornames"
)

// The colors that do not come from a scene.
var (
	white   = color.NRGBA{255, 255, 255, 255}
	black   = color.NRGBA{0, 0, 0, 255}
	ink     = color.NRGBA{15, 23, 42, 255}
	paper   = color.NRGBA{248, 250, 252, 255}
	night   = color.NRGBA{16, 24, 38, 255} // the background of a scene that names none
	neutral = color.NRGBA{148, 163, 184, 255}
	gold    = color.NRGBA{251, 191, 36, 255}
	green   = color.NRGBA{34, 197, 94, 255}
	red     = color.NRGBA{239, 68, 68, 255}
	blue    = color.NRGBA{56, 132, 255, 255}
	amber   = color.NRGBA{245, 158, 11, 255}
)

// parseColor reads a CSS color: a name, #rgb, #rgba, #rrggbb or #rrggbbaa.
func parseColor(text string, otherwise color.NRGBA) color.NRGBA {
	const longest = 32 // "lightgoldenrodyellow" is the longest name
	text = strings.TrimSpace(text)
	if text == "" || len(text) > longest {
		return otherwise
	}
	if text[0] != '#' {
		switch name := strings.ToLower(text); name {
		case "transparent":
			return color.NRGBA{}
		case "rebeccapurple": // newer than the list of SVG 1.1
			return color.NRGBA{102, 51, 153, 255}
		default:
			if c, ok := colornames.Map[name]; ok {
				return color.NRGBA(c) // every name is opaque
			}
			return otherwise
		}
	}
	var digits [8]uint8
	hex := text[1:]
	if len(hex) > len(digits) {
		return otherwise
	}
	for i := range len(hex) {
		d := strings.IndexByte("0123456789abcdef", hex[i]|0x20)
		if d < 0 || hex[i] < '0' { // |0x20 would let control characters pass as digits
			return otherwise
		}
		digits[i] = uint8(d)
	}
	switch len(hex) {
	case 3:
		return color.NRGBA{digits[0] * 17, digits[1] * 17, digits[2] * 17, 255}
	case 4:
		return color.NRGBA{digits[0] * 17, digits[1] * 17, digits[2] * 17, digits[3] * 17}
	case 6:
		return color.NRGBA{digits[0]<<4 | digits[1], digits[2]<<4 | digits[3], digits[4]<<4 | digits[5], 255}
	case 8:
		return color.NRGBA{digits[0]<<4 | digits[1], digits[2]<<4 | digits[3], digits[4]<<4 | digits[5], digits[6]<<4 | digits[7]}
	}
	return otherwise
}

// mix interpolates from a to b by share, with a's alpha. It computes with integers, so
// that the result is the same on every machine.
func mix(a, b color.NRGBA, share float64) color.NRGBA {
	t := int(level(share))
	between := func(a, b uint8) uint8 { return uint8((int(a)*(255-t) + int(b)*t + 127) / 255) }
	return color.NRGBA{between(a.R, b.R), between(a.G, b.G), between(a.B, b.B), a.A}
}

// fade returns c with its alpha multiplied.
func fade(c color.NRGBA, opacity float64) color.NRGBA {
	c.A = uint8((int(c.A)*int(level(opacity)) + 127) / 255)
	return c
}

// level quantizes a share to one of 256 steps; NaN counts as 0.
func level(share float64) uint8 {
	switch {
	case !(share > 0):
		return 0
	case share >= 1:
		return 255
	}
	return uint8(math.Round(share * 255))
}

// bright reports whether dark text reads better on c than light text.
func bright(c color.NRGBA) bool {
	return 299*int(c.R)+587*int(c.G)+114*int(c.B) > 140*1000
}

package picture

// What the tests of this package look at from outside.

// ParseColor returns the color as four channels.
func ParseColor(text string) [4]uint8 {
	c := parseColor(text, black)
	return [4]uint8{c.R, c.G, c.B, c.A}
}

// AppendNumber appends a number as SVG has it.
func AppendNumber(dst []byte, v float64) []byte { return (&svg{b: dst}).num(v).b }

var (
	Clean   = clean
	Shorten = shorten
	Wrap    = wrap
	Width   = width
	Sincos  = sincos
)

// ReadSVG makes a drawing of what AppendSVG wrote.
var ReadSVG = readSVG

// MostFigures is how many figures are drawn.
const MostFigures = mostFigures

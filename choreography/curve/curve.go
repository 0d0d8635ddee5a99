// Package curve evaluates the easings of animations: named curves and curves given by
// numbers.
//
// It is pure, and every value is the same on every machine: each product is rounded
// before the next operation, and sines and exponentials come from internal/detmath.
package curve

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/detmath"
	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Curve is an easing: it maps the share of an action's time that has passed to the
// progress of the action. The zero value is linear. Curves are comparable with ==.
//
// A curve is written as the name of a built-in one or as data:
//
//	linear                           t, the share of the time
//	easeIn                           t²
//	easeOut                          1 - (1-t)²
//	easeInOut                        4t³ below ½, then 1 - (2-2t)³/2
//	arc                              4t(1-t), a height: it returns to 0
//	cubic-bezier(x1, y1, x2, y2)     as in CSS; x1 and x2 are in [0, 1]
//	steps(n)                         n jumps, the last at the end
//	steps(n, start|end|none|both)    as in CSS: which ends have a jump
//	spring(mass, stiffness, damping) from rest, released at 0, settling at 1
//
// A spring takes as long as the action: the time in which it comes to rest within a
// thousandth is scaled to the action's length. Its shape therefore depends only on its
// damping ratio, damping divided by twice the root of stiffness times mass: below 1 it
// swings, at 1 it does not.
type Curve struct {
	kind curveKind

	// cubic-bezier: x1, y1, x2, y2.
	// steps: the number, the [jump].
	// spring: mass, stiffness, damping, and the phase (root of stiffness over
	// mass, times time) at which it has settled, which follows from them.
	a, b, c, d float64
}

// curveKind is the kind of a curve. The zero value is linear.
type curveKind uint8

const (
	curveLinear curveKind = iota
	curveEaseIn
	curveEaseOut
	curveEaseInOut
	curveArc

	// Of bindings, whose formulas differ under the same names.
	curveBindingInOut
	curveBindingArc

	curveBezier
	curveSteps
	curveSpring
)

// jump names the ends at which a steps curve jumps besides between its steps.
type jump int

const (
	jumpEnd jump = iota
	jumpStart
	jumpNone
	jumpBoth
)

var jumpNames = [...]string{jumpEnd: "end", jumpStart: "start", jumpNone: "none", jumpBoth: "both"}

// Bounds of the parameters of a curve. They keep every value finite, and are far
// beyond any visible difference.
const (
	maxCurveText  = 200     // bytes of a written curve
	maxNumberText = 30      // bytes of a number in it
	maxBezierY    = 1000    // how far a cubic-bezier may exceed its ends
	maxSteps      = 1 << 20 // jumps of a steps curve
	maxSpring     = 1e6     // mass, stiffness and damping
	minSpring     = 1e-6
	minDamping    = 0.005 // damping ratio: some 200 swings
	maxDamping    = 1000
	settled       = 0.001 // the distance from rest at which a spring counts as at rest
)

// The reasons for which [Parse] refuses a text. A define entry is refused with them,
// so they are part of its format: never reword them.
const (
	reasonLength     = "a curve of more than %d characters"
	reasonName       = "no curve is called %s: it is one of %s, or %s"
	reasonEnd        = "the curve does not end with )"
	reasonForm       = "no curve is called %s: there are %s"
	reasonBezierX    = "x1 and x2 of a cubic-bezier must be between 0 and 1"
	reasonBezierY    = "y1 and y2 of a cubic-bezier must be between -%d and %[1]d"
	reasonJump       = "steps jump at %s, not at %s"
	reasonSteps      = "the number of steps must be a whole number from %g to %d"
	reasonSpring     = "the %s of a spring must be between %g and %g"
	reasonSwings     = "the spring swings for too long: its damping must be at least %.4g"
	reasonStiff      = "the spring hardly moves: its damping must be at most %.4g"
	reasonCount      = "%s takes %d numbers, not %d"
	reasonNumberText = "%s is no number of at most %d characters"
	reasonNumber     = "%s is no number"
)

// Parse reads the name of a built-in curve, or a curve given as data such as
// "cubic-bezier(0.2, 0, 0, 1)", "steps(4)" or "spring(1, 100, 10)".
func Parse(text string) (Curve, error) {
	if c, ok := Named(text); ok {
		return c, nil
	}
	if len(text) > maxCurveText {
		return Curve{}, fmt.Errorf(reasonLength, maxCurveText)
	}
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return Curve{}, fmt.Errorf(reasonName, wording.Quoted(text), BuiltIn, curveForms)
	}
	list, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return Curve{}, errors.New(reasonEnd)
	}
	arguments := strings.Split(list, ",")
	for i := range arguments {
		arguments[i] = strings.Trim(arguments[i], " ")
	}
	switch name {
	case "cubic-bezier":
		return parseBezier(arguments)
	case "steps":
		return parseSteps(arguments)
	case "spring":
		return parseSpring(arguments)
	default:
		return Curve{}, fmt.Errorf(reasonForm, wording.Quoted(name), curveForms)
	}
}

const curveForms = "cubic-bezier(x1, y1, x2, y2), steps(n), spring(mass, stiffness, damping)"

func parseBezier(arguments []string) (Curve, error) {
	n, err := numbers("cubic-bezier", arguments, 4)
	if err != nil {
		return Curve{}, err
	}
	c := Curve{curveBezier, n[0], n[1], n[2], n[3]}
	switch {
	case !(c.a >= 0 && c.a <= 1 && c.c >= 0 && c.c <= 1):
		return Curve{}, errors.New(reasonBezierX)
	case !(math.Abs(c.b) <= maxBezierY && math.Abs(c.d) <= maxBezierY):
		return Curve{}, fmt.Errorf(reasonBezierY, maxBezierY)
	}
	return c, nil
}

func parseSteps(arguments []string) (Curve, error) {
	j := jumpEnd
	if len(arguments) == 2 {
		known := false
		for i, name := range jumpNames {
			if arguments[1] == name || arguments[1] == "jump-"+name {
				j, known = jump(i), true
			}
		}
		if !known {
			return Curve{}, fmt.Errorf(reasonJump, strings.Join(jumpNames[:], ", "), wording.Quoted(arguments[1]))
		}
		arguments = arguments[:1]
	}
	n, err := numbers("steps", arguments, 1)
	if err != nil {
		return Curve{}, err
	}
	least := 1.0
	if j == jumpNone {
		least = 2
	}
	if !(n[0] >= least && n[0] <= maxSteps) || n[0] != math.Trunc(n[0]) {
		return Curve{}, fmt.Errorf(reasonSteps, least, maxSteps)
	}
	return Curve{kind: curveSteps, a: n[0], b: float64(j)}, nil
}

func parseSpring(arguments []string) (Curve, error) {
	n, err := numbers("spring", arguments, 3)
	if err != nil {
		return Curve{}, err
	}
	for i, name := range [...]string{"mass", "stiffness", "damping"} {
		if !(n[i] >= minSpring && n[i] <= maxSpring) {
			return Curve{}, fmt.Errorf(reasonSpring, name, minSpring, maxSpring)
		}
	}
	c := Curve{kind: curveSpring, a: n[0], b: n[1], c: n[2]}
	switch ratio := c.dampingRatio(); {
	case ratio < minDamping:
		return Curve{}, fmt.Errorf(reasonSwings, float64(c.c/ratio)*minDamping)
	case ratio > maxDamping:
		return Curve{}, fmt.Errorf(reasonStiff, float64(c.c/ratio)*maxDamping)
	default:
		c.d = settlingPhase(ratio)
	}
	return c, nil
}

// numbers parses the arguments of a curve.
func numbers(curve string, arguments []string, want int) ([]float64, error) {
	if len(arguments) != want {
		return nil, fmt.Errorf(reasonCount, curve, want, len(arguments))
	}
	ns := make([]float64, want)
	for i, text := range arguments {
		// ParseFloat reads more than decimal numbers: infinities, hexadecimal
		// digits, underscores.
		if text == "" || len(text) > maxNumberText || strings.Trim(text, "0123456789+-.eE") != "" {
			return nil, fmt.Errorf(reasonNumberText, wording.Quoted(text), maxNumberText)
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil { // too large for a number, too
			return nil, fmt.Errorf(reasonNumber, wording.Quoted(text))
		}
		ns[i] = n + 0 // -0 is 0
	}
	return ns, nil
}

// String returns c in the one form that [Parse] reads back exactly.
func (c Curve) String() string {
	switch c.kind {
	case curveBezier:
		return call("cubic-bezier", c.a, c.b, c.c, c.d)
	case curveSteps:
		if c.b == float64(jumpEnd) {
			return call("steps", c.a)
		}
		return fmt.Sprintf("steps(%d, %s)", int(c.a), jumpNames[int(c.b)])
	case curveSpring:
		return call("spring", c.a, c.b, c.c)
	default:
		return curveNames[c.kind]
	}
}

func call(name string, numbers ...float64) string {
	b := append([]byte(name), '(')
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendFloat(b, n, 'g', -1, 64)
	}
	return string(append(b, ')'))
}

// IsArc reports whether c is the built-in arc, which is a height above a path and not
// a position on it.
func (c Curve) IsArc() bool { return c.kind == curveArc }

// At returns the eased progress at raw progress t in [0, 1], the same on every
// machine. Every curve is 1 at 1, except the arcs, which return to 0.
//
// The conversions to float64 round each product by itself, so that no machine fuses it
// with the following addition.
func (c Curve) At(t float64) float64 {
	switch c.kind {
	case curveLinear:
		return t
	case curveEaseIn:
		return float64(t * t)
	case curveEaseOut:
		u := 1 - t
		return 1 - float64(u*u)
	case curveEaseInOut:
		if t < 0.5 {
			return float64(float64(float64(4*t)*t) * t)
		}
		u := float64(-2*t) + 2
		return 1 - float64(float64(float64(u*u)*u)/2)
	case curveArc:
		return float64(float64(4*t) * (1 - t))
	case curveBindingInOut:
		if t < 0.5 {
			return float64(float64(2*t) * t)
		}
		u := float64(-2*t) + 2
		return 1 - float64(float64(u*u)/2)
	case curveBindingArc:
		// The nearer end, so that it is 0 at both.
		return detmath.Sin(float64(math.Pi * min(t, 1-t)))
	case curveBezier, curveSteps, curveSpring:
		return c.data(t)
	default:
		return t
	}
}

// data is a curve that is given by numbers.
func (c Curve) data(t float64) float64 {
	switch {
	case t >= 1:
		return 1
	case c.kind == curveSteps:
		return c.steps(max(t, 0))
	case t <= 0:
		return 0
	case c.kind == curveBezier:
		return c.bezier(t)
	default:
		return 1 - swing(c.dampingRatio(), float64(c.d*t))
	}
}

// bezier finds the curve's y at x = t by bisection. x only increases along the curve,
// so 53 steps reach the precision of a double, and their number is fixed.
func (c Curve) bezier(t float64) float64 {
	low, high := 0.0, 1.0
	for range 53 {
		middle := float64((low + high) / 2)
		if cubic(c.a, c.c, middle) < t {
			low = middle
		} else {
			high = middle
		}
	}
	return cubic(c.b, c.d, high)
}

// cubic is one coordinate of a cubic curve from 0 to 1 with two inner points.
func cubic(p1, p2, s float64) float64 {
	u := 1 - s
	first := float64(float64(float64(3*u)*u)*s) * p1
	second := float64(float64(float64(3*u)*s)*s) * p2
	return float64(first) + float64(second) + float64(float64(s*s)*s)
}

func (c Curve) steps(t float64) float64 {
	n := c.a
	step := math.Floor(float64(t * n))
	switch jump(c.b) {
	case jumpStart:
		return min((step+1)/n, 1)
	case jumpNone:
		return min(step/(n-1), 1)
	case jumpBoth:
		return min((step+1)/(n+1), 1)
	default:
		return step / n
	}
}

// dampingRatio is 1 for a spring that barely does not swing.
func (c Curve) dampingRatio() float64 {
	return c.c / float64(2*math.Sqrt(float64(c.a*c.b)))
}

// nearCritical bounds the distance from 1 at which the square of a damping ratio
// counts as 1: the other closed forms lose precision there.
const nearCritical = 1e-9

// swing is the distance from rest of a spring released at 1, at a phase: its angular
// frequency times time. The three closed forms are for an underdamped, a critically
// damped and an overdamped spring.
func swing(ratio, phase float64) float64 {
	rest := 1 - float64(ratio*ratio)
	decay := float64(ratio * phase)
	switch {
	case math.Abs(rest) < nearCritical:
		return float64(detmath.Exp(-decay) * (1 + decay))
	case rest > 0:
		root := math.Sqrt(rest)
		angle := float64(root * phase)
		wave := detmath.Cos(angle) + float64(ratio/root*detmath.Sin(angle))
		return float64(detmath.Exp(-decay) * wave)
	default:
		// The sum of two decays. The slow one is written in a form without
		// cancellation.
		root := math.Sqrt(-rest)
		fast := ratio + root
		slow := 1 / fast
		share := ratio / root
		return float64((1+share)/2*detmath.Exp(-float64(slow*phase))) +
			float64((1-share)/2*detmath.Exp(-float64(fast*phase)))
	}
}

// settlingPhase is the phase from which a spring stays within settled of its rest. It
// bisects the envelope of the swing, which only decreases, in a fixed number of steps.
func settlingPhase(ratio float64) float64 {
	hull := func(phase float64) float64 {
		rest := 1 - float64(ratio*ratio)
		if rest < nearCritical {
			return swing(ratio, phase)
		}
		// Two bounds of the swing: its amplitude, and the value of a spring that does not
		// swing. The second is smaller near 1.
		decay := float64(ratio * phase)
		return float64(detmath.Exp(-decay) * min(1/math.Sqrt(rest), 1+decay))
	}
	low, high := 0.0, 1.0
	for hull(high) > settled {
		low, high = high, 2*high
	}
	for range 60 {
		middle := (low + high) / 2
		if hull(middle) > settled {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// curveNames are the names of the built-in curves.
var curveNames = [...]string{
	curveLinear:    "linear",
	curveEaseIn:    "easeIn",
	curveEaseOut:   "easeOut",
	curveEaseInOut: "easeInOut",
	curveArc:       "arc",

	curveBindingInOut: BindingEaseInOut,
	curveBindingArc:   BindingArc,
}

// The easeInOut and arc of a binding's transition. Authors cannot name them.
const (
	BindingEaseInOut = "binding.easeInOut"
	BindingArc       = "binding.arc"
)

// BuiltIn lists the names that an author may write.
const BuiltIn = "linear, easeIn, easeOut, easeInOut, arc"

// Named returns the built-in curve of a name; false if there is none.
func Named(name string) (Curve, bool) {
	i := slices.Index(curveNames[:], name)
	return Curve{kind: curveKind(max(i, 0))}, i >= 0
}

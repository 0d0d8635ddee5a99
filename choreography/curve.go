package choreography

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/exact"
	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Curve is an easing: how far an action is, given the share of its time that
// has passed. The zero value is linear. Curves are comparable with ==.
//
// A curve is written as the name of a built-in one (see [Ease]) or as data:
//
//	cubic-bezier(x1, y1, x2, y2)     as in CSS; x1 and x2 are in [0, 1]
//	steps(n)                         n jumps, the last at the end
//	steps(n, start|end|none|both)    as in CSS: which ends have a jump
//	spring(mass, stiffness, damping) from rest, let go at 0, settling at 1
//
// A spring takes as long as the action does: the time in which it comes to rest
// within a thousandth is stretched or pressed to the action's length. What it
// looks like therefore depends only on its damping ratio, damping divided by
// twice the root of stiffness times mass: below 1 it swings, at 1 it does not.
type Curve struct {
	kind curveKind

	// cubic-bezier: x1, y1, x2, y2.
	// steps: the number, the [jump].
	// spring: mass, stiffness, damping, and the phase (root of stiffness over
	// mass, times time) at which it has settled, which follows from them.
	a, b, c, d float64
}

// curveKind says what a curve is. The zero value is linear.
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

// jump says at which ends a steps curve jumps besides between its steps.
type jump int

const (
	jumpEnd jump = iota
	jumpStart
	jumpNone
	jumpBoth
)

var jumpNames = [...]string{jumpEnd: "end", jumpStart: "start", jumpNone: "none", jumpBoth: "both"}

// Bounds of what a curve is made of. They keep every value finite, and leave
// far more room than an eye can tell apart.
const (
	maxCurveText  = 200     // bytes of a written curve
	maxNumberText = 30      // bytes of a number in it
	maxBezierY    = 1000    // how far a cubic-bezier may lead beyond its ends
	maxSteps      = 1 << 20 // jumps of a steps curve
	maxSpring     = 1e6     // mass, stiffness and damping
	minSpring     = 1e-6
	minDamping    = 0.005 // damping ratio: some 200 swings
	maxDamping    = 1000
	settled       = 0.001 // what a spring is off when it counts as at rest
)

// ParseCurve reads a curve as it is written: the name of a built-in one, or its
// data such as "cubic-bezier(0.2, 0, 0, 1)", "steps(4)" or "spring(1, 100, 10)".
func ParseCurve(text string) (Curve, error) {
	if k, ok := curveNamed(text); ok {
		return Curve{kind: k}, nil
	}
	if len(text) > maxCurveText {
		return Curve{}, fmt.Errorf("a curve of more than %d characters", maxCurveText)
	}
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return Curve{}, fmt.Errorf("no curve is called %s: it is one of %s, or %s", wording.Quoted(text), builtInCurves, curveForms)
	}
	list, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return Curve{}, errors.New("the curve does not end with )")
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
		return Curve{}, fmt.Errorf("no curve is called %s: there are %s", wording.Quoted(name), curveForms)
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
		return Curve{}, errors.New("x1 and x2 of a cubic-bezier must be between 0 and 1")
	case !(math.Abs(c.b) <= maxBezierY && math.Abs(c.d) <= maxBezierY):
		return Curve{}, fmt.Errorf("y1 and y2 of a cubic-bezier must be between -%d and %[1]d", maxBezierY)
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
			return Curve{}, fmt.Errorf("steps jump at %s, not at %s", strings.Join(jumpNames[:], ", "), wording.Quoted(arguments[1]))
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
		return Curve{}, fmt.Errorf("the number of steps must be a whole number from %g to %d", least, maxSteps)
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
			return Curve{}, fmt.Errorf("the %s of a spring must be between %g and %g", name, minSpring, maxSpring)
		}
	}
	c := Curve{kind: curveSpring, a: n[0], b: n[1], c: n[2]}
	switch ratio := c.dampingRatio(); {
	case ratio < minDamping:
		return Curve{}, fmt.Errorf("the spring swings for too long: its damping must be at least %.4g", float64(c.c/ratio)*minDamping)
	case ratio > maxDamping:
		return Curve{}, fmt.Errorf("the spring hardly moves: its damping must be at most %.4g", float64(c.c/ratio)*maxDamping)
	default:
		c.d = settlingPhase(ratio)
	}
	return c, nil
}

// numbers reads what stands between the brackets.
func numbers(curve string, arguments []string, want int) ([]float64, error) {
	if len(arguments) != want {
		return nil, fmt.Errorf("%s takes %d numbers, not %d", curve, want, len(arguments))
	}
	ns := make([]float64, want)
	for i, text := range arguments {
		// ParseFloat reads more than decimal numbers: infinities, hexadecimal
		// digits, underscores.
		if text == "" || len(text) > maxNumberText || strings.Trim(text, "0123456789+-.eE") != "" {
			return nil, fmt.Errorf("%s is no number of at most %d characters", wording.Quoted(text), maxNumberText)
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return nil, fmt.Errorf("%s is no number", wording.Quoted(text))
		}
		ns[i] = n + 0 // -0 is 0
	}
	return ns, nil
}

// String returns c in the one form that [ParseCurve] reads back exactly.
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

// IsArc reports whether c is the built-in arc, which is a height above a way
// and not a place on it.
func (c Curve) IsArc() bool { return c.kind == curveArc }

// At returns the eased progress at raw progress t in [0, 1], the same on every
// machine. Every curve is 1 at 1, save the arcs, which return to 0.
//
// Each product is rounded by itself, so that no machine fuses it with the
// addition that follows and all machines agree on the last bit.
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
		return exact.Sin(float64(math.Pi * min(t, 1-t)))
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

// bezier finds where the curve is at x = t by halving. x only grows along the
// curve, so that 53 halvings leave nothing that a double could tell apart, and
// their number is fixed.
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

// dampingRatio is 1 for a spring that just does not swing.
func (c Curve) dampingRatio() float64 {
	return c.c / float64(2*math.Sqrt(float64(c.a*c.b)))
}

// nearCritical is how near to 1 the square of a damping ratio counts as 1: the
// other forms lose their digits there, and this one is as near as that.
const nearCritical = 1e-9

// swing is how far a spring let go at 1 is from rest at a phase, its angular
// frequency times time. The closed forms are those of the three cases: swinging,
// just not swinging, creeping.
func swing(ratio, phase float64) float64 {
	rest := 1 - float64(ratio*ratio)
	decay := float64(ratio * phase)
	switch {
	case math.Abs(rest) < nearCritical:
		return float64(exact.Exp(-decay) * (1 + decay))
	case rest > 0:
		root := math.Sqrt(rest)
		angle := float64(root * phase)
		wave := exact.Cos(angle) + float64(ratio/root*exact.Sin(angle))
		return float64(exact.Exp(-decay) * wave)
	default:
		// The sum of two decays. The slow one is written so that nothing
		// cancels.
		root := math.Sqrt(-rest)
		fast := ratio + root
		slow := 1 / fast
		share := ratio / root
		return float64((1+share)/2*exact.Exp(-float64(slow*phase))) +
			float64((1-share)/2*exact.Exp(-float64(fast*phase)))
	}
}

// settlingPhase is the phase from which on a spring is within settled of its
// rest. It takes the hull of the swinging, which only falls, so that halving
// finds it. The number of steps is fixed.
func settlingPhase(ratio float64) float64 {
	hull := func(phase float64) float64 {
		rest := 1 - float64(ratio*ratio)
		if rest < nearCritical {
			return swing(ratio, phase)
		}
		// Two bounds of the swinging: its amplitude, and what it would be
		// if it did not swing. The second is the smaller one near 1.
		decay := float64(ratio * phase)
		return float64(exact.Exp(-decay) * min(1/math.Sqrt(rest), 1+decay))
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

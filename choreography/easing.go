package choreography

import (
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// curveNames are the curves that have a name of their own.
var curveNames = [...]string{
	curveLinear:    "linear",
	curveEaseIn:    "easeIn",
	curveEaseOut:   "easeOut",
	curveEaseInOut: "easeInOut",
	curveArc:       "arc",

	// Not for authors: a binding's transition uses them where it says
	// easeInOut and arc.
	curveBindingInOut: "binding.easeInOut",
	curveBindingArc:   "binding.arc",
}

// builtInCurves lists the names an author may write.
const builtInCurves = "linear, easeIn, easeOut, easeInOut, arc"

func curveNamed(name string) (curveKind, bool) {
	i := slices.Index(curveNames[:], name)
	return curveKind(max(i, 0)), i >= 0
}

// Ease applies a curve to raw progress t in [0, 1]. What is written may be the
// name of a built-in curve or a curve's data as [ParseCurve] reads it; anything
// else is linear. The built-in curves are:
//
//	linear     t
//	easeIn     t²
//	easeOut    1 - (1-t)²
//	easeInOut  4t³ below ½, then 1 - (2-2t)³/2
//	arc        4t(1-t), a height: it returns to 0
func Ease(easing string, t float64) float64 {
	c, _ := ParseCurve(easing)
	return c.At(t)
}

// Easing is a curve with a name, for steps to use from now on:
//
//	{"easing": "bouncy", "curve": "spring(1, 100, 10)"}
type Easing struct {
	value signal.Value
	name  string
	curve Curve
}

var _ Declaration = (*Easing)(nil)

// compileEasing makes an easing of v, which it copies.
func compileEasing(v signal.Value) (*Easing, error) {
	e := &Easing{value: slices.Clone(v)}
	name, _ := e.value.Get("easing")
	e.name, _ = name.Text()
	if err := checkEasingName(e.name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDefinition, err)
	}
	text, _ := e.value.Get("curve")
	written, ok := text.Text()
	if !ok {
		return nil, fmt.Errorf("%w: easing %s has no curve", ErrDefinition, wording.Quoted(e.name))
	}
	var err error
	if e.curve, err = ParseCurve(written); err != nil {
		return nil, fmt.Errorf("%w: easing %s: %w", ErrDefinition, wording.Quoted(e.name), err)
	}
	return e, nil
}

// checkEasingName refuses a name that could not be used: it would be taken for
// a curve, or for a reference.
func checkEasingName(name string) error {
	if err := checkName("the name of the easing", name); err != nil {
		return err
	}
	if _, err := ParseCurve(name); err == nil {
		return fmt.Errorf("%s is a curve already: choose another name", wording.Quoted(name))
	}
	return nil
}

// Word returns "easing".
func (e *Easing) Word() string { return wordEasing }

// Name returns the name that steps use.
func (e *Easing) Name() string { return e.name }

// Value returns the easing as it was written. It must not be changed.
func (e *Easing) Value() signal.Value { return e.value }

// Curve returns what the name stands for.
func (e *Easing) Curve() Curve { return e.curve }

// curve returns what an easing is in a definition: one that the definition
// brings with it, a built-in one, or a curve's data; else linear.
func (c *compiler) curve(easing string) Curve {
	if easing == "linear" && c.easings == nil {
		return Curve{}
	}
	curve, known := c.curves[easing]
	if known {
		return curve
	}
	text := easing
	if own, ok := c.easings.Get(easing); ok {
		text, _ = own.Text()
	}
	curve, _ = ParseCurve(text)
	if c.curves == nil {
		c.curves = make(map[string]Curve)
	}
	c.curves[easing] = curve
	return curve
}

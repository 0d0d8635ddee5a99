package choreography

// easing is one of the built-in curves. The zero value is linear, which also
// stands for every unknown name.
type easing uint8

const (
	easeLinear easing = iota
	easeIn
	easeOut
	easeInOut
	easeArc
)

// easingNames lists the curves a definition may name.
var easingNames = [...]string{
	easeLinear: "linear",
	easeIn:     "easeIn",
	easeOut:    "easeOut",
	easeInOut:  "easeInOut",
	easeArc:    "arc",
}

func easingNamed(name string) (easing, bool) {
	for e, n := range easingNames {
		if n == name {
			return easing(e), true
		}
	}
	return easeLinear, false
}

// Ease applies the named curve to raw progress t in [0, 1]. An unknown name is
// linear. The curves are:
//
//	linear     t
//	easeIn     t²
//	easeOut    1 - (1-t)²
//	easeInOut  4t³ below ½, then 1 - (2-2t)³/2
//	arc        4t(1-t), a height: it returns to 0
func Ease(name string, t float64) float64 {
	e, _ := easingNamed(name)
	return e.at(t)
}

// at rounds every product by itself, so that no machine fuses it with the
// addition that follows and all machines agree on the last bit.
func (e easing) at(t float64) float64 {
	switch e {
	case easeIn:
		return float64(t * t)
	case easeOut:
		u := 1 - t
		return 1 - float64(u*u)
	case easeInOut:
		if t < 0.5 {
			return float64(float64(float64(4*t)*t) * t)
		}
		u := float64(-2*t) + 2
		return 1 - float64(float64(u*u)*u)/2
	case easeArc:
		return float64(float64(4*t) * (1 - t))
	default:
		return t
	}
}

package picture

import (
	"image"
	"math"
)

// matrix maps x, y to ax+cy+e, bx+dy+f.
type matrix struct{ a, b, c, d, e, f float64 }

func (m matrix) apply(p point) point {
	return point{
		float64(m.a*p.x) + float64(m.c*p.y) + m.e,
		float64(m.b*p.x) + float64(m.d*p.y) + m.f,
	}
}

// of returns the matrix that applies n first and m to the result.
func (m matrix) of(n matrix) matrix {
	o := m.apply(point{n.e, n.f})
	return matrix{
		a: float64(m.a*n.a) + float64(m.c*n.b), b: float64(m.b*n.a) + float64(m.d*n.b),
		c: float64(m.a*n.c) + float64(m.c*n.d), d: float64(m.b*n.c) + float64(m.d*n.d),
		e: o.x, f: o.y,
	}
}

// scale returns the number of pixels in a unit.
func (m matrix) scale() float64 {
	return math.Sqrt(math.Abs(float64(m.a*m.d) - float64(m.b*m.c)))
}

// bounds returns the pixels that a rectangle touches.
func (m matrix) bounds(x, y, w, h float64, within image.Rectangle) image.Rectangle {
	p := [4]point{m.apply(point{x, y}), m.apply(point{x + w, y}), m.apply(point{x, y + h}), m.apply(point{x + w, y + h})}
	return pixels(p[:], within)
}

// sincos returns the sine and cosine of an angle in degrees. It rounds each product
// separately, so that the results are the same on every machine. They are accurate to
// 1e-9, which is more than a pixel needs.
func sincos(degrees float64) (sin, cos float64) {
	turn := math.Mod(degrees, 360)
	if turn < 0 {
		turn += 360
	}
	quarter := math.Floor(turn/90 + .5)
	x := float64((turn - float64(quarter*90)) * (math.Pi / 180)) // within an eighth of a turn
	q := float64(x * x)
	series := func(coefficients ...float64) float64 {
		sum := 0.0
		for _, c := range coefficients {
			sum = float64(sum*q) + c
		}
		return sum
	}
	s := float64(x * series(1.0/362880, -1.0/5040, 1.0/120, -1.0/6, 1))
	c := series(-1.0/3628800, 1.0/40320, -1.0/720, 1.0/24, -1.0/2, 1)
	switch int(quarter) % 4 {
	case 1:
		return c, -s
	case 2:
		return -s, -c
	case 3:
		return -c, s
	}
	return s, c
}

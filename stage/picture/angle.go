package picture

import "math"

// sincos returns the sine and cosine of an angle in degrees, built of products
// that are rounded one by one, so that they are the same on every machine.
// They are good to 1e-9, which is more than a pixel needs.
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

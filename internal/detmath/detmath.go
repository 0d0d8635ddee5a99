// Package detmath computes the functions of real numbers that choreographies and
// pictures need, to the same bits on every machine.
//
// Package math does not promise that: some of its functions are assembly that
// differs between architectures, and their Go forms let a compiler fuse a product
// with the sum that follows it, which rounds once instead of twice. This package
// rounds every product separately and otherwise uses only operations that IEEE
// 754 defines exactly: sum, difference, product, quotient and square root.
//
// # Accuracy
//
// [Exp] and [Hypot] are within one unit in the last place, [Sin] and [Cos] too
// as long as the argument is below 2^28. Beyond that the angle is first taken
// modulo the double nearest to 2π: still in [-1, 1] and the same everywhere,
// but the sine of a slightly different angle.
package detmath

import "math"

// ln2 in two parts. The first has 32 zero bits at its end, so that a product
// with the exponent of any double is exact.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// The series of exp from the third power on: 1/n! for n from 14 down to 3.
var expSeries = [...]float64{
	1.0 / 87178291200, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
	1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6,
}

// Exp returns e to the power of x: 0 for what is too small and +Inf for what is
// too large to write, NaN for NaN.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > 709.782712893384:
		return math.Inf(1)
	case x < -745.1332191019412:
		return 0
	}
	// x = k ln2 + high - low, so that the series sees no more than ln2/2.
	k := math.Round(x / math.Ln2)
	high := x - float64(k*ln2High)
	low := float64(k * ln2Low)
	r := high - low
	// r is rounded; what it lost goes back in at the end, where it is a
	// correction of the first order.
	lost := (high - r) - low
	p := series(expSeries[:], r)
	square := float64(r * r)
	tail := float64(square/2) + float64(float64(square*r)*p)
	sum := 1 + (r + (tail + lost))
	return math.Ldexp(sum, int(k))
}

// series is the polynomial with the given coefficients, the highest power
// first.
func series(coefficients []float64, x float64) float64 {
	p := coefficients[0]
	for _, c := range coefficients[1:] {
		p = float64(p*x) + c
	}
	return p
}

// halfPi is π/2 in parts of at most 24 bits: a product with a count of quarter
// turns below 2^29 is exact.
var halfPi = [...]float64{
	0x1.921fb4p+00,
	0x1.4442dp-24,
	0x1.846988p-48,
	0x1.8cc516p-72,
	0x1.01b838p-96,
}

// mostExact is the largest angle that halfPi serves.
const mostExact = 1 << 28

// turn splits an angle into quarter turns, of which only the number modulo 4
// is told, and a rest of at most an eighth of a turn as the sum of two doubles.
func turn(x float64) (quarter int, rest, tail float64) {
	if math.Abs(x) > mostExact {
		x = math.Mod(x, 2*math.Pi)
	}
	k := math.Round(x / (math.Pi / 2))
	rest = x
	for _, part := range halfPi {
		// The difference and exactly what its rounding lost.
		d := float64(-k * part)
		s := rest + d
		b := s - rest
		tail += (rest - (s - b)) + (d - b)
		rest = s
	}
	s := rest + tail
	return int(int64(k) & 3), s, (rest - s) + tail
}

// The series of sine and cosine in the square of the angle, after the terms
// that are taken by themselves.
var (
	sineSeries = [...]float64{
		1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
		-1.0 / 5040, 1.0 / 120, -1.0 / 6,
	}
	cosineSeries = [...]float64{
		1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320,
		-1.0 / 720, 1.0 / 24,
	}
)

// sine is the sine of rest + tail, at most an eighth of a turn.
func sine(rest, tail float64) float64 {
	square := float64(rest * rest)
	p := float64(float64(square*rest) * series(sineSeries[:], square))
	// The tail moves the sine by tail·cos(rest), and 1 - rest²/2 is cosine
	// enough for so small a thing.
	return rest + (p + float64(tail*(1-float64(square/2))))
}

// cosine is the cosine of rest + tail, at most an eighth of a turn.
func cosine(rest, tail float64) float64 {
	square := float64(rest * rest)
	half := float64(square / 2)
	p := float64(float64(square*square) * series(cosineSeries[:], square))
	w := 1 - half
	return w + (((1 - w) - half) + (p - float64(rest*tail)))
}

// Sin returns the sine of x, an angle in radians, and NaN for what is infinite
// or no number.
func Sin(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return math.NaN()
	}
	if x == 0 {
		return x // -0 keeps its sign
	}
	quarter, rest, tail := turn(x)
	return wave(quarter, rest, tail)
}

// Cos returns the cosine of x, an angle in radians, and NaN for what is
// infinite or no number.
func Cos(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return math.NaN()
	}
	quarter, rest, tail := turn(x)
	return wave(quarter+1, rest, tail)
}

// wave is the sine of a number of quarter turns and a rest.
func wave(quarter int, rest, tail float64) float64 {
	switch quarter & 3 {
	case 0:
		return sine(rest, tail)
	case 1:
		return cosine(rest, tail)
	case 2:
		return -sine(rest, tail)
	default:
		return -cosine(rest, tail)
	}
}

// Hypot returns the length of (x, y). It overflows only if the length does.
// It is +Inf if either is infinite, else NaN if either is no number.
func Hypot(x, y float64) float64 {
	x, y = math.Abs(x), math.Abs(y)
	switch {
	case math.IsInf(x, 1) || math.IsInf(y, 1):
		return math.Inf(1)
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	}
	long, short := max(x, y), min(x, y)
	scale := 1.0
	switch {
	case long > 0x1p500:
		scale = 0x1p600
	case long < 0x1p-450:
		scale = 0x1p-600
	}
	long, short = long/scale, short/scale
	return float64(math.Sqrt(float64(long*long)+float64(short*short)) * scale)
}

// Lerp returns the place between a and b at t: exactly a at 0 and b at 1.
func Lerp(a, b, t float64) float64 {
	if t == 1 {
		return b
	}
	way := b - a
	if math.IsInf(way, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return float64(a*(1-t)) + float64(b*t)
	}
	return a + float64(way*t)
}

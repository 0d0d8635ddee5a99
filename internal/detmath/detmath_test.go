package detmath_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/detmath"
)

// ulps is how many doubles lie between a and b, roughly.
func ulps(got, want float64) float64 {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return 0
	}
	unit := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
	return math.Abs(got-want) / unit
}

// The functions agree with package math, which is right to less than one ulp
// where the arguments are moderate, to within two.
func TestAgreesWithMath(t *testing.T) {
	for _, f := range []struct {
		name      string
		got, want func(float64) float64
		from, to  float64
	}{
		{"exp", detmath.Exp, math.Exp, -700, 700},
		{"exp near 0", detmath.Exp, math.Exp, -1, 1},
		{"sin", detmath.Sin, math.Sin, -1000, 1000},
		{"cos", detmath.Cos, math.Cos, -1000, 1000},
		{"sin, large", detmath.Sin, math.Sin, -2e8, 2e8},
		{"cos, large", detmath.Cos, math.Cos, -2e8, 2e8},
	} {
		t.Run(f.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				for range 100 {
					x := rapid.Float64Range(f.from, f.to).Draw(t, "x")
					if got, want := f.got(x), f.want(x); ulps(got, want) > 2 {
						t.Fatalf("at %v: got %v, want %v: %.1f ulp", x, got, want, ulps(got, want))
					}
				}
			})
		})
	}
}

// Angles at and beside whole quarter turns are where a careless reduction loses
// all its digits. The truth is taken with 300 bits.
func TestNearQuarterTurns(t *testing.T) {
	pi, _, err := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651", 10, 340, big.ToNearestEven)
	require.NoError(t, err)
	for _, k := range []int64{1, 2, 3, 4, 5, 6, 10, 100, 1001, 99999, 1 << 20, 1<<27 + 1} {
		turn := new(big.Float).SetPrec(340).SetInt64(k)
		turn.Mul(turn, pi).Quo(turn, big.NewFloat(2))
		x, _ := turn.Float64()
		rest := new(big.Float).SetPrec(340).SetFloat64(x)
		rest.Sub(rest, turn)
		// So near to it the sine of the rest is the rest.
		want, _ := rest.Float64()
		got := detmath.Sin(x)
		if k%2 == 1 {
			got = detmath.Cos(x)
			want = -want
		}
		if k%4 >= 2 {
			want = -want
		}
		if ulps(got, want) > 1 {
			t.Errorf("%d quarter turns: got %v, want %v", k, got, want)
		}
	}
}

func TestEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"exp 0", detmath.Exp(0), 1},
		{"exp 1", detmath.Exp(1), math.E},
		{"exp -inf", detmath.Exp(-inf), 0},
		{"exp inf", detmath.Exp(inf), inf},
		{"exp nan", detmath.Exp(nan), nan},
		{"exp 710", detmath.Exp(710), inf},
		{"exp -746", detmath.Exp(-746), 0},
		{"exp at the least", detmath.Exp(-745.13), math.Exp(-745.13)},
		{"exp at the most", detmath.Exp(709.78), math.Exp(709.78)},
		{"sin 0", detmath.Sin(0), 0},
		{"cos 0", detmath.Cos(0), 1},
		{"sin tiny", detmath.Sin(5e-324), 5e-324},
		{"sin inf", detmath.Sin(inf), nan},
		{"cos -inf", detmath.Cos(-inf), nan},
		{"sin nan", detmath.Sin(nan), nan},
		{"sin π/2", detmath.Sin(math.Pi / 2), 1},
		{"cos π", detmath.Cos(math.Pi), -1},
		{"hypot 3 4", detmath.Hypot(3, -4), 5},
		{"hypot 0", detmath.Hypot(0, 0), 0},
		{"hypot inf nan", detmath.Hypot(-inf, nan), inf},
		{"hypot nan", detmath.Hypot(nan, 1), nan},
		{"hypot huge", detmath.Hypot(3e300, 4e300), 5e300},
		{"hypot tiny", detmath.Hypot(3e-310, 4e-310), 5e-310},
		{"hypot over", detmath.Hypot(1.7e308, 1.7e308), inf},
		{"lerp 0", detmath.Lerp(3, 0.1, 0), 3},
		{"lerp 1", detmath.Lerp(3, 0.1, 1), 0.1},
		{"lerp same", detmath.Lerp(0.1, 0.1, 0.3), 0.1},
		{"lerp half", detmath.Lerp(-1, 3, 0.5), 1},
		{"lerp huge", detmath.Lerp(-1.5e308, 1.5e308, 0.5), 0},
	} {
		if ulps(c.got, c.want) > 1 {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	if got := detmath.Sin(math.Copysign(0, -1)); !math.Signbit(got) || got != 0 {
		t.Errorf("sin -0 = %v", got)
	}
}

// No argument leads out of what sine and cosine can be, and the two lie on the
// circle.
func TestSineAndCosineStayOnTheCircle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64().Draw(t, "x")
		s, c := detmath.Sin(x), detmath.Cos(x)
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return
		}
		if !(math.Abs(s) <= 1 && math.Abs(c) <= 1) || math.Abs(s*s+c*c-1) > 1e-15 {
			t.Fatalf("at %v: sin %v, cos %v", x, s, c)
		}
	})
}

func TestHypotAgreesWithMath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := rapid.Float64().Draw(t, "x"), rapid.Float64().Draw(t, "y")
		if got, want := detmath.Hypot(x, y), math.Hypot(x, y); ulps(got, want) > 2 {
			t.Fatalf("(%v, %v): got %v, want %v", x, y, got, want)
		}
	})
}

// A few results to the bit: they are part of what recorded sessions show, and
// must not move from machine to machine or from one version to the next.
func TestBits(t *testing.T) {
	for _, c := range []struct {
		name string
		got  float64
		want uint64
	}{
		{"exp 0.7", detmath.Exp(0.7), 0x40001c2a61268987},
		{"exp -12.3", detmath.Exp(-12.3), 0x3ed31765fdaf4f37},
		{"exp 345.6", detmath.Exp(345.6), 0x5f182ca33b1c0ee6},
		{"sin 0.3", detmath.Sin(0.3), 0x3fd2e9cd95baba33},
		{"sin 123456.7", detmath.Sin(123456.7), 0xbfeffa4cf2bce7e5},
		{"cos 2.2", detmath.Cos(2.2), 0xbfe2d5004b88ad70},
		{"cos 1e300", detmath.Cos(1e300), 0x3fe7fc3f18dde1da},
		{"hypot 0.1 0.7", detmath.Hypot(0.1, 0.7), 0x3fe6a09e667f3bcc},
		{"lerp 0.1 0.7 0.3", detmath.Lerp(0.1, 0.7, 0.3), 0x3fd1eb851eb851ec},
	} {
		if got := math.Float64bits(c.got); got != c.want {
			t.Errorf("%s: got %#x (%v), want %#x", c.name, got, c.got, c.want)
		}
	}
}

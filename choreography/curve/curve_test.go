package curve_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography/curve"
)

// parsed reads a curve that must be one.
func parsed(t rapid.TB, text string) curve.Curve {
	t.Helper()
	c, err := curve.Parse(text)
	if err != nil {
		t.Fatalf("ParseCurve(%q): %v", text, err)
	}
	return c
}

// What an author writes has one form, and that form reads back as the same
// curve.
func TestCurveForms(t *testing.T) {
	for _, c := range []struct{ written, want string }{
		{"linear", "linear"},
		{"arc", "arc"},
		{"binding.arc", "binding.arc"},
		{"cubic-bezier(0.25,0.1,.25,1.0)", "cubic-bezier(0.25, 0.1, 0.25, 1)"},
		{"cubic-bezier( 0.5 , -2e0,+1, 1e-3 )", "cubic-bezier(0.5, -2, 1, 0.001)"},
		{"cubic-bezier(-0, 0, 1, 1)", "cubic-bezier(0, 0, 1, 1)"},
		{"steps(4)", "steps(4)"},
		{"steps(4, end)", "steps(4)"},
		{"steps(4, jump-start)", "steps(4, start)"},
		{"steps(1e1,both)", "steps(10, both)"},
		{"steps(2, none)", "steps(2, none)"},
		{"spring(1, 100, 10)", "spring(1, 100, 10)"},
	} {
		got := parsed(t, c.written)
		if got.String() != c.want {
			t.Errorf("%q is written %q, want %q", c.written, got, c.want)
		}
		if again := parsed(t, got.String()); again != got {
			t.Errorf("%q reads back as another curve", got)
		}
	}
}

func TestCurvesThatAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "bouncy", "EaseIn", "steps", "steps(", "steps()", "steps(0)", "steps(1.5)", "steps(1, none)", "steps(4, middle)",
		"steps(4, start, end)", "steps(2000000)", "steps(4) ", "cubic-bezier(0,0,1)", "cubic-bezier(0,0,1,1,1)",
		"cubic-bezier(-0.1,0,1,1)", "cubic-bezier(0,0,1.1,1)", "cubic-bezier(0,1e9,1,1)", "cubic-bezier(0,NaN,1,1)",
		"cubic-bezier(0,Inf,1,1)", "cubic-bezier(0,1e999,1,1)", "cubic-bezier(0,0x1p4,1,1)", "cubic-bezier(0,1_0,1,1)",
		"cubic-bezier(0," + strings.Repeat("1", 5000) + ",1,1)", "spring(1,100)", "spring(0,100,10)", "spring(1,-100,10)",
		"spring(1,100,0)", "spring(1e7,100,10)", "spring(1,1e6,0.001)", "spring(1e-6,1e-6,1)", "spring(1, 100, 10",
		strings.Repeat("steps(", 100000),
	} {
		if c, err := curve.Parse(text); err == nil {
			t.Errorf("ParseCurve(%.40q) = %v, want an error", text, c)
		} else if len(err.Error()) > 400 {
			t.Errorf("ParseCurve(%.40q): an error of %d bytes", text, len(err.Error()))
		}
	}
}

// A number at its bound is accepted, and one beyond it is refused with the reason.
func TestCurveBounds(t *testing.T) {
	padded := func(length int) string {
		return "spring(1,100," + strings.Repeat(" ", length-len("spring(1,100,10)")) + "10)"
	}
	digits := func(n int) string { return "cubic-bezier(0." + strings.Repeat("1", n-2) + ",0,1,1)" }
	for _, c := range []struct{ accepted, refused, reason string }{
		{padded(200), padded(201), "a curve of more than 200 characters"},
		{digits(30), digits(31), "is no number of at most 30 characters"},
		{"cubic-bezier(0,0,0,0)", "cubic-bezier(-1e-9,0,0,0)", "between 0 and 1"},
		{"cubic-bezier(1,0,1,0)", "cubic-bezier(1.0000001,0,1,0)", "between 0 and 1"},
		{"cubic-bezier(0,0,1,0)", "cubic-bezier(0,0,1.0000001,0)", "between 0 and 1"},
		{"cubic-bezier(0,0,0,0)", "cubic-bezier(0,0,-1e-9,0)", "between 0 and 1"},
		{"cubic-bezier(0,1000,0,1000)", "cubic-bezier(0,1000.1,0,1000)", "between -1000 and 1000"},
		{"cubic-bezier(0,-1000,0,-1000)", "cubic-bezier(0,-1000,0,-1000.1)", "between -1000 and 1000"},
		{"steps(1)", "steps(0)", "a whole number from 1 to 1048576"},
		{"steps(1048576)", "steps(1048577)", "a whole number from 1 to 1048576"},
		{"steps(2, none)", "steps(1, none)", "a whole number from 2 to 1048576"},
		{"steps(1, both)", "steps(1.5, both)", "a whole number from 1 to 1048576"},
		{"steps(3, jump-both)", "steps(3, jump-middle)", `steps jump at end, start, none, both, not at "jump-middle"`},
		{"spring(1e-6, 1e6, 1)", "spring(9e-7, 1e6, 1)", "the mass of a spring must be between 1e-06 and 1e+06"},
		{"spring(1e6, 1e-6, 1)", "spring(1100000, 1e-6, 1)", "the mass of a spring must be between 1e-06 and 1e+06"},
		{"spring(1e6, 1e6, 1e6)", "spring(1e6, 1.1e6, 1e6)", "the stiffness of a spring must be between 1e-06 and 1e+06"},
		{"spring(1, 1e-6, 1)", "spring(1, 9e-7, 1)", "the stiffness of a spring must be between 1e-06 and 1e+06"},
		{"spring(1e-6, 1e-6, 1e-6)", "spring(1e-6, 1e-6, 9e-7)", "the damping of a spring must be between 1e-06 and 1e+06"},
		{"spring(1e6, 1e6, 1e6)", "spring(1e6, 1e6, 1.1e6)", "the damping of a spring must be between 1e-06 and 1e+06"},
		{"spring(1, 1, 0.01)", "spring(1, 1, 0.0099)", "its damping must be at least 0.01"},
		{"spring(1, 1, 2000)", "spring(1, 1, 2001)", "its damping must be at most 2000"},
		{"spring(1, 100, 10)", "spring(1, 100)", "spring takes 3 numbers, not 2"},
		{"spring(1, 100, 10)", "spring(1, 100, )", `"" is no number of at most`},
		{"spring(1, 100, 10)", "spring(1, 100, 1-0)", `"1-0" is no number`},
		{"linear", "unheard", `no curve is called "unheard": it is one of linear`},
		{"steps(3)", "stairs(3)", `no curve is called "stairs": there are cubic-bezier(`},
		{"steps(3)", "steps(3", "does not end with )"},
	} {
		if _, err := curve.Parse(c.accepted); err != nil {
			t.Errorf("%s: %v", c.accepted, err)
		}
		if _, err := curve.Parse(c.refused); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: err = %v, want %q", c.refused, err, c.reason)
		}
	}
}

func TestCurveValues(t *testing.T) {
	for _, c := range []struct {
		curve   string
		t, want float64
	}{
		// The CSS curve ease, whose middle browsers agree on.
		{"cubic-bezier(0.25, 0.1, 0.25, 1)", 0.5, 0.802403387584857},
		{"cubic-bezier(0, 0, 1, 1)", 0.3, 0.3},
		{"cubic-bezier(0.5, -1, 0.5, 2)", 0.5, 0.5},
		{"steps(4)", 0.24, 0},
		{"steps(4)", 0.25, 0.25},
		{"steps(4)", 0.99, 0.75},
		{"steps(4)", 1, 1},
		{"steps(4, start)", 0, 0.25},
		{"steps(4, start)", 0.25, 0.5},
		{"steps(4, start)", 0.9, 1},
		{"steps(3, none)", 0, 0},
		{"steps(3, none)", 0.4, 0.5},
		{"steps(3, none)", 0.7, 1},
		{"steps(3, both)", 0, 0.25},
		{"steps(3, both)", 0.4, 0.5},
		{"steps(3, both)", 0.99, 0.75},
		{"binding.easeInOut", 0.25, 0.125},
		{"binding.easeInOut", 0.75, 0.875},
		{"binding.arc", 0.5, 1},
		{"binding.arc", 1, 0},
		{"binding.arc", 1.0 / 6, 0.5},
	} {
		if got := parsed(t, c.curve).At(c.t); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s at %v = %v, want %v", c.curve, c.t, got, c.want)
		}
	}
}

// A spring is checked against the equation it solves, integrated in small steps:
// mass times acceleration is stiffness times the way to go, less damping times
// speed. The scale of time is taken from where both first are half way.
func TestSpringObeysItsEquation(t *testing.T) {
	for _, c := range []struct {
		curve                    string
		mass, stiffness, damping float64
	}{
		{"spring(1, 100, 10)", 1, 100, 10},
		{"spring(2, 50, 3)", 2, 50, 3},
		{"spring(1, 100, 19.9999)", 1, 100, 19.9999},
		{"spring(1, 100, 20)", 1, 100, 20},
		{"spring(1, 100, 20.00001)", 1, 100, 20.00001},
		{"spring(1, 100, 60)", 1, 100, 60},
	} {
		spring := parsed(t, c.curve)
		const h = 1e-5
		var way []float64 // where it is after each step
		x, v, half := 0.0, 0.0, 0
		acceleration := func(x, v float64) float64 { return (c.stiffness*(1-x) - c.damping*v) / c.mass }
		for range 2_000_000 {
			way = append(way, x)
			if x < 0.5 && half == len(way)-1 {
				half = len(way)
			}
			xm, vm := x+h/2*v, v+h/2*acceleration(x, v)
			x, v = x+h*vm, v+h*acceleration(xm, vm)
		}
		low, high := 0.0, 0.5
		for range 60 { // its first way up to the middle
			if m := (low + high) / 2; spring.At(m) < 0.5 {
				low = m
			} else {
				high = m
			}
		}
		length := float64(half) / low
		for i := range 1000 {
			at := float64(i) / 1000
			if got, want := spring.At(at), way[int(at*length)]; math.Abs(got-want) > 2e-4 {
				t.Errorf("%s at %v: got %v, integrated %v", c.curve, at, got, want)
				break
			}
		}
		for _, x := range way[int(length*1.0001):] {
			if math.Abs(1-x) > 0.0011 {
				t.Errorf("%s has not settled at its end: %v", c.curve, x)
				break
			}
		}
	}
}

// anyCurve draws a curve in its written form.
func anyCurve(t *rapid.T) string {
	number := func(from, to float64) string {
		return strconv.FormatFloat(rapid.Float64Range(from, to).Draw(t, "number"), 'g', -1, 64)
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"linear", "easeIn", "easeOut", "easeInOut", "arc", "binding.easeInOut", "binding.arc"}).Draw(t, "name")
	case 1:
		return "cubic-bezier(" + number(0, 1) + ", " + number(-3, 3) + ", " + number(0, 1) + ", " + number(-3, 3) + ")"
	case 2:
		return "steps(" + strconv.Itoa(rapid.IntRange(2, 1000).Draw(t, "n")) + rapid.SampledFrom([]string{"", ", start", ", end", ", none", ", both"}).Draw(t, "jump") + ")"
	default:
		mass, stiffness := rapid.Float64Range(0.01, 100).Draw(t, "mass"), rapid.Float64Range(0.01, 1000).Draw(t, "stiffness")
		ratio := math.Exp(rapid.Float64Range(math.Log(0.006), math.Log(900)).Draw(t, "ratio"))
		damping := ratio * 2 * math.Sqrt(mass*stiffness)
		return fmt.Sprintf("spring(%v, %v, %v)", mass, stiffness, damping)
	}
}

// Every curve begins at 0 and ends at 1, but the arcs, which return, and steps
// that jump at once; and what is written reads back.
func TestCurveEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyCurve(t)
		c, err := curve.Parse(text)
		if err != nil {
			if strings.HasPrefix(text, "spring") {
				return // beyond what a spring may have
			}
			t.Fatalf("%q: %v", text, err)
		}
		if again, err := curve.Parse(c.String()); err != nil || again != c {
			t.Fatalf("%q is written %q, which reads as %v, %v", text, c, again, err)
		}
		end := 1.0
		if strings.HasSuffix(text, "arc") {
			end = 0
		}
		if got := c.At(1); got != end {
			t.Errorf("%s ends at %v", text, got)
		}
		if got := c.At(0); got != 0 && !strings.HasSuffix(text, "start)") && !strings.HasSuffix(text, "both)") {
			t.Errorf("%s begins at %v", text, got)
		}
		at := rapid.Float64Range(0, 1).Draw(t, "t")
		if got := c.At(at); math.IsNaN(got) || math.Abs(got) > 10 {
			t.Errorf("%s at %v is %v", text, at, got)
		}
	})
}

// Steps, creeping springs, and curves whose inner points lie between their ends
// never go back.
func TestCurvesThatOnlyRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text string
		unit := func() float64 { return rapid.Float64Range(0, 1).Draw(t, "number") }
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			text = fmt.Sprintf("cubic-bezier(%v, %v, %v, %v)", unit(), unit(), unit(), unit())
		case 1:
			text = fmt.Sprintf("steps(%d, %s)", rapid.IntRange(2, 100).Draw(t, "n"), rapid.SampledFrom([]string{"start", "end", "none", "both"}).Draw(t, "jump"))
		default:
			text = fmt.Sprintf("spring(1, 100, %v)", 20+1000*unit())
		}
		c := parsed(t, text)
		before := 0.0
		for i := range 201 {
			at := c.At(float64(i) / 200)
			if at < before-1e-12 || at > 1 {
				t.Fatalf("%s goes back at %v: %v after %v", text, float64(i)/200, at, before)
			}
			before = at
		}
	})
}

// A few values to the bit: they decide what recorded sessions look like.
func TestCurveBits(t *testing.T) {
	for _, c := range []struct {
		curve string
		want  uint64
	}{
		{"easeInOut", 0x3fbba5e353f7ced9},
		{"cubic-bezier(0.2, 0, 0, 1)", 0x3fe604a4c517b04f},
		{"spring(1, 100, 10)", 0x3ff23a47b7e71189},
		{"spring(1, 100, 20)", 0x3fe870ca75af8721},
		{"spring(1, 100, 60)", 0x3febe2e40ad9818c},
		{"binding.arc", 0x3fe9e3779b97f4a8},
	} {
		if got := math.Float64bits(parsed(t, c.curve).At(0.3)); got != c.want {
			t.Errorf("%s at 0.3: got %#x, want %#x", c.curve, got, c.want)
		}
	}
}

func FuzzParseCurve(f *testing.F) {
	for _, text := range []string{"linear", "cubic-bezier(0.2, 0, 0, 1)", "steps(4, jump-both)", "spring(1, 100, 10)", "spring(1e-6,1e6,1e6)", "steps(1e400)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := curve.Parse(text)
		if err != nil {
			return
		}
		if again, err := curve.Parse(c.String()); err != nil || again != c {
			t.Errorf("%q is written %q, which reads as %v, %v", text, c, again, err)
		}
		for i := range 65 {
			if x := c.At(float64(i) / 64); math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%q at %v/64 is %v", text, i, x)
			}
		}
	})
}

// A curve is written in 200 bytes at most, blanks included.
func TestLengthOfACurve(t *testing.T) {
	steps := func(length int) string { return "steps(4" + strings.Repeat(" ", length-len("steps(4)")) + ")" }
	if got := parsed(t, steps(200)); got.String() != "steps(4)" {
		t.Errorf("read as %v", got)
	}
	if _, err := curve.Parse(steps(201)); err == nil {
		t.Error("201 bytes are read")
	}
}

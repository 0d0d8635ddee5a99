package curve_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/choreography/curve"
)

// A curve maps the linear progress of an action to its eased progress, the same on every
// machine.
func ExampleParse() {
	c, err := curve.Parse("cubic-bezier(0.25, 0.1, 0.25, 1)")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range []float64{0, 0.25, 0.5, 1} {
		fmt.Printf("%.2f → %.3f\n", t, c.At(t))
	}
	_, err = curve.Parse("bouncy(3)")
	fmt.Println(err)
	// Output:
	// 0.00 → 0.000
	// 0.25 → 0.409
	// 0.50 → 0.802
	// 1.00 → 1.000
	// no curve is called "bouncy": there are cubic-bezier(x1, y1, x2, y2), steps(n), spring(mass, stiffness, damping)
}

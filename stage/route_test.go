package stage

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Progress along a path is by its length, and is clamped to its ends.
func TestAlong(t *testing.T) {
	points := []scene.Point{{X: 0, Y: 0}, {X: 3, Y: 4}, {X: 3, Y: 4}, {X: 3, Y: 9}}
	lengths := lengthsOf(points)
	if got := lengths[len(lengths)-1]; got != 10 {
		t.Errorf("length: got %g, want 10", got)
	}
	for share, want := range map[float64]scene.Point{
		-1: {}, 0: {}, 0.25: {X: 1.5, Y: 2}, 0.5: {X: 3, Y: 4}, 0.75: {X: 3, Y: 6.5}, 1: {X: 3, Y: 9}, 7: {X: 3, Y: 9},
	} {
		if got := along(points, lengths, share); got != want {
			t.Errorf("at %g: got %v, want %v", share, got, want)
		}
	}
	still := []scene.Point{{X: 1, Y: 1}, {X: 1, Y: 1}}
	if got := along(still, lengthsOf(still), 0.5); got != still[0] {
		t.Errorf("on a way without length: got %v", got)
	}
}

// Equal shares of progress are equal lengths of the path, also at corners.
func TestAlongIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coordinate := rapid.Float64Range(-1000, 1000)
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scene.Point {
			return scene.Point{X: coordinate.Draw(t, "x"), Y: coordinate.Draw(t, "y")}
		}), 2, 6).Draw(t, "points")
		lengths := lengthsOf(points)
		length := lengths[len(lengths)-1]
		const steps = 64
		at := along(points, lengths, 0)
		for i := 1; i <= steps; i++ {
			next := along(points, lengths, float64(i)/steps)
			if d := scene.Distance(at, next); d > length/steps*(1+1e-9)+1e-9 {
				t.Fatalf("step %d is %g long, the way %g", i, d, length)
			}
			at = next
		}
		// A way so short that the squares of its lengths are 0 is a point.
		if at != points[len(points)-1] && length > 0 {
			t.Fatalf("it ends at %v", at)
		}
	})
}

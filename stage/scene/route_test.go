package scene_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

func TestLine(t *testing.T) {
	corner := scene.Route{Points: []scene.Point{{X: 0, Y: 0}, {X: 3, Y: 4}, {X: 3, Y: 4}, {X: 3, Y: 9}}}
	for share, want := range map[float64]scene.Point{
		-1: {}, 0: {}, 0.25: {X: 1.5, Y: 2}, 0.5: {X: 3, Y: 4}, 0.75: {X: 3, Y: 6.5}, 1: {X: 3, Y: 9}, 7: {X: 3, Y: 9},
		math.NaN(): {}, math.Inf(1): {X: 3, Y: 9},
	} {
		if got := corner.Line().Along(share); got != want {
			t.Errorf("at %g: got %v, want %v", share, got, want)
		}
	}
	if got := corner.Line().Length(); got != 10 {
		t.Errorf("length: got %g", got)
	}
	corner.Closed = true
	if got, want := corner.Line().Length(), 10+math.Sqrt(90); got != want {
		t.Errorf("length of the closed one: got %g, want %g", got, want)
	}
	if got := corner.Line().Along(1); got != corner.Points[0] {
		t.Errorf("the closed one ends at %v", got)
	}
	if len(corner.Points) != 4 {
		t.Error("Line changed the route")
	}
	var none scene.Line
	if none.Length() != 0 || none.Along(0.5) != (scene.Point{}) {
		t.Error("the zero line is somewhere")
	}
	still := scene.LineThrough([]scene.Point{{X: 1, Y: 1}, {X: 1, Y: 1}})
	if got := still.Along(0.5); got != (scene.Point{X: 1, Y: 1}) {
		t.Errorf("on a line without length: got %v", got)
	}
}

// Going along a line covers its length evenly and never leaves it.
func TestLineAlong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coordinate := rapid.Float64Range(-1000, 1000)
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scene.Point {
			return scene.Point{X: coordinate.Draw(t, "x"), Y: coordinate.Draw(t, "y")}
		}), 2, 6).Draw(t, "points")
		line := scene.LineThrough(points)
		const steps = 64
		at := line.Along(0)
		for i := 1; i <= steps; i++ {
			next := line.Along(float64(i) / steps)
			if d := scene.Distance(at, next); d > line.Length()/steps*(1+1e-9)+1e-9 {
				t.Fatalf("step %d is %g long, the line %g", i, d, line.Length())
			}
			at = next
		}
		if at != points[len(points)-1] {
			t.Fatalf("it ends at %v", at)
		}
	})
}

package world_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents/world"
)

// The hops from some ids are the lengths of the shortest ways to what can be reached, as far
// as the depth; a start is at distance 0, whether it leads anywhere or not.
func TestHops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 7
		leads := map[string][]string{}
		id := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, n-1).Draw(t, "id")) })
		for range rapid.IntRange(0, 12).Draw(t, "ways") {
			from := id.Draw(t, "from")
			leads[from] = append(leads[from], id.Draw(t, "to"))
		}
		starts, depth := rapid.SliceOfN(id, 0, 3).Draw(t, "starts"), rapid.IntRange(-1, 5).Draw(t, "depth")
		want := map[string]int{}
		for _, s := range starts {
			want[s] = 0
		}
		for d := 1; d <= depth; d++ {
			for from, hops := range maps.Clone(want) {
				for _, to := range leads[from] {
					if _, known := want[to]; !known && hops == d-1 {
						want[to] = d
					}
				}
			}
		}
		followed := map[string]int{}
		got := world.Index{}.Hops(starts, depth, func(id string, visit func(string)) {
			followed[id]++
			for _, to := range leads[id] {
				visit(to)
			}
		})
		require.Equal(t, want, got)
		for id, times := range followed {
			require.Equal(t, 1, times, "%s is followed once", id)
			require.Less(t, want[id], depth, "what lies at the depth is not followed")
		}
	})
}

// The indexes name what the world has, whatever a filter shows.
func TestIndex(t *testing.T) {
	w, err := world.ParseWorld(parse(t, `{"entities":{"a":{"team":"red"},"b":{"team":"red"},"c":{"team":7},"d":{}},
		"relationships":{"a":["b",{"to":"c","type":"knows"},{"to":"b","type":"knows"}],"b":["a"],"d":["a"]},"spatial_index":{"a":[0,0],"b":[3,4],"e":[0,0,6]}}`))
	require.NoError(t, err)
	for _, r := range []world.ReadOnly{w.ReadOnly, w.Filtered(only{"d"})} {
		i := r.Index()
		require.Equal(t, []string{"a", "b", "c", "d"}, slices.Sorted(i.Entities()))
		require.Equal(t, []string{"c", "d"}, slices.Sorted(i.Unplaced()))
		require.Equal(t, []string{"a", "b"}, slices.Sorted(i.Team(`"red"`)))
		require.Equal(t, []string{"c"}, slices.Sorted(i.Team("7")))
		require.Empty(t, slices.Sorted(i.Team("")))
		require.Equal(t, []string{"a", "b"}, slices.Sorted(i.Near(world.Position{}, 5)))
		require.Equal(t, []string{"a"}, slices.Sorted(i.Near(world.Position{}, math.Nextafter(5, 0))))
		require.Equal(t, []string{"a", "b", "e"}, slices.Sorted(i.Near(world.Position{}, 6)))
		require.Equal(t, []world.Relation{{To: "b"}, {To: "c", Type: "knows"}, {To: "b", Type: "knows"}}, i.Relations("a"))
		require.Empty(t, i.Relations("c"))
		require.Equal(t, []string{"b", "d"}, slices.Sorted(i.Referrers("a")))
		require.Equal(t, []string{"a"}, slices.Sorted(i.Referrers("c")))
		at, ok := i.Position("b")
		require.True(t, ok)
		require.Equal(t, world.Position{X: 3, Y: 4}, at)
		_, ok = i.Position("c")
		require.False(t, ok)
		_, ok = i.Entity("e")
		require.False(t, ok)
		_, ok = i.Entity("a")
		require.True(t, ok)
		var neighbours []string
		i.Neighbours("a", func(id string) { neighbours = append(neighbours, id) })
		slices.Sort(neighbours)
		require.Equal(t, []string{"b", "b", "b", "c", "d"}, neighbours, "once for each relation from it, and for each id that leads to it")
	}
}

// A team is a text that is not empty or an integer, as it is written in JSON.
func TestTeamOf(t *testing.T) {
	for object, want := range map[string]string{
		`{}`: "", `{"team":""}`: "", `{"team":"red"}`: `"red"`, `{"team":7}`: "7", `{"team":"7"}`: `"7"`, `{"team":-1}`: "-1", `{"team":7.0}`: "", `{"team":null}`: "",
		`{"team":["red"]}`: "", `{"team":true}`: "", `{"team":18446744073709551615}`: "", `[]`: "",
	} {
		require.Equal(t, want, world.TeamOf(parse(t, object)), object)
	}
}

// The square around a place has the corners of every point that is near enough, and little more.
func TestSquare(t *testing.T) {
	for _, c := range []struct {
		center world.Position
		radius float64
	}{
		{world.Position{}, 0}, {world.Position{X: 3, Y: -4}, 5}, {world.Position{X: -1e12, Y: 1e12}, 1e12}, {world.Position{X: 0.1, Y: 0.7}, 0.3}, {world.Position{X: 1e12}, 1e-3},
	} {
		low, high := world.Square(c.center, c.radius)
		for axis, at := range []float64{c.center.X, c.center.Y} {
			require.LessOrEqual(t, low[axis], at-c.radius)
			require.GreaterOrEqual(t, high[axis], at+c.radius)
			slack := (math.Abs(at) + c.radius) * 3e-15
			require.InDelta(t, at-c.radius, low[axis], slack, "%+v", c)
			require.InDelta(t, at+c.radius, high[axis], slack, "%+v", c)
		}
	}
	low, high := world.Square(world.Position{}, math.Inf(1))
	require.False(t, math.IsInf(low[0], 0) || math.IsInf(high[1], 0))
	require.GreaterOrEqual(t, high[0], 2*world.MaxCoordinate)
}

// A cone holds what is at most half of its angle away from its direction, to the edge.
func TestEdgesOfCones(t *testing.T) {
	at := func(degrees, distance float64) world.Position {
		return world.Position{X: 10 + distance*math.Cos(degrees*math.Pi/180), Y: -5 + distance*math.Sin(degrees*math.Pi/180)}
	}
	for _, angle := range []float64{0, 1, 30, 90, 179, 180, 181, 270, 359} {
		for _, facing := range []float64{0, 45, 200} {
			ahead := at(facing, 1)
			c := world.Cone{At: world.Position{X: 10, Y: -5}, Facing: world.Position{X: ahead.X - 10, Y: ahead.Y + 5}, Angle: angle, Range: 8}
			for _, side := range []float64{-1, 1} {
				require.True(t, c.Holds(at(facing+side*angle/2, 7)), "%v of %v at its edge", angle, facing)
				require.False(t, c.Holds(at(facing+side*(angle/2+0.01), 7)), "%v of %v beyond its edge", angle, facing)
				require.False(t, c.Holds(at(facing+side*angle/2, 8.001)), "too far")
			}
		}
	}
	for _, angle := range []float64{360, 361, 1e9} {
		require.True(t, world.Cone{Facing: world.Position{X: 1}, Angle: angle, Range: 1}.Holds(world.Position{X: -1}), angle)
	}
	require.False(t, world.Cone{Facing: world.Position{X: 1}, Angle: -90, Range: 1}.Holds(world.Position{X: 0.9, Y: 0.1}), "a negative angle is 0")
	require.True(t, world.Cone{Facing: world.Position{X: 1}, Angle: -90, Range: 1}.Holds(world.Position{X: 1}))
	require.True(t, world.Cone{Facing: world.Position{X: 1}, Range: 0}.Holds(world.Position{}))
	require.False(t, world.Cone{Facing: world.Position{X: 1}, Angle: 360, Range: -1}.Holds(world.Position{}))
}

// A position has two or three numbers, none too far; its form has no negative zero.
func TestParsePosition(t *testing.T) {
	for text, want := range map[string]world.Position{
		`[1,2]`: {X: 1, Y: 2}, `[1,2,3]`: {X: 1, Y: 2, Z: 3}, `[-1e12,1e12,1e12]`: {X: -1e12, Y: 1e12, Z: 1e12}, `[0.5,18446744,-0.0]`: {X: 0.5, Y: 18446744},
	} {
		p, err := world.ParsePosition(parse(t, text))
		require.NoError(t, err)
		require.Equal(t, want, p)
		for _, c := range []float64{p.X, p.Y, p.Z} {
			require.False(t, c == 0 && math.Signbit(c))
		}
	}
	for text, want := range map[string]string{
		`[]`: "want an array of two or three numbers", `[1]`: "want an array of two or three numbers", `[1,2,3,4]`: "want an array of two or three numbers", `{}`: "want an array of two or three numbers", `"x"`: "want an array of two or three numbers",
		`["x",2]`: "element 0 is no number", `[1,null]`: "element 1 is no number", `[1,2,{}]`: "element 2 is no number", `[1e13,0]`: "element 0 is beyond 1e+12", `[0,-1000000000001]`: "element 1 is beyond 1e+12", `[0,0,1.1e12]`: "element 2 is beyond 1e+12",
	} {
		_, err := world.ParsePosition(parse(t, text))
		require.EqualError(t, err, want, text)
	}
	require.Equal(t, `[1.0,-2.5,0.0]`, world.Position{X: 1, Y: -2.5}.Value().String())
	require.InDelta(t, 7, world.Position{X: 1, Y: 2, Z: 3}.Distance(world.Position{X: 3, Y: 5, Z: 9}), 0)
	require.InDelta(t, 7, world.Position{X: 3, Y: 5, Z: 9}.Distance(world.Position{X: 1, Y: 2, Z: 3}), 0)
}

package world_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// The entities in a circle or a cone are listed in the order of their ids, whatever their
// positions and the order in which they were placed.
func TestSpatialOrder(t *testing.T) {
	var want, places []string
	for i := range 60 {
		id := fmt.Sprintf("e%02d", i*37%60)
		places = append(places, fmt.Sprintf(`"%s": [%d, %d]`, id, i*7%23-11, i*5%19-9))
		want = append(want, id)
	}
	v, err := signal.ParseValue(fmt.Appendf(nil, `{"entities": {}, "spatial_index": {%s}}`, strings.Join(places, ", ")))
	require.NoError(t, err)
	w, err := world.ParseWorld(v)
	require.NoError(t, err)
	slices.Sort(want)
	require.Equal(t, want, w.Within(world.Position{}, 100))
	require.Equal(t, want, w.InCone(world.Cone{Range: 100, Angle: 360, Facing: world.Position{X: 1}}))
}

// The place of a cone itself is inside, and without a direction all that is in its range,
// however large the numbers are.
func TestConeOfExtremes(t *testing.T) {
	require.True(t, world.Cone{Facing: world.Position{X: 1e200}, Angle: 10, Range: 1}.Holds(world.Position{}))
	require.True(t, world.Cone{Angle: 10, Range: math.Inf(1)}.Holds(world.Position{X: 1e200}))
	require.False(t, world.Cone{Facing: world.Position{X: 1}, Angle: 10, Range: 1}.Holds(world.Position{Y: 0.5}))
	require.False(t, world.Cone{Angle: 10, Range: math.NaN()}.Holds(world.Position{}))
}

// A cone looks ahead of its place along each axis.
func TestConeAlongEachAxis(t *testing.T) {
	at := world.Position{X: 3, Y: 3, Z: 3}
	for _, facing := range []world.Position{{X: 2}, {Y: 2}, {Z: 2}} {
		c := world.Cone{At: at, Facing: facing, Angle: 90, Range: 5}
		require.True(t, c.Holds(world.Position{X: at.X + facing.X, Y: at.Y + facing.Y, Z: at.Z + facing.Z}), facing)
		require.False(t, c.Holds(world.Position{X: at.X - facing.X, Y: at.Y - facing.Y, Z: at.Z - facing.Z}), facing)
	}
}

// only shows some entities, with no relation and no position but those of the first.
type only []string

func (o only) Entity(id string) (signal.Value, bool) {
	return signal.Value{0x80}, slices.Contains(o, id)
}

func (o only) Position(id string) (world.Position, bool) {
	return world.Position{X: 5}, id == o[0]
}

func (o only) Relations(id string) []world.Relation {
	if id != o[0] {
		return nil
	}
	return []world.Relation{{To: o[0]}}
}

func (only) ShowsRelationTypes() bool { return false }

// A reader with a filter shows of all parts of the world what the filter shows, and none of
// the metadata.
func TestFiltered(t *testing.T) {
	w, err := world.ParseWorld(parse(t, `{"entities":{"a":{"x":1},"b":{"team":"red"},"c":{}},"relationships":{"a":["b"],"b":["a"]},"spatial_index":{"a":[0,0],"b":[1,0],"c":[2,0]},"metadata":{"secret":1}}`))
	require.NoError(t, err)
	require.Equal(t, 3, w.Len())
	for _, shown := range []only{{"b"}, {"b", "c"}} {
		r := w.Filtered(shown)
		require.Equal(t, len(shown), r.Len())
		require.Equal(t, []string{"b"}, r.Within(world.Position{}, 10))
		require.Equal(t, []string{"b"}, r.InCone(world.Cone{Range: 10}))
		require.Equal(t, map[int]string{
			1: `{"entities":{"b":{}},"relationships":{"b":["b"]},"spatial_index":{"b":[5.0,0.0,0.0]},"metadata":{}}`,
			2: `{"entities":{"b":{},"c":{}},"relationships":{"b":["b"]},"spatial_index":{"b":[5.0,0.0,0.0]},"metadata":{}}`,
		}[len(shown)], r.Value().String())
		require.Empty(t, r.Team("b"))
		_, err := w.Plan(world.Effect{Kind: world.KindRelationshipRemoved, Payload: parse(t, `{"from":"a","to":"b","type":""}`)})
		require.NoError(t, err)
		require.ErrorIs(t, w.CheckAs(r, world.Effect{Kind: world.KindRelationshipRemoved, Payload: parse(t, `{"from":"b","to":"b","type":""}`)}), world.ErrPayload, "it would show the type")
		require.NoError(t, w.CheckAs(r, world.Effect{Kind: world.KindRelationshipRemoved, Payload: parse(t, `{"from":"b","to":"b"}`)}))
		require.ErrorIs(t, w.CheckAs(r, world.Effect{Kind: world.KindInteract, Payload: parse(t, `{"target":"a"}`)}), world.ErrUnknownEntity)
	}
}

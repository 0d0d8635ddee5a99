package world_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// What is near, and what is in a cone, comes in the order of the ids, wherever it is and in
// whatever order it came.
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

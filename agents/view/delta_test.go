package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// A large patch stays a patch while the full view is larger still: it says what
// changed. Only when the full view is the smaller of the two does it replace the patch.
func TestLargePatchAgainstFullView(t *testing.T) {
	entities := func(letter string, changed int) signal.Value {
		var members []string
		for i := range 5 {
			text := strings.Repeat("a", 2500)
			if i < changed {
				text = strings.Repeat(letter, 2500)
			}
			members = append(members, fmt.Sprintf(`"e%d":{"text":%q}`, i, text))
		}
		v, err := signal.ParseValue([]byte(`{"visible_entities":{` + strings.Join(members, ",") + `},"visible_relationships":{}}`))
		require.NoError(t, err)
		return v
	}
	for changed, full := range map[int]bool{2: false, 5: true} {
		ops := view.Diff(entities("a", 0), entities("b", changed), 0)
		assert.Equal(t, full, view.Delta{Patches: ops}.IsFullView(), "%d of 5 entities changed", changed)
	}
}

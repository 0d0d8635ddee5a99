package where_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/replay/where"
)

// The paths of an expression are those of the state, without functions and without members
// of the same name elsewhere.
func TestStatePaths(t *testing.T) {
	set := testSet(t)
	for expr, want := range map[string][][]string{
		`state.count.n > 1 || prev.count.list[0] == "x"`:         {{"count", "n"}, {"count", "list"}},
		`state.performances["p-1"].a == 1`:                       {{"performances", "p-1", "a"}},
		`1 < state.count.n`:                                      {{"count", "n"}},
		`state.performances.size() > 0`:                          {{"performances"}},
		`entry.payload.state.count == 1 && has(entry.type)`:      nil,
		`has(state.performances.p1.name) && state.seq > uint(1)`: {{"performances", "p1", "name"}, {"seq"}},
	} {
		x, err := where.CompileValue(expr, set)
		require.NoError(t, err, expr)
		assert.Equal(t, want, x.StatePaths(), expr)
	}
}

package where_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// Each expression in testdata/costs.txt costs exactly its steps and bytes, which are
// the same on every machine, and has the value beside them.
func TestCosts(t *testing.T) {
	const name = "testdata/costs.txt"
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	set, in := testSet(t), input(t)
	var got strings.Builder
	for line := range strings.Lines(string(data)) {
		_, expr, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		if !ok || strings.HasPrefix(line, "#") {
			got.WriteString(line)
			continue
		}
		expr, _, _ = strings.Cut(expr, "  => ")
		x, err := where.CompileValue(expr, set)
		if err != nil {
			fmt.Fprintf(&got, "     -      - | %s  => %v\n", expr, err)
			continue
		}
		v, ok, err := x.Value(context.Background(), in)
		steps, bytes := x.Spent()
		fmt.Fprintf(&got, "%6d %6d | %s  => ", steps, bytes, expr)
		switch {
		case err != nil:
			fmt.Fprintf(&got, "error: %v\n", errors.Unwrap(err))
		case !ok:
			got.WriteString("missing\n")
		default:
			fmt.Fprintf(&got, "%.60s\n", fmt.Sprint(v))
		}
	}
	if golden.Updating() {
		require.NoError(t, os.WriteFile(name, []byte(got.String()), 0o644))
		return
	}
	if diff := cmp.Diff(string(data), got.String()); diff != "" {
		t.Error(diff)
	}
}

// An evaluation that the context ends at any of its checks ends with the context's
// cause, never with a value.
func TestEndedAtAnyCheck(t *testing.T) {
	set := testSet(t)
	for _, expr := range []string{
		`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a+b+c+d > 0))))`,
		`[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, a+b+c+d)))).size() == 10`,
	} {
		p, err := where.Compile(expr, set)
		require.NoError(t, err)
		ok, err := p.Match(context.Background(), where.Input{})
		require.NoError(t, err)
		assert.True(t, ok)
		steps, _ := p.Spent()
		for n := range steps / where.ContextEvery {
			ctx := &patience{Context: context.Background()}
			ctx.left.Store(n)
			ok, err := p.Match(ctx, where.Input{})
			assert.Falsef(t, ok, "%s at check %d", expr, n)
			assert.Errorf(t, err, "%s at check %d", expr, n)
		}
	}
}

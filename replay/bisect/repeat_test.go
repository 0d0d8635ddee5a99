package bisect_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// decide feeds the runs '.', '#' and '?' until a judgment is made, and returns how many
// it took.
func decide(r bisect.Repeat, runs string) (bisect.TestResult, int) {
	var n bisect.Votes
	for i := range len(runs) {
		n.Add(resultOf(runs[i]))
		if result, done := r.Decide(n); done {
			return result, i + 1
		}
	}
	return 0, len(runs)
}

func TestRepeat(t *testing.T) {
	for _, tt := range []struct {
		name   string
		r      bisect.Repeat
		runs   string
		result bisect.TestResult
		took   int
	}{
		{"once", bisect.Repeat{}, "#", bisect.Bad, 1},
		{"once, skipped", bisect.Repeat{}, "?", bisect.Skip, 1},
		{"two of three are enough", bisect.Repeat{Times: 3}, "..", bisect.Good, 2},
		{"the third decides", bisect.Repeat{Times: 3}, ".##", bisect.Bad, 3},
		{"a tie", bisect.Repeat{Times: 4}, ".#.#", bisect.Skip, 4},
		{"skips count as runs", bisect.Repeat{Times: 3}, "?#?", bisect.Bad, 3},
		{"a lead of three", bisect.Repeat{Confidence: 0.95}, ".#...", bisect.Good, 5},
		{"a lead of five", bisect.Repeat{Confidence: 0.99}, "#####", bisect.Bad, 5},
		{"a better test", bisect.Repeat{Confidence: 0.95, Flake: 0.05}, "#", bisect.Bad, 1},
		{"a lead out of reach", bisect.Repeat{Times: 4, Confidence: 0.95}, ".#", bisect.Skip, 2},
		{"too few runs from the start", bisect.Repeat{Times: 2, Confidence: 0.95}, ".", bisect.Skip, 1},
		{"hardly better than chance", bisect.Repeat{Confidence: 0.95, Flake: math.Nextafter(0.5, 0)}, "#", bisect.Skip, 1},
	} {
		result, took := decide(tt.r, tt.runs)
		assert.Equal(t, tt.result, result, tt.name)
		assert.Equal(t, tt.took, took, tt.name)
	}
}

// The judgment is the majority of all runs, whatever the omitted ones would have been;
// with a confidence the formula of the model holds for it, and not one run earlier.
func TestRepeatAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.StringMatching(`[.#?]{120}`).Draw(t, "runs")
		r := bisect.Repeat{Times: rapid.IntRange(1, 30).Draw(t, "times")}
		result, took := decide(r, runs)
		require.LessOrEqual(t, took, r.Times)
		good, bad := tally(runs[:r.Times])
		switch {
		case good > bad:
			require.Equal(t, bisect.Good, result)
		case bad > good:
			require.Equal(t, bisect.Bad, result)
		default:
			require.Equal(t, bisect.Skip, result)
		}

		r = bisect.Repeat{Confidence: rapid.Float64Range(0.51, 0.999).Draw(t, "confidence"), Flake: rapid.Float64Range(0.01, 0.45).Draw(t, "flake")}
		result, took = decide(r, runs)
		require.NotZero(t, result)
		right := func(n int) float64 {
			good, bad := tally(runs[:n])
			return 1 / (1 + math.Pow(r.Flake/(1-r.Flake), math.Abs(float64(good-bad))))
		}
		if result == bisect.Skip {
			return
		}
		require.GreaterOrEqual(t, right(took), r.Confidence-1e-9)
		require.Less(t, right(took-1), r.Confidence+1e-9)
	})
}

func tally(runs string) (good, bad int) {
	for _, c := range runs {
		switch c {
		case '.':
			good++
		case '#':
			bad++
		}
	}
	return good, bad
}

func TestRepeatCheck(t *testing.T) {
	require.NoError(t, bisect.Repeat{}.Check())
	require.NoError(t, bisect.Repeat{Times: 3, Confidence: 0.9, Flake: 0.1}.Check())
	for _, r := range []bisect.Repeat{
		{Times: -1}, {Confidence: 0.5}, {Confidence: 1}, {Confidence: -1}, {Confidence: math.NaN()}, {Flake: 0.5}, {Flake: -0.1}, {Flake: math.NaN()},
	} {
		assert.Error(t, r.Check(), "%+v", r)
	}
	assert.True(t, bisect.Votes{Good: 1, Bad: 1}.Mixed())
	assert.False(t, bisect.Votes{Good: 1, Skipped: 1}.Mixed())
}

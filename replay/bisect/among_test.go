package bisect_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// among searches numbers of which those from 20 on are bad. Each stands for its tens.
func among(n int, judge func(i int) (bisect.TestResult, error), cfg bisect.Config) (*bisect.Findings, error) {
	c := bisect.Candidates{Prepare: func(_ context.Context, job int, p bisect.Pick) (func(context.Context) (bisect.TestResult, error), error) {
		if job >= max(cfg.Jobs, 1) {
			return nil, errors.New("there is no such job")
		}
		return func(context.Context) (bisect.TestResult, error) { return judge(p.Index) }, nil
	}}
	for i := range n {
		c.Inputs = append(c.Inputs, bisect.HashInput([]byte{byte(i / 10)}))
	}
	return bisect.FindAmong(context.Background(), c, cfg)
}

func fromTwenty(i int) (bisect.TestResult, error) {
	if i >= 20 {
		return bisect.Bad, nil
	}
	return bisect.Good, nil
}

func TestFindAmong(t *testing.T) {
	for _, jobs := range []int{0, 1, 4} {
		var judged atomic.Int64
		out, err := among(100, func(i int) (bisect.TestResult, error) {
			judged.Add(1)
			return fromTwenty(i)
		}, bisect.Config{Options: bisect.Options{Goal: bisect.AllPhases}, Jobs: jobs})
		require.NoError(t, err)
		assert.Equal(t, []bisect.Phase{{First: 0, Last: 19, Result: bisect.Good}, {First: 20, Last: 99, Result: bisect.Bad}}, out.Phases)
		assert.True(t, out.Conclusive())
		assert.Equal(t, int64(10), judged.Load(), "candidates with equal inputs share a judgment")
		assert.Equal(t, 10, out.Tests)
		assert.Nil(t, out.Search.Stretches())
		assert.Nil(t, out.Onset)
	}
	out, err := among(100, fromTwenty, bisect.Config{Repeat: bisect.Repeat{Times: 3}})
	require.NoError(t, err)
	assert.Equal(t, [2]int{19, 20}, [2]int{out.Good, out.Bad})
}

func TestFindAmongRefuses(t *testing.T) {
	end := &bisect.EndpointError{}
	_, err := among(15, fromTwenty, bisect.Config{})
	require.ErrorAs(t, err, &end)
	assert.Equal(t, 14, end.Index)
	assert.EqualError(t, err, "bisect: endpoint of the bisection does not hold: candidate 14 was given as bad, and the test says good")
	_, err = among(5, fromTwenty, bisect.Config{})
	require.ErrorIs(t, err, bisect.ErrAlike)
	_, err = among(0, fromTwenty, bisect.Config{})
	require.ErrorIs(t, err, bisect.ErrAlike)
	_, err = among(40, func(int) (bisect.TestResult, error) { return 0, nil }, bisect.Config{})
	require.ErrorContains(t, err, "the test of candidate 0 returned result(0)")
	broken := errors.New("broken")
	_, err = among(40, func(int) (bisect.TestResult, error) { return 0, broken }, bisect.Config{})
	require.ErrorIs(t, err, broken)
	_, err = among(40, fromTwenty, bisect.Config{Repeat: bisect.Repeat{Times: -1}})
	require.Error(t, err)
}

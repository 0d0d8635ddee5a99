package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// TestBisectOrder shows which entries a bisection tests, in their order: both ends, then
// the middle of what is open; after a skipped entry a quarter, the other quarter, the
// eighths, and in the end whatever was not skipped.
func TestBisectOrder(t *testing.T) {
	for _, tt := range []struct {
		good, bad, first eventlog.Seq
		skip             []eventlog.Seq
		asked, result    string
	}{
		{0, 1, 1, nil, "[0 1]", "0..1 of 2 tests, 0 skipped"},
		{0, 2, 1, nil, "[0 2 1]", "0..1 of 3 tests, 0 skipped"},
		{0, 2, 2, nil, "[0 2 1]", "1..2 of 3 tests, 0 skipped"},
		{0, 9, 6, nil, "[0 9 4 6 5]", "5..6 of 5 tests, 0 skipped"},
		{3, 8, 8, nil, "[3 8 5 6 7]", "7..8 of 5 tests, 0 skipped"},
		{3, 8, 4, nil, "[3 8 5 4]", "3..4 of 4 tests, 0 skipped"},
		{0, 9, 6, []eventlog.Seq{4}, "[0 9 4 5 7 6]", "5..6 of 6 tests, 1 skipped"},
		{0, 9, 2, []eventlog.Seq{4, 5}, "[0 9 4 5 3 2 1]", "1..2 of 7 tests, 2 skipped"},
		{0, 4, 2, []eventlog.Seq{1, 2, 3}, "[0 4 2 1 3]", "0..4 of 5 tests, 3 skipped"},
	} {
		s := &tape{}
		for range 9 {
			s.add(10*ms, 1)
		}
		var asked []eventlog.Seq
		got, err := replay.Open(s, toys, nil).Bisect(t.Context(), tt.good, tt.bad, func(_ context.Context, m replay.Moment, f *projection.Fold) (replay.TestResult, error) {
			require.Equal(t, m.Seq, f.Head().Seq)
			asked = append(asked, m.Seq)
			for _, seq := range tt.skip {
				if m.Seq == seq {
					return replay.Skip, nil
				}
			}
			if m.Seq >= tt.first {
				return replay.Bad, nil
			}
			return replay.Good, nil
		})
		require.NoError(t, err)
		require.Equal(t, tt.asked, fmt.Sprint(asked), "first bad %d, skipped %v", tt.first, tt.skip)
		require.Equal(t, tt.result, fmt.Sprintf("%d..%d of %d tests, %d skipped", got.Good, got.Bad, got.Tests, got.Skipped))
	}
	_, err := replay.Open(song(), toys, nil).Bisect(t.Context(), 0, 2, func(context.Context, replay.Moment, *projection.Fold) (replay.TestResult, error) {
		return replay.TestResult(99), nil
	})
	require.ErrorContains(t, err, "entry 0: the test returned")
	_, err = replay.Open(song(), toys, nil).Bisect(t.Context(), 0, 2, func(context.Context, replay.Moment, *projection.Fold) (replay.TestResult, error) {
		return replay.Bad, nil
	})
	if !errors.Is(err, replay.ErrEndpoint) {
		t.Errorf("a good end that is bad: %v", err)
	}
}

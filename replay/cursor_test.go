package replay_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// In a session of several thousand entries, the steps back over commands lead to the
// moments of the steps forward, in the opposite order, and read only the entries around
// them.
func TestCommandsFarBack(t *testing.T) {
	ctx := t.Context()
	const entries = 3300
	played := []int{3, 998, 1000, 1001, 2000, 2001, 2999, 3000, 3200}
	s := &tape{}
	for i := 1; i <= entries; i++ {
		if slices.Contains(played, i) {
			s.add(10*ms, 4)
		} else {
			s.add(10 * ms)
		}
	}
	thousands := takeImages(s, func(n eventlog.Seq) bool { return n%1000 == 0 })
	r := replay.Open(s, toys, thousands)
	forward := r.Cursor()
	var want []replay.Moment
	for {
		if err := forward.StepCommand(ctx, 1); err != nil {
			require.ErrorIs(t, err, replay.ErrNoAddress)
			break
		}
		want = append(want, forward.Moment())
	}
	var expected []replay.Moment
	for _, n := range played {
		// An action starts with its entry and ends 4 ms later.
		expected = append(expected, replay.Moment{Seq: eventlog.Seq(n)}, replay.Moment{Seq: eventlog.Seq(n), Offset: 4 * ms})
	}
	require.Equal(t, expected, want)

	back := r.Cursor()
	require.NoError(t, back.Seek(ctx, replay.Moment{Seq: entries}))
	for _, m := range slices.Backward(want) {
		before := s.reads.Load()
		require.NoError(t, back.StepCommand(ctx, -1))
		require.Equal(t, m, back.Moment())

		// The interval that is searched, and the way to the moment that was found.
		require.LessOrEqual(t, s.reads.Load()-before, int64(2*1000+10), "%v", m)
		require.Equal(t, slow(t, s, m).View(), back.Fold().View())
	}
	require.ErrorIs(t, back.StepCommand(ctx, -1), replay.ErrNoAddress)
	require.Equal(t, want[0], back.Moment(), "a step that fails does not move")
}

// A step back over commands that meets an entry that cannot be read is its error, whichever of
// the reads of an interval far from the beginning it is.
func TestCommandsFarBackUnread(t *testing.T) {
	s := &damaged{tape: &tape{}}
	for i := range 1030 {
		s.add(10*ms, byte(i%1010/1009*4)) // one command, at entry 1010
	}
	for good := 0; ; good++ {
		s.good, s.failed = 1<<20, false
		c := replay.Open(s, toys, nil).Cursor()
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: 1030}))
		s.good = good
		err := c.StepCommand(t.Context(), -1)
		if !s.failed {
			require.NoError(t, err)
			require.Equal(t, replay.Moment{Seq: 1010, Offset: 4 * ms}, c.Moment())
			require.Greater(t, good, 20)
			break
		}
		require.ErrorIs(t, err, errDamaged, "after %d entries", good)
	}
}

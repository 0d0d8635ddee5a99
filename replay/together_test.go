package replay_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// Two sessions that are walked together have the states that each of them has alone, at
// every moment that a walk of either one visits.
func TestTogetherProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := genTape(t)
		right := &tape{entries: slices.Clone(left.entries)}
		for i := range right.entries { // other data at the same times
			if rapid.Bool().Draw(t, "other") {
				right.entries[i].Data = []byte{byte(rapid.IntRange(0, 200).Draw(t, "ms"))}
			}
		}
		a, b := replay.Open(left, toys, nil), replay.Open(right, toys, nil)
		over := replay.MomentRange{From: genMoment(t, left), To: genMoment(t, left)}
		if over.From.Compare(over.To) > 0 {
			over.From, over.To = over.To, over.From
		}
		want := map[replay.Moment]bool{}
		if over.From.Compare(over.To) < 0 {
			want[over.To] = true // a walk alone begins with entry 1, and visits nothing before it
			for _, r := range []*replay.Replay{a, b} {
				for s, err := range r.Moments(context.Background(), over, replay.NeedsState) {
					require.NoError(t, err)
					if s.Moment.Compare(over.From) > 0 {
						want[s.Moment] = true
					}
				}
			}
		}
		last := over.From
		prev := [2]any{slow(t, left, last).View(), slow(t, right, last).View()}
		for p, err := range replay.Together(context.Background(), a, b, over, replay.NeedsPrev) {
			require.NoError(t, err)
			require.Equal(t, p.Left.Moment, p.Right.Moment)
			require.Positive(t, p.Left.Moment.Compare(last))
			last = p.Left.Moment
			now := [2]any{slow(t, left, last).View(), slow(t, right, last).View()}
			for i, s := range []*replay.ScanStep{p.Left, p.Right} {
				require.Equal(t, now[i], any(s.View()))
				require.Equal(t, prev[i], any(s.Prev()))
				if last.Seq > 0 {
					require.Equal(t, last.Seq, s.Entry.Seq)
				}
			}
			prev = now
			require.True(t, want[last], "%v", last)
			delete(want, last)
		}
		require.Empty(t, want)
	})
}

func TestTogetherRefuses(t *testing.T) {
	left, right := &tape{}, &tape{}
	for i := range 4 {
		left.add(10*ms, byte(i))
		right.add(10*ms+time.Duration(i/3)*ms, byte(i))
	}
	walk := func(over replay.MomentRange) (pairs int, err error) {
		for _, err := range replay.Together(context.Background(), replay.Open(left, toys, nil), replay.Open(right, toys, nil), over, replay.NeedsState) {
			if err != nil {
				return pairs, err
			}
			pairs++
		}
		return pairs, nil
	}
	_, err := walk(replay.MomentRange{To: replay.Moment{Seq: eventlog.Seq(4)}})
	require.ErrorContains(t, err, "entry 4 at 40ms has no counterpart")
	_, err = walk(replay.MomentRange{To: replay.Moment{Seq: 5}})
	require.ErrorIs(t, err, replay.ErrNoAddress)
	n, err := walk(replay.MomentRange{From: replay.Moment{Seq: 3}, To: replay.Moment{Seq: 3}})
	require.NoError(t, err)
	require.Zero(t, n)
}

// A step at one moment is the one that a walk has there.
func TestStepAt(t *testing.T) {
	s := &tape{}
	s.add(10*ms, 5)
	s.add(20*ms, 40)
	r := replay.Open(s, toys, nil)
	for m, kind := range map[replay.Moment]replay.MomentKind{
		{}: replay.EdgeMoment, {Seq: 1}: replay.EntryMoment, {Seq: 1, Offset: 5 * ms}: replay.BoundaryMoment, {Seq: 2, Offset: 7 * ms}: replay.EdgeMoment,
	} {
		got, err := r.StepAt(context.Background(), m, replay.NeedsPrev)
		require.NoError(t, err)
		require.Equal(t, m, got.Moment)
		require.Equal(t, kind, got.Kind, "%v", m)
		require.Equal(t, slow(t, s, m).View(), got.View())
		require.Equal(t, m.Seq > 0, got.Entry != nil)
	}
	_, err := r.StepAt(context.Background(), replay.Moment{Seq: 3}, replay.NeedsState)
	require.ErrorIs(t, err, replay.ErrNoAddress)
}

package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// running is a valuation: the number of actions under way, as a text, and with
// NeedsPrev that at the moment before, too.
func running(needs replay.Needs) replay.Valuation[string] {
	count := func(view map[string]any) any { return view["band"].(map[string]any)["running"] }
	return replay.Valuation[string]{
		Needs: needs,
		Value: func(_ context.Context, s *replay.ScanStep) (string, error) {
			if needs&replay.NeedsPrev != 0 {
				return fmt.Sprint(count(s.Prev()), " then ", count(s.View())), nil
			}
			return fmt.Sprint(count(s.View())), nil
		},
		Copy: func() replay.Valuation[string] { return running(needs) },
	}
}

func intervals(t require.TestingT, r *replay.Replay, over replay.MomentRange, v replay.Valuation[string]) []replay.ValueInterval[string] {
	var got []replay.ValueInterval[string]
	for iv, err := range replay.Intervals(context.Background(), r, over, v) {
		require.NoError(t, err)
		got = append(got, iv)
	}
	return got
}

// The intervals are those of a search that looks at every millisecond.
func TestIntervalsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genTape(t)
		r := replay.Open(s, toys, takeImages(s, func(n eventlog.Seq) bool { return n%5 == 0 }))
		r.Split(rapid.IntRange(1, 3).Draw(t, "workers"), eventlog.Seq(rapid.IntRange(1, 9).Draw(t, "entries")))
		over := replay.MomentRange{From: genMoment(t, s), To: genMoment(t, s), Rest: rapid.Bool().Draw(t, "rest")}
		over.From.Offset, over.To.Offset = over.From.Offset.Truncate(ms), over.To.Offset.Truncate(ms)
		if over.From.Compare(over.To) > 0 {
			over.From, over.To = over.To, over.From
		}
		got := intervals(t, r, over, running(replay.NeedsState))
		if over.From.IsZero() {
			over.From.Seq = 1
		}
		if over.From.Compare(over.To) > 0 {
			require.Empty(t, got)
			return
		}
		for i, iv := range got {
			require.Equal(t, i == len(got)-1, iv.Open)
			if i > 0 {
				require.Equal(t, got[i-1].Until, iv.From)
			}
			at := slow(t, s, iv.From.Moment).At()
			require.Equal(t, at, iv.From.At)
		}
		if over.Rest {
			over.To = got[len(got)-1].Until.Moment
		}
		var want []string
		var starts []replay.Moment
		for _, m := range everyMillisecond(s, over.From, over.To) {
			v := fmt.Sprint(slow(t, s, m).View()["band"].(map[string]any)["running"])
			if len(want) == 0 || want[len(want)-1] != v {
				want, starts = append(want, v), append(starts, m)
			}
		}
		var values []string
		var froms []replay.Moment
		for _, iv := range got {
			values, froms = append(values, iv.Value), append(froms, iv.From.Moment)
		}
		require.Equal(t, want, values)
		require.Equal(t, starts, froms)
	})
}

// A part of a search can begin between entries and have no entry.
func TestIntervalsFromBetweenEntries(t *testing.T) {
	s := &tape{}
	for range 4 {
		s.add(10*ms, 0)
	}
	r := replay.Open(s, toys, takeImages(s, func(eventlog.Seq) bool { return true }))
	r.Split(2, 1)
	got := intervals(t, r, replay.MomentRange{From: replay.Moment{Seq: 2, Offset: 4 * ms}, To: replay.Moment{Seq: 4}}, running(replay.NeedsState))
	require.NotEmpty(t, got)
	require.Equal(t, replay.Moment{Seq: 2, Offset: 4 * ms}, got[0].From.Moment)
}

// A search in parts has the same results as one in a single pass: the intervals, with the
// state before too, and the hits of each mode of a scan.
func TestPartsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genTape(t)
		every := eventlog.Seq(rapid.IntRange(1, 7).Draw(t, "every"))
		images := takeImages(s, func(n eventlog.Seq) bool { return n%every == 0 })
		one, many := replay.Open(s, toys, images), replay.Open(s, toys, images)
		many.Split(rapid.IntRange(2, 4).Draw(t, "workers"), eventlog.Seq(rapid.IntRange(1, 5).Draw(t, "entries")))
		to := eventlog.Seq(rapid.IntRange(1, len(s.entries)).Draw(t, "to"))
		from := eventlog.Seq(rapid.IntRange(0, int(to)).Draw(t, "from"))
		over := replay.MomentRange{
			From: replay.Moment{Seq: from}, To: replay.Moment{Seq: to}, Rest: rapid.Bool().Draw(t, "rest"),
			Every: time.Duration(rapid.IntRange(0, 2).Draw(t, "grid")) * 3 * ms,
		}
		for _, needs := range []replay.Needs{replay.NeedsState, replay.NeedsState | replay.NeedsPrev} {
			values := running(needs)
			if diff := cmp.Diff(intervals(t, one, over, values), intervals(t, many, over, values)); diff != "" {
				t.Fatalf("needs %d (-one +many):\n%s", needs, diff)
			}
		}
		for _, needs := range []replay.Needs{replay.NeedsEntry, replay.NeedsState, replay.NeedsState | replay.NeedsPrev} {
			p := loud(needs, byte(rapid.IntRange(0, 60).Draw(t, "limit")))
			for _, mode := range []replay.Mode{replay.All, replay.First, replay.Last, replay.Changes} {
				if diff := cmp.Diff(hits(t, one, from, to, p, mode), hits(t, many, from, to, p, mode)); diff != "" {
					t.Fatalf("mode %d, needs %d (-one +many):\n%s", mode, needs, diff)
				}
			}
		}
	})
}

// loud is true at entries with more than a limit, or if it needs the state before,
// where the number of running actions grows.
func loud(needs replay.Needs, limit byte) replay.EntryPredicate {
	v := running(needs)
	return replay.EntryPredicate{
		Needs: needs,
		Test: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
			if needs&replay.NeedsPrev == 0 {
				return s.Entry.Data[0] > limit, nil
			}
			text, err := v.Value(ctx, s)
			return text == "0 then 1", err
		},
		Copy: func() replay.EntryPredicate { return loud(needs, limit) },
	}
}

// What is known when a search ends early is told: the intervals up to there, and the one
// under way as an open one.
func TestIntervalsUpToAnError(t *testing.T) {
	s := &tape{}
	for range 30 {
		s.add(10*ms, 3)
	}
	for _, parts := range []eventlog.Seq{100, 5} {
		r := replay.Open(s, toys, takeImages(s, func(n eventlog.Seq) bool { return n%5 == 0 }))
		r.Split(2, parts)
		fails := errors.New("fails")
		var failing func() replay.Valuation[string]
		failing = func() replay.Valuation[string] {
			v := running(replay.NeedsState)
			value := v.Value
			v.Value = func(ctx context.Context, s *replay.ScanStep) (string, error) {
				if s.Moment.Seq == 17 && s.Moment.Offset > 0 {
					return "", fails
				}
				return value(ctx, s)
			}
			v.Copy = failing
			return v
		}
		var got []replay.ValueInterval[string]
		var last error
		for iv, err := range replay.Intervals(context.Background(), r, replay.MomentRange{To: replay.Moment{Seq: 30}}, failing()) {
			if last = err; err == nil {
				got = append(got, iv)
			}
		}
		require.ErrorIs(t, last, fails)
		require.Len(t, got, 33)
		assert.Equal(t, replay.Moment{Seq: 17}, got[32].From.Moment)
		assert.True(t, got[32].Open)
		assert.Equal(t, got[32].From, got[32].Until)
	}
}

// A search that its reader leaves, or whose context ends, leaves no worker behind.
func TestPartsEnd(t *testing.T) {
	s := &tape{}
	for range 200 {
		s.add(10*ms, 3)
	}
	r := replay.Open(s, toys, takeImages(s, func(n eventlog.Seq) bool { return n%5 == 0 }))
	r.Split(4, 5)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, err := range replay.Intervals(ctx, r, replay.MomentRange{To: replay.Moment{Seq: 200}}, running(replay.NeedsState)) {
		require.NoError(t, err)
		break // the workers have ended when this loop has
	}
	n := 0
	var last error
	for _, err := range r.Scan(ctx, 1, 200, loud(replay.NeedsState, 0), replay.All) {
		if n++; n == 40 {
			cancel()
		}
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
	assert.Less(t, n, 200)
}

// The results of the parts come in the order of the parts, up to the first error, which
// follows the results of its part. A part during which the context ends is not complete,
// though its work reports no error.
func TestInOrder(t *testing.T) {
	fails := errors.New("fails")
	for _, workers := range []int{1, 2, 5} {
		for _, n := range []int{2, 3, 7} {
			for bad := -1; bad < n; bad++ {
				for _, cancels := range []bool{false, true} {
					ctx, cancel := context.WithCancel(t.Context())
					var want []int
					for i := range n {
						for k := range 70 * i { // the first is empty, and those behind it take several batches
							want = append(want, 1000*i+k)
						}
						if i == bad {
							break
						}
					}
					var got []int
					var last error
					for result, err := range replay.InOrder(ctx, workers, n, func(_ context.Context, i int, emit func(int) bool) error {
						for k := range 70 * i {
							if !emit(1000*i + k) {
								return nil
							}
						}
						switch {
						case i != bad:
							return nil
						case cancels:
							cancel()
							return nil
						}
						return fails
					}) {
						if last = err; err == nil {
							got = append(got, result)
						}
					}
					cancel()
					switch {
					case bad < 0:
						require.NoError(t, last)
						require.Equal(t, want, got)
					case cancels: // parts before it may have been under way
						require.ErrorIs(t, last, context.Canceled)
						require.True(t, slices.Equal(want[:len(got)], got), "%v, want %v", got, want)
					default:
						require.ErrorIs(t, last, fails)
						require.Equal(t, want, got)
					}
				}
			}
		}
	}
}
